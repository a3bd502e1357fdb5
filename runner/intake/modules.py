"""The modules of a model as the engine will see them: the module probe's document, read and kept."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from runner.errors import Broken, Refused, RunnerError
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.sealed import read_sealed, write_sealed
from runner.intake.compatibility import knows
from runner.intake.config import LONGEST_CONFIG, read_config, remote_code
from runner.intake.linear import names_of, read_ranges
from runner.intake.source import Source
from schemas.catalog import Catalogue

_MOST_LAYERS = 2_000_000
_MOST_KEPT = 64  # lists in memory, of some kilobytes each
_NOT_MADE_SECONDS = 600.0  # the same files and the same engine: it would fail the same way
_BROKEN_SECONDS = 60.0


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class _Group(_Part):
    """Modules that differ by numbers in their names: every combination of `numbers`, one text for each `*`."""

    pattern: str
    numbers: tuple[str, ...]
    count: int = Field(ge=1, le=_MOST_LAYERS)
    kind: str = Field(alias="class")

    @model_validator(mode="after")
    def _counts_its_combinations(self) -> _Group:
        axes = [read_ranges(text) for text in self.numbers]
        if self.pattern.count("*") != len(axes) or prod(map(len, axes)) != self.count:
            raise ValueError(f"{self.pattern} has other numbers than it should")
        return self

    def names(self) -> Iterator[str]:
        """The full names of its modules."""
        return names_of(self.pattern, self.numbers)


class LinearModules(_Group):
    """Linear layers. Those that are not `replaced` are of a class of their own, which the engine never quantizes."""

    in_features: int = Field(ge=1)
    out_features: int = Field(ge=1)
    replaced: bool


class OtherModules(_Group):
    """Modules that hold a tensor of `shape` and are no linear layers."""

    shape: tuple[int, ...]


class Prepared(_Part):
    """A class that the engine's preparation put in the place of another."""

    pattern: str
    count: int
    was: str = Field(alias="from")
    now: str = Field(alias="to")


class ModuleList(_Part):
    """All modules of a model that matter to a quantization. The fields are explained in the probe."""

    model_type: str | None
    model_class: str = Field(alias="class")
    linear_count: int = Field(ge=0, le=_MOST_LAYERS)
    linears: tuple[LinearModules, ...]
    convolutions: tuple[OtherModules, ...]
    norms: tuple[str, ...]
    kept: tuple[OtherModules, ...]
    prepared: tuple[Prepared, ...]
    quantized: bool

    @model_validator(mode="after")
    def _counts_its_layers(self) -> ModuleList:
        if sum(group.count for group in self.linears) != self.linear_count:
            raise ValueError(f"the groups are not {self.linear_count} linear layers")
        return self


@dataclass(frozen=True)
class _Failure:
    at: float
    problem: RunnerError

    def lasts(self, now: float) -> bool:
        """Whether asking again would most likely take as long and end the same."""
        return now - self.at < (_NOT_MADE_SECONDS if isinstance(self.problem, Refused) else _BROKEN_SECONDS)


