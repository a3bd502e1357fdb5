"""The flags that all three programs share, by the published mapping of plan fields to arguments.

    model path            --model_dir
    output dir            --output_dir
    global_scheme         --quant_scheme
    layer_quant_config    one --layer_quant_scheme PATTERN SCHEME per entry
    kv_cache_scheme       --kv_cache_dtype, only if non-null
    algorithm             --quant_algo, only if non-null
    exclude_layers        --exclude_layers, only when a person changed them: it replaces the engine's defaults
    num_calib_data        --num_calib_data
    seq_len               --seq_len
    export format         --model_export
    data type             --data_type auto
    device                --device

Source: AMD Quark's published workflow.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.planning.layers import in_order
from schemas.artifacts.plan import QuantPlan


@dataclass(frozen=True)
class Job:
    """A plan with every path made absolute. `dataset` is a name or the path of a text file."""

    plan: QuantPlan
    model: str
    output_dir: str
    dataset: str


def head(job: Job) -> list[str]:
    """Where from, where to, and with which scheme."""
    arguments = ["--model_dir", job.model, "--output_dir", job.output_dir, "--quant_scheme", job.plan.global_scheme]
    for pattern, scheme in in_order(job.plan.layer_quant_config):
        arguments += ["--layer_quant_scheme", pattern, scheme]
    return arguments


def kv_cache(plan: QuantPlan) -> list[str]:
    """The KV cache's scheme. Without one its options do nothing, so that they are left out with it."""
    return ["--kv_cache_dtype", plan.kv_cache_scheme] if plan.kv_cache_scheme is not None else []


def kv_cache_options(plan: QuantPlan) -> list[str]:
    """Options of the KV cache, for the programs that have them."""
    if plan.kv_cache_scheme is None:
        return []
    scale = ["--min_kv_scale", repr(plan.min_kv_scale)] if plan.min_kv_scale is not None else []
    return scale + (["--kv_cache_post_rope"] if plan.kv_cache_post_rope else [])


def choices(plan: QuantPlan) -> list[str]:
    """Algorithms and exclusions. The exclusions end at the next flag, which always follows."""
    arguments = ["--quant_algo", plan.algorithm] if plan.algorithm is not None else []
    if plan.exclude_layers_changed:
        arguments += ["--exclude_layers", *plan.exclude_layers]
    return arguments


def calibration(job: Job) -> list[str]:
    """Calibration data. Beyond the published mapping, dataset and batch size are always written out."""
    wanted = job.plan.calibration
    return [
        *("--dataset", job.dataset),
        *("--num_calib_data", str(wanted.num_calib_data)),
        *("--seq_len", str(wanted.seq_len)),
        *("--batch_size", str(wanted.batch_size)),
    ]


def export(plan: QuantPlan) -> list[str]:
    """Output format and data type, for the programs that have them."""
    return ["--model_export", plan.model_export, "--data_type", "auto"]
