"""Analyses of this host's models, kept in memory for as long as nothing changes that they rest on.

Planning asks for the same analysis again and again, and one of a large model reads the headers of hundreds of files.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.errors import Refused, RunnerError
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation
from runner.intake.analysis import analyse
from runner.intake.comparison import check_files, check_same
from runner.intake.files import fingerprint
from runner.intake.listing import list_model
from runner.intake.modules import ModuleList, ModuleLists
from runner.intake.snapshot import source_of
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import FileFact, ModelAnalysis
from schemas.catalog import Catalogue

Depth = Literal["headers", "modules"]
Stamp = tuple[tuple[str, int, int, int, int, int], ...]
"""Of each file: name, device, inode, bytes, time of change and of status change. Another content has another one."""

_MOST_KEPT = 32
SETTLED_SECONDS = 2.0
"""A file that is written again so soon after the last time may keep the same times: not kept yet."""


@dataclass(frozen=True)
class _Kept:
    """An analysis and what it rests on."""

    analysis: ModelAnalysis
    stamp: Stamp
    catalogue: Catalogue
    facts: InterpreterFacts


@dataclass(frozen=True)
class _Wanted:
    """Which analysis: of which model, how deep, and whether the model's own code may be run for it."""

    location: ModelLocation
    depth: Depth
    with_code: bool = False

    def like(self, other: _Wanted) -> bool:
        """Whether both are of the same files, by whatever name the model was asked for."""
        same = (self.location.path, self.depth, self.with_code) == (other.location.path, other.depth, other.with_code)
        return same and self.location.downloaded == other.location.downloaded


