"""The files of a model that loading reads: what they were, and how they differ from what they were."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from runner.intake.source import ModelFolder, Source, as_source
from schemas.artifacts.analysis import FileFact


def fingerprint(model: Source | Path) -> list[FileFact]:
    """What the model's files are now, by name.

    Codes: folder_too_large, file_not_readable, and file_missing for a link that leads nowhere.
    """
    source = as_source(model)
    return [source.fact(name) for name in source.listing.files]


def file_facts(folder: Path, paths: Iterable[Path]) -> list[FileFact]:
    """What any other files in a folder are now, such as calibration data. Named relative to the folder."""
    source = ModelFolder(folder)
    return [source.fact(str(path.relative_to(folder))) for path in paths]


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
