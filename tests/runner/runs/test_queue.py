"""The order of the queue, when a turn may come, and what of it lasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import Broken, Conflict
from runner.runs.entry import Entry, usual_seconds
from runner.runs.folder import RunFolder
from runner.runs.journal import Journal
from runner.runs.queue import PRIORITY_FILE, Queue, QueueStanding, expected_starts, in_order, read_priority
from schemas.artifacts.plan import Estimates
from schemas.runs import QueuePriority, Run, RunState

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
PRIORITIES: list[QueuePriority] = ["high", "normal", "low"]


def entry(
    number: int,
    state: RunState = RunState.QUEUED,
    gpus: int = 1,
    usual: float | None = 600.0,
    priority: QueuePriority = "normal",
    started: datetime | None = None,
) -> Entry:
    run = Run(
        id=f"run-{number:016x}",
        key=str(number),
        state=state,
        since=NOW,
        submitted_at=NOW,
        started_at=started,
        model="/models/m",
        scheme="fp8",
        output_dir=f"/out/{number}",
        manifest_digest="",
        priority=priority,
    )
    folder = RunFolder(Path("/nowhere") / run.id)
    return Entry(folder, number, run, Journal(folder.path), gpus, usual)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@given(st.lists(st.tuples(st.sampled_from(PRIORITIES), st.sampled_from(list(RunState))), max_size=20))
def test_the_order_is_by_priority_and_then_by_arrival(drawn: list[tuple[QueuePriority, RunState]]) -> None:
    entries = [entry(number, state, priority=priority) for number, (priority, state) in enumerate(drawn, 1)]
    ordered = in_order(reversed(entries))
    assert [one.number for one in ordered] == [
        one.number
        for priority in PRIORITIES
        for one in entries
        if one.run.priority == priority and one.run.state is RunState.QUEUED
    ]


def test_what_is_damaged_stands_in_no_queue() -> None:
    damaged = entry(1)
    damaged.damaged = True
    assert in_order([damaged]) == []


def test_the_next_starts_when_the_first_is_expected_to_end() -> None:
    active = [entry(1, RunState.RUNNING, started=after(-500)), entry(2, RunState.RUNNING, started=after(-100))]
    starts = expected_starts(NOW, [entry(3), entry(4), entry(5)], active, gpus=2, cpu_runs=1)
    assert list(starts.values()) == [after(100), after(500), after(700)]


def test_a_run_on_several_gpus_holds_up_those_behind_it() -> None:
    active = [entry(1, RunState.RUNNING, started=after(-300))]
    starts = expected_starts(NOW, [entry(2, gpus=2), entry(3)], active, gpus=2, cpu_runs=1)
    assert list(starts.values()) == [after(300), after(900)]


def test_the_lanes_of_gpus_and_of_the_cpu_are_apart() -> None:
    active = [entry(1, RunState.RUNNING, started=NOW)]
    starts = expected_starts(NOW, [entry(2), entry(3, gpus=0), entry(4, gpus=0)], active, gpus=1, cpu_runs=1)
    assert starts == {entry(2).run.id: after(600), entry(3).run.id: NOW, entry(4).run.id: after(600)}


def test_nothing_is_expected_of_what_nobody_ran_before() -> None:
    unknown = [entry(1, RunState.RUNNING, usual=None)]
    assert expected_starts(NOW, [entry(2), entry(3)], unknown, gpus=1, cpu_runs=1) == {}
    behind = expected_starts(NOW, [entry(2, usual=None), entry(3)], [], gpus=1, cpu_runs=1)
    assert behind == {entry(2).run.id: NOW}, "when the one behind it may start depends on it"


def test_a_run_that_takes_longer_than_usual_may_end_any_moment() -> None:
    late = [entry(1, RunState.RUNNING, started=after(-9_000))]
    assert expected_starts(NOW, [entry(2)], late, gpus=1, cpu_runs=1) == {entry(2).run.id: NOW}


def test_more_gpus_than_there_are_give_no_turn() -> None:
    assert expected_starts(NOW, [entry(1, gpus=4)], [], gpus=2, cpu_runs=1) == {}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e5) | st.none()), max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1e5) | st.none()), max_size=6),
    st.integers(0, 8),
)
def test_in_each_lane_nobody_is_expected_before_the_one_ahead(
    waiting: list[tuple[int, float | None]], active: list[tuple[int, float | None]], gpus: int
) -> None:
    queue = [entry(number, gpus=count, usual=usual) for number, (count, usual) in enumerate(waiting, 1)]
    at_work = [
        entry(100 + number, RunState.RUNNING, gpus=count, usual=usual, started=NOW)
        for number, (count, usual) in enumerate(active)
    ]
    starts = expected_starts(NOW, queue, at_work, gpus, cpu_runs=1)
    for lane in (True, False):
        told = [starts.get(one.run.id) for one in queue if bool(one.gpus) is lane]
        known = [at for at in told if at is not None]
        assert known == sorted(known)
        assert all(at >= NOW for at in known)
        assert told == [*known, *[None] * (len(told) - len(known))], "behind an unknown turn all are unknown"


def test_how_the_queue_stands_lasts(tmp_path: Path) -> None:
    first = Queue(tmp_path / "queue.json")
    first.recover()
    assert first.standing.mode == "open"
    first.change(QueueStanding(mode="draining", by="ada", at=NOW, reason="It moves."))
    later = Queue(tmp_path / "queue.json")
    later.recover()
    assert later.standing == first.standing
    with pytest.raises(Conflict, match=r"takes no new runs: ada drains this runner's queue\. It moves"):
        later.admit()


def test_a_damaged_standing_stops_the_daemon_rather_than_starting_runs(tmp_path: Path) -> None:
    (tmp_path / "queue.json").write_text('{"mode": "sideways"}')
    with pytest.raises(Broken, match="Whether runs may start cannot be read"):
        Queue(tmp_path / "queue.json").recover()


def test_a_damaged_priority_is_a_normal_one(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {"launch.json": b"{}"})
    assert read_priority(folder) == "normal"
    folder.write(PRIORITY_FILE, b"{")
    assert read_priority(folder) == "normal"


def test_the_usual_time_lies_between_the_quickest_and_the_slowest() -> None:
    assert usual_seconds(Estimates()) is None
    assert usual_seconds(Estimates(seconds_least=100, seconds_most=300)) == 200
