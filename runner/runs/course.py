"""The course of one run, from its turn to its end.

Whatever the run's folder says decides the next step, so that a daemon which starts again goes on where the last fell.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from runner.clock import Clock
from runner.engines.engine import (
    Begun,
    CancelledBeforeStart,
    Engine,
    Exit,
    Exited,
    Lost,
    Needs,
    NotBegun,
    Pending,
    Running,
    Unreadable,
)
from runner.errors import RunnerError
from runner.runs.entry import Entry, cancelled_by, read_cancel
from runner.runs.folder import BEGUN
from runner.runs.following import LogFollower
from runner.runs.gpus import GpuPool, Lease, Shortage
from runner.runs.outcome import VERDICT_FILE, Outcome
from runner.runs.partial import set_apart
from runner.runs.placement import PLACEMENT_FILE, Placement
from runner.runs.submission import Submission, read_submission
from runner.runs.table import RunTable
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.report import ValidationReport
from schemas.runs import RunState

log = logging.getLogger(__name__)

_FIRST_LOOK_SECONDS, _LOOK_SECONDS = 0.2, 2.0
"""Between two looks at a run that computes: soon at first, then as seldom as people look. Its end is heard at once."""
_TRY_AGAIN_SECONDS = 5.0
_GPU_LOOK_SECONDS = 0.5
_LIMITS = ("time_limit", "memory_limit", "disk_reserve")


class Launcher(Protocol):
    """Prepares a run and gives its environment; checks first that all is still as it was approved."""

    async def prepare(self, entry: Entry, submission: Submission, placement: Placement) -> dict[str, str]:
        """Make the folder ready for the supervisor. Raises RunnerError where the run must not start."""
        ...


class Judge(Protocol):
    """Looks at what a run left."""

    async def report(
        self, entry: Entry, submission: Submission, end: Exit, log: LogFollower, lease: Lease | None
    ) -> ValidationReport:
        """The report on a run whose command ended. It reads, and may be asked again after a restart."""
        ...


class Held:
    """The GPUs of a run, as far as this daemon holds them: those of a run that an earlier one started it does not."""

    def __init__(self, lease: Lease | None, placement: Placement) -> None:
        self.lease, self.placement = lease, placement

    def close(self) -> None:
        """Let go of them."""
        if self.lease is not None:
            self.lease.close()
            self.lease = None


@dataclass
class Course:
    """Brings runs to their ends."""

    table: RunTable
    engine: Engine
    pool: GpuPool
    launcher: Launcher
    judge: Judge
    clock: Clock
    run_seconds: float | None = None
    """The longest that a run may take."""
    settle_seconds: float = 60.0
    """How long the memory of a GPU may take to come back after its run."""
    orphan_grace_seconds: float = 3.0

    async def bring_to_end(self, entry: Entry, held: Held) -> None:
        """Until the run has ended, or nothing can be done for it any more, or it stands in the queue again.

        Its GPUs are let go when they are free, or will not become so.
        """
        try:
            while not entry.ended:
                try:
                    if not await self._step(entry, held):
                        return
                except Exception as error:  # not the run's fault: the disk is full, say. Nothing is decided; try again.
                    self.say_stuck(entry, error)
                    await asyncio.sleep(_TRY_AGAIN_SECONDS)
            await self._settled(entry)
        finally:
            held.close()

    def say_stuck(self, entry: Entry, error: Exception) -> None:
        """Tell the run's people why it does not get on."""
        expected = isinstance(error, RunnerError | OSError)
        log.error("Run %s cannot be brought on: %s", entry.run.id, error, exc_info=None if expected else error)
        self.table.note(entry, f"It waits, since this failed and is tried again: {error}")

    def cancelled(self, observed: CancelledBeforeStart) -> Outcome:
        """The end of a run of which nothing ever ran."""
        who = observed.cancel.by if observed.cancel else "A signal"
        return Outcome(
            state=RunState.CANCELLED,
            code="cancelled",
            reason=f"{who} cancelled it before it began.",
            at=self.clock.now(),
        )

    def not_started(self, entry: Entry, error: RunnerError) -> None:
        """The end of a run that must not start."""
        reason = f"It was not started: {error.message} {error.hint}".strip()
        self.table.end(entry, Outcome(state=RunState.FAILED, code=error.code, reason=reason, at=self.clock.now()))

    async def _step(self, entry: Entry, held: Held) -> bool:
        """Do what the folder says is next; False when nothing can be done for this run now."""
        observed = await self.engine.state(entry.folder)
        if entry.damaged and not isinstance(observed, Running):
            if entry.run.state is not RunState.UNKNOWN:
                self.table.change(entry, RunState.UNKNOWN, "unreadable", "It is over, and its folder is damaged.")
            return False
        match observed:
            case NotBegun():
                return await self._start(entry, held)
            case Pending():
                await self._await_turn(entry, observed)
            case CancelledBeforeStart():
                self.table.end(entry, self.cancelled(observed))
            case Running():
                await self._follow(entry)
            case Exited():
                await self._conclude(entry, observed.exit, held)
            case Lost():
                await self._give_up(entry, observed)
            case Unreadable():
                self.unreadable(entry, observed)
                return False
        return True

    def unreadable(self, entry: Entry, observed: Unreadable) -> None:
        """Nobody knows what became of it. It stays unknown until it can be read or a person closes it by cancelling."""
        reason = f"What became of it cannot be read: {observed.why}"
        if entry.folder.cancel_asked():
            self.table.end(entry, Outcome(state=RunState.LOST, code="unreadable", reason=reason, at=self.clock.now()))
        elif entry.run.state is not RunState.UNKNOWN:
            self.table.change(entry, RunState.UNKNOWN, "unreadable", reason)

    async def _start(self, entry: Entry, held: Held) -> bool:
        if self.engine.places_here and held.lease is None:
            # It seemed to have begun, or could not be read, when it was taken up: it needs a place of its own first.
            self.table.change(entry, RunState.QUEUED, gpus=[])
            return False
        self.table.change(entry, RunState.STARTING, gpus=held.placement.gpus)
        try:
            submission = await asyncio.to_thread(read_submission, entry.folder)
            environment = await self.launcher.prepare(entry, submission, held.placement)
            # To check the model took its time: what began to compute on the GPUs meanwhile is left alone.
            if held.placement.gpus and (why := await self.pool.still_held(held.placement.gpus)):
                if entry.folder.cancel_asked():
                    return True
                entry.folder.remove(PLACEMENT_FILE)  # no supervisor was started: it may get others
                self.table.change(entry, RunState.QUEUED, "no_free_gpu", f"It waits again: {why}", gpus=[])
                return False
            needs = Needs(entry.gpus, self.run_seconds, f"{entry.run.scheme} {Path(entry.run.model).name}")
            descriptors = held.lease.descriptors if held.lease else ()
            await self.engine.submit(entry.folder, environment, needs=needs, keep_open=descriptors)
        except RunnerError as error:
            if error.code == "not_begun" or entry.folder.has_begun():
                raise  # it may run: what became of it is read from the folder
            if not entry.folder.cancel_asked():  # else it was cancelled while it was being started
                self.not_started(entry, error)
        return True

    async def _await_turn(self, entry: Entry, pending: Pending) -> None:
        """Another scheduler has it and has not started it."""
        state = RunState.CANCELLING if pending.cancelling else RunState.STARTING
        why = f"{pending.job} waits: {pending.why}" if pending.why else f"{pending.job} waits."
        if (state, why) != (entry.run.state, entry.run.reason) and entry.run.state is not RunState.CANCELLING:
            self.table.change(entry, state, "pending", why, job=pending.job)
        await self.engine.rest(entry.folder, _LOOK_SECONDS)

    async def _follow(self, entry: Entry) -> None:
        follower, looks = LogFollower(entry.folder.log_path), 0
        while isinstance(observed := await self.engine.state(entry.folder), Running):
            if observed.cancelling or entry.run.state is RunState.CANCELLING:
                if entry.run.state is not RunState.CANCELLING:
                    self.table.change(entry, RunState.CANCELLING, "cancel", "It was cancelled.")
            elif entry.run.state is not RunState.RUNNING or entry.run.code == "stuck":  # it gets on again
                job = {"job": observed.job} if observed.job else {}
                self.table.change(entry, RunState.RUNNING, started_at=entry.run.started_at or self._began(entry), **job)
            progress = await asyncio.to_thread(follower.read_on)
            if progress is not None and progress != entry.run.progress:
                self.table.progress(entry, progress)
            looks += 1
            await self.engine.rest(entry.folder, min(looks * _FIRST_LOOK_SECONDS, _LOOK_SECONDS))

    async def _conclude(self, entry: Entry, end: Exit, held: Held) -> None:
        follower = LogFollower(entry.folder.log_path)
        progress = await asyncio.to_thread(follower.read_to_end, end.exit_code == 0)
        started = end.started_at or entry.run.started_at
        outcome = entry.folder.read_as(VERDICT_FILE, Outcome)
        manifest: RunManifest | None = None
        if outcome is None and not end.cancelled and not entry.folder.cancel_asked():
            self.table.change(entry, RunState.VERIFYING, started_at=started, exit_code=end.exit_code, progress=progress)
            submission = await asyncio.to_thread(read_submission, entry.folder)
            manifest = submission.run_manifest
            if end.exit_code == 0:
                await self._hold_again(entry, held)
            report = await self.judge.report(entry, submission, end, follower, held.lease)
            state = RunState.FAILED if report.status == "failed" else RunState.SUCCEEDED
            code = "" if state is RunState.SUCCEEDED else _failure_code(end)
            outcome = Outcome(state=state, code=code, reason=report.summary, at=self.clock.now(), report=report)
        if outcome is None or (end.cancelled or entry.folder.cancel_asked()):  # maybe while it was verified
            outcome = await self._cancelled_while_running(entry, end)
        told = {"started_at": started, "exit_code": end.exit_code, "progress": follower.progress}
        await self._finish(entry, outcome.model_copy(update=told), began=end.started_at is not None, manifest=manifest)

    async def _hold_again(self, entry: Entry, held: Held) -> None:
        """The GPUs of a run that an earlier daemon started, for the check of its result."""
        while held.lease is None and held.placement.gpus and not entry.folder.cancel_asked():
            got = await self.pool.take_again(held.placement.gpus)
            if isinstance(got, Shortage):
                self.table.note(entry, f"Its result is loaded again when its GPUs are free. {got.sentence}")
                await asyncio.sleep(_GPU_LOOK_SECONDS)
            else:
                held.lease = got

    async def _give_up(self, entry: Entry, lost: Lost) -> None:
        """The supervisor is gone without telling: what became of the command is not known. It is never run again."""
        orphans = await self.engine.end_orphans(entry.folder, self.orphan_grace_seconds)
        left = f" {orphans.ended} of its processes still ran and were ended." if orphans.ended else ""
        why = "Its supervisor was killed or the host went down"
        if lost.rebooted:
            why = "The host was restarted while it ran"
        reason = f"{why}, so its outcome is not known.{left} {orphans.doubt}"
        began = lost.begun.wall if lost.begun else None
        outcome = Outcome(
            state=RunState.LOST, code="lost", reason=reason.strip(), at=self.clock.now(), started_at=began
        )
        await self._finish(entry, outcome, began=True)

    async def _cancelled_while_running(self, entry: Entry, end: Exit) -> Outcome:
        cancel = read_cancel(entry.folder)
        told = entry.run.reason if entry.run.code == "cancel" else f"It was ended by {end.ended_by}."
        what = cancelled_by(cancel) if cancel else told
        if entry.run.state is not RunState.CANCELLING:
            self.table.change(entry, RunState.CANCELLING, "cancel", what)
        doubt = await self._settled(entry)  # a GPU is free again when its memory is
        return Outcome(
            state=RunState.CANCELLED, code="cancelled", reason=f"{what} {doubt}".strip(), at=self.clock.now()
        )

    async def _settled(self, entry: Entry) -> str:
        """Wait until the GPUs of an ended run have their memory back; what still holds it after all that time."""
        clock = asyncio.get_running_loop().time
        last = clock() + self.settle_seconds
        try:
            while entry.run.gpus and (why := await self.pool.still_held(entry.run.gpus)):
                if clock() > last:
                    doubt = f"Its GPUs are not free {self.settle_seconds:g} s after its end: {why}"
                    log.warning("Run %s: %s", entry.run.id, doubt)
                    return doubt
                await asyncio.sleep(_GPU_LOOK_SECONDS)
        except Exception as error:  # whatever a tool said: the run has ended all the same
            log.warning("Whether the GPUs of run %s are free cannot be found out: %s", entry.run.id, error)
        return ""

    async def _finish(
        self, entry: Entry, outcome: Outcome, *, began: bool, manifest: RunManifest | None = None
    ) -> None:
        """Set apart what a run left that did not succeed, so that nothing looks like a model; then tell its end."""
        outcome = outcome.model_copy(update={"gpus": entry.run.gpus, "job": entry.run.job})
        if began and outcome.state is not RunState.SUCCEEDED and not entry.damaged:
            entry.folder.write(VERDICT_FILE, outcome.model_dump_json().encode())
            outcome = await asyncio.to_thread(_set_apart, entry, outcome)
        self.table.end(entry, outcome, manifest)

    def _began(self, entry: Entry) -> datetime:
        try:
            begun = entry.folder.read_as(BEGUN, Begun)
        except RunnerError:
            begun = None  # it runs all the same
        return begun.wall if begun else self.clock.now()


def _set_apart(entry: Entry, outcome: Outcome) -> Outcome:
    try:
        place = set_apart(Path(entry.run.output_dir), entry.run.id)
    except RunnerError as error:
        return outcome.model_copy(update={"reason": f"{outcome.reason} {error.message} {error.hint}".strip()})
    if not place:
        return outcome
    told = f"{outcome.reason} What it wrote until then was set apart in {place}."
    return outcome.model_copy(update={"partial_output": place, "reason": told})


def _failure_code(end: Exit) -> str:
    if end.could_not_start:
        return "could_not_start"
    if end.ended_by in _LIMITS:
        return end.ended_by
    return "verification_failed" if end.exit_code == 0 else "exit_code"
