"""The diagnosis against recorded failures: one table over every file of a folder, whole, cut and mixed with others.

The first line of a file says what happened and what mends it; the rest is what was printed. Each file is diagnosed as a
person would have it: from a file, with the exit status and without. It is then cut (without its beginning, without what
follows the deciding line, the last 20 lines, the deciding line alone) and mixed with what other writers print (bars on
the same lines, colours, other processes, times, ranks). Class and fix have to fit each time.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from runner.runs.diagnosis import diagnose_file
from schemas.artifacts.report import FailureClass, ValidationReport

_STATUS = re.compile(r"(?:\brc=|\breturncode )(?P<status>-?\d+)")
_LAST = 20


@dataclass(frozen=True)
class Truth:
    """What a first line says: the class (None: nothing failed), words that the fix has to hold, the deciding line.

    Each of `fix` is a pattern, and every one has to be found in what is advised. Where a reading lacks the line with
    `beside` (or, without one, has the deciding line alone), `otherwise` may be said too: what the rest makes certain.
    """

    failure: FailureClass | None
    fix: tuple[str, ...]
    deciding: str = ""
    otherwise: tuple[FailureClass | None, ...] = ()
    beside: str = ""


_LOAD, _ENV, _CONFIG = FailureClass.LOAD, FailureClass.ENVIRONMENT, FailureClass.CONFIGURATION
_FITS, _HOST = FailureClass.COMPATIBILITY, FailureClass.HOST

TRUTHS: Final[Mapping[str, Truth]] = MappingProxyType(
    {
        "dynamiccache_removed_api": Truth(_FITS, ("no_trust_remote_code", "pin .*transformers"), "has no attribute"),
        "gated_403": Truth(_LOAD, ("access", "read access to public gated repos", "token"), "GatedRepoError"),
        "hip_oom_strix": Truth(
            FailureClass.MEMORY, ("smaller model", "multi_gpu auto", "file2file", "BIOS"), "HIP out of memory"
        ),
        "kv_scale_1_warning": Truth(_FITS, ("[Vv]erify", "line"), "scaling factor 1.0"),
        "nccl_unhandled": Truth(_HOST, ("NCCL_DEBUG=INFO", "/dev/shm", "IOMMU", "--use_tp"), "NCCL error in"),
        "no_hip_gpus": Truth(_ENV, ("rocm-smi", "groups", "--device", "CPU"), "No HIP GPUs"),
        "own_bad_scheme": Truth(_CONFIG, (r"\bfp8\b",), "invalid choice"),
        "own_cli_class_cpu": Truth(
            _CONFIG, ("quantize_quark.py .*--device cpu", "own"), "MemoryError: Out", (FailureClass.MEMORY,)
        ),
        "own_cli_cpu": Truth(_ENV, (r"pip install 'amd-quark\[cli\]'",), "ModuleNotFoundError"),
        "own_cli_cpu_stubtimm": Truth(_ENV, (r"pip install 'amd-quark\[cli\]'",), "ModuleNotFoundError"),
        "own_config_missing": Truth(_LOAD, ("wrong directory", "parent of a snapshot"), "Unrecognized model"),
        "own_disk_full": Truth(_HOST, ("[Ff]ree disk space", "delete"), "No space left"),
        "own_hub_id_offline": Truth(_LOAD, ("snapshot_download", "network"), "LocalEntryNotFoundError: "),
        "own_model_dir_missing": Truth(_LOAD, ("runner's host", "absolute path"), "HFValidationError: "),
        "own_mxfp4_cpu": Truth(
            FailureClass.EVALUATION, ("[Ss]kip", "GPU"), "exported model to", (None,), "--quant_scheme mxfp4"
        ),
        "own_readonly_out": Truth(_HOST, ("another output folder",), "Read-only file system"),
        "own_sigint": Truth(None, ("SIGTERM", "SIGKILL", "process group"), "exported model to"),
        "own_sigterm": Truth(FailureClass.KILLED, ("who .*(?:stopped|ended)", "output folder"), ""),
        "own_tokenizer_missing": Truth(_LOAD, ("[Cc]opy .*tokenizer",), "tensor of 0 elements"),
        "own_weights_missing": Truth(_LOAD, ("[Ff]inish the download", "LFS", "pointers"), "no file named model"),
        "own_weights_truncated": Truth(_LOAD, ("[Cc]ompare the sizes", "fetch again"), "Error while deserializing"),
        "sentencepiece_missing": Truth(
            _LOAD, ("tokenizer.json", "tokenizer.model", "sentencepiece, tiktoken and protobuf"), "Can't load tokenizer"
        ),
        "sglang_fused_exclude_shape": Truth(_FITS, ("newer SGLang",), "param_data.shape"),
        "torch_no_cuda": Truth(_ENV, ("build of torch", "--device cpu"), "AssertionError: Torch"),
        "tp_not_aligned": Truth(_CONFIG, ("smaller group", "per channel"), "not aligned"),
        "transformers_unknown_arch": Truth(
            _FITS, ("version of transformers", "engine supports", "trust_remote_code|approved"), "does not recognize"
        ),
        "vllm_no_quark_scheme": Truth(_FITS, ("server's own list",), "No quark compatible"),
    }
)

# Of a file that is not in the table its own words tell the class, as far as they do; the first that is found counts.
_WORDS: Final[tuple[tuple[str, FailureClass], ...]] = (
    (r"(?:\b|_)oom\b|out of memory|\bvram\b", FailureClass.MEMORY),
    (r"enospc|disk|read-only|permission|nccl|rccl|/dev/shm", FailureClass.HOST),
    (
        r"truncat|corrupt|no config\.json|safetensors|tokenizer|gated|offline|not cached|path does not exist|access",
        _LOAD,
    ),
    (r"server|serving|remote modeling code|transformers too old|architecture|model_type", _FITS),
    (r"torch build|no visible gpu|modulenotfound|missing package|wheel|driver|compiler|ninja", _ENV),
    (r"scheme name|argparse|divisible|group.?size|configuration|unsupported|cli class", _CONFIG),
    (r"sigterm|sigkill|sigint|terminated|killed", FailureClass.KILLED),
    (r"evaluat|perplexity|forward", FailureClass.EVALUATION),
    (r"export", FailureClass.EXPORT),
    (r"calibrat|hessian|quantiz", FailureClass.QUANTIZATION),
)


@dataclass(frozen=True)
class Recorded:
    """A recorded failure: the name of its file, what it printed, its exit status, and the truth where it is known."""

    name: str
    lines: list[str]
    exit_code: int | None
    truth: Truth | None

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """The file without its first line. Raises OSError where it cannot be read."""
        first, *lines = path.read_text("utf-8", "replace").split("\n")
        status = _STATUS.search(first)
        truth = TRUTHS.get(path.stem) or _told_by(first)
        while lines and not lines[-1].strip():
            lines.pop()
        return cls(path.stem, lines, int(status["status"]) if status else None, truth)

    @property
    def exit_codes(self) -> tuple[int | None, ...]:
        """The exit statuses that a person may tell: the recorded one, or any failure's, or none."""
        return (1, None) if self.exit_code is None else (self.exit_code, None)

    @property
    def place(self) -> int | None:
        """Where the deciding line stands, the last one of that kind."""
        deciding = self.truth.deciding if self.truth else ""
        found = [place for place, line in enumerate(self.lines) if deciding and deciding in line]
        return found[-1] if found else None


