"""Main memory: what a control group leaves of it, and whether a run's own limit could be enforced."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from runner.host.evidence import text_of
from runner.host.memory import host_memory
from runner.service import terminal
from runner.service.doctor.subject import Subject, informs, warns
from schemas.artifacts.plan import Finding

_LITTLE = 4 << 30  # bytes; importing torch and Quark takes more than one of four


def memory(subject: Subject) -> Iterator[Finding]:
    """A limit around the runner, and the delegation that a limit for each run needs."""
    found, meminfo = host_memory(subject.root), text_of(subject.root / "proc/meminfo") or ""
    whole = re.search(r"^MemTotal:\s+(\d+) kB$", meminfo, re.MULTILINE)
    installed = int(whole.group(1)) * 1024 if whole else None
    total = found.total_bytes
    if total is not None and installed is not None and total < installed:
        message = (
            f"A control group leaves runs {terminal.size(total)} of this host's {terminal.size(installed)} of memory."
        )
        hint = "Raise the limit of the container or service where models need more."
        yield (warns if total < _LITTLE else informs)("memory_limit", message, hint)
    elif total is not None and total < _LITTLE:
        message = f"This host has {terminal.size(total)} of main memory: only the smallest models fit."
        yield warns("memory_little", message, "Run larger models on another host.")
    yield from _enforced(subject)


def _enforced(subject: Subject) -> Iterator[Finding]:
    """Source: cgroup v2; a group may be made where its parent hands out the memory controller and may be written."""
    group = delegated_group(subject.root)
    if group is not None:
        yield informs("memory_enforced", f"A memory limit of a run would be kept by the kernel: {group} is delegated.")
        return
    limit = subject.settings.limits.run_memory_bytes
    hint = "Under systemd set Delegate=memory in the runner's unit; a container needs cgroup v2, writable."
    if limit is None:
        message = "A memory limit of a run could only be watched: no control group is delegated."
        yield informs("memory_watched", message, hint)
    else:
        message = f"limits.run_memory_bytes is {terminal.size(limit)}, and can only be watched: no group is delegated."
        yield warns("memory_watched", message, hint)


def delegated_group(root: Path) -> Path | None:
    """The control group below which a run could get one with a memory limit: our own, or the one above it."""
    for line in (text_of(root / "proc/self/cgroup") or "").splitlines():
        if not line.startswith("0::/"):
            continue
        own = root / "sys/fs/cgroup" / line.removeprefix("0::/").strip("/")
        for group in (own.parent, own) if line != "0::/" else (own,):
            handed = (text_of(group / "cgroup.subtree_control") or "").split()
            if "memory" in handed and os.access(group, os.W_OK | os.X_OK, effective_ids=True):
                return group
    return None
