"""A standalone script of the site: the flags that the published programs have in common, and nothing else.

Its defaults are not known here, so that every one of them is written out.
"""

from __future__ import annotations

from runner.planning import flags
from runner.planning.flags import Job


def arguments(job: Job) -> list[str]:
    """The plan as arguments of the site's script."""
    return flags.arguments("site", job)
