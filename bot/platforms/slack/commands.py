"""The slash command, and the words after it that ask for something else than a model."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.card import Action, ActionKind
from bot.errors import BotError
from bot.platforms.contract import Said
from bot.platforms.slack.desk import NOT_RECORDED, Ack, Desk
from bot.platforms.slack.inbound import Body, Origin, command_origin, spoken
from bot.platforms.slack.links import newest_link, thread_link
from bot.platforms.slack.modals import Modals
from bot.store.records import HistoryQuery, HistoryRow

HELP = "\n".join(
    (
        "/quantize Qwen/Qwen3-8B to fp8 – ask for a model; a thread opens",
        "/quantize – the same in a form",
        "/quantize history [words] – the last requests",
        "/quantize queue – what runs and what waits",
        "/quantize show NUMBER – one request",
        "/quantize cancel NUMBER – end one request",
        "In a thread, answer in words: yes, no, or what should be different.",
    )
)
_ROWS = 10
_QUEUE = "What is in the queue?"


class Commands:
    """Answers the slash command."""

    def __init__(self, desk: Desk, modals: Modals) -> None:
        self._desk = desk
        self._modals = modals

    async def given(self, ack: Ack, body: Body) -> None:
        """A command. What changes something is kept before Slack is answered; what only reads, after."""
        desk, origin = self._desk, command_origin(body)
        text = spoken(str(body.get("text") or ""), desk.me.user)
        word, _, rest = text.partition(" ")
        async with desk.answering():
            if desk.refused(body, origin):
                await ack()
                return
            origin = desk.named(origin)
            match word.lower():
                case "":
                    await ack()
                    desk.background.start(self._modals.ask(str(body.get("trigger_id", "")), origin))
                case "help":
                    await ack(HELP)
                case "history":
                    await ack()
                    desk.background.start(self._history(origin, rest.strip()))
                case "show" if _number(rest) is not None:
                    await ack()
                    desk.background.start(self._show(origin, _number(rest) or 0))
                case "cancel" if (number := _number(rest)) is not None:
                    await self._keep(ack, origin, Action(kind=ActionKind.CANCEL, conversation=number))
                case "queue":
                    await self._keep(ack, origin, _QUEUE)
                case "quantize":
                    await self._keep(ack, origin, text)
                case _:
                    await self._keep(ack, origin, f"quantize {text}")

    async def _keep(self, ack: Ack, origin: Origin, what: str | Action) -> None:
        now = self._desk.clock.now()
        event = origin.event(Said(text=what), now) if isinstance(what, str) else origin.clicked(what, now)
        await (ack() if await self._desk.commit(event) else ack(NOT_RECORDED))

    async def _history(self, origin: Origin, words: str) -> None:
        try:
            rows = await self._desk.library.history(HistoryQuery(text=words, limit=_ROWS))
        except BotError as error:
            self._desk.tell(origin, error.sentence())
            return
        self._desk.tell(origin, self._listed(rows) or "There are no such requests.")

    def _listed(self, rows: Sequence[HistoryRow]) -> str:
        return "\n".join(f"{row.id}. {about(row)}  {thread_link(self._desk.me, row.place)}".rstrip() for row in rows)

    async def _show(self, origin: Origin, number: int) -> None:
        desk = self._desk
        try:
            there = await desk.library.conversation(number)
            entries = await desk.library.thread(number) if there is not None else ()
        except BotError as error:
            desk.tell(origin, error.sentence())
            return
        if there is None:
            desk.tell(origin, f"There is no request {number}.")
            return
        link = newest_link(desk.me, entries) or thread_link(desk.me, there.place)
        told = f"{number}. {there.state.request.model}: {there.state.kind.replace('_', ' ')}"
        desk.tell(origin, f"{told}  {link}".rstrip())


def about(row: HistoryRow) -> str:
    """A request in a few words."""
    scheme = f" to {row.scheme}" if row.scheme else ""
    return f"{row.model}{scheme}: {row.state.replace('_', ' ')}, asked by {row.requester.name}"


def _number(text: str) -> int | None:
    stripped = text.strip().lstrip("#")
    return int(stripped) if stripped.isascii() and stripped.isdecimal() and len(stripped) <= 15 else None
