"""Ask the Hub what a model is: one commit, its files, small ones whole and of weight files nothing but the header.

Everything that comes back is bounded in bytes and seconds and is nothing but data until it was checked: mirrors and
proxies answer in the Hub's name. The token goes to the Hub's own host alone, never to where it redirects.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urljoin

import httpx

from runner import __version__
from runner.host.hub_account import COMMIT, HubToken, endpoint, offline_by, place_of, token
from runner.host.hub_refusals import Asked, half_answer, offline, range_ignored, refusal, too_slow, unreachable

_SHA256 = re.compile(r"[0-9a-f]{64}")
_REDIRECTS = {301, 302, 303, 307, 308}
_MOST_REDIRECTS = 5
_LONGEST_LISTING = 64_000_000  # bytes of what the API tells of a repository
_MOST_FILES = 100_000
_LARGEST_FILE = 2**53
_CONNECTIONS = 8


@dataclass(frozen=True)
class RepositoryFile:
    """A file of a commit. `sha256` is that of its content (LFS), `blob` git's name of it; either may be unknown."""

    name: str
    size_bytes: int
    sha256: str | None = None
    blob: str | None = None

    def is_content(self, data: bytes) -> bool:
        """Whether a content is the file, as far as that can be told."""
        if self.sha256:
            return hashlib.sha256(data).hexdigest() == self.sha256
        return len(data) == self.size_bytes and self.blob in {None, _blob(data)}

    def is_known_content(self, data: bytes) -> bool:
        """Whether a content is certainly the file."""
        return bool(self.sha256 or self.blob) and self.is_content(data)


@dataclass(frozen=True)
class Repository:
    """One commit of a model on the Hub."""

    name: str
    commit: str
    files: tuple[RepositoryFile, ...] = ()


