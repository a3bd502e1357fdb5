"""A local stand-in of the Hub: its API, its files and its CDN on real sockets, as far as reading models needs them.

It counts every byte that it sends, weights apart from their headers, and fails by script. Headers and codes are those
that the Hub sends and that its own client reads.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

LFS = (".safetensors", ".bin", ".gguf", "tokenizer.json")  # files that the Hub keeps beside git and its CDN serves

_LARGE = 4_000_000


@dataclass(frozen=True)
class Call:
    """One request that came in. `part` is its Range header, `token` what it was authorized with."""

    server: str
    method: str
    path: str
    part: str
    token: str


@dataclass(frozen=True)
class Says:
    """An answer in place of the right one."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class BreaksOff:
    """The right answer, whose connection ends after so many bytes of its body."""

    after: int = 0


@dataclass(frozen=True)
class Hangs:
    """No answer for as long as the peer lives."""


@dataclass(frozen=True)
class Drips:
    """The right answer, one byte after another with pauses that no timeout of a single read notices."""


@dataclass(frozen=True)
class IgnoresRange:
    """The whole file in place of the part that was asked for."""


@dataclass(frozen=True)
class Raw:
    """Any bytes at all in place of an answer."""

    content: bytes


Fault = Says | BreaksOff | Hangs | Drips | IgnoresRange | Raw


@dataclass
class HubRepository:
    """A model on the peer: commits with their folders, and what its branches and tags mean."""

    name: str
    commits: dict[str, Path]
    refs: dict[str, str]
    gated: bool = False
    private: bool = False

    def commit_of(self, revision: str) -> str | None:
        """The commit that a revision means."""
        return revision if revision in self.commits else self.refs.get(revision)


