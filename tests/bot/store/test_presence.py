"""Files of a working database that are moved, deleted or replaced: nothing is promised that would be lost."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import StoreForeign
from bot.store.database import upgrade
from bot.store.records import Conversation
from bot.store.store import Store, look
from bot.store.unit import Unit
from tests.bot.store.opening import WORKING, ended, opened, other_process, url
from tests.bot.store.samples import ADA, NOON, THREAD, HeldClock, said, state
from tests.waiting import until


def _begin(unit: Unit, thread: str) -> Conversation:
    return unit.begin(THREAD.model_copy(update={"thread": thread}), ADA, state("analysing"), NOON)


async def _fill(store: Store, *threads: str) -> None:
    for thread in threads:
        await store.write(lambda unit, thread=thread: _begin(unit, thread))  # type: ignore[misc]


async def _threads(store: Store) -> list[str]:
    return [one.place.thread for one in await store.read(lambda reader: reader.working())]


def _kept(path: Path) -> list[str]:
    async def go() -> list[str]:
        async with opened(path) as store:
            return await _threads(store)

    return asyncio.run(go())


def _made(path: Path, *threads: str) -> Path:
    async def go() -> None:
        async with opened(path) as store:
            await _fill(store, *threads)

    asyncio.run(go())
    return path


async def _refused(store: Store) -> StoreForeign:
    """What is said of an event that comes in and of a look; both the same."""
    with pytest.raises(StoreForeign) as looked:
        await store.read(lambda reader: reader.name())
    with pytest.raises(StoreForeign) as kept:
        await store.write(lambda unit: unit.receive(said("yes"), NOON))
    assert kept.value.sentence() == looked.value.sentence()
    assert kept.value.code == looked.value.code == "store_moved"
    return kept.value


def _rename(source: Path, target: Path) -> None:
    source.replace(target)


def _move(path: Path) -> Callable[[], None]:
    away = path.with_name("away")
    path.rename(away)
    return lambda: _rename(away, path)


def _replace(path: Path) -> Callable[[], None]:
    back = _move(path)
    shutil.copy(path.with_name("other.db"), path)
    return back


def _move_folder(path: Path) -> Callable[[], None]:
    away = path.parent.with_name("away")
    path.parent.rename(away)
    return lambda: _rename(away, path.parent)


def _move_log(path: Path) -> Callable[[], None]:
    return _move(path.with_name("bot.db-wal"))


@pytest.mark.parametrize(
    ("take", "message", "hint"),
    [
        (_move, "The database file {} was moved away or deleted", "restart the bot to begin with a new, empty one"),
        (_move_folder, "The database file {} was moved away or deleted", "a new, empty one"),
        (_replace, "The database file {} was replaced by another file", "to work with what lies there now"),
        (_move_log, "The database file {}-wal was moved away, deleted or replaced", "stop the bot without killing it"),
    ],
)
def test_nothing_is_taken_until_the_file_is_back(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    take: Callable[[Path], Callable[[], None]],
    message: str,
    hint: str,
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    path = folder / "bot.db"
    _made(folder / "other.db", "other")

    async def go() -> None:
        async with opened(path) as store:
            await _fill(store, "first")
            for turn in range(2):
                back = take(path)
                refusal = await _refused(store)
                assert refusal.message == f"{message.format(path)} while the bot works with it."
                assert refusal.hint.startswith("Put it back (or ")
                assert hint in refusal.hint
                back()
                assert await store.read(lambda reader: reader.waiting_events(10)) == []
                await _fill(store, f"turn {turn}")
            assert await _threads(store) == ["first", "turn 0", "turn 1"]

    caplog.set_level(logging.WARNING, "bot.store.presence")
    asyncio.run(go())
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"] * 2, "each change is told once"
    assert _kept(path) == ["first", "turn 0", "turn 1"]


def test_a_deleted_database_is_refused_and_the_next_start_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "bot.db"

    async def go() -> None:
        async with opened(path) as store:
            await _fill(store, "first")
            path.unlink()
            assert "moved away or deleted" in (await _refused(store)).message
        assert not path.exists()

    asyncio.run(go())
    log = (tmp_path / "bot.db-wal").read_bytes()
    assert _kept(path) == []
    assert f"the database {path} was made anew; an earlier one is gone" in caplog.text
    assert (tmp_path / "bot.db-wal.earlier1").read_bytes() == log, "what may still be read by an expert"


def test_a_file_that_goes_in_the_middle_of_a_transaction_takes_nothing_along(tmp_path: Path) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slowly(unit: Unit) -> None:
        _begin(unit, "in between")
        inside.set()
        assert go_on.wait(10)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            writing = asyncio.create_task(store.write(slowly))
            await until(inside.is_set)
            back = _move(store.path)
            go_on.set()
            with pytest.raises(StoreForeign, match="moved away"):
                await writing
            back()
            assert await _threads(store) == []

    asyncio.run(go())


def test_connections_that_are_made_late_are_to_the_same_file(tmp_path: Path) -> None:
    _made(tmp_path / "other.db", "other")

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:  # it has not written yet
            _replace(store.path)
            answers = await asyncio.gather(
                *(store.read(lambda reader: reader.working()) for _ in range(8)),
                *(store.write(lambda unit: _begin(unit, "lost")) for _ in range(2)),
                return_exceptions=True,
            )
            assert [getattr(one, "code", one) for one in answers] == ["store_moved"] * 10

    asyncio.run(go())
    assert _kept(tmp_path / "bot.db") == ["other"]


def test_closed_connections_take_the_log_with_them_and_nothing_is_wrong(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await _fill(store, "first")
            store._reading.dispose()
            store._writing.dispose()
            assert not (tmp_path / "bot.db-wal").exists()
            await _fill(store, "second")
            _move_log(store.path)
            await _refused(store)

    asyncio.run(go())


@pytest.mark.parametrize("killed", [True, False])
def test_the_log_of_a_replaced_database_is_not_written_over_the_new_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, killed: bool
) -> None:
    path = tmp_path / "bot.db"
    threads = [f"copy {number}" for number in range(40)]
    _made(tmp_path / "other.db", *threads)

    async def go() -> None:
        async with opened(path) as store:
            await _fill(store, "first")
            _replace(path)

    if killed:
        with other_process(WORKING, url(path)) as bot:
            with sqlite3.connect(path) as beside:
                beside.execute("INSERT INTO settings VALUES ('mood', 'good')")
            _replace(path)
            bot.kill()
            ended(bot)
            beside.close()
    else:
        asyncio.run(go())
    assert (tmp_path / "bot.db-wal").stat().st_size > 0
    assert _kept(path) == threads
    assert "belongs to a database that is gone" in caplog.text
    assert "made anew" not in caplog.text
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_folder_that_was_copied_whole_keeps_the_log_of_its_database(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await _fill(store, "first", "second")
            for name in ("bot.db", "bot.db-wal", "bot.db.lock"):
                (copy / name).write_bytes((tmp_path / name).read_bytes())

    asyncio.run(go())
    assert _kept(copy / "bot.db") == ["first", "second"]


def test_a_log_that_is_deleted_alone_costs_nothing_when_the_bot_is_stopped_in_order(tmp_path: Path) -> None:
    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await _fill(store, "first", "second")
            (tmp_path / "bot.db-wal").unlink()
            await _refused(store)

    asyncio.run(go())
    assert _kept(tmp_path / "bot.db") == ["first", "second"]


def test_a_new_database_is_only_told_where_one_was_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = _made(tmp_path / "bot.db", "first")
    assert _kept(path) == ["first"]
    assert caplog.text == ""
    path.write_bytes(b"")
    assert _kept(path) == []
    assert caplog.text.count("made anew; an earlier one is gone") == 1
    caplog.clear()
    path.unlink()
    (tmp_path / "bot.db.lock").write_text("4711\n")  # as an earlier release left it
    upgrade(url(path))
    assert caplog.text.count("made anew; an earlier one is gone") == 1
    assert not list(tmp_path.glob("*earlier*"))


def test_looking_from_outside_does_not_mind_a_bot_that_stops_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"

    async def go() -> None:
        store = await Store.open(url(path), HeldClock())
        await _fill(store, "first")
        closing = asyncio.create_task(store.close())
        while not closing.done():
            assert await asyncio.to_thread(look, url(path), lambda reader: reader.counts()) == {"analysing": 1}
        await closing

    asyncio.run(go())
