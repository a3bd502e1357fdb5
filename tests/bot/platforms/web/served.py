"""The page on a real socket, with a server in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import uvicorn
from playwright.sync_api import Browser, Page

from bot.clock import SystemClock
from bot.platforms.web import Access, access, make_app
from tests.bot.conversation.samples import ADA
from tests.bot.platforms.web.desk import Desk
from tests.waiting import wait_until

_T = TypeVar("_T")


@dataclass
class Served:
    """A page that a browser can open. What a test does to the desk is done where the server runs."""

    desk: Desk
    address: str
    loop: asyncio.AbstractEventLoop

    def do(self, work: Callable[[], _T]) -> _T:
        """Do something in the server's loop, and give back what came of it."""
        done: Future[_T] = Future()

        def go() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        self.loop.call_soon_threadsafe(go)
        return done.result(10)


@contextmanager
def serve(desk: Desk, port: int = 0, tokens: dict[str, str] | None = None) -> Iterator[Served]:
    """Serve a desk's page until the end of the block."""
    with socket.create_server(("127.0.0.1", port)) as listener:
        port = listener.getsockname()[1]
        open_to = access("127.0.0.1", port, people=tokens)
        who = open_to if tokens else Access(ADA, (), open_to.names, port)
        app = make_app(desk, desk, who, SystemClock(), desk.live)
        config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        loops: list[asyncio.AbstractEventLoop] = []

        async def run() -> None:
            loops.append(asyncio.get_running_loop())
            await server.serve(sockets=[listener])

        thread = threading.Thread(target=lambda: asyncio.run(run()), name="page")
        thread.start()
        try:
            wait_until(lambda: server.started, message="the page does not start")
            yield Served(desk, f"http://127.0.0.1:{port}", loops[0])
        finally:
            loops[0].call_soon_threadsafe(desk.live.close)
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive(), "the page does not stop"


@contextmanager
def window(chromium: Browser, served: Served, **how: Any) -> Iterator[Page]:
    """A window that fails its test for every complaint of the browser and for every request to elsewhere."""
    context = chromium.new_context(base_url=served.address, timezone_id="Asia/Tokyo", locale="en-GB", **how)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda told: complaints.append(told.text) if told.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda sent: complaints.append(sent.url) if not sent.url.startswith(served.address) else None)
    page.set_default_timeout(10_000)
    try:
        yield page
    finally:
        context.close()
    assert not complaints
