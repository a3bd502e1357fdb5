"""Requests to one runner, bounded in time and in size.

Every request has a connection of its own. Runners are asked seldom, and a connection that was kept may just be closing
on the other side when it is used again.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel

from bot.errors import BadSetting, RunnerForeign
from bot.service.pause import pause
from bot.service.runner_failures import Failures
from schemas.api import API_VERSION, Problem
from schemas.documents import InvalidDocument, MissingDocument, read_document

Answer = TypeVar("Answer", bound=BaseModel)

LARGEST_FILE = 64 << 20
LARGEST_LOG_PIECE = 1 << 20
# Twice what a runner takes back by default. JSON may need twenty times its size in memory once it is read.
_LARGEST_DOCUMENT = 16 << 20
_LARGEST_PROBLEM = 1 << 20
_VERSION_HEADER = "PTQ-API-Version"
_JSON, _PROBLEM = "application/json", "application/problem+json"
_FULL_QUEUE_SECONDS = 0.05

# A host that lost its power says nothing more: without this a stream of events would wait for it for ever.
_KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000),
]


@dataclass(frozen=True)
class Content:
    """The bytes of an answer, and its headers."""

    body: bytes
    headers: Mapping[str, str]


class Connection:
    """Asks one runner. Errors are RunnerAway, RunnerForeign and RunnerError; `fail` makes their sentences.

    `url` is unix:///path, http://host:port or https://host:port; anything else raises BadSetting. `ca` is a PEM file
    with the certificates that are trusted over https, in place of all authorities that this host knows.
    """

    def __init__(
        self, name: str, url: str, token: str | None = None, connect_seconds: float = 5.0, ca: Path | None = None
    ) -> None:
        self.fail = Failures(name, url)
        self._connect_seconds = connect_seconds
        self._socket = url.removeprefix("unix://") if url.startswith("unix:///") else None
        if self._socket is None and not url.startswith(("http://", "https://")):
            raise BadSetting("bad_setting", f"The url of the runner {name} is neither unix:///path nor http(s)://.")
        headers = {_VERSION_HEADER: str(API_VERSION), "Accept-Encoding": "identity"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        transport = httpx.AsyncHTTPTransport(
            uds=self._socket,
            verify=_trusted(name, ca) if url.startswith("https://") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            socket_options=None if self._socket else _KEEP_ALIVE,
        )
        try:
            _ = urlsplit(url).port  # the library would find a wrong one only when it connects
            self._http = httpx.AsyncClient(
                base_url="http://runner" if self._socket else url,
                transport=transport,
                headers=headers,
                timeout=httpx.Timeout(None, connect=connect_seconds),
                trust_env=False,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise BadSetting("bad_setting", f"The url of the runner {name} is no address: {error}.") from None

    async def close(self) -> None:
        """Close whatever is open."""
        await self._http.aclose()

    async def document(
        self, method: str, path: str, model: type[Answer], seconds: float, body: BaseModel | None = None
    ) -> Answer:
        """A JSON document, held against its schema. `seconds` are for the whole exchange."""
        content = await self.content(method, path, _JSON, seconds, _LARGEST_DOCUMENT, body)
        return await asyncio.to_thread(self._read, content.body, model)  # a large one takes longer than others can wait

    async def content(
        self, method: str, path: str, media_type: str, seconds: float, most: int, body: BaseModel | None = None
    ) -> Content:
        """A whole answer of at most `most` bytes."""
        with self.fail.told(seconds):
            async with asyncio.timeout(seconds), self._answer(method, path, media_type, seconds, body) as answer:
                return Content(await self._bounded(answer, most), answer.headers)

    @asynccontextmanager
    async def stream(
        self, path: str, media_type: str, seconds: float, headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The pieces of an answer that goes on; it has to begin within `seconds`."""
        answering = self._answer("GET", path, media_type, seconds, None, headers)
        with self.fail.told(seconds):
            async with asyncio.timeout(seconds):
                answer = await answering.__aenter__()
        try:
            yield self._pieces(answer)
        finally:
            await answering.__aexit__(None, None, None)

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        media_type: str,
        seconds: float,
        body: BaseModel | None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """A good answer whose body was not read yet."""
        await self._probe(min(seconds, self._connect_seconds))
        sent = {"Accept": f"{media_type}, {_PROBLEM}", **(headers or {})}
        content = None
        if body is not None:
            # What nobody set is left out: an absent choice is the runner's to make, and null asks for none of it.
            content = body.model_dump_json(exclude_unset=True).encode()
            sent["Content-Type"] = _JSON
        async with self._http.stream(method, path, content=content, headers=sent) as answer:
            if not answer.is_success:
                problem = _problem(answer, await self._bounded(answer, _LARGEST_PROBLEM))
                raise self.fail.refusal(answer.status_code, problem)
            kind = _media_type(answer)
            if kind != media_type:
                raise self.fail.strange(f"it answered with {kind or 'something unnamed'} in place of {media_type}")
            yield answer

    async def _bounded(self, answer: httpx.Response, most: int) -> bytes:
        """The body. The length that was announced is not believed."""
        content = bytearray()
        async for piece in self._pieces(answer):
            content += piece
            if len(content) > most:
                raise self.fail.strange(f"its answer is larger than {most} bytes")
        return bytes(content)

    async def _pieces(self, answer: httpx.Response) -> AsyncIterator[bytes]:
        """The body as it was sent: what is small and packed may be endless once it is unpacked."""
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise self.fail.strange("it packed its answer, which was not asked for")
        async for piece in answer.aiter_raw():
            yield piece

    async def _probe(self, seconds: float) -> None:
        """Connect to a unix socket once before the library does.

        Where the queue of a socket is full, the library spins until its time is over and leaves a socket open.
        """
        if self._socket is None:
            return
        with self.fail.told(seconds):
            async with asyncio.timeout(seconds):
                while not self._accepts(self._socket):
                    await pause(_FULL_QUEUE_SECONDS)

    def _accepts(self, path: str) -> bool:
        """Whether somebody listens. Raises RunnerAway where nobody does; False while too many wait already."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except BlockingIOError:
                return False
            except OSError as error:
                raise self.fail.unreachable(error) from None
        return True

    def _read(self, content: bytes, model: type[Answer]) -> Answer:
        data = None
        try:
            data = json.loads(content, parse_constant=_refuse_constant)
            return read_document(model, data)
        except (InvalidDocument, MissingDocument) as error:
            raise self._other_version(data) or self.fail.strange(str(error)) from None
        except (ValueError, RecursionError) as error:
            raise self.fail.strange(f"it answered with something that is not JSON: {error}") from None

    def _other_version(self, data: Any) -> RunnerForeign | None:
        """The error for a health of another API, which may have another shape and still says so itself."""
        other = data.get("api_version") if isinstance(data, dict) else None
        if not isinstance(other, int) or other == API_VERSION:
            return None
        return self.fail.other_version(str(data.get("version", "of unknown number")), str(other))


def _trusted(name: str, ca: Path | None) -> ssl.SSLContext | bool:
    """Whom the runner's certificate has to come from; True for the authorities that the library knows.

    Loading all of them takes a tenth of a second: only https without `ca` needs them. Raises BadSetting.
    """
    if ca is None:
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The file may hold the runner's own certificate in place of its authority's: nothing else is trusted then.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cafile=ca)
    except ssl.SSLError:
        raise BadSetting("bad_setting", f"ca of the runner {name}: {ca} holds no certificate in PEM form.") from None
    except OSError as error:
        why = f"{ca} cannot be read: {error.strerror}"
        raise BadSetting("bad_setting", f"ca of the runner {name}: {why}.") from None
    return context


def _media_type(answer: httpx.Response) -> str:
    header: str = answer.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower()


def _problem(answer: httpx.Response, body: bytes) -> Problem | None:
    """The problem that an answer tells of; None where it tells of none."""
    if _media_type(answer) != _PROBLEM:
        return None
    try:
        return read_document(Problem, json.loads(body))
    except (ValueError, RecursionError, InvalidDocument, MissingDocument):
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is none of its numbers")
