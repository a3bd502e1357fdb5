"""What an output folder holds: files, configuration, tensors. Whatever lies there, reading it never fails.

The folder was written by a program that may have gone wrong, so everything is bounded, nothing is waited for, and links
are not followed: a link in an output folder is not part of the model.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from runner.errors import Refused, RunnerError
from runner.host.output_location import is_set_apart
from runner.intake.headers import Tensor, read_headers
from runner.intake.listing import Listing
from runner.intake.reading import read_object
from runner.intake.source import ModelFolder
from runner.runs.words import plain
from schemas.artifacts.report import OutputFile

CONFIG = "config.json"
MOST_ENTRIES = 20_000
LISTED_FILES = 2_000
"""Files that a report lists; a model has a few hundred at most."""

_LONGEST_CONFIG = 64 << 20  # bytes; exclude lists of mixture-of-experts models run to megabytes
_FILES_AND_FOLDERS = (stat.S_IFREG, stat.S_IFDIR)
_FLOATS = frozenset({"F64", "F32", "F16", "BF16"})


class Entry(NamedTuple):
    """Something below a folder: where it is, its path within the folder, and what lstat says."""

    path: str
    name: str
    facts: os.stat_result


@dataclass(frozen=True)
class Layer:
    """The tensors of one module, by the last part of their names: weight, weight_scale, bias, ..."""

    name: str
    tensors: Mapping[str, Tensor]

    @property
    def weight(self) -> Tensor:
        """The weight; a module without one is no layer."""
        return self.tensors["weight"]

    @property
    def scaled(self) -> bool:
        """Whether scales of a quantized weight or input lie beside it. Those of the KV cache are `output_scale`."""
        return any(leaf.startswith(("weight_scale", "input_scale")) for leaf in self.tensors)

    @property
    def quantized(self) -> bool:
        """Whether the weight is not, or not only, a plain floating-point tensor."""
        return self.weight.dtype not in _FLOATS or self.scaled


@dataclass(frozen=True)
class Output:
    """An output folder. `problem`, `config_problem` and `weights_problem` say what kept something from being read.

    `files` is what a report lists; `sizes` has the bytes of every regular file by name, `others` the names of links and
    whatever else is no file.
    """

    folder: str
    files: tuple[OutputFile, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    problem: str = ""
    config: Mapping[str, Any] | None = None
    config_problem: str = ""
    tensors: tuple[Tensor, ...] = ()
    weights_problem: str = ""
    layers: Mapping[str, Layer] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes of all regular files together."""
        return sum(self.sizes.values())


def read_output(folder: Path) -> Output:
    """Everything that checks need to know of the folder. Never raises for what lies there."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return Output(str(folder), problem=f"{folder} is not a folder.")
        found = list(entries(folder))
    except OSError as error:
        return Output(str(folder), problem=f"{folder} cannot be read: {error.strerror}.")
    except RunnerError as error:
        return Output(str(folder), problem=error.message)
    regular = [entry for entry in found if stat.S_ISREG(entry.facts.st_mode)]
    names = [entry.name for entry in regular if entry.name.isprintable()]
    config, config_problem = _config(folder, names)
    tensors, weights_problem = _tensors(folder, names)
    return Output(
        folder=str(folder),
        files=_listed(found),
        sizes={entry.name: entry.facts.st_size for entry in regular},
        others=tuple(entry.name for entry in found if stat.S_IFMT(entry.facts.st_mode) not in _FILES_AND_FOLDERS),
        config=config,
        config_problem=config_problem,
        tensors=tensors,
        weights_problem=weights_problem,
        layers=_layers(tensors),
    )


def entries(folder: Path) -> Iterator[Entry]:
    """Everything below a folder, each folder before what is in it. Links are named, never followed.

    Raises OSError when a folder cannot be read, and Refused [output_too_large] for what is no model's folder.
    """
    waiting, seen = [(str(folder), "")], 0
    while waiting:
        path, prefix = waiting.pop()
        with os.scandir(path) as inside:
            # What runs before left there is set apart, and no part of this one's result.
            own = inside if prefix else (entry for entry in inside if not is_set_apart(entry))
            below = sorted(own, key=lambda entry: entry.name)
        for entry in below:
            seen += 1
            if seen > MOST_ENTRIES:
                hint = "Look at what else writes into that folder."
                message = f"{folder} holds more than {MOST_ENTRIES:,} files, so it is no model's folder."
                raise Refused("output_too_large", message, hint)
            facts = entry.stat(follow_symlinks=False)
            yield Entry(entry.path, prefix + entry.name, facts)
            if stat.S_ISDIR(facts.st_mode):
                waiting.append((entry.path, f"{prefix}{entry.name}/"))


def list_files(folder: Path) -> list[OutputFile]:
    """Everything below the folder but folders, as a report lists it. Raises like `entries`."""
    return list(_listed(list(entries(folder))))


def _listed(found: list[Entry]) -> tuple[OutputFile, ...]:
    files = [entry for entry in found if not stat.S_ISDIR(entry.facts.st_mode)]
    return tuple(
        OutputFile(name=plain(entry.name), size_bytes=entry.facts.st_size, mode=stat.filemode(entry.facts.st_mode))
        for entry in sorted(files, key=lambda entry: entry.name)[:LISTED_FILES]
    )


def _config(folder: Path, names: list[str]) -> tuple[Mapping[str, Any] | None, str]:
    if CONFIG not in names:
        return None, f"{CONFIG} is not there."
    try:
        return read_object(folder / CONFIG, _LONGEST_CONFIG, "config_broken"), ""
    except RunnerError as error:
        return None, plain(error.message)


def _tensors(folder: Path, names: list[str]) -> tuple[tuple[Tensor, ...], str]:
    try:
        listing = Listing(tuple(name for name in names if "/" not in name), ())
        return read_headers(ModelFolder(folder, listing)).tensors, ""
    except RunnerError as error:
        return (), plain(error.message)


def _layers(tensors: tuple[Tensor, ...]) -> dict[str, Layer]:
    """Modules that have a weight which is a matrix, by name."""
    modules: dict[str, dict[str, Tensor]] = {}
    for tensor in tensors:
        module, _, leaf = tensor.name.rpartition(".")
        modules.setdefault(module, {})[leaf] = tensor
    return {
        name: Layer(name, leaves)
        for name, leaves in modules.items()
        if "weight" in leaves and len(leaves["weight"].shape) == 2
    }
