"""Fetch of a commit on the Hub what an analysis reads: small files, and the headers of its weights.

What was fetched stays where an attempt fails half way, so that the next one goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runner.errors import NotHere, Refused
from runner.intake.config import LONGEST_CONFIG, LONGEST_TOKENIZER_CONFIG
from runner.intake.headers import INDEX, LONGEST_INDEX, weight_files
from runner.intake.listing import listing_of
from runner.intake.reading import LONGEST_HEADER, header_length
from runner.intake.snapshot import SMALL_FILES, HubFile, HubSnapshot, Record, SnapshotCache

if TYPE_CHECKING:
    from runner.host.hub import Hub, Repository, RepositoryFile

_AT_ONCE = 8  # requests
_MOST_HEADER_BYTES = 256_000_000  # of all weight files together; DeepSeek-V3's 163 have 11 MB
_LONGEST_CODE = 4_000_000  # bytes of one Python file


async def fetch(hub: Hub, repository: Repository, cache: SnapshotCache, *, code: bool = False) -> HubSnapshot:
    """The snapshot of a commit, its `code` too where that is asked for.

    Errors are those of the Hub; of the listing and the weights (folder_too_large, weights_*); config_missing;
    hub_headers_too_large; and state_not_writable.
    """
    job = _Job(hub, repository, cache)
    names = listing_of(job.files, _label(repository)).files
    if "config.json" not in names:
        raise NotHere(
            "config_missing",
            f"{_label(repository)} on the Hub has no config.json, so it is no model that transformers loads.",
            "Name the repository of the original model; GGUF and adapter repositories have none.",
        )
    # First and alone: a gated repository lists its files, and gives none of them.
    await job.small("config.json")
    wanted = [name for name in names if name in SMALL_FILES and name != "config.json"]
    if code:
        wanted += [name for name in names if name.endswith(".py")]
    await _all(job.small, wanted)
    snapshot = await asyncio.to_thread(job.snapshot)
    weights = await asyncio.to_thread(weight_files, snapshot)
    await _all(job.header, weights.names)
    return await asyncio.to_thread(job.finish)


@dataclass
class _Job:
    """One attempt. `kept` and `headers` are the digests of what is on disk by now."""

    hub: Hub
    repository: Repository
    cache: SnapshotCache
    kept: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    header_bytes: int = 0

    def __post_init__(self) -> None:
        self.files = {file.name: file for file in self.repository.files}

    async def small(self, name: str) -> None:
        """One small file. What is on disk is taken when it is the file that the commit names."""
        file, limit = self.files[name], _limit(name)
        data = await asyncio.to_thread(self._on_disk, file)
        if data is None:
            data = await self.hub.content(self.repository, file, limit)
        self.kept[name] = await asyncio.to_thread(self._keep, name, data)

    async def header(self, name: str) -> None:
        """One header. What is on disk is taken when it is a whole header: it was written at once."""
        file = self.files[name]
        data = await asyncio.to_thread(self._header_on_disk, file)
        if data is None:
            data = await self.hub.header(self.repository, file, LONGEST_HEADER)
        self.header_bytes += len(data)
        if self.header_bytes > _MOST_HEADER_BYTES:
            raise Refused(
                "hub_headers_too_large",
                f"The headers of {_label(self.repository)} have more than {_MOST_HEADER_BYTES} bytes together.",
                "Download the model to this host and name its folder.",
            )
        self.headers[name] = await asyncio.to_thread(self._keep, name, data, header=True)

    def snapshot(self) -> HubSnapshot:
        """What is there so far."""
        return HubSnapshot(self.cache.place(self.repository.name, self.repository.commit), self._record())

    def finish(self) -> HubSnapshot:
        """Make it a snapshot."""
        return self.cache.finish(self._record())

    def _record(self) -> Record:
        return Record(
            repository=self.repository.name,
            commit=self.repository.commit,
            token=self.hub.token.owner if self.hub.token else "",
            files=[
                HubFile(name=file.name, size_bytes=file.size_bytes, sha256=file.sha256)
                for file in self.repository.files
            ],
            kept=self.kept,
            headers=self.headers,
        )

    def _keep(self, name: str, data: bytes, *, header: bool = False) -> str:
        return self.cache.keep(self.repository.name, self.repository.commit, name, data, header=header)

    def _on_disk(self, file: RepositoryFile) -> bytes | None:
        data = self.cache.kept(self.repository.name, self.repository.commit, file.name)
        return data if data is not None and file.is_known_content(data) else None

    def _header_on_disk(self, file: RepositoryFile) -> bytes | None:
        data = self.cache.kept(self.repository.name, self.repository.commit, file.name, header=True)
        length = None if data is None else header_length(data, file.size_bytes)
        return data if data is not None and length is not None and len(data) == 8 + length else None


async def _all(fetch_one: Callable[[str], Awaitable[None]], names: Iterable[str]) -> None:
    """Fetch several at a time; the first that fails ends the others."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> None:
        async with free:
            await fetch_one(name)

    tasks = [asyncio.ensure_future(one(name)) for name in names]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _limit(name: str) -> int:
    if name == INDEX:
        return LONGEST_INDEX
    if name.endswith(".py"):
        return _LONGEST_CODE
    return LONGEST_CONFIG if name == "config.json" else LONGEST_TOKENIZER_CONFIG


def _label(repository: Repository) -> str:
    return f"{repository.name}@{repository.commit[:7]}"
