"""Slack as a part of the daemon."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

from bot.errors import BadSetting, BotError, PlatformError
from bot.platforms.slack.adapter import SlackPlatform
from bot.platforms.slack.app import make_app
from bot.platforms.slack.background import Background
from bot.platforms.slack.calls import TOKEN_REFUSED, Calls, Identity
from bot.platforms.slack.desk import Desk
from bot.platforms.slack.gate import Gate
from bot.platforms.slack.http import EVENTS, web_app
from bot.platforms.slack.metrics import Metrics
from bot.platforms.slack.names import Names
from bot.platforms.slack.socket import DEAF_SECONDS, PING_SECONDS, listen
from bot.service.daemon import Bot
from bot.service.http_server import listening, serve_on
from bot.service.library import BotLibrary
from bot.service.pause import Backoff, pause
from bot.settings.model import SlackSettings

log = logging.getLogger(__name__)

_FIRST_SECONDS, _MOST_SECONDS = 1.0, 60.0


@dataclass(frozen=True)
class SlackPart:
    """The platform that cards go to, and the ear that people are heard with."""

    bot: Bot
    settings: SlackSettings
    calls: Calls
    platform: SlackPlatform
    metrics: Metrics
    ping_seconds: float = PING_SECONDS
    deaf_seconds: float = DEAF_SECONDS

    async def serve(self) -> None:
        """Hear people until cancelled. Raises BotError where that cannot be, or ends by itself."""
        me = await self._identity()
        log.info("Slack workspace %s (%s), mode %s", me.team_name, me.team, self.settings.mode)
        desk = Desk(
            inlet=self.bot.core,
            library=BotLibrary(self.bot),
            calls=self.calls,
            me=me,
            gate=Gate(self.settings, me),
            names=Names(self.calls),
            clock=self.bot.clock,
            metrics=self.metrics,
            background=Background(),
        )
        app = make_app(self.settings, desk)
        try:
            if self.settings.mode == "http":
                with listening(self.settings.host, self.settings.port, "Slack's listener", "slack.port") as listener:
                    log.info("Slack's requests on http://%s:%s%s", self.settings.host, self.settings.port, EVENTS)
                    await serve_on(web_app(app, self.metrics), listener)
            else:
                assert self.settings.app_token is not None
                token = self.settings.app_token.get_secret_value()
                await listen(app, token, self.metrics, self.deaf_seconds, self.ping_seconds)
        finally:
            await desk.background.stop()
        raise BotError("slack_ended", "The connection to Slack stopped by itself.", "See the log, and start again.")

    async def _identity(self) -> Identity:
        """Who the bot is, however long Slack is away: everything else works meanwhile."""
        backoff = Backoff(_FIRST_SECONDS, _MOST_SECONDS)
        while True:
            try:
                return await self.calls.identity()
            except PlatformError as error:
                if error.code in TOKEN_REFUSED:
                    raise BadSetting(error.code, f"Slack refused slack.bot_token: {error.code}.", error.hint) from None
                log.warning("Slack does not say who the bot is: %s", error.sentence())
            await pause(backoff.seconds())


@contextlib.asynccontextmanager
async def slack_part(bot: Bot, settings: SlackSettings) -> AsyncIterator[SlackPart]:
    """Slack's part of a wired bot."""
    calls = Calls(settings)
    try:
        yield SlackPart(bot, settings, calls, SlackPlatform(calls, BotLibrary(bot).conversation), Metrics())
    finally:
        await calls.close()
