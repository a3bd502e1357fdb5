"""Events are numbered without gaps, whatever a crash or a full disk left behind."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.runs.journal import JOURNAL_FILE, EventStream, Journal, Sent
from schemas.runs import RunEvent, RunState, StateChanged


def _event(number: int) -> RunEvent:
    return RunEvent(run="run-1", number=number, at=datetime.now(UTC), what=StateChanged(state=RunState.QUEUED))


def _written(folder: Path, count: int) -> bytes:
    journal = Journal(folder)
    for number in range(1, count + 1):
        journal.append(_event(number))
    return (folder / JOURNAL_FILE).read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(cut=st.integers(0, 2000))
def test_a_journal_cut_anywhere_goes_on_without_a_gap(tmp_path: Path, cut: int) -> None:
    (tmp_path / JOURNAL_FILE).unlink(missing_ok=True)
    whole = _written(tmp_path, 5)
    left = whole[: min(cut, len(whole))]
    (tmp_path / JOURNAL_FILE).write_bytes(left)
    journal = Journal(tmp_path)
    assert journal.last == left.count(b"\n")
    journal.append(_event(journal.last + 1))
    lines = (tmp_path / JOURNAL_FILE).read_bytes().splitlines()
    assert [RunEvent.model_validate_json(line).number for line in lines] == list(range(1, journal.last + 1))


def test_a_number_out_of_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not follow"):
        Journal(tmp_path).append(_event(2))


def test_garbage_at_the_end_is_cut(tmp_path: Path) -> None:
    whole = _written(tmp_path, 2)
    (tmp_path / JOURNAL_FILE).write_bytes(whole + b'{"number": "three"}\n\x00\x00')
    assert Journal(tmp_path).last == 2
    assert (tmp_path / JOURNAL_FILE).read_bytes() == whole


async def _take(stream: EventStream, after: str | None, count: int) -> list[Sent]:
    taken: list[Sent] = []
    async for sent in stream.read(after):
        taken.append(sent)
        if len(taken) == count:
            break
    return taken


def test_a_reader_goes_on_where_it_left_or_is_told_that_it_cannot() -> None:
    async def scenario() -> None:
        stream = EventStream(kept=3, waiting=2)
        for number in range(1, 6):
            stream.publish(_event(number))
        (lost,) = await _take(stream, "other.1", 1)
        assert lost.event is None
        epoch = lost.id.partition(".")[0]
        for after, numbers in ((f"{epoch}.2", [3, 4, 5]), (f"{epoch}.4", [5])):
            taken = await _take(stream, after, len(numbers))
            assert [sent.event.number for sent in taken if sent.event] == numbers
        for unknown in (f"{epoch}.1", f"{epoch}.6", f"{epoch}.x", f"{epoch}.-1", ""):
            (told,) = await _take(stream, unknown, 1)
            assert told.event is None

    asyncio.run(scenario())


def test_a_reader_that_does_not_keep_up_costs_nothing_and_is_told() -> None:
    async def scenario() -> None:
        stream = EventStream(kept=3, waiting=2)
        reader = stream.read(None)
        first = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        for number in range(1, 100):
            stream.publish(_event(number))
        assert (await first).event is None
        stream.close()
        with pytest.raises(StopAsyncIteration):
            await anext(reader)

    asyncio.run(scenario())


def test_a_reader_that_begins_after_the_stream_was_closed_ends_at_once() -> None:
    async def scenario() -> None:
        stream = EventStream()
        reader = stream.read(None)  # answered, and not read from before the daemon is told to stop
        stream.close()
        async with asyncio.timeout(5):
            assert [sent async for sent in reader] == []

    asyncio.run(scenario())
