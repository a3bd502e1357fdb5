"""Tells open pages that something changed. What changed they read themselves, so a lost hint costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")

MOST_FOLLOWERS = 1000
KEEP_ALIVE_SECONDS = 15.0
_RECONNECT_MILLISECONDS = 2000


class TooManyFollowers(Exception):
    """No more open pages can be kept informed."""


class Follower:
    """One open page, or one request that waits. It holds a single flag: a hundred changes are one hint."""

    def __init__(self) -> None:
        self.flag = asyncio.Event()
        self.closed = False

    async def changed(self, seconds: float | None = None) -> bool:
        """Wait for the next change. False when nothing changed for `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.flag.wait()
        except TimeoutError:
            return False
        self.flag.clear()
        return True


class Live:
    """Who follows what. Belongs to one event loop; `changed` is called from it after every commit that shows."""

    def __init__(self, most: int = MOST_FOLLOWERS, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> None:
        self._most = most
        self._keep_alive = keep_alive_seconds
        self._followers: dict[Follower, int | None] = {}
        self._closed = False

    @property
    def followers(self) -> int:
        """How many pages and waiting requests there are."""
        return len(self._followers)

    def changed(self, conversation: int | None = None) -> None:
        """Something of the conversation is different; None when it is not known which."""
        for follower, followed in self._followers.items():
            if conversation is None or followed is None or followed == conversation:
                follower.flag.set()

    def close(self) -> None:
        """End all streams, so that a server which stops does not wait for them."""
        self._closed = True
        for follower in self._followers:
            follower.closed = True
            follower.flag.set()

    @contextmanager
    def follow(self, conversation: int | None = None) -> Iterator[Follower]:
        """Be told of changes of one conversation, or of all. Raises TooManyFollowers."""
        if len(self._followers) >= self._most:
            raise TooManyFollowers
        follower = Follower()
        if self._closed:
            follower.closed = True
            follower.flag.set()
        self._followers[follower] = conversation
        try:
            yield follower
        finally:
            del self._followers[follower]

    async def until(self, look: Callable[[], Awaitable[_T | None]], seconds: float) -> _T | None:
        """Look now and after every change, until something is seen or the time is over. None when it is over."""
        try:
            with self.follow() as follower:
                async with asyncio.timeout(seconds):
                    while (seen := await look()) is None:
                        await follower.changed()
                        if follower.closed:
                            return None
                    return seen
        except TimeoutError:
            return None
        except TooManyFollowers:
            return await look()

    def full(self) -> bool:
        """Whether no further stream can be opened."""
        return len(self._followers) >= self._most

    async def stream(self, conversation: int | None) -> AsyncIterator[str]:
        """Server-sent events: `changed` at once and after every change. Silence is filled: a lost line is noticed."""
        with self.follow(conversation) as follower:
            yield f"retry: {_RECONNECT_MILLISECONDS}\nevent: changed\ndata: \n\n"
            while not follower.closed:
                changed = await follower.changed(self._keep_alive)
                if not follower.closed:
                    yield "event: changed\ndata: \n\n" if changed else ": still here\n\n"
