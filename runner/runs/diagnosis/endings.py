"""Ends that the runner itself knows: the command never started, or it was ended for a limit."""

from __future__ import annotations

from dataclasses import replace

from runner.runs.diagnosis.examining import Diagnosis
from runner.runs.diagnosis.rule import Help
from runner.runs.diagnosis.rules.memory import LESS_WORK
from runner.runs.words import plain, size
from schemas.artifacts.report import FailureClass


def could_not_start(reason: str) -> Diagnosis:
    """The command was never executed: interpreter, script or working directory is not as it has to be."""
    action = (
        "Run `ptq-runner doctor` on the host; when the interpreter moved, set quark.python and make a new manifest."
    )
    return Diagnosis(FailureClass.ENVIRONMENT, f"The command could not be started. {plain(reason)}".strip(), (action,))


def time_limit(because: str = "") -> Diagnosis:
    """The runner itself ended the command, because it took longer than a run may. `because` holds the numbers."""
    action = "Take fewer calibration samples, or raise the time limit of runs."
    cause = _with(because, "The command took longer than a run may and was ended.")
    helps = (Help.FEWER_SAMPLES, Help.SHORTER_SAMPLES, Help.NO_EVALUATION)
    return Diagnosis(FailureClass.KILLED, cause, (action,), helps=helps)


def disk_reserve(because: str = "") -> Diagnosis:
    """The command left less of a disk free than must stay free: the runner ended it, or it failed by itself then."""
    action = (
        "Free disk space, or choose an output folder on another disk; a scheme with fewer bits also writes less. What "
        "the run left is no model."
    )
    cause = _with(because, "The disk became so full that the command was ended, or could not go on.")
    return Diagnosis(FailureClass.HOST, cause, (action,))


def memory_limit(because: str = "", killed: int = 0) -> Diagnosis:
    """The command reached its limit of main memory; the kernel `killed` so many of its processes."""
    action = "Calibrate on fewer or shorter samples, raise the memory limit of runs, or take a host with more memory."
    by = f" The kernel killed {killed} of its processes." if killed else ""
    cause = _with(because, "The command reached the limit of main memory that a run may use, and was ended.") + by
    return Diagnosis(FailureClass.MEMORY, cause, (action,), helps=(*LESS_WORK, Help.FILE_TO_FILE), short_of="host")


def ended_by_runner(ended_by: str | None, because: str, oom_killed: int, exit_code: int | None) -> Diagnosis | None:
    """What a supervisor's own word says of a failed command; None where it ended by itself or was cancelled."""
    if ended_by == "time_limit":
        return time_limit(because)
    if ended_by == "disk_reserve":
        return disk_reserve(because)
    if ended_by == "memory_limit":
        return memory_limit(because, oom_killed)
    # A process that the kernel killed for memory decides only where it was the command itself, or its reason to end.
    return memory_limit(because, oom_killed) if oom_killed and exit_code != 0 else None


def likely_host_memory(found: Diagnosis, peak_bytes: int | None, there_bytes: int | None) -> Diagnosis:
    """A killed command's diagnosis, with how much memory it held beside how much there is, where both are known."""
    if not (peak_bytes and there_bytes) or "SIGKILL" not in found.cause:
        return found
    held = f"It held {size(peak_bytes)} of this host's {size(there_bytes)} of main memory at its peak."
    return replace(found, cause=f"{found.cause} {held}")


def _with(because: str, otherwise: str) -> str:
    """The supervisor's own sentence with its numbers, behind what every reader understands."""
    told = plain(because)
    return f"{otherwise} {told}" if told else otherwise
