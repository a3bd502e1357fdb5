"""Takes runs from the queue in their order, gives each its place on this host, and lets its course begin."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from runner.engines.engine import CancelledBeforeStart, Engine, Unreadable
from runner.errors import RunnerError
from runner.host.gpus.identity import name_of
from runner.runs.course import Course, Held
from runner.runs.entry import Entry
from runner.runs.folder import LAUNCH
from runner.runs.gpus import GpuPool, Lease, Shortage
from runner.runs.placement import PLACEMENT_FILE, Placement, read_placement
from runner.runs.table import RunTable
from schemas.runs import RunState

_TRY_AGAIN_SECONDS = 2.0
"""Between two looks whether something is free: other daemons and foreign processes do not tell when they let go."""
_BEHIND = "It waits behind the runs that came before it."


@dataclass
class Dispatcher:
    """The queue's only consumer. Runs on GPUs and runs on the CPU stand in lanes: neither holds up the other."""

    table: RunTable
    engine: Engine
    pool: GpuPool
    course: Course
    cpu_runs: int
    at_once: int
    """Runs that another scheduler may have at the same time."""
    _active: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Work until cancelled. Runs go on without it."""
        async with asyncio.TaskGroup() as tasks:
            for entry in self.table.unfinished():
                if entry.damaged or self.engine.took(entry.folder):
                    self._begin(tasks, entry, Held(None, read_placement(entry.folder)))
            while True:
                self.table.work_waits.clear()
                self._active = {run: task for run, task in self._active.items() if not task.done()}
                self._settle_idle()
                for entry in self.table.unfinished():
                    if self._is_left(entry):
                        self._begin(tasks, entry, Held(None, read_placement(entry.folder)))
                await self._place_waiting(tasks)
                waits = tasks.create_task(self.table.work_waits.wait())
                patience = _TRY_AGAIN_SECONDS if self._has_to_look() else None
                await asyncio.wait(
                    [waits, *self._active.values()], return_when=asyncio.FIRST_COMPLETED, timeout=patience
                )
                waits.cancel()

    def _has_to_look(self) -> bool:
        return any(entry.waits or entry.run.state is RunState.UNKNOWN for entry in self.table.unfinished())

    def _is_left(self, entry: Entry) -> bool:
        """Whether it is not in the queue and nobody brings it on.

        One that was unknown can be read again, say; or a supervisor that the last daemon started has begun only now.
        """
        if entry.damaged or entry.run.id in self._active:
            return False
        if entry.run.state is RunState.UNKNOWN:
            return not isinstance(entry.folder.observe(), Unreadable)
        return not entry.waits or self.engine.took(entry.folder)

    def _begin(self, tasks: asyncio.TaskGroup, entry: Entry, held: Held) -> None:
        self._active[entry.run.id] = tasks.create_task(self.course.bring_to_end(entry, held))

    def _settle_idle(self) -> None:
        """A run that waits is cancelled at once, whatever else this host is busy with.

        One that cannot be read, because its folder is gone, say, would hold up those behind it: it leaves the queue.
        """
        for entry in self.table.unfinished():
            if entry.run.id in self._active or entry.damaged:
                continue
            observed = entry.folder.observe()
            try:
                if isinstance(observed, CancelledBeforeStart):
                    self.table.end(entry, self.course.cancelled(observed))
                elif isinstance(observed, Unreadable):
                    self.course.unreadable(entry, observed)
            except Exception as error:  # one run that cannot be brought on must not stop the others
                self.course.say_stuck(entry, error)

    async def _place_waiting(self, tasks: asyncio.TaskGroup) -> None:
        """Start what can start, in the order of the queue; say of every other why it waits."""
        full: set[str] = set()
        for entry in self.table.waiting():
            if not entry.waits or entry.run.id in self._active:
                continue  # it was cancelled meanwhile, or its course has begun and has not said so yet
            lane = "gpu" if entry.gpus else "cpu"
            if self.table.queue.standing.mode == "paused":
                self.table.wait(entry, "paused", f"It waits: {self.table.queue.standing.sentence}")
                continue
            if lane in full:
                self.table.wait(entry, "behind", _BEHIND)
                continue
            try:
                held = await self._place(entry)
            except Exception as error:  # one run that cannot be placed must not stop the others
                self.course.say_stuck(entry, error)
                held = None
            if held is None:
                full.add(lane)
            elif self._may_begin(entry):
                self._begin(tasks, entry, held)
            else:
                held.close()
                if entry.waits:
                    return  # somebody paused the queue or changed its order: all of it is looked at again

    def _may_begin(self, entry: Entry) -> bool:
        """Whether it is still its turn: to look for a place took its time, and people go on deciding."""
        if not entry.waits or entry.folder.cancel_asked() or self.table.queue.standing.mode == "paused":
            return False
        lane = (one for one in self.table.waiting() if bool(one.gpus) is bool(entry.gpus))
        return next((one for one in lane if one.run.id not in self._active), None) is entry

    async def _place(self, entry: Entry) -> Held | None:
        """Where this run may compute now; None where it has to wait, which it is told then."""
        if not self.engine.places_here:
            return self._room_elsewhere(entry)
        if not entry.gpus and self._at_work(gpus=False) >= self.cpu_runs:
            what = "1 run" if self.cpu_runs == 1 else f"{self.cpu_runs} runs"
            self.table.wait(entry, "cpu_busy", f"It waits for the CPU: {what} may compute on it at the same time.")
            return None
        try:
            if not await self._is_unplaced(entry):
                return None
            got = await self._taken(entry)
        except RunnerError as error:
            if error.code == "too_few_gpus":
                self.course.not_started(entry, error)
                return Held(None, Placement())
            why = f"It waits, since GPUs cannot be shared out: {error.message} {error.hint}"
            self.table.wait(entry, error.code, why.strip())
            return None
        if isinstance(got, Shortage):
            self.table.wait(entry, "no_free_gpu", got.sentence)
            return None
        return self._placed(entry, got)

    async def _taken(self, entry: Entry) -> Lease | Shortage:
        if not entry.gpus:
            return await self.pool.take(0)
        here = self.table.gpus_here = await self.pool.count()
        return await self.pool.take(min(entry.gpus, max(here, 1)))

    def _placed(self, entry: Entry, lease: Lease) -> Held | None:
        placement = Placement(gpus=[name_of(gpu) for gpu in lease.gpus], mask=lease.mask)
        try:
            entry.folder.write(PLACEMENT_FILE, placement.model_dump_json(indent=1).encode() + b"\n")
        except RunnerError as error:
            lease.close()
            self.course.say_stuck(entry, error)
            return None
        return Held(lease, placement)

    def _room_elsewhere(self, entry: Entry) -> Held | None:
        if len(self._active) < self.at_once:
            return Held(None, Placement())
        self.table.wait(entry, "slurm_full", f"It waits: {self.at_once} runs of this runner lie with Slurm already.")
        return None

    async def _is_unplaced(self, entry: Entry) -> bool:
        """Whether no supervisor that an earlier daemon started for this run may still begin.

        Such a one has the locks of the run's GPUs and would compute on those, whatever is written down anew. Where
        nobody has them it is gone; and none was started before launch.json was written.
        """
        if not entry.folder.holds(LAUNCH):
            return True
        names = read_placement(entry.folder).gpus
        ours = {name for run in self._active for name in self.table.entry(run).run.gpus}
        if not names or not ours.isdisjoint(names):
            return True
        try:
            got = await self.pool.take_again(names)
        except RunnerError:
            return True  # one of them is not there any more
        if isinstance(got, Shortage):
            self.table.wait(entry, "placed_before", f"It was being started when the daemon ended. {got.sentence}")
            return False
        got.close()
        entry.folder.remove(PLACEMENT_FILE)
        return True

    def _at_work(self, *, gpus: bool) -> int:
        return sum(bool(self.table.entry(run).gpus) is gpus for run in self._active)