class Hub:
    """A conversation with the Hub, as an asynchronous context.

    `seconds` bounds each single answer. Errors are those of `hub_refusals`, hub_offline and hub_endpoint_wrong.
    """

    def __init__(self, seconds: float, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.endpoint = endpoint()
        self.token: HubToken | None = None
        self._seconds = seconds
        self._transport = transport
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        self.token = await asyncio.to_thread(token)
        self._client = await asyncio.to_thread(self._connected)  # reading the host's certificates takes a while
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def repository(self, name: str, revision: str, *, files: bool = True) -> Repository:
        """The commit that a revision means now, and its files with sizes."""
        asked = self._asked(name, revision)
        url = f"{self.endpoint}/api/models/{name}/revision/{quote(revision, safe='')}"
        document = await self._document(f"{url}?blobs=true" if files else url, asked)
        if not isinstance(document, dict):
            raise half_answer(asked, "it is not a description of a model")
        commit = document.get("sha")
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise half_answer(asked, "it names no commit")
        return Repository(name, commit, _files(document.get("siblings"), asked) if files else ())

    async def named(self, name: str) -> list[str]:
        """Ids of models whose own name is `name`, the most downloaded first; else of some that come near."""
        url = f"{self.endpoint}/api/models?search={quote(name, safe='')}&limit=20&sort=downloads&direction=-1"
        document = await self._document(url, self._asked(name))
        found = [entry.get("id") for entry in document if isinstance(entry, dict)] if isinstance(document, list) else []
        ids = [each for each in found if isinstance(each, str) and each.isprintable() and len(each) <= 200]
        exact = [each for each in ids if each.rpartition("/")[2].lower() == name.lower()]
        return (exact or ids)[:5]

    async def content(self, repository: Repository, file: RepositoryFile, limit_bytes: int) -> bytes:
        """The whole content of a small file, compared with what the commit says of it."""
        asked = self._asked(repository.name, repository.commit, file.name)
        if file.size_bytes > limit_bytes:
            raise half_answer(asked, f"it has {file.size_bytes} bytes, and such a file at most {limit_bytes}")
        async with self._answer(self._url(repository, file), asked) as answer:
            data = await self._read(answer, file.size_bytes, asked)
        if len(data) != file.size_bytes:
            raise half_answer(asked, f"it ended after {len(data)} of {file.size_bytes} bytes")
        if not file.is_content(data):
            raise half_answer(asked, "it is not the file that the commit names")
        return data

    async def header(self, repository: Repository, file: RepositoryFile, limit_bytes: int) -> bytes:
        """The eight bytes of its length and the header of a safetensors file. No byte of the weights is asked for.

        Where the header could not be that long, or has more than `limit_bytes`, the eight bytes come alone.
        """
        asked = self._asked(repository.name, repository.commit, file.name)
        url = self._url(repository, file)
        first, place = await self._part(url, 0, min(8, file.size_bytes), file.size_bytes, asked)
        length = int.from_bytes(first, "little")
        if len(first) < 8 or not 0 < length <= min(limit_bytes, file.size_bytes - 8):
            return first
        rest, _ = await self._part(place, 8, length, file.size_bytes, asked)
        return first + rest

    async def _part(self, url: str, start: int, count: int, size: int, asked: Asked) -> tuple[bytes, str]:
        """`count` bytes of a file of `size` bytes, and the address where they really were."""
        if count == 0:
            return b"", url
        end = start + count - 1
        async with self._answer(url, asked, {"Range": f"bytes={start}-{end}"}) as answer:
            if answer.status_code == 200:
                raise range_ignored(asked)
            given = re.sub(r"\s+", " ", answer.headers.get("content-range", "")).strip()
            if given != f"bytes {start}-{end}/{size}":
                raise half_answer(asked, f"bytes {start}-{end} of {size} were asked for, and {ascii(given)[:60]} came")
            data = await self._read(answer, count, asked)
            place = str(answer.url)
        if len(data) != count:
            raise half_answer(asked, f"it ended after {len(data)} of {count} bytes")
        return data, place

    async def _document(self, url: str, asked: Asked) -> Any:
        async with self._answer(url, asked) as answer:
            data = await self._read(answer, _LONGEST_LISTING, asked)
        try:
            return await asyncio.to_thread(json.loads, data)
        except (ValueError, RecursionError):
            raise half_answer(asked, "it is not JSON") from None

    @asynccontextmanager
    async def _answer(
        self, url: str, asked: Asked, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The answer at the end of all redirects, its body not read yet."""
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._redirected(url, asked, headers or {})
                try:
                    if not response.is_success:
                        raise refusal(response.status_code, _lower(response.headers), asked)
                    yield response
                finally:
                    await response.aclose()
        except (TimeoutError, httpx.TimeoutException):
            raise too_slow(asked, self._seconds) from None
        except (httpx.ConnectError, httpx.ProxyError) as problem:
            raise unreachable(asked, self._in_words(problem)) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as problem:
            raise half_answer(asked, self._in_words(problem) or "the connection broke") from None

    async def _redirected(self, url: str, asked: Asked, headers: Mapping[str, str]) -> httpx.Response:
        client = self._client
        if client is None:
            raise RuntimeError("The Hub is asked only within its context.")
        for _ in range(_MOST_REDIRECTS + 1):
            # Of what a redirect leads to, only the Hub's own host gets the token, and nothing leaves TLS again.
            own = {"Authorization": f"Bearer {self.token.value}"} if self.token and self._is_hub(url) else {}
            response = await client.send(client.build_request("GET", url, headers={**headers, **own}), stream=True)
            if response.status_code not in _REDIRECTS:
                return response
            await response.aclose()
            url = _followed(url, response.headers.get("location", ""), asked)
        raise half_answer(asked, f"it was redirected more than {_MOST_REDIRECTS} times")

    async def _read(self, answer: httpx.Response, limit_bytes: int, asked: Asked) -> bytes:
        """The body as it came, refused when it has more than `limit_bytes`."""
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            raise half_answer(asked, "it is compressed, which was not asked for")
        pieces, size = [], 0
        async for piece in answer.aiter_raw(65536):
            size += len(piece)
            if size > limit_bytes:
                raise half_answer(asked, f"it has more than the {limit_bytes} bytes that it should have")
            pieces.append(piece)
        return b"".join(pieces)

    def _connected(self) -> httpx.AsyncClient:
        # It would log every address, and those that the Hub redirects to are signed.
        logging.getLogger("httpx").setLevel(logging.WARNING)
        return httpx.AsyncClient(
            headers={"User-Agent": f"quark-ptq-bot/{__version__}", "Accept-Encoding": "identity"},
            timeout=self._seconds,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=_CONNECTIONS),
            transport=self._transport,
        )

    def _asked(self, repository: str, revision: str = "", file: str = "") -> Asked:
        asked = Asked(self.endpoint, repository, revision, file, self.token.owner if self.token else "")
        if variable := offline_by():
            raise offline(asked, variable)
        return asked

    def _url(self, repository: Repository, file: RepositoryFile) -> str:
        return f"{self.endpoint}/{repository.name}/resolve/{repository.commit}/{quote(file.name)}"

    def _is_hub(self, url: str) -> bool:
        return place_of(url) == place_of(self.endpoint)

    def _in_words(self, problem: Exception) -> str:
        """Why a connection failed, without what an answer could have put there."""
        text = " ".join(str(problem).split())
        if self.token:
            text = text.replace(self.token.value, "***")
        return text[:200] if text.isprintable() else ascii(text)[:200]


def _followed(url: str, location: str, asked: Asked) -> str:
    """Where a redirect leads. What came by TLS does not go on without it."""
    try:
        target = urljoin(url, location)
    except ValueError:
        target = ""
    place = place_of(target)
    if place is None or place.scheme not in ({"https"} if url.startswith("https://") else {"http", "https"}):
        raise half_answer(asked, "it leads to an address that is none")
    return target


def _files(siblings: Any, asked: Asked) -> tuple[RepositoryFile, ...]:
    if not isinstance(siblings, list) or len(siblings) > _MOST_FILES:
        raise half_answer(asked, "it has no usable list of files")
    return tuple(_file(entry, asked) for entry in siblings)


def _file(entry: Any, asked: Asked) -> RepositoryFile:
    lfs = entry.get("lfs") if isinstance(entry, dict) else None
    lfs = lfs if isinstance(lfs, dict) else {}
    name, size = (entry.get("rfilename"), entry.get("size")) if isinstance(entry, dict) else (None, None)
    if not isinstance(name, str) or not name or len(name) > 1000:
        raise half_answer(asked, "its list of files has an entry without a name")
    if type(size) is not int or not 0 <= size <= _LARGEST_FILE:
        raise half_answer(asked, f"it tells no size of {ascii(name)[:100]}")
    sha256, blob = lfs.get("sha256"), None if lfs else entry.get("blobId")
    return RepositoryFile(
        name=name,
        size_bytes=size,
        sha256=sha256 if isinstance(sha256, str) and _SHA256.fullmatch(sha256) else None,
        blob=blob if isinstance(blob, str) and COMMIT.fullmatch(blob) else None,
    )


def _blob(data: bytes) -> str:
    """git's name of a content; a protection against mishaps, not against people."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _lower(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
