"""What is kept on this host of a model on the Hub: small files and headers of one commit, never its weights.

A commit never changes, so that what is kept answers every later question without the network. Each thing is written
under its own name at once or not at all, the record that lists them last, and everything is compared with the record
when it is opened: what is damaged counts as absent and is fetched again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from runner.errors import Broken, NotHere, RunnerError
from runner.host.model_location import ModelLocation
from runner.intake.config import WITH_CODE
from runner.intake.headers import INDEX
from runner.intake.listing import Listing, listing_of
from runner.intake.reading import opened, read_fully
from runner.intake.source import ModelFolder, OpenFile, Source
from schemas.artifacts.analysis import FileFact

SMALL_FILES = (*WITH_CODE, "generation_config.json", INDEX)  # all that an analysis reads beside headers
COMMIT = re.compile(r"[0-9a-f]{40}")
_RECORD, _HEADERS = ".snapshot.json", ".headers"
_LONGEST_FILE = 256_000_000  # of anything that is kept, in bytes
_KEPT_SNAPSHOTS = 32
_ADVICE = "Name another revision or another model, or tell the owner of this one: its files on the Hub are wrong."


class HubFile(BaseModel):
    """A file of a commit as the Hub lists it: its size in bytes, and SHA-256 where the Hub tells it (LFS)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    size_bytes: int
    sha256: str | None = None


class Record(BaseModel):
    """What a snapshot holds. `kept` and `headers` are the SHA-256 of the files at hand, by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str
    commit: str
    token: str
    files: list[HubFile]
    kept: dict[str, str]
    headers: dict[str, str]


@dataclass(frozen=True)
class _Bytes:
    """The beginning of a file of `size` bytes."""

    content: bytes
    size: int

    def read(self, count: int, offset: int) -> bytes:
        return self.content[offset : offset + count]


@dataclass(frozen=True)
class HubSnapshot:
    """One commit of a model on the Hub, as far as it is at hand in `folder`. A `Source`."""

    folder: Path
    record: Record
    advice: str = _ADVICE

    @cached_property
    def listing(self) -> Listing:
        """Which files the commit has, at hand or not."""
        return listing_of(self._sizes, self.label())

    @property
    def code(self) -> tuple[str, ...]:
        """Names of the model's own code, which is kept only where somebody asked to trust it."""
        return tuple(name for name in self.listing.files if name.endswith(".py"))

    def label(self, name: str = "") -> str:
        """As in `config.json of Qwen/Qwen3-8B@1234567`."""
        whole = f"{self.record.repository}@{self.record.commit[:7]}"
        return f"{name} of {whole}" if name else whole

    @contextmanager
    def opened(self, name: str) -> Iterator[OpenFile]:
        """Read a small file, or of a weight file the header alone. Raises NotHere [file_missing]."""
        size = self._sizes.get(name)
        if size is None or not (name in self.record.kept or name in self.record.headers):
            raise NotHere("file_missing", f"{self.label(name)} is not there.", self.advice)
        yield _Bytes(_content(self._path(name)), size)

    def fact(self, name: str) -> FileFact:
        """Size and digests; no time, since a commit pins what the file is."""
        listed = self._files[name]
        # Whether a model's code is kept depends on who asked before; what an analysis says must not.
        content = self.record.kept.get(name) if name in SMALL_FILES else None
        return FileFact(
            name=name,
            size_bytes=listed.size_bytes,
            sha256=listed.sha256 or content,
            header_sha256=self.record.headers.get(name),
        )

    def whole(self) -> bool:
        """Whether everything that the record names is at hand and undamaged."""
        try:
            return all(
                hashlib.sha256(_content(self._path(name))).hexdigest() == digest
                for name, digest in {**self.record.kept, **self.record.headers}.items()
            )
        except RunnerError:
            return False

    def _path(self, name: str) -> Path:
        return self.folder / _HEADERS / name if name in self.record.headers else self.folder / name

    @cached_property
    def _files(self) -> Mapping[str, HubFile]:
        return {file.name: file for file in self.record.files}

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return {file.name: file.size_bytes for file in self.record.files}


