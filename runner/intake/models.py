"""Find a model by what a person calls it: a folder of this host, a snapshot that is here, or a commit on the Hub.

A name that could mean several things is asked back and never guessed. A Hub id means one commit from the moment that it
was found, and everything later speaks of that commit.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from runner.errors import BadRequest, NotHere, Refused, RunnerError
from runner.host.hub_account import COMMIT, endpoint
from runner.host.hub_refusals import Asked, too_slow
from runner.host.model_location import ModelLocation, checked_revision, is_hub_id, locate_model
from runner.host.paths import checked_name, listed
from runner.intake.fetching import fetch
from runner.intake.headers import weight_files
from runner.intake.snapshot import HubSnapshot, SnapshotCache
from runner.intake.source import ModelFolder
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import ModelFacts

if TYPE_CHECKING:
    from runner.host.hub import Hub

log = logging.getLogger(__name__)

_BARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_PUBLIC = ("huggingface.co", "www.huggingface.co", "hf.co")
_PAGES = ("tree", "blob", "resolve", "commit")  # of a model's pages, those that name a revision
_WHOLE = 8  # times the seconds of one answer: for all that is asked about one model
_GLANCE_SECONDS = 5.0  # to see whether the Hub has a newer commit than this host: nobody waits longer for that


class Models:
    """All models that this runner may read. Two who ask for one Hub id at the same time ask the Hub once."""

    def __init__(self, settings: RunnerSettings, *, hub: Callable[[float], Hub] | None = None) -> None:
        self._settings = settings
        self._hub = hub or _hub
        self._seconds = settings.models.hub_timeout_seconds
        self._cache = SnapshotCache(settings.state_dir / "cache" / "hub")
        self._running: dict[tuple[str, str, bool], asyncio.Task[HubSnapshot]] = {}

    async def find(self, asked: str, revision: str | None = None, *, code: bool = False) -> ModelLocation:
        """Where the model is that somebody asks for. `code` says to keep the model's own Python files too.

        A Hub id that is on this host is taken from here. Else its small files and headers are fetched, never its
        weights. Raises what `locate_model` and the Hub raise, and Refused [ambiguous_model] for a name that could mean
        several things.
        """
        name, revision, certain = _meant(checked_name(asked, "model", "bad_model_name"), revision)
        if certain and not self._settings.models.hub:
            raise _hub_off(name)
        try:
            location = await asyncio.to_thread(locate_model, name, self._settings, revision, only_hub=certain)
        except RunnerError as problem:
            if not self._settings.models.hub:
                raise
            if problem.code == "hub_not_downloaded":
                return await self._from_hub(name, revision or "main", code=code)
            if problem.code in {"model_missing", "no_model_roots"} and _BARE.fullmatch(name):
                raise await self._owners(name, problem) from None
            raise
        if location.source == "ambiguous":
            return await self._one_of_two(location, revision)
        if location.source == "huggingface_id":
            if not await asyncio.to_thread(_has_weights, location):
                return await self._from_hub(name, location.revision or revision or "main", code=code)
            return await self._compared(location, revision)
        return location

    async def again(self, model: ModelFacts) -> ModelLocation:
        """Where the model of an analysis is now: its folder, or exactly its commit. Asks the Hub only where that commit
        is not at hand any more."""
        if model.downloaded:
            return await asyncio.to_thread(locate_model, model.model_path, self._settings)
        if not self._settings.models.hub:
            raise _hub_off(model.model_path)
        if not is_hub_id(model.model_path) or not COMMIT.fullmatch(model.revision or ""):
            raise BadRequest(
                "analysis_without_commit",
                "The analysis is of a model on the Hub and does not name the id and the commit of it.",
                "Analyse the model again.",
            )
        return await self._from_hub(model.model_path, model.revision or "", code=False)

    async def _from_hub(self, name: str, revision: str, *, code: bool) -> ModelLocation:
        snapshot = await self._shared(name, revision, code)
        return ModelLocation(
            path=snapshot.folder,
            source="huggingface_id",
            asked=name,
            revision=snapshot.record.commit,
            downloaded=False,
            hub_token=snapshot.record.token,
        )

    async def _shared(self, name: str, revision: str, code: bool) -> HubSnapshot:
        """The snapshot, fetched once for all who ask at the same time; none who gives up stops it for the others."""
        key = (name, revision, code)
        task = self._running.get(key)
        if task is None or task.done():
            task = asyncio.ensure_future(self._snapshot(name, revision, code))
            self._running[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    def _forget(self, key: tuple[str, str, bool], task: asyncio.Task[HubSnapshot]) -> None:
        if self._running.get(key) is task:
            del self._running[key]
        if not task.cancelled():
            task.exception()  # looked at: whoever waited for it may have left

    async def _snapshot(self, name: str, revision: str, code: bool) -> HubSnapshot:
        if COMMIT.fullmatch(revision) and (found := await asyncio.to_thread(self._kept, name, revision, code)):
            return found
        seconds = self._seconds * _WHOLE
        try:
            async with asyncio.timeout(seconds), await self._ask(self._seconds) as hub:
                try:
                    repository = await hub.repository(name, revision)
                except RunnerError as problem:
                    raise await asyncio.to_thread(self._with_known_commits, name, problem) from None
                found = await asyncio.to_thread(self._kept, name, repository.commit, code)
                return found or await fetch(hub, repository, self._cache, code=code)
        except TimeoutError:
            raise too_slow(Asked(endpoint(), name), seconds) from None

    async def _ask(self, seconds: float) -> Hub:
        return await asyncio.to_thread(self._hub, seconds)

    def _kept(self, name: str, commit: str, code: bool) -> HubSnapshot | None:
        found = self._cache.find(name, commit)
        return found if found and (not code or set(found.code) <= found.record.kept.keys()) else None

    def _with_known_commits(self, name: str, problem: RunnerError) -> RunnerError:
        """A Hub that cannot be asked: what was looked at before can still be taken, by its commit."""
        known = [commit for commit in self._cache.commits(name) if self._cache.find(name, commit)]
        if known and problem.code in {
            "hub_unreachable",
            "hub_timeout",
            "hub_offline",
            "hub_rate_limited",
            "hub_failed",
        }:
            problem.hint = f"{problem.hint} Or ask with the revision {known[0]}, which was looked at before."
        return problem

    async def _compared(self, location: ModelLocation, revision: str | None) -> ModelLocation:
        """A snapshot on this host, with the commit that the Hub has instead by now. A Hub that does not answer at once
        changes nothing: the snapshot is taken all the same."""
        if revision is not None and COMMIT.fullmatch(revision):
            return location
        with suppress(RunnerError):
            async with await self._ask(min(self._seconds, _GLANCE_SECONDS)) as hub:
                newest = await hub.repository(location.asked, revision or "main", files=False)
            if newest.commit != location.revision:
                return replace(location, newer=newest.commit)
        return location

    async def _one_of_two(self, location: ModelLocation, revision: str | None) -> ModelLocation:
        """A folder whose name is a Hub id as well: it is the folder only where the Hub has no such model."""
        name, here = location.asked, f"a folder of this runner ({location.path})"
        try:
            async with await self._ask(self._seconds) as hub:
                await hub.repository(name, revision or "main", files=False)
            other = f"a model on {Asked(endpoint(), name).host}"
        except RunnerError as problem:
            if problem.code in {"hub_model_missing", "hub_private_or_missing"}:
                return replace(location, source="local")
            other = "perhaps a model on the Hub, which could not be asked"
            log.info("whether %s is on the Hub is unknown: %s", name, problem)
        raise Refused(
            "ambiguous_model",
            f"{name} is {here} and {other}.",
            f"Write {location.path} for the folder, or hf://{name} for the model on the Hub.",
        )

    async def _owners(self, name: str, problem: RunnerError) -> RunnerError:
        """What to say to a name without an owner that is no folder here."""
        try:
            async with await self._ask(self._seconds) as hub:
                choices = await hub.named(name)
        except RunnerError as silence:
            log.info("who has a %s on the Hub is unknown: %s", name, silence)
            choices = []
        if not choices:
            hint = "A model on the Hub is named with its owner, as Qwen/Qwen3-8B."
            if problem.code == "no_model_roots":
                return NotHere("model_missing", f"{name} names no model: this runner has no model folders.", hint)
            return NotHere(problem.code, problem.message, f"{problem.hint} {hint}")
        return Refused(
            "ambiguous_model",
            f"{name} is no folder of this runner, and on the Hub it could be {listed(choices)}.",
            "Write one of them with its owner, or the path of a folder.",
        )


def _meant(name: str, revision: str | None) -> tuple[str, str | None, bool]:
    """Name, revision, and whether only the Hub can be meant: hf://OWNER/NAME, or an address of a model's page."""
    scheme, separator, rest = name.partition("://")
    if not separator or scheme not in {"hf", "http", "https"}:
        return name, revision, False
    found: str | None = None
    if scheme == "hf":
        repository, at, found_text = rest.removeprefix("models/").partition("@")
        found = found_text if at else None
    else:
        try:
            host, path = urlsplit(name).hostname, urlsplit(name).path
        except ValueError:  # brackets that hold no address
            host, path = None, ""
        parts = [unquote(part) for part in path.split("/") if part]
        known = host in {*_PUBLIC, urlsplit(endpoint()).hostname}
        repository = "/".join(parts[:2]) if known else ""
        found = parts[3] if len(parts) > 3 and parts[2] in _PAGES else None
    if not is_hub_id(repository):
        raise BadRequest(
            "bad_model_name",
            f"{name[:120]} is no address of a model on the Hub.",
            "Write the id of the model, as Qwen/Qwen3-8B.",
        )
    if found is not None and revision is not None and found != revision:
        raise BadRequest(
            "bad_revision",
            f"The address says {found[:100]!a} and the revision {revision[:100]!a}.",
            "Name one of them.",
        )
    return repository, checked_revision(revision or found), True


def _hub(seconds: float) -> Hub:
    from runner.host.hub import Hub  # late: the daemon starts without its libraries, which take a while

    return Hub(seconds)


def _has_weights(location: ModelLocation) -> bool:
    """Whether a snapshot in the cache is more than the few files that other programs looked at."""
    try:
        return bool(weight_files(ModelFolder(location.path)).names)
    except NotHere:
        return False


def _hub_off(name: str) -> Refused:
    return Refused(
        "hub_off",
        f"{name} is a Hub id and this runner is offline.",
        "Set models.hub in runner.yaml, or download it into a model folder and name that folder.",
    )
