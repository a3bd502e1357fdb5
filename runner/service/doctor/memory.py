"""Main memory: how much there is, and what a control group leaves of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runner.host.evidence import text_of
from runner.host.memory import host_memory
from runner.service import terminal
from runner.service.doctor.subject import Subject, informs, warns
from schemas.artifacts.plan import Finding

_LITTLE = 4 << 30  # bytes; importing torch and Quark takes more than one of four


def memory(subject: Subject) -> Iterator[Finding]:
    """A limit around the runner, and a host with little."""
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
