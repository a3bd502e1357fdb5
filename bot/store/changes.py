"""News of what was committed, for tasks that wait for it: cheap, and never more than they can hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

_MOST_IDS = 1_000


class Changes:
    """The conversations that changed since the last look. Named once each, however often they did.

    `event` is set when there is news; `clear` takes it. To miss nothing: clear, look at the database, wait for `event`.
    """

    def __init__(self, leave: Callable[[Changes], None], only: int | None = None) -> None:
        self.event = asyncio.Event()
        self._leave = leave
        self._only = only
        self._ids: set[int] = set()
        self._overflown = False

    def __enter__(self) -> Self:
        """Leaves the store's list of readers at the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Hear of nothing more."""
        self._leave(self)

    def clear(self) -> frozenset[int] | None:
        """The conversations that changed since the last look; None when too many did: any of them may have."""
        ids, overflown = frozenset(self._ids), self._overflown
        self._ids.clear()
        self._overflown = False
        self.event.clear()
        return None if overflown else ids

    async def next(self) -> frozenset[int] | None:
        """Wait for news, and take it as `clear` does."""
        await self.event.wait()
        return self.clear()

    def hear(self, ids: Iterable[int]) -> None:
        """The store's side: these changed."""
        new = [one for one in ids if self._only in {None, one}]
        if not new:
            return
        if not self._overflown:
            self._ids.update(new)
        if len(self._ids) > _MOST_IDS:
            self._overflown = True
            self._ids.clear()
        self.event.set()
