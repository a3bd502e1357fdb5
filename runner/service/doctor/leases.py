"""The folder in which all daemons of this host say who has which GPU."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from runner.host.paths import nearest_existing
from runner.service.doctor.subject import Subject, blocks, warns
from schemas.artifacts.plan import Finding


def leases(subject: Subject) -> Iterator[Finding]:
    """Whether leases can be had, and whether daemons of other users could respect them. Nothing without GPUs."""
    folder = subject.settings.gpus.lease_dir
    if not subject.hardware.gpus or subject.settings.engine != "local":
        return
    place = nearest_existing(folder)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK, effective_ids=True):  # noqa: PTH112
        yield blocks(
            "no_leases",
            f"Who has which GPU cannot be told: the runner's user may not write into {place} (gpus.lease_dir).",
            f"Run: sudo install -d -m 1777 {folder}, or name another folder, the same for all runners of this host.",
        )
        return
    if place != folder:
        return  # the daemon makes it, with the mode that it needs
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o002 and not mode & stat.S_ISVTX:
        message = f"Everybody may remove files in gpus.lease_dir {folder}, and so take a GPU that a run has."
        yield warns("leases_open", message, f"Run: chmod 1777 {folder}")
    elif not mode & 0o002:
        message = f"Only some users may write into gpus.lease_dir {folder}: runners of others could not take part."
        yield warns("leases_closed", message, f"Where others run one on this host: chmod 1777 {folder}")
