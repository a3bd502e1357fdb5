"""`ptq-bot serve`: the daemon with its page and its chats."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette

from bot.errors import BadSetting, BotError
from bot.platforms.contract import Platform
from bot.platforms.web.adapter import WebPlatform
from bot.platforms.web.app import make_app
from bot.platforms.web.identity import Access, access
from bot.platforms.web.live import Live
from bot.service.daemon import Bot, run, until_told, wired
from bot.service.http_server import listening, server_of
from bot.service.library import BotLibrary
from bot.settings import BotSettings, WebSettings
from bot.settings.model import SlackSettings
from bot.store.store import Store

if TYPE_CHECKING:
    from bot.service.slack_part import SlackPart

log = logging.getLogger(__name__)


def serve(settings: BotSettings) -> None:
    """Serve until TERM or INT. Raises BotError where the daemon cannot start."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for talkative in ("httpx", "alembic"):  # a line for every question to a runner, and for every plugin
        logging.getLogger(talkative).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    try:
        asyncio.run(_serve(settings))
    except BaseExceptionGroup as fallen:
        log.critical(
            "a part of the bot fell, so it stops; runs go on, and the next bot goes on with everything", exc_info=fallen
        )
        raise


def _is_news(record: logging.LogRecord) -> bool:
    """A request that the end of the daemon broke off is no fault to be traced."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)


async def _serve(settings: BotSettings) -> None:
    _check_platforms(settings)
    async with contextlib.AsyncExitStack() as stack:
        bot = await stack.enter_async_context(wired(settings))
        log.info("database %s, runners %s", settings.database_url, ", ".join(settings.runner_names))
        platforms: list[Platform] = []
        parts: list[Coroutine[Any, Any, None]] = []
        if settings.web.enabled:
            listener = stack.enter_context(listening(settings.web.host, settings.web.port))
            page = page_of(bot, listener)
            log.info("page on http://%s:%s/", settings.web.host, page.port)
            platforms.append(page.platform)
            parts.append(page.serve())
        if settings.slack is not None:
            slack = await stack.enter_async_context(_slack(bot, settings.slack))
            platforms.append(slack.platform)
            parts.append(slack.serve())
        await until_told(run(bot, platforms, parts))


def _check_platforms(settings: BotSettings) -> None:
    """Say so, instead of starting without the platform that somebody waits on. Raises BadSetting."""
    if settings.discord is not None:
        message = "discord is configured, and this release does not speak to people there."
        raise BadSetting("no_such_platform", message, "Take discord out of the settings.")


def _slack(bot: Bot, settings: SlackSettings) -> contextlib.AbstractAsyncContextManager[SlackPart]:
    """Slack's part. Raises BadSetting where what it needs is not installed."""
    try:
        from bot.service.slack_part import slack_part  # only whoever uses Slack has its libraries
    except ImportError as error:
        message = f"slack is configured, and its libraries are not installed: {error}."
        raise BadSetting("no_slack", message, "Install quark-ptq-bot[slack].") from None
    return slack_part(bot, settings)


@dataclass(frozen=True)
class Page:
    """The page, as a platform and as a server."""

    platform: Platform
    app: Starlette
    live: Live
    store: Store
    listener: socket.socket

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self.listener.getsockname()[1]
        return port

    async def serve(self) -> None:
        """Answer browsers until cancelled."""
        server = server_of(self.app)
        serving = asyncio.create_task(server.serve(sockets=[self.listener]))
        hints = asyncio.create_task(self._pass_on_changes())
        try:
            ended, _ = await asyncio.wait({serving, hints}, return_when=asyncio.FIRST_COMPLETED)
            for part in ended:
                await part
            raise BotError("page_ended", "The page stopped by itself.", "See the log, and start the bot again.")
        finally:
            hints.cancel()
            self.live.close()  # streams would keep the server waiting
            server.should_exit = True
            await asyncio.gather(serving, hints, return_exceptions=True)

    async def _pass_on_changes(self) -> None:
        """Every commit may change what an open page shows, whatever platform it is for."""
        with self.store.subscribe() as changed:
            while True:
                for conversation in await changed.next() or (None,):
                    self.live.changed(conversation)


def page_of(bot: Bot, listener: socket.socket) -> Page:
    """The page of a wired bot."""
    web = bot.settings.web
    live = Live()
    library = BotLibrary(bot)
    app = make_app(bot.core, library, access_of(web, listener.getsockname()[1]), bot.clock, live)
    return Page(WebPlatform(live), app, live, bot.store, listener)


def access_of(web: WebSettings, port: int) -> Access:
    """Who may use the page, by the settings."""
    token = web.token.get_secret_value() if web.token is not None else None
    people = {name: secret.get_secret_value() for name, secret in web.people.items()}
    return access(web.host, port, token=token, people=people, names=web.names, local=web.person)
