"""All runs of this runner: handed in once, shown, cancelled. Rebuilt from the run folders at every start."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from runner.clock import Clock
from runner.engines.engine import Cancel, Engine, Exited, Running
from runner.errors import BadRequest, Broken, Conflict, NotHere
from runner.runs.documents import read_run_file
from runner.runs.entry import Entry, cancelled_by, read_cancel, usual_seconds
from runner.runs.finished import FinishedRuns, past_run
from runner.runs.folder import RunFolder
from runner.runs.gpus import gpus_needed
from runner.runs.journal import EventStream, Journal
from runner.runs.logs import LogPiece, read_log
from runner.runs.outcome import OUTCOME_FILE, Outcome
from runner.runs.placement import read_placement
from runner.runs.queue import (
    PRIORITY_FILE,
    QUEUE_FILE,
    Queue,
    QueueStanding,
    Ranked,
    expected_starts,
    in_order,
    read_priority,
)
from runner.runs.redaction import Redactor
from runner.runs.submission import SUBMISSION_FILE, Submission, read_submission, run_id
from runner.settings import RunnerSettings
from schemas.api import Approval, QueueMode, RunSubmission
from schemas.api import Queue as QueueDocument
from schemas.artifacts.manifest import RunManifest
from schemas.digest import digest
from schemas.runs import Progress, Progressed, QueuePriority, Reported, Run, RunEvent, RunState, StateChanged

log = logging.getLogger(__name__)


class Gate(Protocol):
    """Says no to a run that was not approved, or that is no longer what was approved. Raises RunnerError."""

    async def admit(self, manifest: RunManifest, approvals: list[Approval]) -> None:
        """Check approvals, digests, command, model and versions as they are now."""
        ...


@dataclass(frozen=True)
class Counts:
    """How many runs there are, by state."""

    by_state: dict[str, int]

    @property
    def queued(self) -> int:
        """Runs that wait."""
        return self.by_state.get(RunState.QUEUED, 0)

    @property
    def active(self) -> int:
        """Runs that neither wait nor have ended."""
        return sum(number for state, number in self.by_state.items() if not RunState(state).ended) - self.queued


class RunTable:
    """The only place that makes run folders and that tells of changes."""

    def __init__(
        self,
        root: Path,
        gate: Gate,
        engine: Engine,
        clock: Clock,
        redactor: Redactor,
        settings: RunnerSettings,
        finished: FinishedRuns | None = None,
    ) -> None:
        """`root` holds the run folders; how the queue stands is kept beside it."""
        self._root = root
        self._gate = gate
        self._engine = engine
        self._clock = clock
        self._redactor = redactor
        self._limits = settings.limits
        self._gpus_per_run = settings.gpus.per_run
        self.queue = Queue(root.with_name(QUEUE_FILE))
        self.gpus_here = 0
        """How many GPUs runs may use; told by the dispatcher."""
        self._finished = finished or FinishedRuns()
        self._entries: dict[str, Entry] = {}  # in the order of their arrival
        self._open: dict[str, Entry] = {}  # those that have not ended: what the queue costs does not grow with history
        self._by_state: Counter[RunState] = Counter()
        self._submitting = asyncio.Lock()
        self.stream = EventStream()
        self.work_waits = asyncio.Event()

    def recover(self) -> None:
        """Rebuild the table from the folders. Call once, before anything else."""
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        RunFolder.clean_up(self._root)
        self.queue.recover()
        found, ended = [], []
        for folder in RunFolder.all(self._root):
            try:
                submission, outcome = read_submission(folder), folder.read_as(OUTCOME_FILE, Outcome)
                found.append(self._entry_of(folder, submission, outcome))
                if outcome is not None and (past := past_run(submission.run_manifest, outcome)):
                    ended.append((outcome.at, past))
            except Exception as error:  # whatever is wrong with one folder must not hide all other runs
                log.error("The run in %s cannot be read: %s", folder.path, error)
                found.append(self._damaged_entry(folder, error))
        for entry in sorted(found, key=lambda entry: entry.number):
            self._add(entry)
        for _, past in sorted(ended, key=lambda one: one[0]):
            self._finished.add(past)
        self._renumber()

    async def submit(self, submission: RunSubmission) -> tuple[Run, bool]:
        """Queue an approved manifest; whether it is new. The same key answers with the run of that key.

        Raises RunnerError where the approvals, the manifest or the host do not allow the run.
        """
        async with self._submitting:
            known = self._entries.get(run_id(submission.key))
            if known is not None:
                return self._same(known, submission), False
            self.queue.admit()
            await self._gate.admit(submission.run_manifest, submission.approvals)
            self.queue.admit()  # again: the gate took its time, and people go on deciding
            self._make_room(submission.run_manifest)
            entry = await asyncio.to_thread(self._create, submission)
            self._add(entry)
            self._renumber()
            self.tell(entry, StateChanged(state=RunState.QUEUED))
            self.work_waits.set()
            return entry.run, True

    async def show(self, run: str) -> Run:
        """One run, with its report. Raises NotHere."""
        entry = self.entry(run)
        if not entry.ended:
            return entry.run
        outcome = await asyncio.to_thread(entry.folder.read_as, OUTCOME_FILE, Outcome)
        return entry.run if outcome is None else entry.run.model_copy(update={"report": outcome.report})

    def entry(self, run: str) -> Entry:
        """The record of a run. Raises NotHere."""
        try:
            return self._entries[run]
        except KeyError:
            raise NotHere(
                "no_such_run", f"There is no run {run[:80]!r} on this runner.", "See `ptq-runner runs`."
            ) from None

    def newest(self, state: str | None, limit: int) -> list[Run]:
        """Runs, newest first. Raises BadRequest for a state that does not exist."""
        if state is not None and state not in set(RunState):
            raise BadRequest("bad_query", f"{state[:40]!r} is no state of a run.", f"States: {', '.join(RunState)}.")
        newest = (entry.run for entry in reversed(self._entries.values()))
        return list(islice((run for run in newest if state is None or run.state == state), limit))

    def counts(self) -> Counts:
        """Runs by state."""
        return Counts({str(state): number for state, number in self._by_state.items() if number})

    def unfinished(self) -> list[Entry]:
        """Runs that still need attention, in the order of their arrival."""
        return list(self._open.values())

    def waiting(self) -> list[Entry]:
        """Runs that wait, in the order in which they start."""
        return in_order(self._open.values())

    def standing(self) -> QueueDocument:
        """What waits and what is at work, without the GPUs."""
        active = [entry.run for entry in self.unfinished() if not entry.waits]
        return QueueDocument(
            **self.queue.standing.model_dump(), waiting=[entry.run for entry in self.waiting()], active=active
        )

    def set_mode(self, mode: QueueMode, by: str, reason: str) -> None:
        """Open, pause or drain the queue; what is set already keeps its author. Raises Broken."""
        if mode != self.queue.standing.mode:
            shown = {"by": self._redactor.redact_text(by), "reason": self._redactor.redact_text(reason)}
            self.queue.change(QueueStanding(mode=mode, at=self._clock.now(), **shown))
            log.info("%r", self.queue.standing.sentence)  # what people wrote may have lines of its own
            self._renumber()
            self.work_waits.set()

    def set_priority(self, run: str, priority: QueuePriority, by: str) -> Run:
        """Give a run that waits another place. Raises Conflict where it does not wait any more, and NotHere."""
        entry = self.entry(run)
        if not entry.waits:
            raise Conflict(
                "not_waiting",
                f"Run {run} does not wait any more: it is {entry.run.state}.",
                "Only what waits has a place.",
            )
        if priority != entry.run.priority:
            ranked = Ranked(priority=priority, by=self._redactor.redact_text(by), at=self._clock.now())
            entry.folder.write(PRIORITY_FILE, ranked.model_dump_json(indent=1).encode() + b"\n")
            entry.run = entry.run.model_copy(update={"priority": priority})
            told = entry.run.last_event
            self._renumber()
            if (
                entry.run.last_event == told
            ):  # its place is as before, and those who look at it have to know all the same
                self.tell(entry, StateChanged(state=RunState.QUEUED, code=entry.run.code, reason=entry.run.reason))
            self.work_waits.set()
        return entry.run

    async def cancel(self, run: str, by: str, reason: str) -> Run:
        """Ask for the end of a run; asking again changes nothing. Raises Conflict when it has ended otherwise."""
        entry = self.entry(run)
        if not entry.ended:  # also when it is cancelling already: a supervisor that was stopped meanwhile is woken
            observed = await self._engine.cancel(entry.folder, by, reason)
            if entry.damaged and not isinstance(observed, Running):
                raise Conflict("already_ended", f"Nothing of run {run} runs any more; {entry.run.reason}")
            if isinstance(observed, Exited):  # its command is over, and its result is being verified
                await asyncio.to_thread(entry.folder.ask_cancel, by, reason, self._clock.now().isoformat())
            self.work_waits.set()
        # Looked at again: it may have ended, or have been cancelled by another, while the request was written.
        if entry.ended and entry.run.state is not RunState.CANCELLED:
            raise Conflict("already_ended", f"Run {run} has already ended: it {entry.run.state}.")
        if not entry.ended and entry.run.state is not RunState.CANCELLING:
            asked = Cancel(by=by, at=self._clock.now(), reason=reason)
            self.change(entry, RunState.CANCELLING, "cancel", cancelled_by(asked))
        return entry.run

    async def log(self, run: str, offset: int, length: int) -> LogPiece:
        """A redacted piece of the log."""
        entry = self.entry(run)
        return await asyncio.to_thread(read_log, entry.folder.log_path, self._redactor, offset, length, entry.ended)

    async def file(self, run: str, name: str) -> bytes:
        """One of the run's documents, redacted. Raises NotHere."""
        shown = await self.show(run)
        return await asyncio.to_thread(read_run_file, self.entry(run).folder, shown, name, self._redactor)

    def change(self, entry: Entry, state: RunState, code: str = "", reason: str = "", **updates: Any) -> None:
        """Put a run into another state and tell everybody. An end is final: nothing changes it."""
        if entry.ended:
            return
        shown = self._redactor.redact_text(reason)
        since = entry.run.since if state is entry.run.state else self._clock.now()
        position = entry.run.position if state is RunState.QUEUED else None
        self._by_state[entry.run.state] -= 1
        self._by_state[state] += 1
        entry.run = entry.run.model_copy(
            update={
                "state": state,
                "code": code,
                "reason": shown,
                "since": since,
                "position": position,
                "expected_start": None,
                **updates,
            }
        )
        if entry.ended:
            self._open.pop(entry.run.id, None)
        self._renumber()
        self.tell(entry, StateChanged(state=state, code=code, reason=shown))

    def progress(self, entry: Entry, progress: Progress) -> None:
        """The run is further."""
        entry.run = entry.run.model_copy(update={"progress": progress})
        self.tell(entry, Progressed(progress=progress))

    def end(self, entry: Entry, outcome: Outcome, manifest: RunManifest | None = None) -> None:
        """Write the run's end durably, then tell everybody. With its manifest, later plans learn how long it took."""
        shown = Outcome.model_validate(self._redactor.redact_document(outcome.model_dump(mode="json")))
        # The report stays on disk: the table's memory must not grow with what old runs produced.
        entry.folder.write(OUTCOME_FILE, shown.model_dump_json(indent=2).encode())
        if shown.report is not None:
            self.tell(entry, Reported(status=shown.report.status, summary=shown.report.summary))
        if manifest is not None and not entry.ended and (past := past_run(manifest, shown)):
            self._finished.add(past)
        self.change(entry, shown.state, shown.code, shown.reason, **_ending(shown))

    def note(self, entry: Entry, why: str) -> None:
        """Say why a run does not get on, once for each reason. Its state stays."""
        if self._redactor.redact_text(why) != entry.run.reason:
            self.change(entry, entry.run.state, "stuck", why)

    def wait(self, entry: Entry, code: str, why: str) -> None:
        """Say why a run waits, once for each reason; nothing of one that does not wait any more."""
        shown = self._redactor.redact_text(why)
        if entry.waits and (code, shown) != (entry.run.code, entry.run.reason):
            self.change(entry, RunState.QUEUED, code, why)

    def tell(self, entry: Entry, what: StateChanged | Progressed | Reported) -> None:
        """Append the next event and hand it to the stream. On a full disk it is only logged: the folder counts."""
        number = entry.journal.last + 1
        event = RunEvent(run=entry.run.id, number=number, at=self._clock.now(), what=what)
        try:
            entry.journal.append(event)
        except OSError as error:
            log.error("Event %d of run %s cannot be written: %s", number, entry.run.id, error)
            return
        entry.run = entry.run.model_copy(update={"last_event": number})
        self.stream.publish(event)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.run.id] = entry
        self._by_state[entry.run.state] += 1
        if not entry.ended:
            self._open[entry.run.id] = entry

    def _create(self, submission: RunSubmission) -> Entry:
        document = Submission(
            id=run_id(submission.key),
            key=submission.key,
            number=next((entry.number for entry in reversed(self._entries.values())), 0) + 1,
            submitted_at=self._clock.now(),
            manifest_digest=digest(submission.run_manifest),
            run_manifest=submission.run_manifest,
            approvals=submission.approvals,
        )
        content = document.model_dump_json(indent=2).encode()
        folder = RunFolder.create(self._root, document.id, {SUBMISSION_FILE: content})
        # Read again: what another daemon made there first counts.
        return self._entry_of(folder, read_submission(folder), folder.read_as(OUTCOME_FILE, Outcome))

    def _entry_of(self, folder: RunFolder, submission: Submission, outcome: Outcome | None) -> Entry:
        if submission.id != folder.run_id:
            raise Broken("foreign_folder", f"It holds run {submission.id}: it is a copy, and a copy never runs.")
        journal = Journal(folder.path)
        run = Run(
            id=submission.id,
            key=submission.key,
            state=RunState.QUEUED,
            since=submission.submitted_at,
            submitted_at=submission.submitted_at,
            model=submission.run_manifest.inputs.model_path,
            scheme=submission.run_manifest.inputs.quant_plan.global_scheme,
            output_dir=submission.run_manifest.outputs.output_dir,
            manifest_digest=submission.manifest_digest,
            last_event=journal.last,
            priority=read_priority(folder),
            gpus=read_placement(folder).gpus,
        )
        if folder.cancel_asked():
            cancel = read_cancel(folder)
            reason = self._redactor.redact_text(cancelled_by(cancel) if cancel else "")
            run = run.model_copy(update={"state": RunState.CANCELLING, "code": "cancel", "reason": reason})
        if outcome is not None:
            changes = {"state": outcome.state, "code": outcome.code, "reason": outcome.reason, "since": outcome.at}
            run = run.model_copy(update={**changes, **_ending(outcome)})
        plan = submission.run_manifest.inputs.quant_plan
        gpus = gpus_needed(plan, self._gpus_per_run)
        return Entry(folder, submission.number, run, journal, gpus, usual_seconds(plan.estimates))

    def _damaged_entry(self, folder: RunFolder, error: Exception) -> Entry:
        """A run of which nothing is known but that it was handed in."""
        now = self._clock.now()
        run = Run(
            id=folder.run_id,
            key="",
            state=RunState.UNKNOWN,
            code="unreadable",
            reason=f"Its folder {folder.path} is damaged: {error}",
            since=now,
            submitted_at=now,
            model="unknown",
            scheme="unknown",
            output_dir="unknown",
            manifest_digest="",
        )
        return Entry(folder, 0, run, Journal(folder.path), damaged=True)

    def _same(self, known: Entry, submission: RunSubmission) -> Run:
        if known.run.manifest_digest != digest(submission.run_manifest):
            raise Conflict(
                "key_used",
                f"The key {submission.key[:80]!r} belongs to run {known.run.id}, which runs another manifest.",
                "Submit a new manifest with a key of its own.",
            )
        return known.run

    def _make_room(self, manifest: RunManifest) -> None:
        waiting = self.unfinished()
        if len(waiting) >= self._limits.queue:
            raise Conflict("queue_full", f"{len(waiting)} runs wait already.", "Try again when some have ended.")
        wanted = Path(manifest.outputs.output_dir)
        for entry in waiting:
            theirs = Path(entry.run.output_dir)
            if wanted == theirs or wanted in theirs.parents or theirs in wanted.parents:
                raise Conflict(
                    "output_reserved",
                    f"The output folder {wanted} is reserved for run {entry.run.id}, which writes to {theirs}.",
                    "Choose another output folder, or wait until that run has ended.",
                )

    def _renumber(self) -> None:
        """Give every run that waits its position, of which everybody is told, and when its turn may come."""
        waiting = self.waiting()
        active = (entry for entry in self.unfinished() if not entry.waits)
        starts: dict[str, datetime] = {}
        if self.queue.standing.mode != "paused":
            starts = expected_starts(self._clock.now(), waiting, active, self.gpus_here, self._limits.cpu_runs)
        for position, entry in enumerate(waiting, 1):
            moved = entry.run.position not in (None, position)
            update = {"position": position, "expected_start": starts.get(entry.run.id)}
            entry.run = entry.run.model_copy(update=update)
            if moved:
                self.tell(entry, StateChanged(state=RunState.QUEUED, code=entry.run.code, reason=entry.run.reason))


def _ending(outcome: Outcome) -> dict[str, Any]:
    return {
        "ended_at": outcome.at,
        "started_at": outcome.started_at,
        "exit_code": outcome.exit_code,
        "progress": outcome.progress,
        "position": None,
        "partial_output": outcome.partial_output,
        **({"gpus": outcome.gpus} if outcome.gpus else {}),
        **({"job": outcome.job} if outcome.job else {}),
    }
