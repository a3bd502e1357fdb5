"""`quark-cli torch-llm-ptq` of amd-quark[cli]. Made by its documentation; not tried by this project.

It writes only Hugging Face safetensors and has no flags for output format, data type and options of the KV cache. It
leaves its working directory, which is why every path is absolute. Source: quark-cli of amd-quark 0.13.
"""

from __future__ import annotations

from runner.manifest.entry_points import flags
from runner.manifest.entry_points.flags import Job

SUBCOMMAND = "torch-llm-ptq"


def arguments(job: Job) -> list[str]:
    """The plan as arguments of quark-cli."""
    plan = job.plan
    return [
        SUBCOMMAND,
        *flags.head(job),
        *flags.kv_cache(plan),
        *flags.choices(plan),
        *flags.calibration(job),
        *("--device", plan.device),
        *(() if plan.trust_remote_code else ("--no_trust_remote_code",)),
        *(("--skip_evaluation",) if plan.evaluation_intent == "none" else ()),
    ]
