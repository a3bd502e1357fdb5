"""Our own script: runs on a CPU, takes text files, evaluates as many windows as it is told, never trusts by itself."""

from __future__ import annotations

from runner.planning import flags
from runner.planning.flags import Job


def arguments(job: Job) -> list[str]:
    """The plan as arguments of our script."""
    return flags.arguments("own", job)