def source_of(location: ModelLocation) -> Source:
    """Where the files of a model are read from. Raises Broken [hub_cache_lost] for a snapshot that was taken away."""
    if location.downloaded:
        return ModelFolder(location.path)
    snapshot = read_snapshot(location.path)
    if snapshot is None:
        raise Broken(
            "hub_cache_lost",
            f"What was kept of {location.asked} in {location.path} is gone or damaged.",
            "Ask again: it is then fetched again.",
        )
    return snapshot


def read_snapshot(folder: Path) -> HubSnapshot | None:
    """The snapshot in a folder; None where there is none, or not all of it."""
    try:
        content = _content(folder / _RECORD)
        snapshot = HubSnapshot(folder, Record.model_validate_json(content))
    except (RunnerError, ValidationError):
        return None
    return snapshot if snapshot.whole() else None


class SnapshotCache:
    """The snapshots under one folder, which may be emptied at any time: the few used last, by repository and commit."""

    def __init__(self, folder: Path, most: int = _KEPT_SNAPSHOTS) -> None:
        self.folder = folder
        self._most = most

    def place(self, repository: str, commit: str) -> Path:
        """The folder of a commit. `repository` has to be a Hub id and `commit` 40 hexadecimal digits."""
        return self.folder / f"{repository.replace('/', '--')}@{commit}"

    def find(self, repository: str, commit: str) -> HubSnapshot | None:
        """A commit that is at hand; what is damaged of it is removed."""
        place = self.place(repository, commit)
        snapshot = read_snapshot(place)
        if snapshot is None or (snapshot.record.repository, snapshot.record.commit) != (repository, commit):
            if os.path.lexists(place / _RECORD):  # without a record, it is what an attempt got so far
                shutil.rmtree(place, ignore_errors=True)
            return None
        with suppress(OSError):  # used now: others go first when there are too many
            os.utime(snapshot.folder / _RECORD)
        return snapshot

    def commits(self, repository: str) -> list[str]:
        """Commits of a repository that were looked at, without a promise that they are whole."""
        prefix = self.place(repository, "").name
        try:
            names = [entry.name for entry in os.scandir(self.folder)]
        except OSError:
            return []
        return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))

    def keep(self, repository: str, commit: str, name: str, content: bytes, *, header: bool = False) -> str:
        """Write a small file or a header; returns its SHA-256. Raises Broken [state_not_writable]."""
        place = self.place(repository, commit)
        _write(place / _HEADERS / name if header else place / name, content)
        return hashlib.sha256(content).hexdigest()

    def kept(self, repository: str, commit: str, name: str, *, header: bool = False) -> bytes | None:
        """What an earlier attempt wrote; the caller judges whether it is right."""
        place = self.place(repository, commit)
        try:
            return _content(place / _HEADERS / name if header else place / name)
        except RunnerError:
            return None

    def finish(self, record: Record) -> HubSnapshot:
        """Write the record, which makes the snapshot, and forget the oldest ones."""
        place = self.place(record.repository, record.commit)
        document = json.dumps(record.model_dump(mode="json"), sort_keys=True)
        _write(place / _RECORD, document.encode())
        self._forget_oldest()
        return HubSnapshot(place, record)

    def _forget_oldest(self) -> None:
        ages: list[tuple[float, Path]] = []
        for entry in self.folder.iterdir():
            with suppress(OSError):
                record = entry / _RECORD
                ages.append(((record if record.exists() else entry).stat().st_mtime, entry))
        for _, path in sorted(ages, reverse=True)[self._most :]:
            shutil.rmtree(path, ignore_errors=True)


def _content(path: Path) -> bytes:
    with opened(path, follow_links=False) as (descriptor, size):
        if size > _LONGEST_FILE:
            raise NotHere("file_missing", f"{path} is too large.")
        return read_fully(descriptor, size, 0)


def _write(path: Path, content: bytes) -> None:
    """Put a file in its place at once, so that no reader ever sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".new-", delete=False) as file:
            try:
                file.write(content)
                file.flush()
                os.replace(file.name, path)  # noqa: PTH105 - the name is a text
            except OSError:
                with suppress(OSError):
                    os.unlink(file.name)  # noqa: PTH108 - the name is a text
                raise
    except OSError as error:
        raise Broken(
            "state_not_writable",
            f"{path} cannot be written: {error.strerror}.",
            "Give the runner's user write access to its state_dir, and free some space there.",
        ) from None
