"""Where a model is: a folder on this host, or a Hub id whose snapshot is on this host.

Roots hold for the path after every link was followed. A link *inside* a model folder may lead elsewhere as long as it
ends in a root too: that is how a Hugging Face cache keeps its files (snapshots link to blobs), and nothing outside the
roots can be read through a model.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import BadRequest, NotHere, OutsideRoots, Refused, RunnerError
from runner.host.paths import checked_name, listed, resolved, root_of, why_unreachable
from runner.settings import RunnerSettings
from schemas.artifacts.workspace import ModelSource

_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_CHECK_LINKS = "See where its links lead, and name the folder itself."
_LOOKED_AT = 500  # entries of a folder that are read to help with a wrong name


@dataclass(frozen=True)
class ModelLocation:
    """A model folder on this host, links resolved, or what is kept here of a model on the Hub.

    `source` is "ambiguous" where the asked name is a folder here and could be a Hub id as well; the folder counts.
    `revision` is the commit of a Hub model. Where `downloaded` is false, `path` holds its small files (config.json) and
    the headers of its weights, and `asked` is its Hub id. `hub_token` says whose token they were asked for with.
    `newer` is the commit that the Hub has by the same revision, where the snapshot on this host is another one.
    """

    path: Path
    source: ModelSource
    asked: str = ""
    revision: str | None = None
    downloaded: bool = True
    hub_token: str = ""
    newer: str | None = None

    @property
    def model_path(self) -> str:
        """How documents and commands name the model: the folder, or the Hub id of what is not on this host."""
        return str(self.path) if self.downloaded else self.asked

    @property
    def name(self) -> str:
        """What people call it: the folder's name, or the last part of a Hub id."""
        return self.asked.rpartition("/")[2] if self.source == "huggingface_id" else self.path.name


def is_hub_id(name: str) -> bool:
    """Whether a name has the form of a model's id on the Hub: OWNER/NAME."""
    return _HUB_ID.fullmatch(name) is not None and ".." not in name and "--" not in name


def checked_revision(revision: str | None) -> str | None:
    """A branch, tag or commit as it was asked for. Raises BadRequest [bad_revision]."""
    if revision is not None and not (_REVISION.fullmatch(revision) and len(revision) <= 200):
        raise BadRequest("bad_revision", f"{ascii(revision)[:120]} is not a revision.", "Name a branch, tag or commit.")
    return revision


def locate_model(
    asked: str, settings: RunnerSettings, revision: str | None = None, *, only_hub: bool = False
) -> ModelLocation:
    """Find the folder of a model and check that it may and can be read. `only_hub` takes the name for a Hub id.

    The network is never asked: that is the affair of `runner.intake.models`.

    Errors, each one sentence with a hint: bad_model_name, no_model_roots, outside_roots, model_missing,
    ambiguous_model, model_is_file, model_not_reachable, model_not_readable, config_missing, hub_off,
    hub_not_downloaded, bad_revision, revision_of_folder.
    """
    name = checked_name(asked, "model", "bad_model_name")
    checked_revision(revision)
    location = (None if only_hub else _folder(name, settings)) or _snapshot(name, settings, revision)
    if location is None:
        raise _not_found(name, settings)
    if revision is not None and location.source != "huggingface_id":
        raise Refused(
            "revision_of_folder",
            f"{location.path} is a folder, and folders have no revision {revision}.",
            f"Leave the revision out, or write hf://{name} for the model on the Hub."
            if location.source == "ambiguous"
            else "Leave the revision out, or name the model by its Hub id.",
        )
    _check_folder(location.path, settings)
    return location


def model_roots(settings: RunnerSettings) -> tuple[Path, ...]:
    """The folders that models may be read from, resolved: those of runner.yaml, and the Hub's cache where Hub ids are
    allowed."""
    places = [*settings.models.roots, *([hub_cache()] if settings.models.hub else [])]
    return tuple(dict.fromkeys(map(resolved, places)))


def hub_cache() -> Path:
    """Where Hugging Face programs keep what they downloaded, by their environment variables."""
    if place := os.environ.get("HF_HUB_CACHE"):
        return Path(place)
    home = os.environ.get("HF_HOME")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return base / "hub"


def check_links(folder: Path, names: Iterable[str], roots: Iterable[Path]) -> None:
    """Refuse a model file that a link takes out of every root. `folder` is resolved already."""
    allowed = tuple(roots)
    for name in names:
        path = folder / name
        if path.is_symlink() and root_of(target := resolved(path), allowed) is None:
            raise OutsideRoots(
                "outside_roots",
                f"{path} is a link to {target}, which is outside the model folders of this runner.",
                "Copy the file into the model folder, or add its place to models.roots in runner.yaml.",
            )


def _folder(name: str, settings: RunnerSettings) -> ModelLocation | None:
    """The folder that an absolute or relative name means; None where a relative name means none."""
    roots = settings.models.roots
    if Path(name).is_absolute():
        if not model_roots(settings):
            raise _no_roots()
        path = resolved(name)
        if root_of(path, model_roots(settings)) is None:
            raise _outside(name, path, settings)
        return ModelLocation(path, "local", name)
    found = list(dict.fromkeys(_beneath(name, roots, settings)))
    if len(found) > 1:
        raise Refused(
            "ambiguous_model", f"{name} is in several model folders: {listed(found)}.", "Write the whole path."
        )
    if not found:
        return None
    also_hub = settings.models.hub and is_hub_id(name)
    return ModelLocation(found[0], "ambiguous" if also_hub else "local", name)


