"""What the local mirror of calibration and evaluation data holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.host.paths import resolved, within

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
    """Named datasets of the mirror, then its text files by their path beneath it."""
    if mirror is None or not mirror.is_dir():
        return []
    named = [name for name, repository in REPOSITORIES.items() if (mirror / repository).is_dir()]
    return [*named, *sorted(_texts(mirror))]


def dataset_path(mirror: Path | None, name: str) -> Path | None:
    """Where the mirror keeps a dataset: the file of that name, or the folder of a named one. None when it does not."""
    if mirror is None:
        return None
    if name in REPOSITORIES:
        folder = mirror / REPOSITORIES[name]
        return folder if folder.is_dir() else None
    path = resolved(mirror / name)
    return path if path.suffix in _TEXTS and within(path, resolved(mirror)) and path.is_file() else None


def _texts(mirror: Path) -> Iterator[str]:
    """Text files at the top of the mirror and one folder below it, outside the named datasets."""
    taken = {mirror / repository for repository in REPOSITORIES.values()}
    candidates = (path for pattern in ("*", "*/*") for path in mirror.glob(pattern))
    for count, path in enumerate(candidates):
        if count >= _MOST_FILES:
            return
        if path.suffix in _TEXTS and path.is_file() and not any(folder in path.parents for folder in taken):
            yield str(path.relative_to(mirror))
