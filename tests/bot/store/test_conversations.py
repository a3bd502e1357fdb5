"""Conversations and their states."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import text

from bot.conversation.person import Place
from bot.conversation.state import Analysing, Ended, State
from bot.errors import BotError, NotFound, StoreForeign
from bot.store.documents import clean
from bot.store.store import Store
from bot.store.unit import Unit
from tests.bot.store.opening import opened
from tests.bot.store.samples import ADA, KINDS, NOON, REQUEST, THREAD, state

_T = TypeVar("_T")


def _in_store(path: Path, *work: Callable[[Unit], _T]) -> list[_T]:
    """What each of these gives back, each in a transaction of its own."""

    async def go() -> list[_T]:
        async with opened(path) as store:
            return [await store.write(one) for one in work]

    return asyncio.run(go())


def _begin(unit: Unit, kind: str = "analysing", thread: str = "", **changes: object) -> int:
    place = THREAD.model_copy(update={"thread": thread})
    return unit.begin(place, ADA, state(kind, **changes), NOON).id


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_comes_back_as_it_was(tmp_path: Path, kind: str) -> None:
    first, then = state("analysing"), state(kind)
    later = NOON.astimezone(timezone(timedelta(hours=5, minutes=45))) + timedelta(microseconds=1)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            begun = await store.write(lambda unit: unit.begin(THREAD, ADA, first, NOON))
            assert (begun.state, begun.version, begun.created_at) == (first, 1, NOON)
            saved = await store.write(lambda unit: unit.save(begun.id, then, 1, later))
            there = await store.read(lambda reader: reader.conversation(begun.id))
            assert there == saved
            assert there is not None
            assert (there.state, there.version, there.place, there.requester) == (then, 2, THREAD, ADA)
            assert (there.created_at, there.changed_at) == (NOON, later)
            assert (there.changed_at.tzinfo, saved.changed_at.tzinfo) == (UTC, UTC)

    asyncio.run(go())


def test_a_state_is_saved_only_upon_the_one_that_was_decided_upon(tmp_path: Path) -> None:
    def twice(unit: Unit) -> None:
        there = unit.conversation(1)
        assert there is not None
        unit.save(1, state("planning"), there.version, NOON)
        unit.save(1, state("failed"), there.version, NOON)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            with pytest.raises(BotError) as refused:
                await store.write(twice)
            assert refused.value.code == "version_differs"
            there = await store.read(lambda reader: reader.conversation(1))
            assert there is not None
            assert (there.state.kind, there.version) == ("analysing", 1)
            with pytest.raises(NotFound):
                await store.write(lambda unit: unit.save(2, state("failed"), 1, NOON))

    asyncio.run(go())


def test_a_thread_belongs_to_one_conversation_and_many_may_still_wait_for_theirs(tmp_path: Path) -> None:
    def find(unit: Unit) -> list[int | None]:
        places = (
            THREAD.model_copy(update={"thread": "t1"}),
            Place(platform="discord", channel="C1", thread="t1"),
            Place(platform="slack", channel="C2", thread="t1"),
            Place(platform="slack", channel="C1"),
        )
        found = [unit.conversation_at(place) for place in places]
        return [one.id if one is not None else None for one in found]

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            for _ in range(3):
                await store.write(_begin)
            await store.write(lambda unit: unit.set_thread(2, "t1"))
            assert await store.write(find) == [2, None, None, None]
            for taken in (lambda unit: unit.set_thread(3, "t1"), lambda unit: _begin(unit, thread="t1")):
                with pytest.raises(BotError) as refused:
                    await store.write(taken)
                assert refused.value.code == "store_conflict"
            there = await store.read(lambda reader: reader.conversation(2))
            assert there is not None
            assert (there.place.thread, there.version) == ("t1", 1)

    asyncio.run(go())


@pytest.mark.parametrize("number", [0, -1, 2, 2**63 - 1, 2**63, -(2**63), 10**30])
def test_a_conversation_that_never_was_is_none(tmp_path: Path, number: int) -> None:
    async def go(store: Store) -> None:
        assert await store.read(lambda reader: reader.conversation(number)) is None
        assert await store.read(lambda reader: reader.event(number)) is None
        assert await store.read(lambda reader: reader.artifact(number, "plan", number)) is None
        assert await store.read(lambda reader: reader.thread(number)) == []
        assert await store.read(lambda reader: reader.verdicts(number)) == []
        with pytest.raises(NotFound):
            await store.write(lambda unit: unit.set_thread(number, "t"))

    async def opening() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            await go(store)

    asyncio.run(opening())


def test_a_number_is_never_given_twice(tmp_path: Path) -> None:
    def fail(unit: Unit) -> int:
        raise LookupError(str(_begin(unit)))

    with pytest.raises(LookupError, match="1"):
        _in_store(tmp_path / "bot.db", fail)
    assert _in_store(tmp_path / "bot.db", _begin, _begin) == [1, 2]


def test_a_new_process_goes_on_with_what_a_runner_was_asked_or_has(tmp_path: Path) -> None:
    for kind in KINDS:
        _in_store(tmp_path / "bot.db", lambda unit, kind=kind: _begin(unit, kind))  # type: ignore[misc]
    (found,) = _in_store(tmp_path / "bot.db", lambda unit: [one.state.kind for one in unit.working()])
    # What became of a run that failed may still be found out, when it was lost.
    assert found == ["analysing", "planning", "preparing", "submitting", "running", "failed"]


def test_a_new_process_may_ask_beside_what_people_are_asked(tmp_path: Path) -> None:
    for kind in KINDS:
        _in_store(tmp_path / "bot.db", lambda unit, kind=kind: _begin(unit, kind))  # type: ignore[misc]
    (found,) = _in_store(tmp_path / "bot.db", lambda unit: [one.state.kind for one in unit.asking()])
    # What was handed over is bound to what people saw: nothing improves it any more.
    assert found == ["reviewing_analysis", "reviewing_plan", "reviewing_command"]


def test_overdue_are_those_that_have_not_changed_since(tmp_path: Path) -> None:
    days = {"old": 20, "new": 1, "oldest": 30}

    def make(unit: Unit) -> None:
        for thread, age in days.items():
            place = THREAD.model_copy(update={"thread": thread})
            unit.begin(place, ADA, state("reviewing_plan"), NOON - timedelta(days=age))
            unit.begin(place.model_copy(update={"channel": "C2"}), ADA, state("running"), NOON - timedelta(days=age))

    def ask(unit: Unit) -> list[str]:
        before = NOON - timedelta(days=14)
        return [one.place.thread for one in unit.overdue(before, ("reviewing_plan", "failed"))]

    _in_store(tmp_path / "bot.db", make)
    assert _in_store(tmp_path / "bot.db", ask) == [["oldest", "old"]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_taken_while_a_command_for_it_is_offered_or_runs(tmp_path: Path, kind: str) -> None:
    def ask(unit: Unit) -> list[int | None]:
        mine, folder = _begin(unit, kind), "/out/qwen3-8b-fp8"
        return [
            unit.output_taken("gpu-1", folder, besides=mine + 1),
            unit.output_taken("gpu-1", folder, besides=mine),
            unit.output_taken("gpu-2", folder, besides=mine + 1),
            unit.output_taken("gpu-1", folder + "-2", besides=mine + 1),
        ]

    (found,) = _in_store(tmp_path / "bot.db", ask)
    assert found == [1 if kind in {"reviewing_command", "submitting", "running"} else None, None, None, None]


@pytest.mark.parametrize(
    "words",
    [
        "half \ud83d of a character \udc00",
        "\ud83d\ude00",
        "a\0b",
        "\0",
        "x" * 100_000,
        "‮קוונטיזציה",
        "'; DROP TABLE x; --",
    ],
    ids=["lone surrogates", "paired surrogates", "NUL inside", "NUL", "long", "right to left", "SQL"],
)
def test_no_text_can_stop_the_store(tmp_path: Path, words: str) -> None:
    request = REQUEST.model_copy(update={"text": words, "model": words, "runner": words, "output_dir": words})
    requester = ADA.model_copy(update={"name": words[:200]})
    place = Place.model_construct(platform="slack", channel=words, thread=words)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(
                lambda unit: unit.begin(place, requester, Analysing(request=request, requester=ADA, step=1), NOON)
            )
            there = await store.read(lambda reader: reader.conversation(1))
            assert there is not None
            assert (there.state.request.text, there.place.thread) == (clean(words), clean(words))
            assert there.requester.name == clean(words[:200])
            assert await store.read(lambda reader: reader.conversation_at(place)) == there

    asyncio.run(go())


def test_a_time_without_a_zone_is_refused(tmp_path: Path) -> None:
    naive = datetime(2026, 3, 2, 12, 0)  # noqa: DTZ001
    with pytest.raises(Exception, match="no time zone"):
        _in_store(tmp_path / "bot.db", lambda unit: unit.begin(THREAD, ADA, state("running"), naive))


@pytest.mark.parametrize("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)])
def test_all_times_of_the_calendar_are_kept_to_the_microsecond(tmp_path: Path, at: datetime) -> None:
    _in_store(tmp_path / "bot.db", lambda unit: unit.begin(THREAD, ADA, state("running"), at))
    (there,) = _in_store(tmp_path / "bot.db", lambda unit: unit.conversation(1))
    assert there is not None
    assert there.created_at == at


def test_a_state_of_another_release_is_named_and_never_made(tmp_path: Path) -> None:
    unknown: State = Ended.model_construct(**{**state("accepted").__dict__, "kind": "hibernating"})

    def change(unit: Unit) -> None:
        unit._session.execute(text('UPDATE states SET document = \'{"kind": "hibernating"}\''))

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            with pytest.raises(StoreForeign):
                await store.write(lambda unit: unit.save(1, unknown, 1, NOON))
            assert await store.read(lambda reader: reader.conversation(1)) is not None
            await store.write(change)
            with pytest.raises(StoreForeign) as refused:
                await store.read(lambda reader: reader.conversation(1))
            assert refused.value.code == "row_unreadable"
            assert "thread 1" in refused.value.message

    asyncio.run(go())


def test_a_state_that_cannot_be_read_keeps_no_other_conversation_from_going_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def damage(unit: Unit) -> None:
        unit._session.execute(
            text('UPDATE states SET document = \'{"kind": "hibernating"}\' WHERE conversation_id = 1')
        )

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            for _ in range(3):
                await store.write(lambda unit: _begin(unit, "planning"))
            await store.write(damage)
            later = NOON + timedelta(days=1)
            for _ in range(2):
                assert [one.id for one in await store.read(lambda reader: reader.working())] == [2, 3]
                overdue = await store.read(lambda reader: reader.overdue(later, ("planning",)))
                assert [one.id for one in overdue] == [2, 3]
            with pytest.raises(StoreForeign):
                await store.read(lambda reader: reader.conversation(1))

    asyncio.run(go())
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 1
    assert told[0].startswith("left out: The state of thread 1 in the database cannot be read")
