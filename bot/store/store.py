"""The store as the event loop sees it: transactions run in threads of its own, and nothing here blocks the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from bot.clock import Clock, SystemClock
from bot.errors import StoreError
from bot.store.changes import Changes
from bot.store.database import check, prepare
from bot.store.failures import told
from bot.store.files import Claim
from bot.store.presence import Presence
from bot.store.sqlite import (
    BUSY_SECONDS,
    READERS,
    location,
    reading_engine,
    see_that_it_lasts,
    writing_engine,
)
from bot.store.unit import Reader, Unit

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class Store:
    """The bot's database. Made by `Store.open`, in the event loop that will use it.

    `name` tells this database from all others; it was drawn when the database was made.
    """

    def __init__(self, path: Path, claim: Claim, clock: Clock, busy_seconds: float) -> None:
        """For `open` alone: the claimed database is of this release."""
        self.path = path
        self._files = Presence(path)
        self._claim = claim
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._writing = writing_engine(self._files, busy_seconds)
        self._reading = reading_engine(self._files, busy_seconds)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._changes: set[Changes] = set()
        self._closing: asyncio.Future[None] | None = None
        self.name = ""

    @classmethod
    async def open(cls, url: str, clock: Clock, *, migrate: bool = True, busy_seconds: float = BUSY_SECONDS) -> Self:
        """Open the database that `url` names, as the only process that writes it.

        With `migrate` a missing one is made, and an earlier one is brought to this release. Raises BadSetting for
        another kind of URL, and StoreError: StoreBusy when another bot has it, StoreForeign, StoreReadOnly, StoreFull.
        `busy_seconds` is how long to wait for somebody who locks the database.
        """

        def claim() -> tuple[Path, Claim]:
            path = location(url)
            claimed = Claim(path)
            try:
                prepare(path, claimed, migrate=migrate, busy_seconds=busy_seconds)
            except BaseException:
                claimed.release()
                raise
            return path, claimed

        opening = asyncio.get_running_loop().run_in_executor(None, claim)
        try:
            path, claimed = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_let_go)
            raise
        try:
            store = cls(path, claimed, clock, busy_seconds)
        except BaseException:
            claimed.release()
            raise
        try:
            store.name = await store.read(lambda reader: reader.name())
            store._files.watch_log()
            claimed.note(*store._files.inodes())
        except BaseException:
            await store.close()
            raise
        return store

    async def write(self, work: Callable[[Unit], _T]) -> _T:
        """What `work` gives back, once all that it wrote is on the disk. On any error nothing of it is kept.

        Transactions of all tasks follow each other. When the task that waits is cancelled, one that has begun is still
        ended whole and told to those who subscribed; one that has not is dropped. Raises what `work` raises, and
        StoreError: StoreForeign when the file is not in its place any more.
        """
        return await self._result(self._writer, lambda: self._write(work))

    async def read(self, work: Callable[[Reader], _T]) -> _T:
        """What `work` gives back from a snapshot of the database. Raises what `work` raises, and StoreError."""
        return await self._result(self._readers, lambda: _read(self._reading, self._files, self._clock, work))

    def subscribe(self, conversation: int | None = None) -> Changes:
        """News of committed changes, of one conversation or of all. Use it with `with`, or close it."""
        changes = Changes(self._changes.discard, conversation)
        self._changes.add(changes)
        return changes

    async def close(self) -> None:
        """End what was begun, and let another process have the database. May be called again."""
        if self._closing is None:
            self._closing = self._loop.run_in_executor(None, self._shut)
        await asyncio.shield(self._closing)

    async def _result(self, threads: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
        if self._closing is not None:
            raise StoreError("store_closed", f"The database {self.path} is closed already.")
        future = threads.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            future.add_done_callback(_log_unseen)
            raise

    def _write(self, work: Callable[[Unit], _T]) -> _T:
        self._files.check()
        with told(self.path), Session(self._writing, expire_on_commit=False) as session:
            unit = Unit(session, self._clock.now())
            with session.begin():
                connection = session.connection()  # begins at once: what is read is what is written upon
                done = work(unit)
                session.flush()
                see_that_it_lasts(connection)
                self._files.check()  # again: waiting for the lock and the work may have taken seconds
        self._announce(frozenset(unit.touched))
        return done

    def _announce(self, touched: frozenset[int]) -> None:
        if touched and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, touched)

    def _tell(self, touched: frozenset[int]) -> None:
        for changes in tuple(self._changes):
            changes.hear(touched)

    def _shut(self) -> None:
        self._readers.shutdown()
        self._writer.shutdown()
        self._reading.dispose()
        self._writing.dispose()
        self._claim.release()


def look(url: str, work: Callable[[Reader], _T], *, busy_seconds: float = BUSY_SECONDS) -> _T:
    """Read a database, whether a bot works with it or not. Changes nothing. Raises as `Store.open` does."""
    path = location(url)
    check(path, busy_seconds)
    files = Presence(path)
    engine = reading_engine(files, busy_seconds)
    try:
        return _read(engine, files, SystemClock(), work)
    finally:
        engine.dispose()


def _read(engine: Engine, files: Presence, clock: Clock, work: Callable[[Reader], _T]) -> _T:
    files.check()
    with told(files.path), Session(engine) as session:
        return work(Reader(session, clock.now()))


def _let_go(opening: asyncio.Future[tuple[Path, Claim]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[1].release()


def _log_unseen(future: Future[_T]) -> None:
    """The task that asked was cancelled: only the log can tell what went wrong."""
    if not future.cancelled() and (error := future.exception()) is not None:
        log.error("a transaction whose task was cancelled failed: %s", error)
