"""What an engine is, and what it tells of a run.

An engine starts the supervisor of a run somewhere. From then on the run's folder tells everything: an engine that
crashes, restarts or forgets loses nothing. Engines know a folder only by the protocol here, which
`runner.runs.folder.RunFolder` implements: runs use engines, not the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field


class Written(BaseModel):
    """A document of a run's folder. It may say more than is known here: a supervisor can be newer than its reader."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ProcessName(Written):
    """What names a process of one host for good; a pid alone may be used again. Ticks are 1/100 s since that boot."""

    boot_id: str
    pid: Annotated[int, Field(ge=1)]
    start_ticks: Annotated[int, Field(ge=0)]


class Begun(ProcessName):
    """begun.json: the supervisor that took this run."""

    wall: datetime
    monotonic: float
    host: str = Field("", description="The host's name, where a supervisor told it: a boot id is of one host.")


class Child(ProcessName):
    """child.json: the process that became the command."""

    mark: str = Field("", description="The run's mark, again: launch.json may be damaged.")
    supervisor: ProcessName | None = Field(None, description="Its supervisor, again: begun.json may be damaged.")


class Cancel(Written):
    """cancel.json: who wants the run to end, and why."""

    by: str
    at: datetime
    reason: str = ""


class Exit(Written):
    """exit.json: how the run ended."""

    exit_code: int | None = Field(None, description="Exit status; -N when signal N ended it; None when it never ran.")
    cancelled: bool
    ended_by: str | None = Field(
        None,
        description='Why the supervisor ended it: "cancel.json", "SIGTERM", "SIGINT", "time_limit", "disk_reserve" '
        '(also where it failed by itself on a disk that was short) or "memory_limit".',
    )
    ended_because: str = Field("", description="The same for a person, with the numbers that decided it.")
    oom_killed: int = Field(
        0, description="Processes that the kernel killed because the run's memory limit was reached."
    )
    could_not_start: str | None = Field(None, description="Why the command could not be executed, in a sentence.")
    started_at: datetime | None = None
    ended_at: datetime
    seconds: float = Field(description="From the start until nothing of the run was left, by the monotonic clock.")
    stragglers: int = Field(0, description="Processes that outlived the command and had to be ended.")
    max_rss_bytes: int = Field(0, description="Resident memory of the largest single process at its peak.")
    tree_rss_bytes: int = Field(
        0, description="Resident memory of all processes together, at the most that a look every few seconds saw."
    )
    cpu_seconds: float = Field(0.0, description="User and system time of all processes of the run.")

    @property
    def peak_memory_bytes(self) -> int | None:
        """The most main memory that the run is known to have held; None where nothing of it ran."""
        return max(self.max_rss_bytes, self.tree_rss_bytes) or None

    @property
    def timed_out(self) -> bool:
        """Whether the run's time limit ended it."""
        return self.ended_by == "time_limit"


@dataclass(frozen=True)
class NotBegun:
    """No supervisor has begun this run; nothing of it ever ran."""


@dataclass(frozen=True)
class CancelledBeforeStart:
    """Somebody ended the run before its command was started; nothing of it ever ran."""

    cancel: Cancel | None
    """None when a signal to the supervisor asked for it, or when cancel.json cannot be read."""


@dataclass(frozen=True)
class Pending:
    """It was handed to another scheduler, which has not started it yet. Nothing of it has run."""

    job: str
    """The scheduler's name of it, for people: "Slurm job 42"."""
    why: str = ""
    """What the scheduler says that it waits for."""
    cancelling: bool = False


@dataclass(frozen=True)
class Running:
    """A supervisor lives. It holds the folder's lock, unless somebody removed that file, until the run is gone."""

    cancelling: bool
    child: Child | None = None
    """None in the instant before the command is forked."""
    job: str = ""
    """The scheduler's name of it, where it does not run on this host."""


@dataclass(frozen=True)
class Exited:
    """The run ended and its supervisor told how."""

    exit: Exit


