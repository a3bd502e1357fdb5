"""People's names. A message names only an id; asking Slack for the name must never hold up what was said."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Final

from bot.errors import PlatformError
from bot.platforms.slack.calls import Calls

_SECONDS: Final = 0.3
_MOST = 5_000


class Names:
    """Remembers names; one that is not told in time is the id."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._known: OrderedDict[str, str] = OrderedDict()

    def known(self, user: str) -> str | None:
        """The name, where it was asked before."""
        return self._known.get(user)

    async def of(self, user: str) -> str:
        """The name that people see."""
        if user not in self._known:
            try:
                async with asyncio.timeout(_SECONDS):
                    told = (await self._calls.call("users.info", user=user)).get("user") or {}
            except (PlatformError, TimeoutError):
                return user
            profile = told.get("profile") or {}
            self._keep(user, profile.get("display_name") or profile.get("real_name") or told.get("name") or user)
        return self._known[user]

    def _keep(self, user: str, name: str) -> None:
        self._known[user] = name[:200]
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
