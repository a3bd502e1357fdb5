"""How long runs of the same kind took on this host."""

from __future__ import annotations

from collections.abc import Hashable

from runner.planning.host_view import HostView, PastRun
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan

_SAME_SIZE = 1.1
_SAME_WORK = 2.0


def kind(plan: QuantPlan, gpu_arch: str | None) -> Hashable:
    """What two runs have to share before one says anything about the other: model family, schemes and what is left
    alone, algorithms, program, device, GPU, how the weights pass through memory, data, and how much is measured."""
    return (
        plan.model.model_type,
        plan.global_scheme,
        tuple(sorted(plan.layer_quant_config.items())),
        _exclusions(plan),
        plan.kv_cache_scheme,
        plan.attention_dtype,
        plan.algorithm,
        plan.entry_point,
        plan.device,
        gpu_arch if plan.device == "cuda" else None,
        plan.data_type,
        plan.multi_gpu,
        plan.multi_device,
        plan.file2file_quantization,
        plan.model_export,
        plan.calibration.dataset,
        plan.evaluation_intent,
        plan.evaluation_dataset,
        plan.num_eval_data,
        plan.tasks,
    )


def of_this_kind(plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> list[PastRun]:
    """Finished runs of this host that tell how long this one takes; empty where there is no history.

    The same kind, a model of the same size (within 10 %), and calibration and batches within a factor of two. Nothing
    is scaled: what a run of another size took is not known to be in proportion.
    """
    wanted = kind(plan, host.gpu_arch)
    return [
        run
        for run in host.history
        if run.plan.global_scheme == plan.global_scheme  # most differ here: a plan must not pay for all the others
        and kind(run.plan, run.gpu_arch) == wanted
        and _within(run.parameters, analysis.size.parameters, _SAME_SIZE)
        and _within(calibration_tokens(run.plan), calibration_tokens(plan), _SAME_WORK)
        and _within(run.plan.calibration.batch_size, plan.calibration.batch_size, _SAME_WORK)
    ]


def _exclusions(plan: QuantPlan) -> frozenset[str]:
    """What is left alone, without the patterns that match nothing in this model."""
    idle = {match.pattern for match in plan.layer_matches if match.role == "exclude" and not match.count}
    return frozenset(plan.exclude_layers) - idle


def calibration_tokens(plan: QuantPlan) -> int:
    """Tokens of all calibration samples together."""
    return plan.calibration.num_calib_data * plan.calibration.seq_len


def _within(one: int, other: int, factor: float) -> bool:
    return one <= other * factor and other <= one * factor
