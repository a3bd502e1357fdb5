"""An HTTP server as a part of the daemon."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.applications import Starlette

from bot.errors import BadSetting

_STOP_SECONDS = 3


class Server(uvicorn.Server):
    """Leaves signals to the daemon, which has more to end than this."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def server_of(app: Starlette) -> Server:
    """A server that says nothing of itself, and does not wait long for who is still there."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return Server(config)


async def serve_on(app: Starlette, listener: socket.socket) -> None:
    """Answer until cancelled."""
    server = server_of(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


@contextlib.contextmanager
def listening(host: str, port: int, what: str = "The page", setting: str = "web.port") -> Iterator[socket.socket]:
    """A socket to listen on. Raises BadSetting when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadSetting(
            "cannot_listen",
            f"{what} cannot listen on {host} port {port}: {error.strerror or error}.",
            f"Stop what listens there, or set {setting}.",
        ) from None
    try:
        yield listener
    finally:
        listener.close()
