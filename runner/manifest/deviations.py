"""Where a command is not the published mapping, letter by letter, and why. People see it beside the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.planning import flags
from runner.planning.flags import Flag, Job
from schemas.artifacts.manifest import Deviation, EntryPoint

PUBLISHED_PROGRAM = "quantize_quark.py"
PUBLISHED_PYTHON = "python3"

_FIXED = {"--data_type": "auto", "--device": "cuda"}
"""Flags that the published mapping gives always the same value."""

_DEFAULT_EXCLUSIONS = (
    "Left out: the plan's exclusions are the engine's own for this family. Given, the flag would replace what the "
    "engine's template leaves alone, instead of saying it once more."
)


def deviations(job: Job, entry: EntryPoint, argv: list[str]) -> list[Deviation]:
    """Every difference, in the order of the command."""
    return [*_program(entry, argv), *_published_flags(job, entry), *_further_flags(job, entry)]


def _program(entry: EntryPoint, argv: list[str]) -> Iterator[Deviation]:
    if entry.name == "quark_cli":
        yield _of(PUBLISHED_PYTHON, "quark-cli is a program of its own; it stands beside the interpreter that it uses.")
    elif argv[0] != PUBLISHED_PYTHON:
        folder = Path(argv[0]).parent
        yield _of(PUBLISHED_PYTHON, f"The interpreter in {folder} by its whole path: another one may lack the engine.")
    if entry.name != "quantize_quark":
        yield _of(PUBLISHED_PROGRAM, f"The program is {entry.name}. {entry.reason}".strip())


def _published_flags(job: Job, entry: EntryPoint) -> Iterator[Deviation]:
    """What the published mapping has and the command lacks, or has with another value."""
    for flag in (flag for flag in flags.FLAGS if not flag.beyond):
        wanted, given = flag.words(job), flag.given(entry.name, job)
        if flag.name == "--exclude_layers" and not given:
            yield _of(flag.name, _DEFAULT_EXCLUSIONS)
        elif wanted and not given:
            yield _of(flag.name, f"Left out: {entry.name} has no such flag and takes {wanted[0][0]} by itself.")
        elif given and flag.name in _FIXED and given != [[_FIXED[flag.name]]]:
            yield _of(flag.name, f"{given[0][0]} in place of {_FIXED[flag.name]}. {_reason(flag, job)}".strip())


def _further_flags(job: Job, entry: EntryPoint) -> Iterator[Deviation]:
    """What the command has and the published mapping lacks."""
    for flag in (flag for flag in flags.FLAGS if flag.beyond):
        if flag.given(entry.name, job):
            why = f" {_reason(flag, job)}" if flag.name == "--skip_evaluation" else ""
            yield _of(flag.name, f"{flag.beyond}{why}".strip())


def _reason(flag: Flag, job: Job) -> str:
    """Why the plan decided so."""
    return next((row.reason for row in job.plan.decisions if row.decision == flag.says), "")


def _of(flag: str, reason: str) -> Deviation:
    return Deviation(flag=flag, reason=reason)
