"""The state folder: whether the daemon may work in it, and whether locks hold there.

A run is alive as long as its supervisor holds a lock in the run's folder. Where locks do nothing, runs look lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from runner.host.evidence import text_of
from runner.host.paths import nearest_existing
from runner.service.doctor.subject import Subject, blocks, warns
from runner.service.state_folder import danger_in
from schemas.artifacts.plan import Finding

_ON_NETWORKS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs"}
# Options of mounts by which a lock is not seen by other hosts, or not kept at all. Source: nfs(5), mount.lustre(8).
_UNSHARED = {"nolock", "local_lock=flock", "local_lock=all", "localflock", "noflock"}


def state(subject: Subject) -> Iterator[Finding]:
    """What is wrong with state_dir. It need not exist yet."""
    folder = subject.settings.state_dir
    place = nearest_existing(folder)
    if not os.path.isdir(place):  # noqa: PTH112 - false, not an error, where looking is not allowed
        yield blocks("bad_state_dir", f"state_dir {folder} is no folder: {place} is in the way.", "Name another one.")
        return
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        message = f"state_dir {folder} cannot be written."
        yield blocks("bad_state_dir", message, "Give the runner's user write access to it.")
        return
    if place == folder and (danger := danger_in(folder)):
        yield blocks(danger.code, danger.message, danger.hint)
    yield from _locks(place, folder)
    yield from _network(subject, place, folder)


def _locks(place: Path, folder: Path) -> Iterator[Finding]:
    """Take a lock twice where the state folder is or will be: the second time has to be refused."""
    hint = "Name a state_dir on a disk of this host."
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".doctor-") as one:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with Path(one.name).open("rb") as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        if error.errno in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}:
            yield blocks(
                "no_locks", f"The file system of state_dir {folder} has no locks ({why}): runs look lost.", hint
            )
        else:
            yield blocks("bad_state_dir", f"Nothing can be written into state_dir {folder}: {why}.", hint)
        return
    yield blocks("no_locks", f"Locks do nothing on the file system of state_dir {folder}: runs look lost.", hint)


class _Mount(NamedTuple):
    point: str
    kind: str
    options: set[str]


def _network(subject: Subject, place: Path, folder: Path) -> Iterator[Finding]:
    mount = _mount(text_of(subject.root / "proc/self/mountinfo") or "", os.path.realpath(place))
    cluster = subject.settings.engine == "slurm"
    if mount is None or not (mount.kind in _ON_NETWORKS or mount.kind.startswith("fuse.")):
        if mount is not None and cluster:
            message = f"state_dir {folder} lies on {mount.kind}: Slurm's other nodes do not see it."
            yield warns("state_dir_not_shared", message, "Name one on a file system that all nodes share.")
        return
    unshared = sorted(_UNSHARED & mount.options)
    if mount.kind == "lustre" and "flock" not in mount.options:
        unshared = unshared or ["no flock"]
    if unshared:
        yield warns(
            "unshared_locks",
            f"state_dir {folder} lies on {mount.kind}, mounted with {', '.join(unshared)}: a second daemon on another "
            "host would not see the locks of this one.",
            "Mount it with locks that all hosts share, or keep state_dir on a disk of this host.",
        )
    elif not cluster:
        yield warns(
            "network_state_dir",
            f"state_dir {folder} lies on a network file system ({mount.kind}): runs look lost while it is away.",
            "Keep it on a disk of this host, unless a cluster's nodes have to share it.",
        )


def _mount(mountinfo: str, path: str) -> _Mount | None:
    """The mount that a path lies on, from proc(5)'s mountinfo; the last one where several cover each other."""
    found: _Mount | None = None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields, more = before.split(), after.split()
        if not dash or len(fields) < 6 or len(more) < 2:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), fields[4])
        inside = point == "/" or path == point or path.startswith(f"{point}/")
        if inside and (found is None or len(point) >= len(found.point)):
            found = _Mount(point, more[0], {*fields[5].split(","), *",".join(more[2:]).split(",")})
    return found