def _told_by(first: str) -> Truth | None:
    """What an unknown file's own first line says, as far as its words tell: the class, and nothing of the fix."""
    said = re.search(r"diagnosis:(?P<words>[^|]*)", first)
    words = (said["words"] if said else first).lower()
    failure = next((failure for pattern, failure in _WORDS if re.search(pattern, words)), None)
    return Truth(failure, ()) if failure else None


@dataclass(frozen=True)
class Judged:
    """A recorded failure, and what was wrong with its diagnosis in each way of reading it; empty where it agrees."""

    recorded: Recorded
    said: str
    readings: int
    problems: list[str] = field(default_factory=list)


_BAR = "Calibrating activations:  42%|####      | 84/200 [00:14<00:19,  6.01it/s]"
_OTHERS = (
    "[QUARK-INFO]: Calibration start.",
    'INFO:     127.0.0.1:40312 - "GET /health HTTP/1.1" 200 OK',
    "[rank1]: waiting for rank 0",
    "Some weights were not used: 0 errors, 0 exceptions",
)

Mix = Callable[[list[str]], str]


def _with_bars(lines: list[str]) -> str:
    return "".join(f"\r{_BAR}\r{line}\n" for line in lines)


def _behind_bars(lines: list[str]) -> str:
    """A bar that another stream had begun, and a message that was written behind it on the same line."""
    return "".join(f"{_BAR}{line}\n" if line and not line[0].isspace() else f"{line}\n" for line in lines)


