"""The page as a platform. It draws from the database at every load: a delivery only tells open pages to look again."""

from __future__ import annotations

import re
from collections import OrderedDict

from bot.cards.card import Card
from bot.conversation.person import Place
from bot.platforms.contract import Event
from bot.platforms.web.live import Live

NAME = "web"
CHANNEL = "page"

_KEY = re.compile(r"ptq-([0-9]{1,15})(?:-.*)?", re.DOTALL)
_MOST_REMEMBERED = 10_000


class WebPlatform:
    """Every message is named by its delivery's key, so that delivering twice cannot show anything twice."""

    name = NAME
    pace_seconds = 1.0

    def __init__(self, live: Live) -> None:
        self._live = live
        # Only for `find`: what is forgotten here is posted again, which draws the same page.
        self._delivered: OrderedDict[str, None] = OrderedDict()

    async def thread(self, place: Place, key: str, title: str) -> str:
        """The thread is there as soon as the conversation is; it is named by the key."""
        return self._deliver(key)

    async def post(self, place: Place, card: Card, key: str) -> str:
        """Tell open pages."""
        return self._deliver(key)

    async def update(self, place: Place, message: str, card: Card) -> str:
        """Tell open pages."""
        return self._deliver(message)

    async def file(self, place: Place, name: str, content: bytes, key: str) -> str:
        """Tell open pages; the file is made from its artifact when somebody takes it."""
        return self._deliver(key)

    async def find(self, place: Place, key: str) -> str | None:
        """The message when this process delivered it. None costs nothing: it is delivered under the same name."""
        return key if key in self._delivered else None

    async def whisper(self, event: Event, text: str) -> None:
        """The store keeps what came of the event, and the person's next page says it: only wake who waits for it."""
        self._live.changed()

    def _deliver(self, key: str) -> str:
        self._delivered[key] = None
        self._delivered.move_to_end(key)
        if len(self._delivered) > _MOST_REMEMBERED:
            self._delivered.popitem(last=False)
        conversation = _KEY.fullmatch(key)
        self._live.changed(int(conversation[1]) if conversation else None)
        return key
