"""quantize_quark.py of a Quark checkout: the program that the published workflow names.

It evaluates on all of its evaluation data or not at all, so smoke and full are the same to it. It runs a repository's
code unless it is told not to. What it does by default and the plan asks too is left out, as in the published mapping.
Source: quantize_quark.py of amd-quark 0.13.
"""

from __future__ import annotations

from runner.planning import flags
from runner.planning.flags import Job


def arguments(job: Job) -> list[str]:
    """The plan as arguments of quantize_quark.py."""
    return flags.arguments("quantize_quark", job)
