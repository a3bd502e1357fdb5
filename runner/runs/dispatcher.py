"""Takes runs from the queue, one at a time on this host, and brings each to its end.

Whatever a run's folder says decides the next step, so that a daemon which starts again goes on where the last one fell.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from runner.clock import Clock
from runner.engines.engine import (
    Begun,
    CancelledBeforeStart,
    Engine,
    Exit,
    Exited,
    Lost,
    NotBegun,
    Running,
    Unreadable,
)
from runner.errors import RunnerError
from runner.runs.folder import BEGUN
from runner.runs.following import LogFollower
from runner.runs.outcome import Outcome
from runner.runs.submission import Submission, read_submission
from runner.runs.table import Entry, RunTable, cancelled_by, read_cancel
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.report import ValidationReport
from schemas.runs import RunState

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.3
_TRY_AGAIN_SECONDS = 5.0


class Launcher(Protocol):
    """Prepares a run and gives its environment; checks first that all is still as it was approved."""

    async def prepare(self, entry: Entry, submission: Submission) -> dict[str, str]:
        """Write launch.json and make the working directory. Raises RunnerError where the run must not start."""
        ...


class Judge(Protocol):
    """Looks at what a run left."""

    async def report(self, entry: Entry, submission: Submission, end: Exit, log: LogFollower) -> ValidationReport:
        """The report on a run whose command ended. It reads, and may be asked again after a restart."""
        ...


@dataclass
class Dispatcher:
    """The queue's only consumer."""

    table: RunTable
    engine: Engine
    launcher: Launcher
    judge: Judge
    clock: Clock
    orphan_grace_seconds: float = 3.0

    async def run(self) -> None:
        """Work until cancelled. Runs go on without it."""
        async with asyncio.TaskGroup() as tasks:
            active = {entry.run.id: tasks.create_task(self._bring_to_end(entry)) for entry in self._begun()}
            while True:
                self.table.work_waits.clear()
                active = {run: task for run, task in active.items() if not task.done()}
                self._settle_cancelled(active)
                waiting = (entry for entry in self.table.unfinished() if entry.run.id not in active)
                queued = [entry for entry in waiting if not entry.damaged and entry.run.state is not RunState.UNKNOWN]
                # A run of which nothing can be read has no task for long: it does not hold up the queue for ever.
                if queued and not active:
                    first = queued.pop(0)
                    active[first.run.id] = tasks.create_task(self._bring_to_end(first))
                waits = tasks.create_task(self.table.work_waits.wait())
                patience = _TRY_AGAIN_SECONDS if queued else None
                await asyncio.wait([waits, *active.values()], return_when=asyncio.FIRST_COMPLETED, timeout=patience)
                waits.cancel()

    def _begun(self) -> list[Entry]:
        return [entry for entry in self.table.unfinished() if entry.damaged or entry.folder.has_begun()]

    def _settle_cancelled(self, active: dict[str, asyncio.Task[None]]) -> None:
        """A run that waits is cancelled at once, whatever else this host is busy with."""
        for entry in self.table.unfinished():
            if entry.run.id in active or entry.damaged:
                continue
            observed = entry.folder.observe()
            if isinstance(observed, CancelledBeforeStart):
                try:
                    self.table.end(entry, self._cancelled(observed))
                except Exception as error:  # one run that cannot be brought on must not stop the others
                    self._say_stuck(entry, error)

    async def _bring_to_end(self, entry: Entry) -> None:
        while not entry.ended:
            try:
                if not await self._step(entry):
                    return
            except Exception as error:  # not the run's fault: the disk is full, say. Nothing is decided; try again.
                self._say_stuck(entry, error)
                await asyncio.sleep(_TRY_AGAIN_SECONDS)

    def _say_stuck(self, entry: Entry, error: Exception) -> None:
        expected = isinstance(error, RunnerError | OSError)
        log.error("Run %s cannot be brought on: %s", entry.run.id, error, exc_info=None if expected else error)
        self.table.note(entry, f"It waits, since this failed and is tried again: {error}")

    async def _step(self, entry: Entry) -> bool:
        """Do what the folder says is next; False when nothing can be done for this run any more."""
        observed = await self.engine.state(entry.folder)
        if entry.damaged and not isinstance(observed, Running):
            if entry.run.state is not RunState.UNKNOWN:
                self.table.change(entry, RunState.UNKNOWN, "unreadable", "It is over, and its folder is damaged.")
            return False
        match observed:
            case NotBegun():
                await self._start(entry)
            case CancelledBeforeStart():
                self.table.end(entry, self._cancelled(observed))
            case Running():
                await self._follow(entry)
            case Exited():
                await self._conclude(entry, observed.exit)
            case Lost():
                await self._give_up(entry, observed)
            case Unreadable():
                return self._unreadable(entry, observed)
        return True

    def _unreadable(self, entry: Entry, observed: Unreadable) -> bool:
        """Nobody knows what became of it. It stays unknown until a person closes it by cancelling it."""
        reason = f"What became of it cannot be read: {observed.why}"
        if entry.folder.cancel_asked():
            self.table.end(entry, Outcome(state=RunState.LOST, code="unreadable", reason=reason, at=self.clock.now()))
        elif entry.run.state is not RunState.UNKNOWN:
            self.table.change(entry, RunState.UNKNOWN, "unreadable", reason)
        return False

    async def _start(self, entry: Entry) -> None:
        self.table.change(entry, RunState.STARTING)
        try:
            submission = await asyncio.to_thread(read_submission, entry.folder)
            environment = await self.launcher.prepare(entry, submission)
            await self.engine.submit(entry.folder, environment)
        except RunnerError as error:
            if error.code == "not_begun" or entry.folder.has_begun():
                raise  # it may run: what became of it is read from the folder
            if entry.folder.cancel_asked():
                return  # it was cancelled while it was being started
            reason = f"It was not started: {error.message} {error.hint}".strip()
            self.table.end(entry, Outcome(state=RunState.FAILED, code=error.code, reason=reason, at=self.clock.now()))

    async def _follow(self, entry: Entry) -> None:
        follower = LogFollower(entry.folder.log_path)
        while isinstance(observed := await self.engine.state(entry.folder), Running):
            if observed.cancelling or entry.run.state is RunState.CANCELLING:
                if entry.run.state is not RunState.CANCELLING:
                    self.table.change(entry, RunState.CANCELLING, "cancel", "It was cancelled.")
            elif entry.run.state is not RunState.RUNNING:
                self.table.change(entry, RunState.RUNNING, started_at=entry.run.started_at or self._began(entry))
            progress = await asyncio.to_thread(follower.read_on)
            if progress is not None and progress != entry.run.progress:
                self.table.progress(entry, progress)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _conclude(self, entry: Entry, end: Exit) -> None:
        follower = LogFollower(entry.folder.log_path)
        progress = await asyncio.to_thread(follower.read_to_end, end.exit_code == 0)
        manifest: RunManifest | None = None
        started = end.started_at or entry.run.started_at
        if not end.cancelled and not entry.folder.cancel_asked():
            self.table.change(entry, RunState.VERIFYING, started_at=started, exit_code=end.exit_code, progress=progress)
            submission = await asyncio.to_thread(read_submission, entry.folder)
            manifest = submission.run_manifest
            report = await self.judge.report(entry, submission, end, follower)
            state = RunState.FAILED if report.status == "failed" else RunState.SUCCEEDED
            code = "" if state is RunState.SUCCEEDED else _failure_code(end)
            outcome = Outcome(state=state, code=code, reason=report.summary, at=self.clock.now(), report=report)
        if end.cancelled or entry.folder.cancel_asked():  # somebody may have cancelled while it was verified
            outcome = self._cancelled_while_running(entry, end)
        complete = outcome.model_copy(
            update={"started_at": started, "exit_code": end.exit_code, "progress": follower.progress}
        )
        self.table.end(entry, complete, manifest)

    async def _give_up(self, entry: Entry, lost: Lost) -> None:
        """The supervisor is gone without telling: what became of the command is not known. It is never run again."""
        orphans = await asyncio.to_thread(entry.folder.end_orphans, self.orphan_grace_seconds)
        left = f" {orphans.ended} of its processes still ran and were ended." if orphans.ended else ""
        reason = f"Its supervisor was killed or the host went down, so its outcome is not known.{left} {orphans.doubt}"
        began = lost.begun.wall if lost.begun else None
        outcome = Outcome(
            state=RunState.LOST, code="lost", reason=reason.strip(), at=self.clock.now(), started_at=began
        )
        self.table.end(entry, outcome)

    def _cancelled(self, observed: CancelledBeforeStart) -> Outcome:
        who = observed.cancel.by if observed.cancel else "A signal"
        return Outcome(
            state=RunState.CANCELLED,
            code="cancelled",
            reason=f"{who} cancelled it before it began.",
            at=self.clock.now(),
        )

    def _cancelled_while_running(self, entry: Entry, end: Exit) -> Outcome:
        cancel = read_cancel(entry.folder)
        told = entry.run.reason if entry.run.code == "cancel" else f"It was ended by {end.ended_by}."
        what = cancelled_by(cancel) if cancel else told
        reason = f"{what} What it wrote until then may lie in {entry.run.output_dir}."
        return Outcome(state=RunState.CANCELLED, code="cancelled", reason=reason, at=self.clock.now())

    def _began(self, entry: Entry) -> datetime:
        try:
            begun = entry.folder.read_as(BEGUN, Begun)
        except RunnerError:
            begun = None  # it runs all the same
        return begun.wall if begun else self.clock.now()


def _failure_code(end: Exit) -> str:
    if end.could_not_start:
        return "could_not_start"
    return "verification_failed" if end.exit_code == 0 else "exit_code"
