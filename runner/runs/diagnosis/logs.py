"""A report on a run of which only the output is at hand, however long that is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from runner.errors import NotHere, Refused
from runner.intake.reading import opened
from runner.runs.diagnosis.examining import Diagnosis, examine_output, quoted
from runner.runs.diagnosis.output import Output
from runner.runs.reading import Segments
from schemas.artifacts.report import FailureClass, ValidationReport

_HEAD_BYTES: Final = 64 * 1024
_TAIL_BYTES: Final = 256 * 1024
_BLOCK_BYTES: Final = 1 << 20
_OVERLAP_BYTES: Final = 16 * 1024
_AROUND_BYTES: Final = 16 * 1024
_FIRST_LINES: Final = 50
_MOST_PIECES: Final = 40  # a log may say "Error" in each of its lines and mean nothing by it
# Cheap to look for in a long log: a rule may know what stands around it.
_WORTH_READING: Final = (
    b"Error",
    b"Exception",
    b"Interrupt",
    b"Killed",
    b"error: ",
    b"out of memory",
    b"scaling factor",
)


def diagnose_file(log: Path, exit_code: int | None) -> ValidationReport:
    """A report on a run of which only the output is at hand. Raises NotHere when the file cannot be read.

    Only its end and its beginning are read, which says what was run. Where these say nothing, as in the log of a server
    that went on, what lies between is searched, the latest first. Memory does not grow with the file.
    """
    try:
        with opened(log) as (descriptor, length):
            head, tail = _ends(descriptor, length)
            lines = head + tail
            found = examine_output(Output(lines), exit_code)
            if _says_nothing(found):
                found, lines = _searched(descriptor, length, exit_code, found, lines)
    except OSError as error:
        raise _unreadable(log, error.strerror or str(error)) from None
    except (NotHere, Refused) as error:
        reason = "it does not exist" if isinstance(error, NotHere) else error.message
        raise _unreadable(log, reason) from None
    return _report(found, lines)


def _unreadable(log: Path, reason: str) -> NotHere:
    reason = reason.rstrip(".")
    hint = "Name the run's log; output that comes through a pipe has to be written to a file first."
    return NotHere("no_such_log", f"{log} cannot be read: {reason}.", hint)


def _report(found: Diagnosis, lines: list[str]) -> ValidationReport:
    evidence = quoted(lines, found.line, *found.also)
    if found.status == "success":
        return ValidationReport(
            status="success", summary=found.cause, evidence=evidence, next_actions=list(found.next_actions)
        )
    failed = found.status == "failed"
    known = failed or found.failure is not FailureClass.UNKNOWN
    return ValidationReport(
        status=found.status,
        summary=f"The run failed: {found.cause}" if failed else found.cause,
        evidence=evidence,
        next_actions=list(found.next_actions),
        failure=found.failure if known else None,
        cause=found.cause if known else "",
    )


def _ends(descriptor: int, length: int) -> tuple[list[str], list[str]]:
    """The first lines of a file and its last ones, without what stands in both."""
    start = max(0, length - _TAIL_BYTES)
    tail = _segments(os.pread(descriptor, _TAIL_BYTES, start), cut=start > 0)
    if start == 0:
        return [], tail
    head = _segments(os.pread(descriptor, min(_HEAD_BYTES, start), 0), cut=False)
    # A traceback at the beginning of a long log ended nothing: of the head only the command that was run matters.
    return [line for line in head[:_FIRST_LINES] if "--quant_scheme" in line or "quark-cli " in line], tail


def _says_nothing(found: Diagnosis) -> bool:
    return found.failure is FailureClass.UNKNOWN and not found.line and found.status == "failed"


def _searched(
    descriptor: int, length: int, exit_code: int | None, otherwise: Diagnosis, lines: list[str]
) -> tuple[Diagnosis, list[str]]:
    """What the rest of the file says, read backwards until something says anything."""
    end, pieces = max(0, length - _TAIL_BYTES), 0
    while end > 0 and pieces < _MOST_PIECES:
        start = max(0, end - _BLOCK_BYTES)
        block = os.pread(descriptor, end - start + _OVERLAP_BYTES, start)
        if not block.strip(b"\0"):  # where the middle of a log was cut out
            end = start
            continue
        for place in _worth_reading(block)[: _MOST_PIECES - pieces]:
            begin = max(0, place - _AROUND_BYTES)
            said = _segments(block[begin : place + _AROUND_BYTES], cut=start + begin > 0)
            pieces += 1
            found = examine_output(Output(said), exit_code)
            if not _says_nothing(found):
                return found, said
        end = start
    return otherwise, lines


def _worth_reading(block: bytes) -> list[int]:
    """Places around which the block may say something, from the last to the first, none read together with another."""
    places: list[int] = []
    for token in _WORTH_READING:
        place = len(block) if token in block else 0  # searching forwards is much quicker, and mostly enough
        while (place := block.rfind(token, 0, place)) >= 0:
            places.append(place)
            place = max(0, place - _AROUND_BYTES // 2)
    chosen: list[int] = []
    for place in sorted(places, reverse=True):
        if not chosen or place < chosen[-1] - _AROUND_BYTES // 2:
            chosen.append(place)
    return chosen


def _segments(data: bytes, *, cut: bool) -> list[str]:
    """The lines of a piece of a file. Where it was cut out, its first line lacks its beginning, and says so little."""
    segments = Segments()
    found = segments.feed(data.replace(b"\0", b"")) + segments.finish()
    if cut and len(found) > 1:
        found = found[1:]
    return [line for line in found if line.strip()]
