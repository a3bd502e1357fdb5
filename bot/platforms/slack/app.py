"""The app that Slack speaks to: what it delivers is kept, then answered, then acted upon.

An answer is given only after the listener has returned: what was not kept is not acknowledged, and Slack delivers words
again. A delivery that comes again is kept under the same name.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse

from bot.cards.card import ActionKind, decode_action
from bot.errors import BotError, PlatformError, StoreError
from bot.platforms.slack.commands import Commands
from bot.platforms.slack.desk import NOT_RECORDED, Ack, Desk, NotRecorded
from bot.platforms.slack.home import NEW_REQUEST
from bot.platforms.slack.home_tab import HomeTab
from bot.platforms.slack.inbound import Body, Origin, Words, origin_of, words_of, workspace_of
from bot.platforms.slack.links import newest_link
from bot.platforms.slack.looking import Looking
from bot.platforms.slack.modals import Modals
from bot.platforms.slack.moving import Moving
from bot.settings.model import SlackSettings

log = logging.getLogger(__name__)

ANY = re.compile(r".*", re.DOTALL)
_LOOK_SECONDS = 0.5  # Slack waits three for its answer
OUTDATED = "This card is outdated, so the click changed nothing."


class Listeners:
    """One method for each kind of delivery."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._modals = Modals(desk)
        self._commands = Commands(desk, self._modals)
        self._home = HomeTab(desk)
        self._moving = Moving(desk.calls, Looking(desk.calls))

    def attach(self, app: AsyncApp) -> None:
        """Listen. Each kind has a listener for all of it: what has none is never answered, and shows as a failure."""
        for kind in ("message", "app_mention"):
            app.event(kind)(self.said)
        app.event("app_home_opened")(self.home_opened)
        app.event(ANY)(self.other_event)
        app.command(ANY)(self._commands.given)
        app.action(ANY)(self.acted)
        app.view(ANY)(self._modals.submitted)
        app.shortcut(ANY)(self.other)
        app.options(ANY)(self.no_options)
        app.error(self.failed)

    async def said(self, body: Body) -> None:
        """Words: a request where they are for the bot, or an answer in one of its threads."""
        desk = self._desk
        async with desk.answering():
            if not desk.gate.ours(*workspace_of(body)):
                desk.metrics.refused += 1
                return
            words = words_of(body["event"], desk.me)
            if words is None or not await self._is_for_me(words):
                return
            if why := desk.gate.against(words.place.channel, words.team):
                desk.metrics.refused += 1
                if not words.mentions or body["event"]["type"] == "app_mention":  # a mention comes twice
                    desk.tell(Origin(words.user, "", words.team, words.place, ""), why)
                return
            words = await self._where_it_belongs(words)
            event = words.event(await desk.names.of(words.user), desk.clock.now())
            if not await desk.commit(event):
                raise NotRecorded(event.key)

    async def _is_for_me(self, words: Words) -> bool:
        if words.mentions or words.direct:
            return True
        if not words.place.thread:
            return False
        if words.parent is not None:
            return words.parent == self._desk.me.user
        return await self._desk.library.at(words.place) is not None

    async def _where_it_belongs(self, words: Words) -> Words:
        """Words in a direct message may answer a thread that had to move there."""
        desk = self._desk
        if not (words.direct and words.place.thread) or await desk.library.at(words.place) is not None:
            return words
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                number = await self._moving.conversation(words.place.channel, words.place.thread)
        except (PlatformError, TimeoutError):
            return words
        there = await desk.library.conversation(number) if number is not None else None
        return replace(words, place=there.place) if there is not None else words

    async def home_opened(self, body: Body) -> None:
        """Somebody looks at the app's home."""
        event = body["event"]
        if self._desk.gate.ours(*workspace_of(body)) and event.get("tab", "home") == "home":
            self._desk.background.start(self._home.show(str(event["user"])))

    async def acted(self, ack: Ack, body: Body) -> None:
        """A button of a card, of the home, or a choice in a form."""
        desk, origin = self._desk, origin_of(body)
        pressed = (body.get("actions") or [{}])[0]
        action = decode_action(str(pressed.get("value") or ""))
        trigger = str(body.get("trigger_id", ""))
        async with desk.answering():
            if desk.refused(body, origin):
                await ack()
                return
            origin = desk.named(origin)
            if action is not None and action.kind is not ActionKind.EDIT:
                kept = await desk.commit(origin.clicked(action, desk.clock.now()))
                await ack()
                if not kept:
                    desk.tell(origin, NOT_RECORDED)
                return
            await ack()
        if action is not None:
            desk.background.start(self._modals.edit(trigger, origin, action))
        elif pressed.get("action_id") == NEW_REQUEST:
            desk.background.start(self._modals.ask(trigger, origin))
        elif (body.get("view") or {}).get("type") == "modal":
            desk.background.start(self._modals.changed(body["view"]))
        elif pressed.get("type", "button") == "button" and not pressed.get("url"):
            desk.background.start(self._outdated(origin))

    async def _outdated(self, origin: Origin) -> None:
        """A button that this release does not know: say so, and where the current card is."""
        try:
            there = await self._desk.library.at(origin.place)
            entries = await self._desk.library.thread(there.id) if there is not None else ()
        except StoreError as error:
            log.warning("the current card is not known: %s", error.sentence())
            entries = ()
        link = newest_link(self._desk.me, entries)
        self._desk.tell(origin, f"{OUTDATED} The current one: {link}" if link else OUTDATED)

    async def other_event(self) -> None:
        """An event that says nothing to the bot."""

    async def other(self, ack: Ack) -> None:
        """Anything else."""
        await ack()

    async def no_options(self, ack: Ack) -> None:
        """No choice of the bot asks for its options."""
        await ack(options=[])

    async def failed(self, error: Exception) -> BoltResponse:
        """Whatever fell is not acknowledged."""
        if isinstance(error, NotRecorded | BotError):
            log.error("a delivery of Slack was not taken, it may come again: %s", error)
        else:
            log.error("a delivery of Slack was not taken, it may come again", exc_info=error)
        return BoltResponse(status=503)


def make_app(settings: SlackSettings, desk: Desk) -> AsyncApp:
    """The app, ready for either mode."""
    me = desk.me
    token = settings.bot_token.get_secret_value()

    async def authorize(**_: Any) -> AuthorizeResult:
        # Known since the start: a call to Slack must not stand before an event is kept.
        return AuthorizeResult(
            enterprise_id=me.enterprise,
            team_id=me.team,
            bot_token=token,
            bot_id=me.bot,
            bot_user_id=me.user,
        )

    app = AsyncApp(
        name="quark-ptq-bot",
        logger=logging.getLogger("slack_bolt"),
        client=desk.calls.client(with_token=False),
        authorize=authorize,
        signing_secret=settings.signing_secret.get_secret_value() if settings.signing_secret is not None else "",
        request_verification_enabled=settings.mode == "http",
        process_before_response=True,
    )
    Listeners(desk).attach(app)
    return app
