"""The queue's consumer, where somebody decides otherwise while it looks for a place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from runner.clock import SystemClock
from runner.engines.local import LocalEngine
from runner.runs.course import Course, Held
from runner.runs.dispatcher import Dispatcher
from runner.runs.entry import Entry
from runner.runs.gpus import Lease, Shortage
from runner.runs.placement import PLACEMENT_FILE, Placement
from runner.runs.redaction import Redactor
from runner.runs.table import RunTable
from schemas.api import Approval, GpuStanding, QueueMode, RunSubmission
from schemas.artifacts.environment import Gpu
from schemas.artifacts.manifest import ManifestOutputs, RunManifest
from schemas.runs import RunState
from tests.runner.host.settings import settings_in
from tests.samples import manifest
from tests.waiting import until


class Open:
    """A gate that admits everything, when it is told to."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.asked = 0

    async def admit(self, manifest: RunManifest, approvals: list[Approval]) -> None:  # noqa: ARG002
        self.asked += 1
        await self.may.wait()


@dataclass
class Free:
    """A lease of one GPU."""

    gpus: tuple[Gpu, ...] = ()
    descriptors: tuple[int, ...] = ()
    mask: dict[str, str] = field(default_factory=dict)
    closed: bool = False

    def close(self) -> None:
        self.closed = True


class SlowPool:
    """GPUs of which it takes its time to tell whether they are free, as a vendor's tool does."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.asked = 0
        self.given: list[Free] = []
        self.shortage: Shortage | None = None

    async def take(self, count: int) -> Lease | Shortage:  # noqa: ARG002
        self.asked += 1
        await self.may.wait()
        if self.shortage is not None:
            return self.shortage
        self.given.append(Free())
        return self.given[-1]

    async def take_again(self, names: Sequence[str]) -> Lease | Shortage:
        """Another daemon's run has them by now."""
        return Shortage(len(names), 0, ("GPU 0 (0000:05:00.0): another run has it",))

    async def still_held(self, names: Sequence[str]) -> str:  # noqa: ARG002
        return ""

    async def count(self) -> int:
        return 8

    async def standings(self) -> list[GpuStanding]:
        return []


class Recording(Course):
    """Begins no run; notes which would have begun."""

    began: list[str]

    async def bring_to_end(self, entry: Entry, held: Held) -> None:  # noqa: ARG002
        self.began.append(entry.run.id)
        self.table.change(entry, RunState.STARTING)
        await asyncio.Event().wait()


@dataclass
class Bench:
    table: RunTable
    pool: SlowPool
    gate: Open
    course: Recording

    async def submit(self, name: str) -> str:
        outputs = ManifestOutputs(output_dir=f"/out/{name}", expected_files=["config.json"])
        run, _ = await self.table.submit(RunSubmission(run_manifest=manifest(outputs=outputs), approvals=[], key=name))
        return run.id


@asynccontextmanager
async def bench(folder: Path, *names: str) -> AsyncIterator[tuple[Bench, list[str]]]:
    """A dispatcher that is looking for a place for the first of the waiting runs of these names."""
    settings = settings_in(folder)
    engine, pool, gate = LocalEngine(), SlowPool(), Open()
    table = RunTable(folder / "state" / "runs", gate, engine, SystemClock(), Redactor(set()), settings)
    table.recover()
    course = Recording(table, engine, pool, None, None, SystemClock())  # type: ignore[arg-type]
    course.began = []
    made = Bench(table, pool, gate, course)
    runs = [await made.submit(name) for name in names]
    task = asyncio.create_task(Dispatcher(table, engine, pool, course, 1, 1).run())
    try:
        await until(lambda: pool.asked == 1)
        yield made, runs
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_nothing_starts_after_the_queue_was_paused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a", "b") as (made, runs):
            made.table.set_mode("paused", "ada", "")
            made.pool.may.set()
            await until(lambda: {made.table.entry(run).run.code for run in runs} == {"paused"})
            assert made.course.began == []
            assert all(lease.closed for lease in made.pool.given)

    asyncio.run(scenario())


def test_who_was_given_a_better_place_meanwhile_starts_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a", "b", "c") as (made, (a, b, c)):
            made.table.set_priority(c, "high", "ada")
            made.pool.may.set()
            await until(lambda: len(made.course.began) == 3)
            assert made.course.began == [c, a, b]
            assert sum(not lease.closed for lease in made.pool.given) == 3

    asyncio.run(scenario())


def test_who_was_cancelled_meanwhile_does_not_stand_in_the_queue_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a", "b", "c") as (made, (a, b, c)):
            made.pool.shortage = Shortage(1, 0)
            for run in (a, b, c):
                assert (await made.table.cancel(run, "ada", "")).state is RunState.CANCELLING
            made.pool.may.set()
            await until(lambda: all(made.table.entry(run).ended for run in (a, b, c)))
            for run in (a, b, c):
                told = (tmp_path / "state" / "runs" / run / "events.jsonl").read_text()
                assert '"queued"' not in told.partition('"cancelling"')[2], told

    asyncio.run(scenario())


def test_no_run_is_taken_after_the_queue_was_drained(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a") as (made, _):
            made.gate.may.clear()
            late = asyncio.create_task(made.submit("late"))
            await until(lambda: made.gate.asked == 2)
            drains: QueueMode = "draining"
            made.table.set_mode(drains, "ada", "")
            made.gate.may.set()
            (refused,) = await asyncio.gather(late, return_exceptions=True)
            assert getattr(refused, "code", "") == "draining", refused

    asyncio.run(scenario())


def test_a_place_that_was_noted_before_anything_was_started_binds_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a", "b") as (made, (a, b)):
            folder = made.table.entry(b).folder
            folder.write(PLACEMENT_FILE, Placement(gpus=["0 (0000:05:00.0)"]).model_dump_json().encode())
            made.pool.may.set()
            await until(lambda: made.course.began == [a, b])

    asyncio.run(scenario())


def test_a_place_in_which_a_supervisor_may_still_begin_is_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with bench(tmp_path, "a", "b") as (made, (a, b)):
            folder = made.table.entry(b).folder
            folder.write(PLACEMENT_FILE, Placement(gpus=["0 (0000:05:00.0)"]).model_dump_json().encode())
            folder.write("launch.json", b"{}")
            made.pool.may.set()
            await until(lambda: made.table.entry(b).run.code == "placed_before")
            assert made.course.began == [a]

    asyncio.run(scenario())