def _beneath(name: str, roots: Iterable[Path], settings: RunnerSettings) -> Iterator[Path]:
    for root in roots:
        path = resolved(root / name)
        # Judged before anybody looks whether it exists: what lies outside the roots is not to be found out.
        if root_of(path, model_roots(settings)) is None:
            raise _outside(name, path, settings)
        # A folder that may not be looked into has nothing to offer; what cannot be reached at all is told.
        if os.path.exists(path) or why_unreachable(path):  # noqa: PTH110 - never raises
            yield path


def _snapshot(name: str, settings: RunnerSettings, revision: str | None) -> ModelLocation | None:
    """A Hub id's snapshot in a cache of this host; None where there is none."""
    if not is_hub_id(name):
        return None
    for cache in model_roots(settings):
        repository = cache / f"models--{name.replace('/', '--')}"
        commit = _commit(repository, revision or "main", exact=revision is not None)
        if commit is None:
            continue
        path = resolved(repository / "snapshots" / commit)
        if root_of(path, model_roots(settings)) is None:
            raise _outside(name, path, settings)
        if (path / "config.json").exists():  # else other programs looked at some file of it, and no more
            return ModelLocation(path, "huggingface_id", name, commit)
    return None


def _commit(repository: Path, revision: str, *, exact: bool) -> str | None:
    """The commit that a revision means in a cache; without a reference the only snapshot, unless asked exactly."""
    snapshots = repository / "snapshots"
    try:
        if (snapshots / revision).is_dir():
            return revision
        reference = repository / "refs" / revision
        if reference.is_file():
            text = reference.read_text(encoding="ascii", errors="replace")[:100].strip()
            return text if _REVISION.fullmatch(text) else None
        there = [] if exact or not snapshots.is_dir() else sorted(path.name for path in snapshots.iterdir())
    except OSError:
        return None  # a cache that cannot be read has nothing to offer
    return there[0] if len(there) == 1 else None


def _not_found(name: str, settings: RunnerSettings) -> RunnerError:
    roots = settings.models.roots
    if is_hub_id(name):
        into = f"Download it into {roots[0]}" if roots else "Set models.roots in runner.yaml, download it there"
        if not settings.models.hub:
            return Refused(
                "hub_off",
                f"{name} is a Hub id and this runner is offline.",
                f"{into}, and name that folder.",
            )
        return Refused(
            "hub_not_downloaded",
            f"{name} is a Hub id that is not on this host.",
            f"Run `hf download {name}` on the host, or download it into one of the model folders and name that folder.",
        )
    if not roots:
        return _no_roots()
    near = difflib.get_close_matches(name, sorted({entry for root in roots for entry in _folders(root)}), n=3)
    help_ = f"Did you mean {listed(near)}?" if near else "Write the whole path of a folder in one of them."
    return NotHere("model_missing", f"There is no {name} in the model folders {listed(roots)}.", help_)


def _check_folder(path: Path, settings: RunnerSettings) -> None:
    try:
        if why := why_unreachable(path):
            raise Refused("model_not_reachable", f"The model folder {path} cannot be reached: {why}.", _CHECK_LINKS)
        if not path.exists():
            inside = root_of(path.parent, model_roots(settings)) and _folders(path.parent)[:8]
            hint = f"The folder {path.parent} holds: {listed(inside)}." if inside else "Check the spelling of the path."
            raise NotHere("model_missing", f"The model folder {path} does not exist.", hint)
        if not path.is_dir():
            raise Refused("model_is_file", f"{path} is a file, not a model folder.", f"Name the folder {path.parent}.")
        with os.scandir(path):
            pass
        if why := why_unreachable(path / "config.json"):
            raise Refused("model_not_readable", f"{path / 'config.json'} cannot be reached: {why}.", _CHECK_LINKS)
        if not (path / "config.json").exists():
            raise NotHere("config_missing", f"{path} has no config.json, so it is no model.", _where_else(path))
        # Without waiting: a named pipe would wait for a writer for ever.
        os.close(os.open(path / "config.json", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except PermissionError as error:
        raise Refused(
            "model_not_readable",
            f"{error.filename or path} may not be read by the runner.",
            "Give the runner's user read access to the folder and its files.",
        ) from None
    except OSError as error:
        raise Refused("model_not_readable", f"{path} cannot be read: {error.strerror}.", "Check the path.") from None


def _where_else(path: Path) -> str:
    """The hint for a folder that is no model, but may hold one."""
    if (path / "snapshots").is_dir():
        path = path / "snapshots"
    inside = [name for name in _folders(path) if os.path.isfile(path / name / "config.json")]  # noqa: PTH113
    if inside:
        return f"Did you mean one of these folders in it: {listed(inside[:5])}?"
    return "Name the folder that holds config.json, the weights and the tokenizer."


def _folders(root: Path) -> list[str]:
    """Names of the folders in a root; none where it cannot be read."""
    names: list[str] = []
    try:
        with os.scandir(root) as entries:
            for number, entry in enumerate(entries):
                if number >= _LOOKED_AT:
                    break
                if entry.is_dir() and entry.name.isprintable():
                    names.append(entry.name)
    except OSError:
        return []
    return sorted(names)


def _no_roots() -> Refused:
    return Refused(
        "no_model_roots",
        "This runner has no model folders, so no model can be named.",
        "Set models.roots in runner.yaml to the folders that hold models.",
    )


def _outside(asked: str, path: Path, settings: RunnerSettings) -> OutsideRoots:
    led = f"{path} is" if str(path) == asked else f"{asked} leads to {path}, which is"
    return OutsideRoots(
        "outside_roots",
        f"{led} outside the model folders of this runner.",
        f"Models may come from {listed(settings.models.roots) or 'no folder yet (models.roots in runner.yaml)'}.",
    )
