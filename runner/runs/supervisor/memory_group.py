"""A control group of a run's own (cgroup v2), in which the kernel keeps the memory limit.

A group may either hold processes or hand controllers to groups below it ("no internal processes", cgroups(7)). So one
is made only where the processes of this service lie in a group *below* one that was delegated to it: under systemd by
Delegate=memory and DelegateSubgroup= together. The run's group is made beside theirs. When the run needs more than its
limit, the kernel kills all of it at once.

The kernel's rules for making and entering groups were seen on a real hierarchy, with another controller. memory.max,
and what the kernel does at the limit, was tried on a pretend tree only.
"""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path

from .words import say


class MemoryGroup:
    """The group of one run. Its supervisor stays outside, so that it survives and can tell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def make(cls, name: str, limit_bytes: float, root: Path = Path("/")) -> MemoryGroup | None:
        """A new group with this limit; None where there is no limit, or no group may be made here."""
        parent = None if math.isinf(limit_bytes) else delegated(root)
        if parent is None:
            return None
        group = cls(parent / name)
        try:
            if "memory" not in (parent / "cgroup.subtree_control").read_text("ascii", "replace").split():
                (parent / "cgroup.subtree_control").write_text("+memory")  # refused while processes are in it
            group._folder.mkdir(exist_ok=True)
            (group._folder / "memory.max").write_text(f"{int(limit_bytes)}")
        except OSError as error:
            say(f"No control group can be made for the memory limit, so memory is only watched: {error.strerror}.")
            group.remove()
            return None
        for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):  # a kernel without swap accounting, or before 4.19
                (group._folder / file).write_text(value)
        return group

    def enter(self) -> None:
        """Let this process, and all that it starts, be in the group. Where that fails its memory is only watched."""
        try:
            (self._folder / "cgroup.procs").write_text(str(os.getpid()))
        except OSError as error:
            say(f"The group of the memory limit cannot be entered, so memory is only watched: {error.strerror}.")

    def killed(self) -> int:
        """How many of its processes the kernel killed for their memory."""
        with contextlib.suppress(OSError, ValueError):
            for line in (self._folder / "memory.events").read_text("ascii", "replace").splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        return 0

    def remove(self) -> None:
        """Take the group away, as far as nothing is in it."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def delegated(root: Path) -> Path | None:
    """The group above our own, when it is ours to divide: it has the memory controller and belongs to this user."""
    with contextlib.suppress(OSError, ValueError):
        for line in os.fsdecode((root / "proc/self/cgroup").read_bytes()).split("\n"):  # a group's name is any bytes
            own = Path(line.removeprefix("0::/"))
            if not line.startswith("0::/") or own == Path():
                continue
            group = root / "sys/fs/cgroup" / own.parent
            available = (group / "cgroup.controllers").read_text("ascii", "replace").split()
            # Root may write to everybody's groups. A group of systemd's own shows by what no delegated one has.
            if "memory" in available and _may_divide(group):
                return group
    return None


def _may_divide(group: Path) -> bool:
    """Whether it was delegated: systemd says so by a mark. Root may write to every group, which is no permission."""
    with contextlib.suppress(OSError):
        if os.getxattr(group, "user.delegate") == b"1":
            return os.access(group, os.W_OK | os.X_OK)
    return os.geteuid() != 0 and group.stat().st_uid == os.geteuid()
