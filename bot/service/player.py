"""The requester of the scripted demonstration: reads what the thread shows, and answers in words, one act at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from bot.cards.card import Action, ActionKind, Card
from bot.clock import Clock
from bot.conversation.person import Person, Place
from bot.conversation.state import Checkpoint, State
from bot.errors import BotError, StoreError
from bot.platforms.contract import Event, Said
from bot.service.core import Core
from bot.service.pause import pause
from bot.store.records import Conversation, Shown
from bot.store.store import Store

WORDS = {
    Checkpoint.ANALYSIS: "looks good",
    Checkpoint.PLAN: "ok",
    Checkpoint.COMMAND: "yes, run it",
    Checkpoint.RESULT: "accept",
}
_LOOK_SECONDS = 5.0


class Player:
    """A person on the script platform. It says yes to what its thread asks, and stops where there is nothing to say."""

    def __init__(self, core: Core, store: Store, clock: Clock, tell: Callable[[str], None], session: str) -> None:
        self._core = core
        self._store = store
        self._clock = clock
        self._tell = tell
        self._session = session
        self._numbers = itertools.count(1)
        self._person = Person(id="script:ada", name="Ada")

    async def ask(self, request: str) -> int:
        """Ask for a model; the number of the request."""
        return await self._say(Place(platform="script", channel="terminal"), request)

    async def see_through(self, request: int) -> State:
        """Answer until the thread asks for no yes any more; the state in which it rests then.

        Raises BotError when the request is refused, or a yes to what is still asked.
        """
        answered: set[Action] = set()
        said = request
        with self._store.subscribe() as changed:
            while True:
                changed.clear()
                # First this, then the thread: a yes that came too late is refused, and the thread has gone on by then.
                refused = await self._refusal(said)
                conversation = await self._conversation(request)
                if conversation is None:
                    _raise(refused)
                else:
                    shown = await self._shown(conversation)
                    asked = _asked(shown)
                    if asked is not None and asked not in answered and asked.checkpoint is not None:
                        answered.add(asked)
                        said = await self._say(conversation.place, WORDS[asked.checkpoint])
                    elif asked is None and _rests(conversation, shown):
                        return conversation.state
                    elif asked is not None:
                        _raise(refused)
                await pause(_LOOK_SECONDS, changed.event)

    async def _say(self, place: Place, text: str) -> int:
        self._tell(f"\n{self._person.name}: {text}\n")
        key = f"script:{self._session}:{next(self._numbers)}"
        event = Event(key=key, person=self._person, place=place, at=self._clock.now(), what=Said(text=text))
        return (await self._core.receive(event)).id

    async def _conversation(self, first: int) -> Conversation | None:
        """The conversation that the request began, once it is acted upon."""
        stored = await self._store.read(lambda reader: reader.event(first))
        if stored is None:
            raise StoreError("event_missing", "The request is not in the database any more.")
        number = stored.conversation
        return await self._store.read(lambda reader: reader.conversation(number)) if number is not None else None

    async def _refusal(self, said: int) -> str:
        """Why something that was said came to nothing; empty when it did not, or not yet."""
        stored = await self._store.read(lambda reader: reader.event(said))
        if stored is None or stored.outcome is None or stored.outcome.verdict == "proceeded":
            return ""
        return stored.outcome.text or "it was ignored."

    async def _shown(self, conversation: Conversation) -> list[Shown]:
        entries = await self._store.read(lambda reader: reader.thread(conversation.id))
        return [entry for entry in entries if isinstance(entry, Shown)]


def _raise(refused: str) -> None:
    if refused:
        raise BotError("refused", f"This was refused: {refused}")


def _asked(shown: list[Shown]) -> Action | None:
    """The yes that the thread asks for, in the newest card that the platform shows."""
    for one in reversed(shown):
        if isinstance(one.what, Card) and one.delivered == one.wanted:
            for button in one.what.buttons:
                if button.action.kind is ActionKind.APPROVE:
                    return button.action
    return None


def _rests(conversation: Conversation, shown: list[Shown]) -> bool:
    """Whether everything is shown, and only a person could go on."""
    waits = conversation.state.kind in {"ended", "failed", "reviewing_plan"}
    return waits and all(one.delivered == one.wanted for one in shown)
