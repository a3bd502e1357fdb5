"""Why a command failed, from its exit status and the end of its output. A handful of rules, each of them certain.

What no rule knows is `unknown`, with the last exception line: saying nothing is better than sending people the wrong
way. The last exception line is what counts. The engine prints advice of its own before it (install another version of
transformers) for every failure to load, also for a truncated file.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.errors import NotHere
from runner.runs.words import plain
from schemas.artifacts.report import FailureClass, ValidationReport

_TAIL_BYTES = 256 * 1024
_QUOTED_LINES = 5

_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit)(?::|$)")
_USAGE = re.compile(r"^\S+: error: ")


@dataclass(frozen=True)
class Diagnosis:
    """What kind of failure it was, the cause in a sentence, and what to do next."""

    failure: FailureClass
    cause: str
    next_actions: tuple[str, ...] = ()
    line: str = ""


@dataclass(frozen=True)
class _Rule:
    """A pattern that stands in the last line of an exception only when this is the cause."""

    pattern: re.Pattern[str]
    failure: FailureClass
    cause: str
    action: str


_RULES = (
    _Rule(
        re.compile(r"\bOutOfMemoryError\b|\b(?:CUDA|HIP) out of memory\b"),
        FailureClass.MEMORY,
        "The GPU ran out of memory.",
        "Take fewer calibration samples or batch_size 1, or a GPU with more memory; a smaller model also fits.",
    ),
    _Rule(
        # With a message, MemoryError is the engine's own, also where there is no GPU at all: that one is not certain.
        re.compile(r"^MemoryError$|DefaultCPUAllocator: can't allocate memory|^OSError: \[Errno 12\]"),
        FailureClass.MEMORY,
        "The host ran out of memory.",
        "Take fewer calibration samples, or a host with more memory.",
    ),
    _Rule(
        re.compile(r"No space left on device|\(os error 28\)|\[Errno 28\]"),
        FailureClass.HOST,
        "The disk is full.",
        "Free disk space and delete what the run left in its output folder: it looks like a model and is none.",
    ),
    _Rule(
        re.compile(r"SafetensorError: Error while deserializing"),
        FailureClass.LOAD,
        "A safetensors file is truncated or damaged.",
        "Compare the sizes of the model's files with where they came from, and fetch again what differs.",
    ),
    _Rule(
        re.compile(r"does not recognize this architecture"),
        FailureClass.COMPATIBILITY,
        "The installed transformers does not know this model's type.",
        "Install a version of transformers that knows it and that the engine supports. A model that brings its own "
        "code needs that code approved instead.",
    ),
    _Rule(
        re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named "),
        FailureClass.ENVIRONMENT,
        "A Python package is missing in the quantization interpreter.",
        "Install the package that is named into the quantization interpreter.",
    ),
    _Rule(
        re.compile(
            # What quantize_quark.py calls of the package. Seen with a checkout newer than amd-quark 0.13.
            r"^TypeError: (?:get_calib_dataloader|get_model|get_tokenizer|export_safetensors|eval_model)\w*\(\) got an "
            r"unexpected keyword argument |^ImportError: cannot import name .* from 'quark[.']"
        ),
        FailureClass.ENVIRONMENT,
        "The script and the installed amd-quark do not fit each other.",
        "Take the checkout of the release that is installed, or let our own script run (entry_point own).",
    ),
    _Rule(
        re.compile(r"^OSError: Error no file named model\.safetensors"),
        FailureClass.LOAD,
        "The model's folder holds no weights.",
        "Finish the download of the model, or name the folder that holds its safetensors files.",
    ),
)

_REFUSED = "BadInput: "
"""What our own script raises when it refuses what it was asked for; the sentence behind it is for people."""

_CHANGE = "Change what it names, and make a new plan where that changes what the plan says."

_REFUSALS: tuple[tuple[re.Pattern[str], FailureClass, str], ...] = (
    (
        re.compile(
            r"^The model cannot be read|cannot be downloaded|^The download of |^There is no model |^The tokenizer"
        ),
        FailureClass.LOAD,
        "Compare the model's files with where they came from, and fetch again what is missing or differs.",
    ),
    (
        re.compile(r"^The output folder .* cannot be written to"),
        FailureClass.HOST,
        "Let the runner's user write there, or choose another output folder.",
    ),
    (re.compile(r"^torch .* finds no GPU|^This version of Quark"), FailureClass.ENVIRONMENT, _CHANGE),
    (re.compile(r"^The installed transformers cannot build"), FailureClass.COMPATIBILITY, _CHANGE),
    (
        re.compile(r" tokens, but calibration needs | samples; --num_calib_data asks for "),
        FailureClass.CONFIGURATION,
        "Plan again with fewer calibration samples or a shorter seq_len, or with a longer text.",
    ),
    (re.compile(""), FailureClass.CONFIGURATION, _CHANGE),
)
"""Which kind of failure a refusal is; the last one takes all others."""

_MISSING_SCRIPT = re.compile(r": can't open file .*: \[Errno 2\]")


def diagnose(log_lines: Sequence[str], exit_code: int | None) -> tuple[FailureClass, str, tuple[str, ...]]:
    """The kind of failure, its cause in a sentence, and what to do next.

    `log_lines` is the end of the output, oldest first; `exit_code` is -N when signal N ended the command, None when it
    is not known. An exit status of 0 is no failure of the command and gives `unknown`.
    """
    found = examine(log_lines, exit_code)
    return found.failure, found.cause, found.next_actions


def examine(log_lines: Sequence[str], exit_code: int | None) -> Diagnosis:
    """The same, with the line of the output that decided it."""
    lines = [plain(line, 2000) for line in log_lines]
    line = last_exception(lines)
    if exit_code == 0:
        return Diagnosis(FailureClass.UNKNOWN, "The command itself did not fail: its exit status is 0.", (), line)
    number = _signal(exit_code)
    if number is not None:
        return _ended_by_signal(number, line)
    for rule in _RULES:
        if rule.pattern.search(line):
            return Diagnosis(rule.failure, f"{rule.cause} {_said(line)}", (rule.action,), line)
    if line.startswith(_REFUSED):
        return _refused(line)
    script = next((text for text in reversed(lines) if _MISSING_SCRIPT.search(text)), "")
    if exit_code == 2 and script:
        action = "Put the file back, or make a new manifest with an entry point that exists."
        return Diagnosis(FailureClass.ENVIRONMENT, f"The script is missing. {_said(script)}", (action,), script)
    status = f"with exit status {exit_code}" if exit_code is not None else "with an exit status that is not known"
    if not line:
        cause = f"The command ended {status} and printed no exception."
    else:
        cause = f"The command ended {status} for a reason that is not known here. {_said(line)}"
    return Diagnosis(FailureClass.UNKNOWN, cause, ("Read the end of the log.",), line)


def _refused(line: str) -> Diagnosis:
    sentence = line.removeprefix(_REFUSED)
    failure, action = next((failure, action) for pattern, failure, action in _REFUSALS if pattern.search(sentence))
    return Diagnosis(failure, f"The quantization script refused to go on: {plain(sentence)}", (action,), line)


def could_not_start(reason: str) -> Diagnosis:
    """The command was never executed: interpreter, script or working directory is not as it has to be."""
    action = (
        "Run `ptq-runner doctor` on the host; when the interpreter moved, set quark.python and make a new manifest."
    )
    return Diagnosis(FailureClass.ENVIRONMENT, f"The command could not be started. {plain(reason)}".strip(), (action,))


def time_limit() -> Diagnosis:
    """The runner itself ended the command, because it took longer than a run may."""
    action = "Take fewer calibration samples, or raise the time limit of runs."
    return Diagnosis(FailureClass.KILLED, "The command took longer than a run may and was ended.", (action,))


def last_exception(lines: Sequence[str]) -> str:
    """The last line that names an exception, or a program's complaint about its arguments; empty where none does.

    The own script also tells its errors as an event, a JSON line: that one is given as the exception it stands for.
    """
    for line in reversed(lines):
        if _EXCEPTION.match(line) or _USAGE.match(line):
            return line
        if line.startswith('{"ptq"') and (told := _error_event(line)):
            return told
    return ""


def _error_event(line: str) -> str:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    match event:
        case {"ptq": "error", "type": str(kind), "message": str(message)}:
            return plain(f"{kind}: {message}".removesuffix(": "), 2000)
    return ""


def quoted(lines: Iterable[str], line: str = "") -> list[str]:
    """What a report quotes of a log: the deciding line, then the last few lines that say anything."""
    said = [text for text in (plain(entry) for entry in lines) if text]
    chosen = [plain(line)] if line else []
    return list(dict.fromkeys(chosen + said[-_QUOTED_LINES:]))


def diagnose_file(log: Path, exit_code: int | None) -> ValidationReport:
    """A report on a run of which only the output is at hand. Raises NotHere when the file cannot be read."""
    lines = _tail(log)
    found = examine(lines, exit_code)
    if exit_code == 0:
        return ValidationReport(status="success", summary=found.cause, evidence=quoted(lines, found.line))
    return ValidationReport(
        status="failed",
        summary=f"The run failed: {found.cause}",
        evidence=quoted(lines, found.line),
        next_actions=list(found.next_actions),
        failure=found.failure,
        cause=found.cause,
    )


def _tail(log: Path) -> list[str]:
    """The last lines of a file; a progress bar that redraws itself counts as many lines."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
            data = file.read(_TAIL_BYTES)
    except OSError as error:
        raise NotHere("no_such_log", f"{log} cannot be read: {error.strerror}.", "Name the run's log.") from None
    return [line for line in re.split(r"[\r\n]+", data.decode("utf-8", "replace")) if line.strip()]


def _signal(exit_code: int | None) -> int | None:
    """The signal that ended the command, told as -N by a parent or as 128 + N by a shell or container."""
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code
    return exit_code - 128 if exit_code in (128 + signal.SIGKILL, 128 + signal.SIGTERM) else None


def _ended_by_signal(number: int, line: str) -> Diagnosis:
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL:
        cause = "The command was killed (SIGKILL); the usual reason is that the host ran out of memory."
        action = "Look for the out-of-memory killer in the kernel's log; take fewer calibration samples or more memory."
        return Diagnosis(FailureClass.KILLED, cause, (action,), line)
    if number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        cause = f"The command was asked to end ({name})."
        return Diagnosis(FailureClass.KILLED, cause, ("Find out who stopped it before it is run again.",), line)
    cause = f"The command crashed ({name}) in compiled code."
    return Diagnosis(FailureClass.UNKNOWN, cause, ("Read the end of the log.",), line)


def _said(line: str) -> str:
    """The line as the last part of a sentence."""
    return f"It said: {plain(line)}"
