"""The files of a model folder that loading reads: what they were, and how they differ from what they were.

Small files are known by the SHA-256 of their content, weights by that of their header together with size and time of
change: reading gigabytes for a card would take minutes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from runner.intake.headers import header_length
from runner.intake.listing import Listing, list_model
from runner.intake.reading import opened, read_fully
from schemas.artifacts.analysis import FileFact

HASHED_WHOLE = 16_000_000  # files smaller than this, in bytes, are known by their whole content


def fingerprint(folder: Path, listing: Listing | None = None) -> list[FileFact]:
    """What the model's files are now, by name. `listing` saves looking into the folder again.

    Codes: folder_too_large, file_not_readable, and file_missing for a link that leads nowhere.
    """
    return [_fact(folder, name) for name in (listing or list_model(folder)).files]


def file_facts(folder: Path, paths: Iterable[Path]) -> list[FileFact]:
    """What any other files in a folder are now, such as calibration data. Named relative to the folder."""
    return [_fact(folder, str(path.relative_to(folder))) for path in paths]


def differences(before: Iterable[FileFact], after: Iterable[FileFact]) -> list[str]:
    """One sentence for each file that is not what it was. A small file that was only touched is the same file."""
    old, new = ({fact.name: fact for fact in facts} for facts in (before, after))
    sentences: list[str] = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            sentences.append(f"{name} is gone.")
        elif name not in old:
            sentences.append(f"{name} is new.")
        elif what := _difference(old[name], new[name]):
            sentences.append(f"{name} {what}.")
    return sentences


def _difference(old: FileFact, new: FileFact) -> str | None:
    if old.size_bytes != new.size_bytes:
        return f"has {new.size_bytes} bytes instead of {old.size_bytes}"
    if old.sha256 and new.sha256:
        return None if old.sha256 == new.sha256 else "has another content"
    if old.header_sha256 != new.header_sha256:
        return "has another header: other tensors, shapes or dtypes"
    return "was written again since" if old.mtime_ns != new.mtime_ns else None


def _fact(folder: Path, name: str) -> FileFact:
    with opened(folder / name) as (descriptor, size):
        changed = os.fstat(descriptor).st_mtime_ns
        whole = hashlib.sha256(read_fully(descriptor, size, 0)).hexdigest() if size < HASHED_WHOLE else None
        header = _header_digest(descriptor, size) if name.endswith(".safetensors") else None
    return FileFact(name=name, size_bytes=size, mtime_ns=changed, sha256=whole, header_sha256=header)


def _header_digest(descriptor: int, size: int) -> str | None:
    """SHA-256 of a safetensors header with the eight bytes of its length; None where there is no such header."""
    length = header_length(read_fully(descriptor, 8, 0), size)
    return None if length is None else hashlib.sha256(read_fully(descriptor, 8 + length, 0)).hexdigest()
