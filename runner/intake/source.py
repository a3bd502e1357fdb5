"""Where a model's files are read from: a folder of this host, or what is kept here of a commit on the Hub.

Everything that is found out about a model goes through a `Source`, so that both are read by the same code and refused
with the same sentences.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from runner.errors import Refused
from runner.intake.listing import Listing, list_model
from runner.intake.reading import header_length, json_object, opened, read_fully
from schemas.artifacts.analysis import FileFact

HASHED_WHOLE = 16_000_000  # files smaller than this, in bytes, are known by their whole content


class OpenFile(Protocol):
    """A file of a model while it is read. `size` is that of the whole file in bytes."""

    @property
    def size(self) -> int:
        """Bytes of the whole file, also where only its header is at hand."""

    def read(self, count: int, offset: int) -> bytes:
        """Up to `count` bytes from an offset; fewer only where the file, or what is at hand of it, ends."""


class Source(Protocol):
    """A model's files. All methods raise RunnerError with a sentence that names the file."""

    @property
    def advice(self) -> str:
        """What to do about a file that is wrong; empty where that depends on what is wrong."""

    @property
    def listing(self) -> Listing:
        """Which files there are. Raises Refused [folder_too_large, file_not_readable], NotHere [file_missing]."""

    def label(self, name: str = "") -> str:
        """A file, or the whole source, as a sentence names it."""

    def opened(self, name: str) -> AbstractContextManager[OpenFile]:
        """Read a file. Raises NotHere [file_missing], Refused [file_not_readable]."""

    def fact(self, name: str) -> FileFact:
        """What a file of the listing is now."""


@dataclass(frozen=True)
class _Opened:
    descriptor: int
    size: int

    def read(self, count: int, offset: int) -> bytes:
        return read_fully(self.descriptor, count, offset)


@dataclass(frozen=True)
class ModelFolder:
    """A folder of this host that holds all of a model's files. `known` saves looking into it again."""

    path: Path
    known: Listing | None = None
    advice: str = ""

    @cached_property
    def listing(self) -> Listing:
        """Which files there are, looked at once."""
        return self.known or list_model(self.path)

    def label(self, name: str = "") -> str:
        """The path."""
        return str(self.path / name)

    @contextmanager
    def opened(self, name: str) -> Iterator[OpenFile]:
        """Read a regular file; see `reading.opened`."""
        with opened(self.path / name) as (descriptor, size):
            yield _Opened(descriptor, size)

    def fact(self, name: str) -> FileFact:
        """Small files are known by their content, weights by their header, size and time of change.

        Reading gigabytes for a card would take minutes.
        """
        with opened(self.path / name) as (descriptor, size):
            file, changed = _Opened(descriptor, size), os.fstat(descriptor).st_mtime_ns
            whole = hashlib.sha256(file.read(size, 0)).hexdigest() if size < HASHED_WHOLE else None
            header = header_digest(file) if name.endswith(".safetensors") else None
        return FileFact(name=name, size_bytes=size, mtime_ns=changed, sha256=whole, header_sha256=header)


def as_source(place: Source | Path) -> Source:
    """The source itself; a path stands for the folder."""
    return ModelFolder(place) if isinstance(place, Path) else place


def read_object_of(source: Source, name: str, limit_bytes: int, code: str) -> dict[str, Any]:
    """The JSON object in a file of a model. Raises Refused with `code` when it is too large, not JSON, or no object."""
    label, hint = source.label(name), source.advice or f"Download {name} again, or repair it."
    with source.opened(name) as file:
        if file.size > limit_bytes:
            raise Refused(code, f"{label} is {file.size} bytes long; such a file has at most {limit_bytes}.", hint)
        data = file.read(file.size, 0)
    return json_object(data, label, code, hint)


def header_digest(file: OpenFile) -> str | None:
    """SHA-256 of a safetensors header with the eight bytes of its length; None where there is no such header."""
    length = header_length(file.read(8, 0), file.size)
    return None if length is None else hashlib.sha256(file.read(8 + length, 0)).hexdigest()
