"""Which databases are opened, and what a person is told of all others."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from pathlib import Path

import pytest

from bot.errors import BadSetting, StoreBusy, StoreError, StoreForeign, StoreReadOnly
from bot.store.database import REVISIONS, upgrade
from bot.store.store import Store, look
from tests.bot.store.opening import LOCKING, WORKING, ended, opened, other_process, url
from tests.bot.store.samples import ADA, NOON, THREAD, HeldClock, state
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.waiting import wait_until


def _open(path: Path, *, migrate: bool = True, busy_seconds: float = 5.0) -> None:
    async def go() -> None:
        await (await Store.open(url(path), HeldClock(), migrate=migrate, busy_seconds=busy_seconds)).close()

    asyncio.run(go())


def _made(path: Path) -> Path:
    """A database with one conversation."""

    async def go() -> None:
        async with opened(path) as store:
            await store.write(lambda unit: unit.begin(THREAD, ADA, state("running"), NOON))

    asyncio.run(go())
    return path


def _change(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://ada:geheim@host/bot",
        "sqlite+aiosqlite:////tmp/bot.db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:bot.db?mode=memory&uri=true",
        "sqlite:////tmp/bot.db?mode=ro",
        "sqlite://host/bot.db",
        "sqlite:////tmp/b\0t.db",
        "/tmp/bot.db",
        "",
    ],
)
def test_only_a_file_of_sqlite_is_a_database(wrong: str) -> None:
    with pytest.raises(BadSetting) as refused:
        asyncio.run(Store.open(wrong, HeldClock()))
    assert "`database`" in refused.value.message
    assert "sqlite:////" in refused.value.hint
    assert "geheim" not in refused.value.sentence()


def test_a_new_database_is_its_users_alone(tmp_path: Path) -> None:
    def modes() -> dict[str, int]:
        return {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(lambda unit: unit.begin(THREAD, ADA, state("running"), NOON))
            assert modes() == dict.fromkeys(["bot.db", "bot.db-wal", "bot.db-shm", "bot.db.lock"], 0o600)

    asyncio.run(go())


def test_a_database_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    path.chmod(0o664)
    _open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_database_has_a_name_of_its_own_for_ever(tmp_path: Path) -> None:
    async def names() -> list[str]:
        found = []
        for file in ("one.db", "two.db", "one.db"):
            async with opened(tmp_path / file) as store:
                found.append(store.name)
        return found

    one, two, again = asyncio.run(names())
    assert one == again
    assert one != two
    assert len(one) == 16


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refused:
        _open(tmp_path / "nowhere" / "bot.db")
    assert refused.value.code == "store_no_folder"
    assert str(tmp_path / "nowhere") in refused.value.message


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "bot.db").mkdir()
    with pytest.raises(StoreError) as refused:
        _open(tmp_path / "bot.db")
    assert refused.value.code == "store_unusable"


@pytest.mark.parametrize("garbage", [b"\x7fELF" + b"\0" * 5000, b"hello", b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "bot.db"
    path.write_bytes(garbage)
    with pytest.raises(StoreForeign) as refused:
        _open(path)
    assert refused.value.code == "store_damaged"
    assert str(path) in refused.value.message
    assert path.read_bytes() == garbage


def test_a_database_whose_end_is_missing_is_refused(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(StoreForeign) as refused:
        _open(path)
    assert refused.value.code == "store_damaged"


def test_a_page_that_breaks_while_the_bot_works_is_told(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    with sqlite3.connect(path) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'conversations'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(content)

    async def go() -> None:
        async with opened(path) as store:
            await store.read(lambda reader: reader.conversation(1))

    with pytest.raises(StoreForeign) as refused:
        asyncio.run(go())
    assert refused.value.code == "store_damaged"


@pytest.mark.parametrize("table", ["notes", "alembic_version"])
def test_the_database_of_another_program_is_refused(tmp_path: Path, table: str) -> None:
    path = tmp_path / "bot.db"
    _change(path, f"CREATE TABLE {table} (version_num TEXT)")
    with pytest.raises(StoreForeign) as refused:
        _open(path)
    assert refused.value.code == "store_not_ours"


def test_a_database_of_a_newer_release_says_which_and_what_to_do(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    _change(path, "UPDATE alembic_version SET version_num = '0042'")
    for attempt in (_open, lambda path: upgrade(url(path)), lambda path: look(url(path), lambda reader: reader.name())):
        with pytest.raises(StoreForeign) as refused:
            attempt(path)
        assert refused.value.code == "store_newer"
        assert "revision 0042" in refused.value.message
        assert REVISIONS[-1] in refused.value.message
        assert "release" in refused.value.hint


@pytest.mark.parametrize("revision", ["'abc'", "''"])
def test_a_revision_that_never_was_is_refused(tmp_path: Path, revision: str) -> None:
    path = _made(tmp_path / "bot.db")
    _change(path, f"UPDATE alembic_version SET version_num = {revision}")
    with pytest.raises(StoreForeign):
        _open(path)


def test_an_older_or_missing_database_waits_for_a_person_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(StoreError) as refused:
        _open(missing, migrate=False)
    assert refused.value.code == "store_missing"
    assert not missing.exists()

    empty = tmp_path / "empty.db"
    empty.touch()
    with pytest.raises(StoreForeign, match="empty"):
        _open(empty, migrate=False)

    older = _made(tmp_path / "older.db")
    monkeypatch.setattr("bot.store.database.REVISIONS", ("0001", "0002"))
    with pytest.raises(StoreForeign) as waits:
        _open(older, migrate=False)
    assert waits.value.code == "store_older"
    assert "ptq-bot db upgrade" in waits.value.hint


def test_upgrading_says_what_it_did(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    assert f"is at revision {REVISIONS[-1]} now" in upgrade(url(path))
    assert "already" in upgrade(url(path))
    _open(path, migrate=False)


@pytest.mark.parametrize("what", ["file", "folder", "unreadable"])
def test_what_may_not_be_written_is_told(tmp_path: Path, what: str) -> None:
    open_to_all(tmp_path)
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    with unprivileged():
        path = _made(folder / "bot.db")
        path.chmod({"file": 0o400, "folder": 0o600, "unreadable": 0o000}[what])
    if what == "folder":
        folder.chmod(0o555)
        (folder / "bot.db.lock").chmod(0o666)
    try:
        with unprivileged(), pytest.raises(StoreReadOnly) as refused:
            _open(path)
    finally:
        folder.chmod(0o777)
    assert refused.value.code == "store_read_only"
    assert str(path) in refused.value.message


def test_a_second_bot_is_refused_until_the_first_is_gone_however_it_went(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    with other_process(WORKING, url(path)) as first:
        for attempt in (_open, lambda path: upgrade(url(path))):
            with pytest.raises(StoreBusy) as refused:
                attempt(path)
            assert refused.value.code == "store_claimed"
            assert str(first.pid) in refused.value.message
        assert look(url(path), lambda reader: reader.counts()) == {}
        first.kill()
        ended(first)
        _open(path)


def test_another_name_of_the_same_file_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "other.db").symlink_to(tmp_path / "bot.db")

    async def go() -> None:
        async with opened(tmp_path / "bot.db"):
            with pytest.raises(StoreBusy):
                await Store.open(url(tmp_path / "other.db"), HeldClock())

    asyncio.run(go())


def test_a_database_that_another_process_locks_is_waited_for_a_while(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    _change(path, "PRAGMA journal_mode = DELETE")
    with other_process(LOCKING, str(path)) as other:
        with pytest.raises(StoreBusy) as refused:
            _open(path, busy_seconds=0.05)
        assert refused.value.code == "store_busy"
        assert other.stdin is not None
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout is not None
        assert other.stdout.readline() == "done\n"
        _open(path)


def test_an_opening_that_is_given_up_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"

    async def go() -> None:
        opening = asyncio.create_task(Store.open(url(path), HeldClock()))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(go())

    def opens() -> bool:
        try:
            _open(path)
        except StoreBusy:
            return False
        return True

    wait_until(opens, message="the database is still claimed")


def test_looking_changes_nothing_and_needs_no_bot(tmp_path: Path) -> None:
    path = _made(tmp_path / "bot.db")
    before = path.read_bytes()
    assert look(url(path), lambda reader: reader.counts()) == {"running": 1}
    assert path.read_bytes() == before
    with pytest.raises(StoreError, match="no database"):
        look(url(tmp_path / "other.db"), lambda reader: reader.counts())
    assert not (tmp_path / "other.db").exists()
