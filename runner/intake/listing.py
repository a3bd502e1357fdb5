"""Which files of a folder or a repository belong to a model."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runner.errors import NotHere, Refused

_READ_BY_LOADING = (".json", ".safetensors", ".py", ".model", ".txt", ".jinja", ".tiktoken")
_READ_IN_FOLDERS = (".py", ".jinja")  # code that remote code imports, and additional chat templates
_OTHER_WEIGHTS = (".bin", ".pt", ".pth", ".ckpt", ".gguf")
_LONGEST_LISTING = 20_000
_MOST_FILES = 4_000


@dataclass(frozen=True)
class Listing:
    """Names of a model's files, sorted: those that loading may read (one folder down as `sub/name`), and weights in
    other formats than safetensors, which nobody reads here."""

    files: tuple[str, ...]
    other_weights: tuple[str, ...]


def list_model(folder: Path) -> Listing:
    """Look into a model folder.

    Raises Refused [folder_too_large] rather than to go through a folder that is no model, [file_not_readable], or
    NotHere [file_missing].
    """
    names: list[str] = []
    for name, is_folder in _entries(folder):
        if not is_folder:
            names.append(name)
        elif not name.startswith("."):  # .git and .cache hold copies that nobody loads
            found = [f"{name}/{file}" for file, deeper in _entries(folder / name) if not deeper]
            names += [file for file in found if file.endswith(_READ_IN_FOLDERS)]
        if len(names) > _LONGEST_LISTING:
            raise _too_large(folder, _LONGEST_LISTING)
    return listing_of(names, str(folder))


def listing_of(names: Iterable[str], label: str) -> Listing:
    """What of these files belongs to a model. `label` names the place in messages. Raises Refused [folder_too_large].

    Names may have any depth, and come from anywhere: those that cannot be shown or lead elsewhere belong to no model.
    """
    files: list[str] = []
    others: list[str] = []
    for name in names:
        folder, _, file = name.rpartition("/")
        if not name.isprintable() or "/" in folder or folder.startswith(".") or file in {"", ".", ".."}:
            continue
        if file.endswith(_READ_IN_FOLDERS if folder else _READ_BY_LOADING):
            files.append(name)
        elif not folder and file.endswith(_OTHER_WEIGHTS):
            others.append(name)
        if len(files) > _MOST_FILES:
            raise _too_large(label, _MOST_FILES)
    return Listing(tuple(sorted(files)), tuple(sorted(others)))


def _entries(folder: Path) -> list[tuple[str, bool]]:
    """(name, is a folder) of what a folder holds. Names that cannot be shown are no files of a model."""
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _LONGEST_LISTING:
                    raise _too_large(folder, _LONGEST_LISTING)
                if entry.name.isprintable():
                    found.append((entry.name, entry.is_dir()))
    except FileNotFoundError:
        raise NotHere("file_missing", f"{folder} does not exist.", "Complete the model folder.") from None
    except OSError as error:
        raise Refused(
            "file_not_readable",
            f"{folder} cannot be read: {error.strerror}.",
            "Give the runner's user read access to the model folder and its files.",
        ) from None
    return found


def _too_large(folder: Path | str, limit: int) -> Refused:
    return Refused(
        "folder_too_large",
        f"{folder} holds more than {limit} files, so it is no model folder.",
        "Name the folder that holds only the model.",
    )
