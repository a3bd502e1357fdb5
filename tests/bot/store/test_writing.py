"""A transaction is kept whole or not at all, whatever happens to the disk, the lock, the task or the process."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from bot.errors import BotError, StoreBusy, StoreError, StoreFull
from bot.store.records import Conversation
from bot.store.store import Store
from bot.store.unit import Unit
from tests.bot.store.opening import LOCKING, limited_files, opened, other_process, small_disk, url
from tests.bot.store.samples import ADA, NOON, THREAD, HeldClock, said, state
from tests.waiting import until


def _begin(unit: Unit, thread: str = "t") -> Conversation:
    return unit.begin(THREAD.model_copy(update={"thread": thread}), ADA, state("analysing"), NOON)


async def _count(store: Store) -> int:
    return sum((await store.read(lambda reader: reader.counts())).values())


def test_what_fails_in_the_middle_is_not_kept(tmp_path: Path) -> None:
    def fail(unit: Unit) -> None:
        _begin(unit)
        unit.receive(said("hello"), NOON)
        raise LookupError("in the middle")

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            with store.subscribe() as changes:
                with pytest.raises(LookupError, match="in the middle"):
                    await store.write(fail)
                assert await _count(store) == 0
                assert await store.read(lambda reader: reader.waiting_events(10)) == []
                assert (await store.write(_begin)).version == 1
                assert await changes.next() == frozenset({1})

    asyncio.run(go())


def test_a_broken_rule_of_the_tables_is_told_and_undoes_all(tmp_path: Path) -> None:
    def twice(unit: Unit) -> None:
        _begin(unit, "other")
        _begin(unit)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            with pytest.raises(BotError) as refused:
                await store.write(twice)
            assert refused.value.code == "store_conflict"
            assert not isinstance(refused.value, StoreError)
            assert await _count(store) == 1

    asyncio.run(go())


def test_an_error_that_is_caught_inside_still_undoes_all(tmp_path: Path) -> None:
    def regardless(unit: Unit, statement: str, *then: str) -> None:
        _begin(unit)
        with contextlib.suppress(IntegrityError):
            unit._session.execute(text(statement))
        for thread in then:
            _begin(unit, thread)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            # The second statement ends the transaction by itself: what came after would stand alone.
            for statement, then in itertools.product(
                ("INSERT INTO states VALUES (99, '{}')", "INSERT OR ROLLBACK INTO settings VALUES ('name', '')"),
                ((), ("after",)),
            ):
                with pytest.raises(StoreError) as refused:
                    await store.write(lambda unit, one=statement, then=then: regardless(unit, one, *then))  # type: ignore[misc]
                assert refused.value.code == "transaction_failed"
                assert await _count(store) == 0
            await store.write(_begin)
            assert await _count(store) == 1

    asyncio.run(go())


def test_transactions_of_many_tasks_follow_each_other(tmp_path: Path) -> None:
    inside: list[int] = []

    def step(unit: Unit) -> int:
        inside.append(threading.get_ident())
        assert len(inside) == 1
        there = unit.conversation(1)
        assert there is not None
        moved = unit.save(1, there.state, there.version, NOON)
        assert len(inside) == 1
        inside.clear()
        return moved.version

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            versions = await asyncio.gather(*(store.write(step) for _ in range(60)))
            assert versions == list(range(2, 62))

    asyncio.run(go())


def test_what_is_decided_upon_cannot_be_changed_meanwhile(tmp_path: Path) -> None:
    def read_and_write(unit: Unit) -> None:
        there = unit.conversation(1)
        assert there is not None
        other = sqlite3.connect(tmp_path / "bot.db", timeout=0, isolation_level=None)
        with contextlib.closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("UPDATE conversations SET version = 7")
        unit.save(1, there.state, there.version, NOON)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            await store.write(read_and_write)

    asyncio.run(go())


def test_readers_see_what_was_committed_and_do_not_wait_for_the_writer(tmp_path: Path) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def slowly(unit: Unit) -> None:
        _begin(unit, "second")
        begun.set()
        assert go_on.wait(10)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            writing = asyncio.create_task(store.write(slowly))
            await until(begun.is_set)
            # The loop itself is free as well: else this read could not be asked for.
            assert await asyncio.wait_for(_count(store), 5) == 1
            go_on.set()
            await writing
            assert await _count(store) == 2

    asyncio.run(go())


def test_a_snapshot_does_not_change_while_it_is_read(tmp_path: Path) -> None:
    go_on, begun = threading.Event(), threading.Event()

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)

            def read_twice(reader: object) -> list[dict[str, int]]:
                counts: Callable[[], dict[str, int]] = reader.counts  # type: ignore[attr-defined]
                first = counts()
                begun.set()
                assert go_on.wait(10)
                return [first, counts()]

            reading = asyncio.create_task(store.read(read_twice))
            await until(begun.is_set)
            await store.write(lambda unit: _begin(unit, "second"))
            go_on.set()
            assert await reading == [{"analysing": 1}, {"analysing": 1}]

    asyncio.run(go())


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            with pytest.raises(StoreError):
                await store.read(lambda reader: reader._session.execute(text("DELETE FROM settings")))
            assert len(store.name) == 16

    asyncio.run(go())


def test_a_cancelled_task_leaves_a_whole_transaction_or_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def slowly(unit: Unit, *threads: str) -> None:
        _begin(unit, threads[0])
        begun.set()
        assert go_on.wait(10)
        _begin(unit, threads[1])

    def slowly_fail(unit: Unit) -> None:
        slowly(unit, "third", "fourth")
        raise LookupError("nobody waits")

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            with store.subscribe() as changes:
                begun_task = asyncio.create_task(store.write(lambda unit: slowly(unit, "first", "second")))
                await until(begun.is_set)
                queued = asyncio.create_task(store.write(lambda unit: _begin(unit, "dropped")))
                await asyncio.sleep(0)
                for task in (begun_task, queued):
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                assert await _count(store) == 0
                go_on.set()
                assert await changes.next() == frozenset({1, 2})
                assert await _count(store) == 2

            go_on.clear()
            begun.clear()
            failing = asyncio.create_task(store.write(slowly_fail))
            await until(begun.is_set)
            failing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await failing
            go_on.set()
            assert await store.write(lambda unit: unit.conversation(3)) is None
        assert "nobody waits" in caplog.text

    asyncio.run(go())


def test_closing_ends_what_was_begun_and_refuses_more(tmp_path: Path) -> None:
    async def go() -> None:
        store = await Store.open(url(tmp_path / "bot.db"), HeldClock())
        writing = [asyncio.create_task(store.write(lambda unit, n=n: _begin(unit, f"t{n}"))) for n in range(5)]  # type: ignore[misc]
        await asyncio.sleep(0)
        await asyncio.gather(store.close(), store.close())
        assert [(await task).id for task in writing] == [1, 2, 3, 4, 5]
        with pytest.raises(StoreError) as refused:
            await store.read(lambda reader: reader.counts())
        assert refused.value.code == "store_closed"
        async with opened(tmp_path / "bot.db") as again:
            assert await _count(again) == 5

    asyncio.run(go())


def test_a_full_disk_loses_nothing_and_is_over_when_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small") as (folder, fill, free):
        asyncio.run(_fill_and_free(folder, fill, free))


def test_a_limit_for_files_is_a_full_disk(tmp_path: Path) -> None:
    with limited_files() as (fill, free):
        asyncio.run(_fill_and_free(tmp_path, fill, free))


async def _fill_and_free(folder: Path, fill: Callable[[], None], free: Callable[[], None]) -> None:
    kept = []
    async with opened(folder / "bot.db") as store:
        kept.append((await store.write(_begin)).id)
        fill()
        refused = None
        for number in range(2_000):  # what the log of changes had room for is still kept
            try:
                kept.append((await store.write(lambda unit, number=number: _begin(unit, f"f{number}"))).id)  # type: ignore[misc]
            except StoreFull as error:
                refused = error
                break
        assert refused is not None
        assert refused.code == "store_full"
        assert str(folder / "bot.db") in refused.message
        assert [one.id for one in await store.read(lambda reader: reader.working())] == kept
        with pytest.raises(StoreFull):
            await store.write(lambda unit: unit.receive(said("x" * 100_000), NOON))
        free()
        kept.append((await store.write(lambda unit: _begin(unit, "after"))).id)
    async with opened(folder / "bot.db") as store:
        assert [one.id for one in await store.read(lambda reader: reader.working())] == kept


def test_a_database_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(_begin)
            (pages,) = await store.write(
                lambda unit: unit._session.execute(text("SELECT * FROM pragma_page_count")).one()
            )
            limit = f"PRAGMA max_page_count = {pages + 2}"
            await store.write(lambda unit: unit._session.execute(text(limit)).close())
            with pytest.raises(StoreFull):
                await store.write(lambda unit: unit.receive(said("x" * 100_000), NOON))
            await store.write(lambda unit: unit._session.execute(text("PRAGMA max_page_count = 100000")).close())
            assert (await store.write(lambda unit: unit.receive(said("x" * 100_000), NOON))).new

    asyncio.run(go())


def test_a_bot_that_starts_on_a_full_disk_says_so_and_starts_later(tmp_path: Path) -> None:
    async def start(path: Path) -> int:
        async with opened(path) as store:
            return await _count(store)

    with small_disk(tmp_path / "small") as (folder, fill, free):
        fill()
        with pytest.raises(StoreFull):
            asyncio.run(start(folder / "bot.db"))
        free()
        assert asyncio.run(start(folder / "bot.db")) == 0


def test_a_lock_of_another_process_is_told_and_waited_out_later(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db", busy_seconds=0.05) as store:
            await store.write(_begin)
            with other_process(LOCKING, str(store.path)) as other:
                with pytest.raises(StoreBusy) as refused:
                    await store.write(lambda unit: _begin(unit, "second"))
                assert refused.value.code == "store_busy"
                assert await _count(store) == 1  # reading goes on
                other.kill()
            assert (await store.write(lambda unit: _begin(unit, "second"))).id == 2

    asyncio.run(go())


WRITING = """
import asyncio, sys
from bot.clock import SystemClock
from bot.store.store import Store
from tests.bot.store.samples import ADA, NOON, THREAD, said, state

