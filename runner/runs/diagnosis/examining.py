"""Why a command failed, from its exit status and the end of its output.

What no rule knows is `unknown`, with the last exception line: saying nothing is better than sending people the wrong
way. The last exception line is what counts. The engine prints advice of its own before it (install another version of
transformers) for every failure to load, also for a truncated file.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from runner.runs.bars import Bar
from runner.runs.diagnosis.output import Output
from runner.runs.diagnosis.refusals import REFUSED, refused
from runner.runs.diagnosis.rule import Help, Memory, Rule, Where
from runner.runs.diagnosis.rules import rules
from runner.runs.diagnosis.rules.memory import LESS_WORK
from runner.runs.words import plain
from schemas.artifacts.report import FailureClass

_QUOTED_LINES = 5
_LAST_LINES = 20
_BAR = re.compile(r"\d%\|")  # a progress bar says nothing of a failure
_LONGEST_SEARCHED = 1000  # characters, of lines that name no exception
_MARKS = re.compile(r"[\s^~|]+")  # what a traceback draws below its lines
_EXPORTED = re.compile(
    r"quantized model exported to (?P<one>\S+) successfully|exported model to .{1,60}: (?P<two>\S+)$"
)
_READ_THE_LOG = "Read the end of the log."
_NO_REPAIR = (
    "Nothing needs to be repaired. Before it is relied on, look at its evaluation: where that was skipped because the "
    "host has no GPU (MXFP4 computes only on one), evaluate it on a host with a GPU.",
    "If it was meant to stop: SIGINT is ignored by a command that was started in the background; end its process group "
    "by SIGTERM, then by SIGKILL.",
)


@dataclass(frozen=True)
class Diagnosis:
    """What kind of failure it was, the cause in a sentence, and what to do next.

    `line` is the line of the output that decided it, `also` are others that it took. `helps` are changes of the plan
    that may help, `short_of` the memory that they have to save. `status` is `partial` where nothing failed but
    something is wrong, `success` where nothing is.
    """

    failure: FailureClass
    cause: str
    next_actions: tuple[str, ...] = ()
    line: str = ""
    also: tuple[str, ...] = ()
    helps: tuple[Help, ...] = ()
    status: Literal["failed", "partial", "success"] = "failed"
    short_of: Memory | None = None


@dataclass(frozen=True)
class _Match:
    """A rule that applies, the line that it found, and the other line that it needed."""

    rule: Rule
    found: re.Match[str]
    line: str
    within: str = ""

    def diagnosis(self, status: Literal["failed", "partial"] = "failed") -> Diagnosis:
        names = {name: plain(text or "", 80) for name, text in self.found.groupdict().items()}
        cause = self.rule.cause.format(**names) if names else self.rule.cause
        also = (self.within,) if self.within else ()
        return Diagnosis(
            self.rule.failure,
            f"{cause} {_said(self.line)}",
            (self.rule.advice(self.found),),
            self.line,
            also,
            self.rule.helps,
            status,
            self.rule.short_of,
        )


def diagnose(log_lines: Sequence[str], exit_code: int | None) -> tuple[FailureClass, str, tuple[str, ...]]:
    """The kind of failure, its cause in a sentence, and what to do next.

    `log_lines` is the end of the output, oldest first; `exit_code` is -N when signal N ended the command, None when it
    is not known. An exit status of 0 is no failure of the command and gives `unknown`, unless the output says what
    will fail with its result.
    """
    found = examine(log_lines, exit_code)
    return found.failure, found.cause, found.next_actions


def examine(log_lines: Iterable[str], exit_code: int | None) -> Diagnosis:
    """The same, with the lines of the output that decided it, and what may help."""
    return examine_output(Output(log_lines), exit_code)


def examine_output(output: Output, exit_code: int | None) -> Diagnosis:
    """The same, of output whose lines were read already."""
    if exit_code == 0:
        return _of_a_command_that_ended_well(output)
    number = _signal(exit_code)
    if number in _ENDINGS:
        return _ended_by_signal(number, output)
    if match := _by_exception(output):
        return match.diagnosis()
    line = output.last_exception
    if line.startswith(REFUSED):
        kind, action, helps = refused(line)
        sentence = plain(line.removeprefix(REFUSED))
        return Diagnosis(kind, f"The quantization script refused to go on: {sentence}", (action,), line, helps=helps)
    if not line:
        if number is None and (found := _without_exception(output, exit_code)):
            return found
        if number is not None and (match := _anywhere(output, Where.ANY_LINE)):
            return match.diagnosis()
    if number is not None:
        return _ended_by_signal(number, output)
    return _unknown(line, exit_code)


def _by_exception(output: Output) -> _Match | None:
    """What a rule knows of the exception that ended the command."""
    for place in output.deciding:
        for text in output.message(place):
            if match := _first_rule(text, output, Where.EXCEPTION):
                return match
    return None


def _without_exception(output: Output, exit_code: int | None) -> Diagnosis | None:
    """What can be said where no line names an exception: it was cut off, or the command has none."""
    for where in (Where.ANY_LINE, Where.EXCEPTION):
        if match := _anywhere(output, where):
            return match.diagnosis()
    if match := _anywhere(output, Where.WARNING):
        return match.diagnosis("partial" if exit_code is None else "failed")
    if exit_code is not None:
        return None
    if exported := _exported(output):
        if match := _anywhere(output, Where.SUCCESS):
            return match.diagnosis("partial")
        cause = f"Nothing here says that the command failed: it exported a model to {exported}."
        return Diagnosis(FailureClass.UNKNOWN, cause, _NO_REPAIR, status="partial")
    return _unfinished(output)


def _unfinished(output: Output) -> Diagnosis | None:
    """Output that stops in the middle of a step, as that of a command does which is ended from outside."""
    last = ((bar, line) for line in reversed(output.lines[-_LAST_LINES:]) if (bar := Bar.read(line.text.strip())))
    bar, line = next(last, (None, None))
    if bar is None or line is None or bar.total is None or bar.done >= bar.total:
        return None
    step = f"{plain(bar.name, 80) or 'a step'} ({bar.done:,} of {bar.total:,})"
    cause = f"The output stops in the middle of {step} without an exception, as when a command is ended from outside."
    actions = (
        "Find out whether it still runs, or who ended it: a person, a scheduler, or the kernel for want of memory. "
        "Before the export nothing is left in the output folder that needs to be removed.",
    )
    return Diagnosis(FailureClass.KILLED, cause, actions, line.whole)


def _of_a_command_that_ended_well(output: Output) -> Diagnosis:
    for where in (Where.SUCCESS, Where.WARNING):
        if match := _anywhere(output, where):
            return match.diagnosis("partial")
    exported = _exported(output)
    told = f" It exported a model to {exported}." if exported else ""
    cause = f"The command itself did not fail: its exit status is 0.{told}"
    actions = _NO_REPAIR if exported else ()
    return Diagnosis(FailureClass.UNKNOWN, cause, actions, output.last_exception, status="success")


def _anywhere(output: Output, where: Where) -> _Match | None:
    """What a rule knows of any line, the last such line first."""
    for line in reversed(output.lines):
        if (where is Where.EXCEPTION and line.calm) or _BAR.search(line.text):
            continue
        if match := _first_rule(line.text[:_LONGEST_SEARCHED], output, where):
            return match
    return None


def _first_rule(text: str, output: Output, where: Where) -> _Match | None:
    for rule in rules(where):
        if (found := rule.pattern.search(text)) is None:
            continue
        if rule.within is None:
            return _Match(rule, found, text)
        beside = next((line.whole for line in output.lines if rule.within.search(line.whole)), None)
        if beside is not None:
            return _Match(rule, found, text, beside)
    return None


def _exported(output: Output) -> str:
    """Where the engine says that it wrote the model; empty where it says nothing."""
    for line in reversed(output.lines):
        if found := _EXPORTED.search(line.text):
            return plain(found["one"] or found["two"], 200)
    return ""


def _unknown(line: str, exit_code: int | None) -> Diagnosis:
    status = f"with exit status {exit_code}" if exit_code is not None else "with an exit status that is not known"
    if not line:
        cause = f"The command ended {status} and printed no exception."
    else:
        cause = f"The command ended {status} for a reason that is not known here. {_said(line)}"
    return Diagnosis(FailureClass.UNKNOWN, cause, (_READ_THE_LOG,), line)


def quoted(lines: Iterable[str], *deciding: str) -> list[str]:
    """What a report quotes of a log: the deciding lines, then the last few lines that say anything."""
    said = [text for text in (plain(entry) for entry in lines) if text and not _MARKS.fullmatch(text)]
    chosen = [text for text in map(plain, deciding) if text]
    return list(dict.fromkeys(chosen + said[-_QUOTED_LINES:]))


_ENDINGS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that come from outside. The others are crashes, which may follow from an exception."""