class Analyses:
    """Makes analyses and compares those that come from outside with what is here.

    `fresh` asks for a real look, where a run rests on the answer. `now` gives nanoseconds since 1970, as files do.
    """

    def __init__(
        self,
        settings: RunnerSettings,
        interpreter: Interpreter,
        lists: ModuleLists,
        *,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._interpreter = interpreter
        self._lists = lists
        self._now = now
        self._kept: OrderedDict[_Wanted, _Kept] = OrderedDict()
        self._running: dict[tuple[_Wanted, Stamp], asyncio.Task[ModelAnalysis]] = {}

    async def of(
        self, location: ModelLocation, depth: Depth = "headers", *, trust_remote_code: bool = False
    ) -> ModelAnalysis:
        """The analysis of a model. Raises what `analyse` and, for depth modules, `ModuleLists.of` raise."""
        wanted = _Wanted(location, depth, trust_remote_code and depth == "modules")
        stamp = await asyncio.to_thread(_stamp, location)
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        kept = self._kept.get(wanted)
        if kept and self._holds(kept, stamp, catalogue, facts):
            self._kept.move_to_end(wanted)
            return kept.analysis
        return await self._shared(wanted, stamp, catalogue, facts)

    async def check(self, given: ModelAnalysis, location: ModelLocation, *, fresh: bool = False) -> None:
        """Refuse an analysis that is not what is found at `location` now.

        Raises Changed [model_changed] for files that are not those of the analysis, DigestMismatch [analysis_changed]
        for anything else that differs, and what `of` raises.
        """
        wanted, label = _Wanted(location, given.quantization_targets.method), location.model_path
        kept = None if fresh else await self._same(wanted)
        if kept is not None:
            check_files(given.size.files, kept.size.files)
            if kept == given:
                return
        else:
            # First, because a changed model may not even be one that can be analysed.
            check_files(given.size.files, await self.files(location, fresh=fresh))
        if await self._made_with_code(given, location):
            return
        try:
            found = kept or await (self._analysis(wanted) if fresh else self.of(location, wanted.depth))
        except Refused as problem:
            if problem.code != "modules_need_code":
                raise
            raise Refused(
                "modules_need_code",
                f"The list of modules in this analysis of {label} came from the model's own code and is not kept here.",
                "Analyse the model again.",
            ) from None
        check_same(given, found, label)

    async def files(self, location: ModelLocation, *, fresh: bool = False) -> list[FileFact]:
        """What the model's files are now."""
        if not fresh:
            stamp = await asyncio.to_thread(_stamp, location)
            for wanted, kept in self._kept.items():
                if wanted.location.path == location.path and kept.stamp == stamp:
                    return kept.analysis.size.files
        return await asyncio.to_thread(lambda: fingerprint(source_of(location)))

    async def _made_with_code(self, given: ModelAnalysis, location: ModelLocation) -> bool:
        """Whether the analysis is the one that an earlier list gives, made by running the model's code.

        Comparing an analysis is no reason to run code, so that only a list that is kept counts.
        """
        own_code = any(entry.startswith("config.json: ") for entry in given.model.remote_code)
        if given.quantization_targets.method != "modules" or not own_code or not self._settings.remote_code:
            return False
        source = await asyncio.to_thread(source_of, location)
        modules = await self._lists.kept(source)
        if modules is None:
            return False
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        found = await asyncio.to_thread(analyse, location, catalogue, facts, self._settings, modules)
        try:
            check_same(given, found, location.model_path)
        except RunnerError:
            return False  # it may have been made without the code; what differs from that is told
        return True

    async def _same(self, wanted: _Wanted) -> ModelAnalysis | None:
        """What is kept of these files, by whatever name the model was asked for."""
        stamp = await asyncio.to_thread(_stamp, wanted.location)
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        for other, kept in reversed(self._kept.items()):
            if other.like(wanted) and self._holds(kept, stamp, catalogue, facts):
                self._kept.move_to_end(other)
                return kept.analysis
        return None

    async def _shared(
        self, wanted: _Wanted, stamp: Stamp, catalogue: Catalogue, facts: InterpreterFacts
    ) -> ModelAnalysis:
        """Make an analysis, or join the one that is being made. A cancelled caller does not stop it for the others."""
        key = (wanted, stamp)
        task = self._running.get(key)
        if task is None:
            task = asyncio.ensure_future(self._kept_when_settled(wanted, stamp, catalogue, facts))
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: tuple[_Wanted, Stamp], task: asyncio.Task[ModelAnalysis]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # looked at, so that a failure whose callers all left is not reported as unseen

    async def _kept_when_settled(
        self, wanted: _Wanted, stamp: Stamp, catalogue: Catalogue, facts: InterpreterFacts
    ) -> ModelAnalysis:
        began = self._now()
        analysis = await self._analysis(wanted)
        settled = all(max(file[4:]) < began - SETTLED_SECONDS * 1e9 for file in stamp)
        if settled and stamp == await asyncio.to_thread(_stamp, wanted.location):
            self._kept[wanted] = _Kept(analysis, stamp, catalogue, facts)
            self._kept.move_to_end(wanted)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return analysis

    async def _analysis(self, wanted: _Wanted) -> ModelAnalysis:
        modules: ModuleList | None = None
        if wanted.depth == "modules":
            source = await asyncio.to_thread(source_of, wanted.location)
            allowed = self._settings.remote_code
            modules = await self._lists.of(source, trust_remote_code=wanted.with_code, code_allowed=allowed)
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        return await asyncio.to_thread(analyse, wanted.location, catalogue, facts, self._settings, modules)

    @staticmethod
    def _holds(kept: _Kept, stamp: Stamp, catalogue: Catalogue, facts: InterpreterFacts) -> bool:
        return kept.stamp == stamp and kept.catalogue is catalogue and kept.facts == facts


def _stamp(location: ModelLocation) -> Stamp:
    """What the files of a model are now, without reading them; links are followed."""
    names = list_model(location.path).files if location.downloaded else _all_files(location.path)
    folder = str(location.path)
    return tuple(sorted(_of_file(folder, name) for name in names))


def _of_file(folder: str, name: str) -> tuple[str, int, int, int, int, int]:
    try:
        status = os.stat(f"{folder}/{name}")  # noqa: PTH116 - of hundreds of files, each time that somebody plans
    except OSError:
        return name, 0, 0, 0, 0, 0  # whoever reads it says what is wrong
    return name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _all_files(folder: Path) -> Iterator[str]:
    """The files of a snapshot, which this runner wrote itself."""
    for place, _, files in os.walk(folder):
        yield from (os.path.relpath(os.path.join(place, file), folder) for file in files)  # noqa: PTH118
