"""Room on the disks: for results, for the state folder, and for what is cached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runner.host.kernel_cache import kernel_cache
from runner.host.paths import nearest_existing
from runner.service import terminal
from runner.service.doctor.subject import Subject, blocks, informs, warns
from schemas.artifacts.plan import Finding


def disks(subject: Subject) -> Iterator[Finding]:
    """Free space of each folder that is written, against limits.disk_reserve_bytes, and free inodes."""
    settings, reserve = subject.settings, subject.settings.limits.disk_reserve_bytes
    for root in settings.outputs.roots:
        if os.path.isdir(root):  # noqa: PTH112 - false, not an error, where looking is not allowed
            yield from _room("outputs.roots", root, reserve, needed=True)
    yield from _room("state_dir", settings.state_dir, reserve, needed=True)
    cache = kernel_cache()
    yield from _room("the cache of compiled kernels", cache, reserve, needed=False)
    if not os.access(nearest_existing(cache), os.W_OK | os.X_OK, effective_ids=True):
        yield warns(
            "cache_closed",
            f"The runner's user may not write into {cache}, where torch keeps Quark's compiled kernels.",
            "Give it a home folder of its own, or name another place in TORCH_EXTENSIONS_DIR of its environment.",
        )
    if settings.models.hub:
        yield from _room("the cache of the Hub", _hub_cache(subject), reserve, needed=False)


def _room(what: str, folder: Path, reserve: int, *, needed: bool) -> Iterator[Finding]:
    place = nearest_existing(folder)
    try:
        found = os.statvfs(place)
    except OSError as error:
        yield warns("disk_unknown", f"How much is free in {folder} ({what}) cannot be told: {error.strerror}.")
        return
    free = found.f_bavail * found.f_frsize
    told = f"{terminal.size(free)} are free in {folder} ({what})"
    if free < reserve:
        say = blocks if needed else warns
        message = f"{told}, less than the {terminal.size(reserve)} that limits.disk_reserve_bytes keeps free."
        yield say("disk_full", message, "Remove what is not needed there, or name a folder on another disk.")
    elif needed:
        yield informs("disk", f"{told}.")
    if found.f_files and not found.f_favail:
        message = f"No more files can be made in {folder} ({what}): the file system has no free inodes."
        yield (blocks if needed else warns)("no_inodes", message, "Remove files there.")


def _hub_cache(subject: Subject) -> Path:
    """Where models of the Hub are kept. Source: the variables of huggingface_hub."""
    environment = subject.environment
    if named := environment.get("HF_HUB_CACHE"):
        return Path(named)
    home = environment.get("HF_HOME")
    base = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home or Path(base) / "huggingface") / "hub"