@dataclass
class HubPeer:
    """The Hub and its CDN. `accounts` are the tokens it knows, `readers` those that may read gated and private models.

    `sent` counts bytes by (file, kind); the kinds are api, file, header and weight.
    """

    repositories: dict[str, HubRepository] = field(default_factory=dict)
    accounts: set[str] = field(default_factory=set)
    readers: set[str] = field(default_factory=set)
    calls: list[Call] = field(default_factory=list)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    _faults: list[tuple[Callable[[Call], bool], Fault, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, folder: Path, *, ref: str = "main", gated: bool = False, private: bool = False) -> str:
        """Put a folder on the Hub as the newest commit of a ref; returns the commit."""
        content = "".join(f"{path.name}:{path.stat().st_size}" for path in sorted(folder.iterdir()))
        known = self.repositories.setdefault(name, HubRepository(name, {}, {}, gated, private))
        commit = hashlib.sha1(f"{name}{len(known.commits)}{content}".encode()).hexdigest()
        known.commits[commit] = folder
        known.refs[ref] = commit
        return commit

    def fail(self, where: str, fault: Fault, times: int = 1_000_000, *, server: str = "") -> None:
        """Answer requests whose path matches the pattern `where` with a fault, the first `times` times."""
        pattern = re.compile(where)
        self._faults.append((lambda c: bool(pattern.search(c.path)) and server in {"", c.server}, fault, times))

    def heal(self) -> None:
        """Fail no more."""
        with self._lock:
            self._faults.clear()

    def forget(self) -> None:
        """Count from zero."""
        with self._lock:
            self.calls.clear()
            self.sent.clear()

    def bytes_of(self, kind: str) -> int:
        """Bytes sent of one kind."""
        with self._lock:
            return sum(count for (_, of), count in self.sent.items() if of == kind)

    @property
    def url(self) -> str:
        """What HF_ENDPOINT has to be."""
        return f"http://127.0.0.1:{self._hub.server_port}"

    @property
    def cdn_url(self) -> str:
        """Where large files are redirected to: another host, as clients that look at names alone have to see too."""
        return f"http://localhost:{self._cdn.server_port}"

    @cached_property
    def _hub(self) -> ThreadingHTTPServer:
        return _server(self, "hub")

    @cached_property
    def _cdn(self) -> ThreadingHTTPServer:
        return _server(self, "cdn")

    @contextmanager
    def running(self) -> Iterator[HubPeer]:
        """Serve until the end of the context."""
        threads = [threading.Thread(target=s.serve_forever, args=(0.02,)) for s in (self._hub, self._cdn)]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.over.set()
            for server in (self._hub, self._cdn):
                server.shutdown()
                server.server_close()
            for thread in threads:
                thread.join()

    def taken(self, call: Call) -> Fault | None:
        """Note a request; the fault that meets it."""
        with self._lock:
            self.calls.append(call)
            for place, (matches, fault, times) in enumerate(self._faults):
                if times and matches(call):
                    self._faults[place] = (matches, fault, times - 1)
                    return fault
        return None

    def count(self, name: str, start: int, count: int, header: int | None) -> None:
        """Note bytes that were sent; `header` is the length of what comes before the weights of the file."""
        with self._lock:
            if header is None:
                self.sent[name, "file"] += count
                return
            before = max(0, min(start + count, header) - start)
            self.sent[name, "header"] += before
            self.sent[name, "weight"] += count - before


def _server(peer: HubPeer, name: str) -> ThreadingHTTPServer:
    class Handler(_Handler):
        hub, server_name = peer, name

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    hub: HubPeer
    server_name: str
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Silent: the calls are noted."""

    def _answer(self) -> None:
        self.fault: Fault | None = None
        authorization = self.headers.get("Authorization", "")
        self.token = authorization.removeprefix("Bearer ") if authorization else ""
        self.fault = self.hub.taken(
            Call(self.server_name, self.command, self.path, self.headers.get("Range", ""), self.token)
        )
        match self.fault:
            case Hangs():
                self.hub.over.wait()
                self.close_connection = True
            case Raw(content):
                with suppress(OSError):
                    self.wfile.write(content)
                self.close_connection = True
            case Says(status, body, headers):
                self._send(status, body, headers)
            case _:
                self._route(urlsplit(self.path))

    def _route(self, url: Any) -> None:
        parts = [unquote(part) for part in url.path.split("/") if part]
        if self.server_name == "cdn":
            self._from_cdn(parts)
        elif parts[:2] == ["api", "models"] and len(parts) == 2:
            self._search(parse_qs(url.query).get("search", [""])[0])
        elif parts[:2] == ["api", "models"] and len(parts) in {4, 6}:
            kind, revision = parts[4:] if len(parts) == 6 else ("revision", "main")
            if found := self._permitted("/".join(parts[2:4]), revision, listing=True):
                (self._tree if kind == "tree" else self._info)(*found)
        elif len(parts) >= 5 and parts[2] == "resolve":
            if found := self._permitted("/".join(parts[:2]), parts[3]):
                self._file(*found, "/".join(parts[4:]))
        else:
            self._refuse(404, "", "Page not found")

    def _permitted(self, name: str, revision: str, *, listing: bool = False) -> tuple[HubRepository, str] | None:
        """The repository and the commit, or an answer that says no as the Hub does."""
        found = self.hub.repositories.get(name)
        commit = found.commit_of(revision) if found else None
        no: tuple[int, str, str] | None = None
        if self.token and self.token not in self.hub.accounts | self.hub.readers:
            no = 401, "", "Invalid credentials in Authorization header"
        elif found is None or (found.private and self.token not in self.hub.readers):
            no = (
                (404, "RepoNotFound", "Repository not found")
                if self.token
                else (401, "", "Invalid username or password.")
            )
        elif found.gated and not listing and self.token not in self.hub.readers:
            no = 403 if self.token else 401, "GatedRepo", f"Access to model {name} is restricted."
        elif commit is None:
            no = 404, "RevisionNotFound", f"Invalid rev id: {revision}"
        if no is not None or found is None or commit is None:
            self._refuse(*(no or (404, "", "")))
            return None
        return found, commit

    def _search(self, text: str) -> None:
        names = [name for name in self.hub.repositories if text.lower() in name.lower()]
        self._document([{"id": name, "modelId": name} for name in names])

    def _info(self, repository: HubRepository, commit: str) -> None:
        files = []
        for name, path in _files(repository.commits[commit]):
            size, digest = path.stat().st_size, _digest(path)
            entry: dict[str, Any] = {"rfilename": name, "size": size, "blobId": digest[:40]}
            if name.endswith(LFS):
                entry["lfs"] = {"sha256": digest, "size": size, "pointerSize": 134}
            files.append(entry)
        gated = "auto" if repository.gated else False
        self._document(
            {"id": repository.name, "sha": commit, "private": repository.private, "gated": gated, "siblings": files}
        )

    def _tree(self, repository: HubRepository, commit: str) -> None:
        entries = []
        for name, path in _files(repository.commits[commit]):
            size, digest = path.stat().st_size, _digest(path)
            entry: dict[str, Any] = {"type": "file", "path": name, "size": size, "oid": digest[:40]}
            if name.endswith(LFS):
                entry["lfs"] = {"oid": digest, "size": size, "pointerSize": 134}
            entries.append(entry)
        self._document(entries)

    def _file(self, repository: HubRepository, commit: str, name: str) -> None:
        path = repository.commits[commit] / name
        common = [("X-Repo-Commit", commit)]
        if not path.is_file():
            self._refuse(404, "EntryNotFound", "Entry not found", common)
            return
        digest = _digest(path)
        if not name.endswith(LFS):
            self._content(name, path, [*common, ("ETag", f'"{digest}"')])
            return
        linked = [("X-Linked-Size", str(path.stat().st_size)), ("X-Linked-Etag", f'"{digest}"')]
        place = f"{self.hub.cdn_url}/{repository.name}/{commit}/{name}?signature=x"
        self._send(302, b"", (*common, *linked, ("Location", place)))

    def _from_cdn(self, parts: list[str]) -> None:
        name = "/".join(parts[3:])
        path = self.hub.repositories["/".join(parts[:2])].commits[parts[2]] / name
        self._content(name, path, [("ETag", f'"{_digest(path)}"')])

    def _content(self, name: str, path: Path, headers: list[tuple[str, str]]) -> None:
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        size = path.stat().st_size
        start, count, status = 0, size, 200
        with path.open("rb") as file:
            header = 8 + int.from_bytes(file.read(8), "little") if name.endswith(".safetensors") else None
            if part and not isinstance(self.fault, IgnoresRange):
                start, end = int(part[1]), min(int(part[2] or size), size - 1)
                count, status = end + 1 - start, 206
                headers = [*headers, ("Content-Range", f"bytes {start}-{end}/{size}")]
            file.seek(start)
            sent = self._send(status, file, (*headers, ("Accept-Ranges", "bytes")), count)
        self.hub.count(name, start, sent, header)

    def _document(self, document: Any) -> None:
        body = json.dumps(document).encode()
        self.hub.sent[self.path.partition("?")[0], "api"] += len(body)
        self._send(200, body, (("Content-Type", "application/json"),))

    def _refuse(self, status: int, code: str, said: str, more: list[tuple[str, str]] | None = None) -> None:
        headers = [("X-Error-Message", said), *([("X-Error-Code", code)] if code else []), *(more or [])]
        self._send(status, json.dumps({"error": said}).encode(), tuple(headers))

    def _send(
        self, status: int, body: bytes | BinaryIO, headers: tuple[tuple[str, str], ...], count: int | None = None
    ) -> int:
        """Send an answer; returns how many bytes of its body went out. Of a file, `count` bytes are the body."""
        file, length = (BytesIO(body), len(body)) if isinstance(body, bytes) else (body, count or 0)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() in {"content-length", "transfer-encoding"} for name, _ in headers):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return 0
        left, sent = length, 0
        if isinstance(self.fault, BreaksOff):
            left, self.close_connection = min(length, self.fault.after), True
        with suppress(OSError):  # the client may have gone away, and bytes count only as far as it took them
            slowly = isinstance(self.fault, Drips)
            while left and (piece := file.read(min(left, 1 if slowly else 4096))):
                if slowly and self.hub.over.wait(0.05):
                    break
                self.wfile.write(piece)
                left, sent = left - len(piece), sent + len(piece)
        self.close_connection |= left > 0
        return sent


def _files(folder: Path) -> list[tuple[str, Path]]:
    return [(str(path.relative_to(folder)), path) for path in sorted(folder.rglob("*")) if path.is_file()]


def _digest(path: Path) -> str:
    """SHA-256 of an LFS file, git's name of another. Of very large ones (holes) the beginning and the size must do."""
    facts = path.stat()
    return _digest_of(path, facts.st_size, facts.st_mtime_ns)


@cache
def _digest_of(path: Path, size: int, _: int) -> str:
    with path.open("rb") as file:
        content = file.read(_LARGE)
    if path.name.endswith(LFS):
        return hashlib.sha256(content + (str(size).encode() if size > _LARGE else b"")).hexdigest()
    return hashlib.sha1(b"blob %d\0" % size + content).hexdigest()