async def write():
    store = await Store.open(sys.argv[1], SystemClock())
    print("ready", flush=True)
    number = int(sys.argv[2])
    while True:
        number += 1
        def both(unit):
            unit.receive(said("x" * 5000, key=f"k{number}"), NOON)
            place = THREAD.model_copy(update={"thread": f"k{number}"})
            return unit.begin(place, ADA, state("running"), NOON).id
        await store.write(both)
        print(number, flush=True)

asyncio.run(write())
"""


def test_a_killed_process_loses_nothing_that_was_committed_and_keeps_nothing_by_halves(tmp_path: Path) -> None:
    path, last = tmp_path / "bot.db", 0
    for after in (1, 25, 60):
        with other_process(WRITING, url(path), str(last)) as writer:
            assert writer.stdout is not None
            for _ in range(after):
                last = int(writer.stdout.readline())
            writer.kill()
            last = max([last, *(int(line) for line in writer.stdout.read().splitlines() if line.isdecimal())])

        async def kept() -> tuple[list[str], list[str]]:
            async with opened(path) as store:
                events = await store.read(lambda reader: reader.waiting_events(10_000))
                there = await store.read(lambda reader: reader.working())
                return [one.event.key for one in events], [one.place.thread for one in there]

        keys, threads = asyncio.run(kept())
        assert keys == threads
        assert keys[:last] == [f"k{number}" for number in range(1, last + 1)]
        assert len(keys) <= last + 1  # one may have been committed and not told any more
        last = len(keys)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_news_are_gathered_and_never_more_than_can_be_held(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            with store.subscribe() as all_of_it, store.subscribe(2) as only, store.subscribe(99) as other:
                for number in range(3):
                    await store.write(lambda unit, number=number: _begin(unit, f"t{number}"))  # type: ignore[misc]
                there = await store.write(lambda unit: unit.conversation(2))
                assert there is not None
                await store.write(lambda unit: unit.save(2, there.state, 1, NOON))
                assert all_of_it.clear() == frozenset({1, 2, 3})
                assert only.clear() == frozenset({2})
                assert not other.event.is_set()
                assert all_of_it.clear() == frozenset()
                all_of_it.hear(range(5_000))
                only.hear(range(5_000))
                assert all_of_it.clear() is None
                assert only.clear() == frozenset({2})
            await store.write(lambda unit: unit.save(2, there.state, 2, NOON))
            assert not all_of_it.event.is_set()

    asyncio.run(go())
