"""quantize_quark.py of a Quark checkout: the program that the published workflow names.

It evaluates on all of its evaluation data or not at all, so smoke and full are the same to it. It runs a repository's
code unless it is told not to. Source: quantize_quark.py of amd-quark 0.13.
"""

from __future__ import annotations

from runner.manifest.entry_points import flags
from runner.manifest.entry_points.flags import Job


def arguments(job: Job) -> list[str]:
    """The plan as arguments of quantize_quark.py."""
    plan = job.plan
    return [
        *flags.head(job),
        *flags.kv_cache(plan),
        *flags.kv_cache_options(plan),
        *flags.choices(plan),
        *flags.calibration(job),
        *flags.export(plan),
        *("--device", plan.device),
        *(() if plan.trust_remote_code else ("--no_trust_remote_code",)),
        *(("--skip_evaluation",) if plan.evaluation_intent == "none" else ()),
    ]