class ModuleLists:
    """The lists of modules of this host's models, each made once by the interpreter and kept on disk.

    `cache_dir` may be emptied at any time. A list depends on config.json (and on the model's code where that is run),
    the installed versions and the probe, not on where the model lies.
    """

    def __init__(
        self, interpreter: Interpreter, cache_dir: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interpreter = interpreter
        self._cache_dir = cache_dir
        self._clock = clock
        self._known: OrderedDict[str, ModuleList] = OrderedDict()
        self._failed: OrderedDict[str, _Failure] = OrderedDict()

    async def of(self, source: Source, *, trust_remote_code: bool = False, code_allowed: bool = False) -> ModuleList:
        """The modules of a model. Takes some 20 s the first time.

        Its own code runs only with `trust_remote_code`, and only where `code_allowed` says that this runner may run
        any. Raises Refused [modules_need_code, modules_unknown_family, modules_not_built], Broken as the interpreter
        does, and what reading the model's files raises.
        """
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        with_code = trust_remote_code and code_allowed
        files, runs_code = await asyncio.to_thread(_needed_files, source, catalogue, facts, with_code)
        key = self._interpreter.modules_key(files, facts, trust_remote_code=runs_code)
        if found := self._remembered(key):
            return found
        found = await asyncio.to_thread(self._from_disk, key)
        if found is None:
            found = await self._made(key, files, facts, runs_code)
        self._keep(key, found)
        return found

    async def kept(self, source: Source) -> ModuleList | None:
        """The list that was made by running the model's own code; None where none is kept. Nothing is run for it."""
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        files, runs_code = await asyncio.to_thread(_needed_files, source, catalogue, facts, True)
        if not runs_code:
            return None
        key = self._interpreter.modules_key(files, facts, trust_remote_code=True)
        return self._known.get(key) or await asyncio.to_thread(self._from_disk, key)

    def _remembered(self, key: str) -> ModuleList | None:
        if found := self._known.get(key):
            self._known.move_to_end(key)
            return found
        failure = self._failed.get(key)
        if failure and failure.lasts(self._clock()):
            raise failure.problem
        return None

    async def _made(self, key: str, files: Mapping[str, bytes], facts: InterpreterFacts, runs_code: bool) -> ModuleList:
        try:
            document = await self._interpreter.modules(files, trust_remote_code=runs_code)
            found = _read(document)
            if found is None:
                raise Broken(
                    "engine_broken",
                    f"amd-quark {facts.quark} listed the model's modules in a way that this runner cannot read.",
                    "Install a version of amd-quark that this runner supports, or a newer runner.",
                )
        except RunnerError as problem:
            self._failed[key] = _Failure(self._clock(), problem)
            while len(self._failed) > _MOST_KEPT:
                self._failed.popitem(last=False)
            raise
        # A cache that cannot be written costs time after the next start and nothing else.
        await asyncio.to_thread(write_sealed, self._file(key), document)
        return found

    def _keep(self, key: str, found: ModuleList) -> None:
        self._failed.pop(key, None)
        self._known[key] = found
        while len(self._known) > _MOST_KEPT:
            self._known.popitem(last=False)

    def _from_disk(self, key: str) -> ModuleList | None:
        """A kept list; None where there is none, or something else than a list."""
        try:
            return _read(read_sealed(self._file(key)))
        except (OSError, ValueError):
            return None

    def _file(self, key: str) -> Path:
        return self._cache_dir / f"modules-{key}.json"


def _read(document: object) -> ModuleList | None:
    """The list in a probe's document of one model; None where it is none."""
    try:
        models = document["models"] if isinstance(document, dict) else []
        return ModuleList.model_validate(models[0])
    except (ValidationError, LookupError, TypeError):
        return None


def _needed_files(
    source: Source, catalogue: Catalogue, facts: InterpreterFacts, with_code: bool
) -> tuple[dict[str, bytes], bool]:
    """The files that the probe reads, and whether it is to run code among them."""
    config, code = read_config(source), remote_code(source)
    named = any(entry.startswith("config.json: ") for entry in code)
    if not knows(catalogue, config.model_type) and not (named and with_code):
        if named:
            raise Refused(
                "modules_need_code",
                f"{config.model_type} can be made only by the model's own code, which nobody asked to run or which "
                "this runner does not run.",
                "The analysis by headers stands; for more, read that code, set remote_code in runner.yaml, and ask "
                "with trust_remote_code.",
            )
        raise Refused(
            "modules_unknown_family",
            f"transformers {facts.transformers} does not know {config.model_type}, so its modules cannot be listed.",
            "The analysis by headers stands; install a version of transformers that knows the family.",
        )
    runs_code = named and with_code
    names = ["config.json", *(name for name in source.listing.files if runs_code and name.endswith(".py"))]
    return {name: _content(source, name) for name in names}, runs_code


def _content(source: Source, name: str) -> bytes:
    with source.opened(name) as file:
        if file.size > LONGEST_CONFIG:
            raise Refused(
                "file_too_large",
                f"{source.label(name)} is {file.size} bytes long; such a file has at most {LONGEST_CONFIG}.",
                source.advice or f"Download {name} again.",
            )
        return file.read(file.size, 0)
