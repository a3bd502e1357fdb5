"""What the page reads, from the store and the runners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from bot.cards import amounts
from bot.cards.card import Attachment
from bot.cards.form import Form, edit_form
from bot.conversation.person import Person, Place
from bot.conversation.policy import Facts, Right
from bot.conversation.state import Running, Submitting
from bot.errors import NotFound
from bot.service.daemon import Bot
from bot.service.documents import as_file
from bot.service.policy import policy_of
from bot.service.runner_client import RunnerClient
from bot.store.records import Conversation, HistoryQuery, HistoryRow, Shown, StoredEvent
from schemas.api import Capabilities
from schemas.artifacts.plan import QuantPlan

_WAITS_FOR = {
    "reviewing_analysis": Right.ANALYSIS,
    "reviewing_plan": Right.PLAN,
    "reviewing_command": Right.COMMAND,
    "reviewing_result": Right.RESULT,
    "failed": Right.RETRY,
}


class BotLibrary:
    """The page's `Library`."""

    def __init__(self, bot: Bot) -> None:
        self._store = bot.store
        self._runners = bot.runners
        self._policy = policy_of(bot.settings)

    async def check(self) -> None:
        """Whether the database answers at all."""
        await self._store.read(lambda reader: reader.conversation(0))

    async def conversation(self, conversation: int) -> Conversation | None:
        """One conversation of any platform."""
        return await self._store.read(lambda reader: reader.conversation(conversation))

    async def at(self, place: Place) -> Conversation | None:
        """The conversation of a thread."""
        return await self._store.read(lambda reader: reader.conversation_at(place))

    async def thread(self, conversation: int) -> Sequence[StoredEvent | Shown]:
        """What was said and shown in it, in order."""
        return await self._store.read(lambda reader: reader.thread(conversation))

    async def history(self, query: HistoryQuery) -> Sequence[HistoryRow]:
        """Conversations, newest first."""
        return await self._store.read(lambda reader: reader.history(query))

    async def event(self, inbox: int) -> StoredEvent | None:
        """One thing that a person did, with what came of it."""
        return await self._store.read(lambda reader: reader.event(inbox))

    async def file(self, conversation: int, attachment: Attachment) -> bytes:
        """A document in the format that its name ends in. Raises NotFound."""
        kind, number = attachment.artifact, attachment.number
        document = await self._store.read(lambda reader: reader.artifact(conversation, kind, number))
        if document is None:
            raise NotFound("no_such_file", f"Thread {conversation} has no {attachment.name}.")
        return as_file(attachment.name, document)

    async def form(self, conversation: int) -> Form | None:
        """What may be changed now; None when nothing may."""
        there = await self.conversation(conversation)
        if there is None or isinstance(there.state, Submitting | Running):
            return None
        plan = await self._plan(there)
        return edit_form(there.id, there.state, plan, self._offer(there.state.request.runner), self._runners.names)

    async def run_log(self, conversation: int) -> AsyncIterator[bytes]:
        """The output of the conversation's run so far, in pieces."""
        runner, run = await self._run(conversation)
        client = self._runners.get(runner)
        piece = await client.log(run, 0)

        async def pieces() -> AsyncIterator[bytes]:
            here = piece
            yield here.content
            while here.content and here.next_offset < here.size:
                here = await client.log(run, here.next_offset)
                yield here.content

        return pieces()

    async def run_file(self, conversation: int, name: str) -> bytes:
        """A document of the conversation's run, by the name that the runner gives it."""
        runner, run = await self._run(conversation)
        return await self._runners.get(runner).file(run, name)

    def queues(self) -> Sequence[str]:
        """How busy each runner is, in words, as far as that is known now."""
        return [_busy(client) for client in self._runners]

    def may_decide(self, person: Person, row: HistoryRow) -> bool:
        """Whether a thread that waits for a decision may wait for this person."""
        right = _WAITS_FOR.get(row.state)
        return right is not None and self._policy.against(person, right, Facts(row.requester)) is None

    def _offer(self, runner: str) -> Capabilities | None:
        """What a runner offers; nothing is known of one that was taken out of the settings: another can be chosen."""
        try:
            return self._runners.get(runner).known_capabilities
        except NotFound:
            return None

    async def _plan(self, conversation: Conversation) -> QuantPlan | None:
        revision = getattr(conversation.state, "plan", None)
        if revision is None:
            return None
        document = await self._store.read(lambda reader: reader.artifact(conversation.id, "plan", revision.number))
        return QuantPlan.model_validate(document) if document is not None else None

    async def _run(self, conversation: int) -> tuple[str, str]:
        there = await self.conversation(conversation)
        run = getattr(there.state, "run", None) if there is not None else None
        if there is None or run is None:
            raise NotFound("no_run", f"Thread {conversation} has no run.", "It has one once its command is approved.")
        return there.state.request.runner, run.id


def _busy(client: RunnerClient) -> str:
    health = client.known_health
    if client.known_trouble is not None or health is None:
        return f"{client.name}: nothing is known of it now"
    return f"{client.name}: {amounts.count(health.active, 'run')} active, {health.queued} waiting"
