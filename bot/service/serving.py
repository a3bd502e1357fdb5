"""`ptq-bot serve`: the daemon with its page."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from bot.errors import BadSetting, BotError
from bot.platforms.contract import Platform
from bot.platforms.web.adapter import WebPlatform
from bot.platforms.web.app import make_app
from bot.platforms.web.identity import Access, access
from bot.platforms.web.live import Live
from bot.service.daemon import Bot, run, until_told, wired
from bot.service.library import BotLibrary
from bot.settings import BotSettings, WebSettings
from bot.store.store import Store

log = logging.getLogger(__name__)

_STOP_SECONDS = 3


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
    async with wired(settings) as bot:
        log.info("database %s, runners %s", settings.database_url, ", ".join(settings.runner_names))
        if not settings.web.enabled:
            await until_told(run(bot, []))
            return
        with listening(settings.web.host, settings.web.port) as listener:
            page = page_of(bot, listener)
            log.info("page on http://%s:%s/", settings.web.host, page.port)
            await until_told(run(bot, [page.platform], [page.serve()]))


def _check_platforms(settings: BotSettings) -> None:
    """Say so, instead of starting without the platform that somebody waits on. Raises BadSetting."""
    for name, section in (("slack", settings.slack), ("discord", settings.discord)):
        if section is not None:
            message = f"{name} is configured, and this release speaks to people only through its page."
            raise BadSetting("no_such_platform", message, f"Take {name} out of the settings.")


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
        config = uvicorn.Config(
            self.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        server = _Server(config)
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


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, which has more to end than the page."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


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


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """The page's socket. Raises BadSetting when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSetting(
            "cannot_listen",
            f"The page cannot listen on {host} port {port}: {error.strerror or error}.",
            "Stop what listens there, or set web.port.",
        ) from None
    try:
        yield listener
    finally:
        listener.close()
