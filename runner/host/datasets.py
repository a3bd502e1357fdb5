"""What the local mirror of calibration and evaluation data holds."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from runner.errors import BadRequest
from runner.host.paths import checked_name, resolved, within

# The names of quantize_quark.py and the Hub repositories they read. Source: its --dataset choices, amd-quark 0.13.
REPOSITORIES: dict[str, str] = {
    "pileval": "mit-han-lab/pile-val-backup",
    "wikitext": "Salesforce/wikitext",
    "cnn_dailymail": "abisee/cnn_dailymail",
    "HuggingFaceH4/ultrachat_200k": "HuggingFaceH4/ultrachat_200k",
}
_TEXTS = (".txt", ".jsonl")
_MOST_FILES = 1000


def mirrored_datasets(mirror: Path | None) -> list[str]:
    """Named datasets of the mirror, then its text files by their path beneath it: all that `dataset_path` finds."""
    if mirror is None or not os.path.isdir(mirror):  # noqa: PTH112 - never raises
        return []
    named = [name for name in REPOSITORIES if dataset_path(mirror, name)]
    return [*named, *sorted(_texts(mirror))]


def dataset_path(mirror: Path | None, name: str) -> Path | None:
    """Where the mirror keeps a dataset: the file of that name, or the folder of a named one. None when it does not.

    What a link takes out of the mirror is not in it. Raises BadRequest [bad_dataset_name].
    """
    name = checked_name(name, "dataset", "bad_dataset_name")
    if mirror is None:
        return None
    if name in REPOSITORIES:
        folder = mirror / REPOSITORIES[name]
        inside = within(resolved(folder), resolved(mirror))
        return folder if inside and os.path.isdir(folder) else None  # noqa: PTH112 - never raises
    path = resolved(mirror / name)
    inside = path.suffix in _TEXTS and within(path, resolved(mirror))
    return path if inside and os.path.isfile(path) else None  # noqa: PTH113 - never raises


def text_bytes(mirror: Path | None, names: Iterable[str]) -> dict[str, int]:
    """Bytes of each of these text files of the mirror; one that is gone by now is left out."""
    found: dict[str, int] = {}
    if mirror is None:
        return found
    for name in names:
        if name.endswith(_TEXTS):
            with contextlib.suppress(OSError):
                found[name] = (mirror / name).stat().st_size
    return found


def _texts(mirror: Path) -> Iterator[str]:
    """Text files at the top of the mirror and one folder below it, outside the named datasets."""
    taken = {mirror / repository for repository in REPOSITORIES.values()}
    candidates = (path for pattern in ("*", "*/*") for path in mirror.glob(pattern))
    for count, path in enumerate(candidates):
        if count >= _MOST_FILES:
            return
        name = str(path.relative_to(mirror))
        if (
            path.suffix in _TEXTS
            and not any(folder in path.parents for folder in taken)
            and _can_be_named(mirror, name)
        ):
            yield name


def _can_be_named(mirror: Path, name: str) -> bool:
    """Whether a person who writes this name gets this file."""
    try:
        return checked_name(name, "dataset", "bad_dataset_name") == name and dataset_path(mirror, name) is not None
    except BadRequest:
        return False