@dataclass(frozen=True)
class Lost:
    """The run began, and its supervisor is gone without telling the outcome: killed, or the host went down.

    Processes of it may still compute: `end_orphans`. A run is never begun again.
    """

    begun: Begun | None
    """None when begun.json cannot be read."""
    child: Child | None
    """None when the command was never executed, or when child.json cannot be read."""
    rebooted: bool = False
    """Whether this host was restarted since it began, which explains the loss."""


@dataclass(frozen=True)
class Unreadable:
    """The folder cannot be read, or exit.json is damaged: what became of the run is not known."""

    why: str


Observed = NotBegun | CancelledBeforeStart | Pending | Running | Exited | Lost | Unreadable


@dataclass(frozen=True)
class Needs:
    """What a run needs of where it computes."""

    gpus: int = 0
    """How many GPUs; 0: it computes on the CPU."""
    seconds: float | None = None
    """The longest that it may take; None: no limit."""
    name: str = ""
    """What a person who looks at the scheduler's list reads."""


NOTHING = Needs()
"""A run on the CPU, without a limit."""


@dataclass(frozen=True)
class EndedOrphans:
    """What was done with the processes of a lost run."""

    ended: int
    """How many were there and are gone."""
    left: tuple[int, ...] = ()
    """Pids of those that even KILL did not end in time, such as one in a hung driver, or of another user."""
    doubt: str = ""
    """In sentences, what may still hold the run's GPU and what to do about it; empty when nothing can be left."""


class SupervisedFolder(Protocol):
    """A run's folder, as far as an engine needs it."""

    @property
    def path(self) -> Path:
        """Absolute path."""

    @property
    def supervisor(self) -> Path:
        """The supervisor's program, a script or a folder, to be started as `python -I -S PROGRAM FOLDER`."""

    def has_begun(self) -> bool:
        """Whether a supervisor took this run, now or at any time before. Also where that cannot be found out."""

    def has_records(self) -> bool:
        """Whether a supervisor left a record: then it has begun, and did not only take the lock to look."""

    def observe(self) -> Observed:
        """What became of the run."""

    def supervisor_pid(self) -> int | None:
        """The process of its supervisor, if it lives on this host and can be told."""

    def cancel_asked(self) -> bool:
        """Whether somebody asked for the end of this run."""

    def write(self, name: str, data: bytes) -> None:
        """Put a document of the daemon in place durably. Raises Broken."""

    def ask_cancel(self, by: str, reason: str, at: str) -> str:
        """Ask for the end of this run, by cancel.json and by a signal to its supervisor. `at` is ISO 8601.

        What could not be done of it, in a sentence; empty when all could. Raises Broken when nothing could.
        """

    def end_orphans(self, grace_seconds: float) -> EndedOrphans:
        """End what a lost run left on this host, as far as that can be done. Raises Conflict when it is not lost."""


class Engine(Protocol):
    """Where runs compute."""

    places_here: bool
    """Whether runs compute on this host's GPUs, which the daemon shares out; else a scheduler does that elsewhere."""

    async def submit(
        self,
        folder: SupervisedFolder,
        env: Mapping[str, str],
        *,
        needs: Needs = NOTHING,
        keep_open: Sequence[int] = (),
    ) -> Observed:
        """Start the run's supervisor, unless the run has begun already; what the folder says then.

        `env` is the whole environment of the command; it is never written to disk. `keep_open` are descriptors that
        stay open in every process of the run, such as the lock of a GPU. Raises Broken when nothing was started.
        """

    def took(self, folder: SupervisedFolder) -> bool:
        """Whether this run was handed over already, so that it may begin without being submitted."""

    async def state(self, folder: SupervisedFolder) -> Observed:
        """What became of the run."""

    async def rest(self, folder: SupervisedFolder, seconds: float) -> None:
        """Wait so long, or until the supervisor of this run has ended where that can be heard."""

    async def cancel(self, folder: SupervisedFolder, by: str, reason: str) -> Observed:
        """Ask for the end of a run that has not ended; what the folder says then. Raises Broken."""

    async def end_orphans(self, folder: SupervisedFolder, grace_seconds: float) -> EndedOrphans:
        """End what a lost run left, as far as that can be done. Raises Conflict when it is not lost."""
