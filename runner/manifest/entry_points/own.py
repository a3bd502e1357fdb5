"""Our own script: runs on a CPU, takes text files, evaluates as many windows as it is told, never trusts by itself."""

from __future__ import annotations

from runner.manifest.entry_points import flags
from runner.manifest.entry_points.flags import Job
from schemas.artifacts.plan import QuantPlan

SMOKE = ("--eval_windows", "8", "--eval_seq_len", "512")
FULL = ("--eval_windows", "0", "--eval_seq_len", "2048")  # the whole text, in windows as the engine's programs read it


def arguments(job: Job) -> list[str]:
    """The plan as arguments of our script."""
    plan = job.plan
    return [
        *flags.head(job),
        *flags.kv_cache(plan),
        *flags.kv_cache_options(plan),
        *flags.choices(plan),
        *flags.calibration(job),
        *flags.export(plan),
        *("--device", plan.device),
        *_evaluation(plan),
        "--trust_remote_code" if plan.trust_remote_code else "--no_trust_remote_code",
    ]


def _evaluation(plan: QuantPlan) -> tuple[str, ...]:
    match plan.evaluation_intent:
        case "none":
            return ("--skip_evaluation",)
        case "smoke":
            return SMOKE
        case "full":
            return FULL
