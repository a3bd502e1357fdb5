"""How the SQLite file is opened: one connection writes, a few only read, each from a snapshot of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from bot.errors import BadSetting, StoreError
from bot.store.failures import told
from bot.store.presence import Presence

BUSY_SECONDS = 5.0
READERS = 4
# A longer log of changes is cut again at the next checkpoint, so that one busy day does not keep the disk for ever.
_LOG_BYTES = 32 << 20
_FAILED = "store_failed"


def location(url: str) -> Path:
    """The file that a database URL names. Raises BadSetting for everything but `sqlite:///FILE`."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _bad_url("It is no database URL.") from None
    if parsed.drivername not in {"sqlite", "sqlite+pysqlite"}:
        raise _bad_url(f"{parsed.render_as_string(hide_password=True)} is of another kind.")
    if parsed.database in {None, "", ":memory:"} or (parsed.database or "").startswith("file:"):
        raise _bad_url("It names no file, and a history in memory would be lost.")
    if parsed.query or parsed.host:
        raise _bad_url(f"sqlite:///{parsed.database} is all that it may hold.")
    if "\0" in (parsed.database or ""):
        raise _bad_url("A file's name holds no NUL.")
    try:
        # Resolved, so that two names of the same file mean the same lock.
        return Path(parsed.database or "").resolve()
    except (OSError, RuntimeError) as error:
        raise _bad_url(f"{parsed.database} cannot be followed: {error}.") from None


def connect(path: Path, *, writing: bool, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection to a database that is there. It may be used by one thread at a time, whichever."""
    mode = "rw" if writing else "ro"
    connection = sqlite3.connect(
        f"file:{quote(bytes(path))}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,  # transactions are begun and ended where this package says, not where the driver guesses
        check_same_thread=False,
    )
    for pragma in _WRITER if writing else _READER:
        connection.execute(f"PRAGMA {pragma}")
    return connection


_WRITER = (
    "synchronous = FULL",
    "foreign_keys = ON",
    "recursive_triggers = ON",  # else REPLACE would delete rows past the triggers that keep them
    "secure_delete = OFF",
    f"journal_size_limit = {_LOG_BYTES}",
)
_READER = ("query_only = ON",)


def writing_engine(files: Presence, busy_seconds: float = BUSY_SECONDS) -> Engine:
    """The one connection that writes. Its transactions take the lock when they begin, not at their first change."""
    return _watched(files, _engine(lambda: _connect_to(files, True, busy_seconds), "BEGIN IMMEDIATE", 1))


def reading_engine(files: Presence, busy_seconds: float = BUSY_SECONDS) -> Engine:
    """A few connections that read. A transaction sees the database as it was at its first look."""
    return _watched(files, _engine(lambda: _connect_to(files, False, busy_seconds), "BEGIN", READERS))


def migrating_engine(path: Path, busy_seconds: float = BUSY_SECONDS) -> Engine:
    """A connection that rebuilds tables: with foreign keys on, dropping one would delete what refers to it."""

    def open_without_foreign_keys() -> sqlite3.Connection:
        connection = connect(path, writing=True, busy_seconds=busy_seconds)
        connection.execute("PRAGMA foreign_keys = OFF")
        return connection

    return _engine(open_without_foreign_keys, "BEGIN IMMEDIATE", 1)


def keep_log(path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
    """Switch the database, for good, to a write-ahead log: readers and the writer do not wait for each other."""
    with told(path):
        connection = connect(path, writing=True, busy_seconds=busy_seconds)
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        finally:
            connection.close()
    if mode != "wal":
        message = f"The file system of {path} cannot hold a database that several processes share."
        raise StoreError("store_no_log", message, "Name a file on a local disk in `database`.")


def see_that_it_lasts(connection: Connection) -> None:
    """Raises StoreError when an error has ended the connection's transaction, whoever may have caught it."""
    if connection.info.get(_FAILED):
        raise StoreError("transaction_failed", "An error ended this transaction: nothing of it was kept.")


def _connect_to(files: Presence, writing: bool, busy_seconds: float) -> sqlite3.Connection:
    connection = connect(files.path, writing=writing, busy_seconds=busy_seconds)
    try:
        files.check()  # else a connection that is made late could be one to another database
    except BaseException:
        connection.close()
        raise
    return connection


def _watched(files: Presence, engine: Engine) -> Engine:
    @event.listens_for(engine, "close")
    def _forget(*_: object) -> None:
        files.forget_log()

    return engine


def _engine(creator: Callable[[], sqlite3.Connection], begin: str, connections: int) -> Engine:
    engine = create_engine("sqlite://", creator=creator, poolclass=QueuePool, pool_size=connections, max_overflow=0)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.info.pop(_FAILED, None)
        connection.exec_driver_sql(begin)

    @event.listens_for(engine, "handle_error")
    def _fail(context: ExceptionContext) -> None:
        # SQLite ends a transaction by itself on some errors. What came after would be kept without what came before.
        if context.connection is not None:
            context.connection.info[_FAILED] = True

    @event.listens_for(engine, "before_cursor_execute")
    def _go_on(connection: Connection, *_: object) -> None:
        see_that_it_lasts(connection)

    return engine


def _bad_url(why: str) -> BadSetting:
    return BadSetting("bad_database", f"`database` cannot be used: {why}", "Write sqlite:////FOLDER/bot.db")
