"""The states and events of a run, and what a person is told of its progress."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.artifacts.report import ValidationReport
from schemas.base import Document


class RunState(StrEnum):
    """Where a run stands. *Why* it stands there is the reason beside it."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    VERIFYING = "verifying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    LOST = "lost"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a run in this state."""
        return self in {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.LOST}


class Phase(StrEnum):
    """What a run is doing, in the order in which phases may come. A run skips phases; it never goes back."""

    PREPARING = "preparing"
    LOADING_MODEL = "loading_model"
    CHECKING_COMPATIBILITY = "checking_compatibility"
    EVALUATING_ORIGINAL = "evaluating_original"
    LOADING_DATASET = "loading_dataset"
    REPLACING_MODULES = "replacing_modules"
    OPTIMIZING = "optimizing"
    CALIBRATING = "calibrating"
    FREEZING = "freezing"
    EXPORTING = "exporting"
    EVALUATING = "evaluating"
    RELOADING = "reloading"
    DONE = "done"


QueuePriority = Literal["high", "normal", "low"]
"""Runs of a higher priority start first; within one, whoever came first."""


class Progress(Document):
    """How far a run is. `percent` covers the whole run and never falls; `done` and `total` count within the phase."""

    phase: Phase = Phase.PREPARING
    percent: Annotated[float, Field(ge=0, le=100)] = 0.0
    done: Annotated[int, Field(ge=0)] | None = None
    total: Annotated[int, Field(ge=0)] | None = None
    rate: float | None = Field(None, description="Steps of this phase per second.")
    seconds_left: float | None = Field(None, description="Estimated seconds until this phase ends.")
    original_perplexity: float | None = None
    perplexity: float | None = None


class Run(Document):
    """One run as the runner knows it. Its folder on the runner's disk is the truth; this is derived from it."""

    id: str
    key: str = Field(description="The submission's idempotency key; the id comes from it.")
    state: RunState
    reason: str = Field("", description="Why it stands there, in a sentence.")
    code: str = Field("", description="The reason for programs, such as model_changed or exit_code.")
    since: datetime = Field(description="Since when it is in this state (UTC).")
    submitted_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    model: str
    scheme: str
    output_dir: str
    manifest_digest: str
    priority: QueuePriority = "normal"
    position: int | None = Field(None, description="Place in the queue, from 1; only while queued.")
    expected_start: datetime | None = Field(
        None, description="When its turn may come, by how long runs of the kind took here; only while queued."
    )
    gpus: list[str] = Field([], description='The GPUs that it got, such as "3 (0000:c1:00.0)".')
    job: str = Field("", description='Its name in another scheduler, such as "Slurm job 42"; empty on this host.')
    partial_output: str = Field("", description="Where what an unfinished run left was set apart; empty: nothing was.")
    exit_code: int | None = Field(None, description="Exit status of the command; -N when signal N ended it.")
    progress: Progress = Progress()
    report: ValidationReport | None = None
    last_event: int = Field(0, description="Number of the run's latest event.")


class StateChanged(Document):
    """The run is in another state."""

    kind: Literal["state"] = "state"
    state: RunState
    code: str = ""
    reason: str = ""


class Progressed(Document):
    """The run is further."""

    kind: Literal["progress"] = "progress"
    progress: Progress


class Reported(Document):
    """The result was verified; the report is part of the run."""

    kind: Literal["report"] = "report"
    status: Literal["success", "partial", "failed"]
    summary: str


class RunEvent(Document):
    """One numbered event of one run. Numbers start at 1 and have no gaps; asking for the run itself is always right."""

    run: str
    number: Annotated[int, Field(ge=1)]
    at: datetime
    what: Annotated[StateChanged | Progressed | Reported, Field(discriminator="kind")]
