"""One run as the daemon has it in memory."""

from __future__ import annotations

from dataclasses import dataclass

from runner.engines.engine import Cancel
from runner.errors import Broken
from runner.runs.folder import CANCEL, RunFolder
from runner.runs.journal import Journal
from schemas.artifacts.plan import Estimates
from schemas.runs import Run, RunState


@dataclass
class Entry:
    """One run in memory. Its folder is the truth; `run` is what was derived from it last."""

    folder: RunFolder
    number: int
    run: Run
    journal: Journal
    gpus: int = 0
    """How many GPUs its plan takes; 0: it computes on the CPU."""
    usual_seconds: float | None = None
    """How long runs of its kind took when it was planned; None where none had been made."""
    damaged: bool = False
    """Its submission cannot be read. It never starts; while it still runs it is watched and can be cancelled."""

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to the run."""
        return self.run.state.ended

    @property
    def waits(self) -> bool:
        """Whether it stands in the queue."""
        return self.run.state is RunState.QUEUED and not self.damaged


def usual_seconds(estimates: Estimates) -> float | None:
    """Between the quickest and the slowest run of the same kind here; None without history."""
    if estimates.seconds_least is None or estimates.seconds_most is None:
        return None
    return (estimates.seconds_least + estimates.seconds_most) / 2


def read_cancel(folder: RunFolder) -> Cancel | None:
    """Who asked for the end of the run; None when nobody did, or when that cannot be read any more."""
    try:
        return folder.read_as(CANCEL, Cancel)
    except Broken:
        return None


def cancelled_by(cancel: Cancel) -> str:
    """Who ended a run, and why, in words."""
    return f"{cancel.by} cancelled it. {cancel.reason}".strip()