def _coloured(lines: list[str]) -> str:
    return "".join(f"\x1b[1;31m{line}\x1b[0m\r\n" for line in lines)


def _among_others(lines: list[str]) -> str:
    return "".join(f"{line}\n{_OTHERS[place % len(_OTHERS)]}\n" for place, line in enumerate(lines))


def _before(prefix: str) -> Mix:
    return lambda lines: "".join(f"{prefix}{line}\n" for line in lines)


def _of_two_ranks(lines: list[str]) -> str:
    return "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in lines)


MIXES: Final[Mapping[str, Mix]] = MappingProxyType(
    {
        "as it is": lambda lines: "\n".join(lines),
        "with bars": _with_bars,
        "behind bars": _behind_bars,
        "coloured": _coloured,
        "among others": _among_others,
        "with times": _before("2026-03-14T09:26:53.589793Z "),
        "with times and levels": _before("ERROR 03-14 09:26:53 [core.py:151] "),
        "by rank": _before("[rank0]: "),
        "of two ranks": _of_two_ranks,
        "from a container": _before("runner-1  | 2026-03-14 09:26:53,589 "),
        "from a journal": _before("Mar 14 09:26:53 host ptq-runner[1234]: "),
    }
)


def _cuts(recorded: Recorded) -> Iterator[tuple[str, list[str]]]:
    lines, place = recorded.lines, recorded.place
    yield "whole", lines
    yield "its last 20 lines", lines[-_LAST:]
    half = len(lines) // 2
    # Of a short file without a known deciding line the second half may say nothing at all.
    if place >= half if place is not None else half > _LAST / 4:
        yield "its second half", lines[half:]
    if place is None or recorded.truth is None:
        return
    yield "without what follows", lines[: place + 1]
    yield "from the deciding line on", lines[place:]
    yield "the deciding line", lines[place : place + 1]
    yield "20 lines up to it", lines[max(0, place - _LAST) : place + 1]
    line = lines[place]
    yield "from the middle of the deciding line on", [line[line.index(recorded.truth.deciding) :], *lines[place + 1 :]]


def judge(recorded: Recorded, folder: Path) -> Judged:
    """Diagnose one recorded failure in every reading of it, by files in a folder that may be written to."""
    problems, readings, said = [], 0, ""
    for cut, lines in _cuts(recorded):
        for mix, mixed in MIXES.items():
            log = folder / "log"
            log.write_text(mixed(lines), encoding="utf-8", newline="")
            for exit_code in recorded.exit_codes:
                report = diagnose_file(log, exit_code)
                said = said or (report.failure or report.status)
                readings += 1
                if problem := _problem(recorded, lines, report):
                    problems.append(f"{cut}, {mix}, exit status {exit_code}: {problem}")
    if recorded.truth is None:
        problems.append("its first line says no class that is known here.")
    return Judged(recorded, said, readings, problems)


def _problem(recorded: Recorded, lines: list[str], report: ValidationReport) -> str:
    truth = recorded.truth
    if truth is None:
        return ""
    allowed = {truth.failure}
    if not any(truth.beside in line for line in lines) if truth.beside else sum(map(bool, lines)) <= 1:
        allowed |= set(truth.otherwise)
    if report.failure not in allowed:
        return f"it is {report.failure or 'no failure'}, not {truth.failure or 'no failure'}: {report.summary[:120]}"
    advice = " ".join(report.next_actions)
    missing = [pattern for pattern in truth.fix if not re.search(pattern, advice)]
    return f"the fix does not say {', '.join(missing)}: {advice[:120]}" if missing else ""


def main(folder: Path, out: TextIO = sys.stdout) -> int:
    """Print the table of a folder's files; 0 where everything agrees."""
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        print(f"{folder} has no recorded failures (*.txt).", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        judged = [judge(Recorded.read(path), Path(scratch)) for path in paths]
    width = max(len(one.recorded.name) for one in judged)
    for one in judged:
        agrees = "agrees" if not one.problems else f"{len(one.problems)} of {one.readings} differ"
        print(f"{one.recorded.name:{width}}  {one.said:14}  {one.readings:3} readings  {agrees}", file=out)
        for problem in one.problems[:3]:
            print(f"{'':{width}}    {problem}", file=out)
    agreeing = sum(not one.problems for one in judged)
    readings = sum(one.readings for one in judged)
    print(f"\n{agreeing} of {len(judged)} recorded failures agree, in {readings:,} readings.", file=out)
    return 0 if agreeing == len(judged) else 1
