"""A local server that answers whatever a test wants, byte by byte: what a runner must never be, and still may be."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True)
class Asked:
    """One request. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class RawPeer:
    """Calls `reply` for each request; every connection carries one. `url` is where it listens.

    `open` counts the connections that somebody holds just now.
    """

    reply: Reply
    reads: bool = True
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    open: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open += 1
        try:
            asked = await _request(reader) if self.reads else Asked("", "", {}, b"")
            self.asked.append(asked)
            await self.reply(asked, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the caller looked whether somebody listens, or has gone
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            self.open -= 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@contextlib.asynccontextmanager
async def listening(
    reply: Reply, socket: Path | None = None, *, reads: bool = True, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RawPeer]:
    """A peer on a unix socket, or on a port of this machine. Unless it `reads`, it answers before it was asked."""
    peer = RawPeer(reply, reads)
    if socket is not None:
        server = await asyncio.start_unix_server(peer.serve, socket)
        peer.url = f"unix://{socket}"
    else:
        server = await asyncio.start_server(peer.serve, "127.0.0.1", 0, ssl=tls)
        peer.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    tasks = asyncio.all_tasks()
    try:
        yield peer
    finally:
        server.close()
        left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def saying(*parts: bytes) -> Reply:
    """Always these bytes."""

    async def reply(_: Asked, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return reply


def telling(document: BaseModel | Any, status: int = 200, kind: str = "application/json") -> Reply:
    """Always this document."""
    return saying(answer(_content(document), status, kind))


async def hanging(_: Asked, __: asyncio.StreamWriter) -> None:
    """Says nothing for ever."""
    await asyncio.Event().wait()


def answer(content: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """A whole answer. Underscores in the names of headers become lines; an empty header is left out."""
    named = {"Content_Type": kind, "Content_Length": str(len(content)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items() if value)
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + content


def _content(document: BaseModel | Any) -> bytes:
    if isinstance(document, bytes):
        return document
    return document.model_dump_json().encode() if isinstance(document, BaseModel) else json.dumps(document).encode()


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)
