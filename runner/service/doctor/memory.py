"""Main memory: what a control group leaves of it, and whether a run's own limit could be enforced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runner.host.evidence import text_of
from runner.host.memory import host_memory
from runner.runs.supervisor.memory_group import delegated
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
    """Source: cgroups(7); a run's group is made beside that of the service, below one that was delegated to it."""
    group = delegated(subject.root)
    if group is not None:
        yield informs("memory_enforced", f"A memory limit of a run would be kept by the kernel: {group} is delegated.")
        return
    limit = subject.settings.limits.run_memory_bytes
    hint = "With systemd 254 or later set Delegate=memory and DelegateSubgroup=daemon in the runner's unit."
    if limit is None:
        message = "A memory limit of a run could only be watched: no control group is delegated."
        yield informs("memory_watched", message, hint)
    else:
        message = f"limits.run_memory_bytes is {terminal.size(limit)}, and can only be watched: no group is delegated."
        yield warns("memory_watched", message, hint)
