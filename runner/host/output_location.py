"""Where a quantized model goes: the state of that place, and whether it can be used."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from runner.errors import Conflict, OutsideRoots, Refused
from runner.host.paths import checked_name, listed, nearest_existing, resolved, root_of, why_unreachable
from runner.settings import RunnerSettings
from schemas.artifacts.workspace import OutputState

SET_APART = ".partial-"
"""How names begin, or go on, of what a run that did not succeed left. Within an output folder it counts for nothing."""

_PROPOSALS = 1000


@dataclass(frozen=True)
class OutputLocation:
    """A place for a quantized model, links resolved.

    `parent_writable` speaks of the closest folder that exists; `free_bytes` of the file system that holds it, as far as
    the runner's user may fill it. `unreachable` says why the system cannot even tell what stands there.
    """

    asked: str
    path: Path
    root: Path
    state: OutputState
    exists: bool
    parent_writable: bool
    free_bytes: int | None
    unreachable: str | None = None

    @property
    def usable(self) -> bool:
        """Whether a run may write there."""
        free = self.state in {OutputState.ABSENT, OutputState.EMPTY}
        return self.path != self.root and free and self.parent_writable and self.unreachable is None


def examine_output(asked: str | None, model: Path, settings: RunnerSettings, name: str | None = None) -> OutputLocation:
    """What stands where a model shall go. Nothing is written.

    Without `asked` a free place is proposed: `<first output root>/<name of the model>-quantized`, numbered when that
    is taken. A relative path is meant beneath the first root. Raises bad_output_name, no_output_roots,
    output_outside_roots and output_root_missing; all other obstacles are in the answer, for `check_output` to refuse.
    """
    roots = settings.outputs.roots
    if asked is not None:
        asked = checked_name(asked, "output folder", "bad_output_name")
    if not roots:
        raise Refused(
            "no_output_roots",
            "This runner has no output folders, so no quantized model can be kept.",
            "Set outputs.roots in runner.yaml to the folders that may receive models.",
        )
    if asked is None:
        asked = str(_proposal(roots[0], name or model.name, model))
    path = resolved(roots[0] / asked)
    root = root_of(path, roots)
    if root is None:
        raise OutsideRoots(
            "output_outside_roots",
            f"The output folder {path} is outside the output folders of this runner.",
            f"Quantized models may go to {listed(roots)}.",
        )
    _check_root(root)
    place = nearest_existing(path)
    return OutputLocation(
        asked=asked,
        path=path,
        root=root,
        state=_state(path, model),
        exists=os.path.lexists(path),
        parent_writable=place.is_dir() and os.access(place, os.W_OK | os.X_OK, effective_ids=True),
        free_bytes=_free(place),
        unreachable=why_unreachable(path),
    )


def check_output(output: OutputLocation) -> None:
    """Refuse a place that cannot take a model.

    Codes: output_root_missing, output_not_reachable, output_is_root, output_is_file, output_not_empty,
    output_equals_model, output_inside_model, output_above_model, output_not_writable.
    """
    _check_root(output.root)
    path, elsewhere = output.path, f"Name another folder in {output.root}."
    if output.unreachable is not None:
        raise Refused("output_not_reachable", f"The output {path} cannot be reached: {output.unreachable}.", elsewhere)
    sentence = {
        OutputState.FILE: f"The output {path} is a file.",
        OutputState.NOT_EMPTY: f"The output folder {path} is not empty, and nothing in it may be overwritten.",
        OutputState.EQUALS_MODEL: f"The output folder {path} is the model folder itself.",
        OutputState.INSIDE_MODEL: f"The output folder {path} is inside the model folder.",
        OutputState.ABOVE_MODEL: f"The output folder {path} holds the model folder.",
    }.get(output.state)
    code = "output_is_file" if output.state is OutputState.FILE else f"output_{output.state}"
    if sentence:
        raise (Conflict if output.state is OutputState.NOT_EMPTY else Refused)(code, sentence, elsewhere)
    if path == output.root:
        raise Refused(
            "output_is_root", f"{path} is an output root itself.", f"Name a folder in it, as {path}/my-model."
        )
    if not output.parent_writable:
        place = nearest_existing(path)
        raise Refused(
            "output_not_writable",
            f"The runner may not write to {place}, where {path} shall go."
            if place.is_dir()
            else f"{place} is a file, so {path} cannot be made.",
            "Give the runner's user write access, or name another folder.",
        )


def check_disk(output: OutputLocation, needed_bytes: int, reserve_bytes: int) -> None:
    """Refuse [disk_full] when fewer than `needed_bytes` are free beyond the reserve. Unknown free space passes."""
    if output.free_bytes is None or needed_bytes <= output.free_bytes - reserve_bytes:
        return
    raise Refused(
        "disk_full",
        f"The run needs {gigabytes(needed_bytes)} at {output.path}, and {gigabytes(output.free_bytes)} are free, "
        f"of which {gigabytes(reserve_bytes)} stay reserved.",
        "Free some space, or name an output folder on another disk.",
    )


def gigabytes(count: int) -> str:
    """Bytes for a person: in GB (10^9 bytes), or MB below one."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _check_root(root: Path) -> None:
    """Nobody makes a root: where its disk is not mounted, a result would fill the disk beneath and be hidden later."""
    if os.path.isdir(root):  # noqa: PTH112 - never raises
        return
    what = "is not a folder" if os.path.lexists(root) else "does not exist; its disk may not be mounted"
    raise Refused(
        "output_root_missing",
        f"The output root {root} {what}.",
        "Mount its disk or make the folder, or name another one in outputs.roots of runner.yaml.",
    )


def _proposal(root: Path, name: str, model: Path) -> Path:
    wanted = root / f"{name}-quantized"
    numbered = (wanted.with_name(f"{wanted.name}-{number}") for number in range(2, _PROPOSALS))
    places = chain((wanted,), numbered)
    free = (path for path in places if _state(resolved(path), model) in {OutputState.ABSENT, OutputState.EMPTY})
    return next(free, wanted)


def _state(path: Path, model: Path) -> OutputState:
    if path == model or _same(path, model):
        return OutputState.EQUALS_MODEL
    if model in path.parents or any(_same(place, model) for place in path.parents):
        return OutputState.INSIDE_MODEL
    if path in model.parents or any(_same(place, path) for place in model.parents):
        return OutputState.ABOVE_MODEL
    if not os.path.lexists(path):
        return OutputState.ABSENT
    if not path.is_dir():
        return OutputState.FILE
    return OutputState.NOT_EMPTY if _holds_anything(path) else OutputState.EMPTY


def _same(one: Path, other: Path) -> bool:
    """Whether two paths are one folder, which bind mounts allow without any link."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def _holds_anything(folder: Path) -> bool:
    """Whether a run would find anything there but what was set apart of runs before it."""
    try:
        with os.scandir(folder) as found:
            return not all(is_set_apart(entry) for entry in found)
    except OSError:
        return True  # what may not be looked into may hold something


def is_set_apart(entry: os.DirEntry[str]) -> bool:
    """Whether this is the folder, within an output folder, of what a run that did not succeed left."""
    return entry.name.startswith(SET_APART) and entry.is_dir(follow_symlinks=False)


def _free(place: Path) -> int | None:
    try:
        return shutil.disk_usage(place).free
    except OSError:
        return None