def _signal(exit_code: int | None) -> int | None:
    """The signal that ended the command, told as -N by a parent or as 128 + N by a shell or container."""
    if exit_code is None:
        return None
    if exit_code < 0:
        return -exit_code
    shells = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)
    return exit_code - 128 if exit_code - 128 in shells else None


def _ended_by_signal(number: int, output: Output) -> Diagnosis:
    line = output.last_exception
    name = signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
    if number == signal.SIGKILL:
        cause = "The command was killed (SIGKILL); the usual reason is that the host ran out of memory."
        action = "Look for the out-of-memory killer in the kernel's log; take fewer calibration samples or more memory."
        return Diagnosis(FailureClass.KILLED, cause, (action,), line, helps=LESS_WORK, short_of="host")
    if number in _ENDINGS:
        cause = f"The command was asked to end ({name})."
        action = (
            "Find out who stopped it before it is run again. What it left in its output folder before the export is "
            "no model."
        )
        return Diagnosis(FailureClass.KILLED, cause, (action,), line)
    if number == signal.SIGBUS:
        cause = "The command crashed (SIGBUS): memory that it had mapped was not there."
        action = "Look at the size of /dev/shm and at the free space of the disks, and whether model files changed."
        return Diagnosis(FailureClass.HOST, cause, (action,), line)
    cause = f"The command crashed ({name}) in compiled code."
    return Diagnosis(FailureClass.UNKNOWN, cause, (_READ_THE_LOG,), line)


def _said(line: str) -> str:
    """The line as the last part of a sentence."""
    return f"It said: {plain(line)}"
