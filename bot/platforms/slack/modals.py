"""Opening the forms, and taking what was sent in them."""

from __future__ import annotations

import asyncio
from typing import Any

from bot.cards.card import Action
from bot.cards.form import FormErrors
from bot.conversation.person import Place
from bot.errors import BotError, StoreError
from bot.platforms.contract import Edited, Said
from bot.platforms.slack import modal
from bot.platforms.slack.adapter import NAME
from bot.platforms.slack.calls import TriggerExpired, ViewGone
from bot.platforms.slack.desk import COMMIT_SECONDS, Ack, Desk
from bot.platforms.slack.inbound import Body, Origin, origin_of

NOT_RECORDED = "This was not recorded, because the bot's database did not take it in time. Send it again."
LATE = "Slack waited too long for the form to open. Click again."
OUTDATED = "The thread went on while this form was open. Close it, and open it from the newest card."
NOTHING_TO_EDIT = "Nothing can be changed now. The thread says how far it is."


class Modals:
    """The edit form, and the one that takes a request."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def edit(self, trigger: str, origin: Origin, action: Action) -> None:
        """Open the form: something at once, as a trigger lives for three seconds, then what can be changed."""
        try:
            opened = await self._desk.calls.call("views.open", trigger_id=trigger, view=modal.loading_view())
        except TriggerExpired:
            self._desk.tell(origin, LATE)
            return
        try:
            form = await self._desk.library.form(action.conversation)
        except BotError as error:
            view = modal.told_view("Edit", error.sentence())
        else:
            place = origin.place
            view = (
                modal.edit_view(form, channel=place.channel, thread=place.thread)
                if form is not None
                else modal.told_view("Edit", NOTHING_TO_EDIT)
            )
        await self._update(opened["view"]["id"], view)

    async def ask(self, trigger: str, origin: Origin) -> None:
        """Open the form that takes a request."""
        try:
            view = modal.request_view(channel=origin.place.channel)
            await self._desk.calls.call("views.open", trigger_id=trigger, view=view)
        except TriggerExpired:
            self._desk.tell(origin, LATE)

    async def changed(self, view: Body) -> None:
        """A choice was made in the edit form: draw it again with what is wrong so far."""
        sent = modal.read_submission(view)
        form = await self._desk.library.form(sent.conversation) if sent is not None else None
        if sent is None or form is None:
            return
        changes = modal.changes_of(form, sent)
        problem = " ".join(changes.errors.values()) if isinstance(changes, FormErrors) else ""
        await self._update(view["id"], modal.edit_view(form, sent=sent, problem=problem), hash=view.get("hash", ""))

    async def submitted(self, ack: Ack, body: Body) -> None:
        """A sent form. What does not fit is said at its field, and the form stays."""
        desk, view = self._desk, body.get("view") or {}
        async with desk.answering():
            if desk.refused(body, origin_of(body)):
                await ack()
            elif view.get("callback_id") == modal.REQUEST:
                await self._asked(ack, body, view)
            elif (sent := modal.read_submission(view)) is not None:
                await self._sent(ack, body, sent)
            else:
                await ack()

    async def _asked(self, ack: Ack, body: Body, view: Body) -> None:
        text, channel = modal.read_request(view)
        origin = _elsewhere(self._desk.named(origin_of(body)), channel, "")
        if await self._desk.commit(origin.event(Said(text=_as_request(text)), self._desk.clock.now())):
            await ack()
        else:
            field = next(iter((view.get("state") or {}).get("values") or {}), "")
            await ack({"response_action": "errors", "errors": {field: NOT_RECORDED}})

    async def _sent(self, ack: Ack, body: Body, sent: modal.Submission) -> None:
        try:
            async with asyncio.timeout(COMMIT_SECONDS):
                form = await self._desk.library.form(sent.conversation)
        except (StoreError, TimeoutError):
            await ack(modal.problem_answer(sent, NOT_RECORDED))
            return
        if form is None:
            await ack(modal.problem_answer(sent, NOTHING_TO_EDIT))
            return
        if form.digest != sent.digest:
            await ack(modal.problem_answer(sent, OUTDATED))
            return
        changes = modal.changes_of(form, sent)
        if isinstance(changes, FormErrors):
            await ack(modal.errors_answer(sent, changes.errors))
        elif changes.nothing:
            await ack(modal.problem_answer(sent, modal.NOTHING_CHANGED))
        else:
            what = Edited(conversation=sent.conversation, digest=sent.digest, changes=changes)
            origin = _elsewhere(self._desk.named(origin_of(body)), sent.channel, sent.thread)
            kept = await self._desk.commit(origin.event(what, self._desk.clock.now()))
            await (ack() if kept else ack(modal.problem_answer(sent, NOT_RECORDED)))

    async def _update(self, view_id: str, view: Body, **more: Any) -> None:
        try:
            await self._desk.calls.call("views.update", view_id=view_id, view=view, **more)
        except ViewGone:
            return  # the person closed it, or went on in it


def _elsewhere(origin: Origin, channel: str, thread: str) -> Origin:
    """A form is sent from no channel: it was opened in one."""
    if not channel:
        return origin
    place = Place(platform=NAME, channel=channel, thread=thread)
    return Origin(origin.user, origin.name, origin.team, place, origin.key, origin.reply_to)


def _as_request(text: str) -> str:
    return text if text.lower().startswith("quantize") else f"quantize {text}"
