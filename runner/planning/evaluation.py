"""Whether perplexity can be measured after a plan's quantization, and whether it may be."""

from __future__ import annotations

from runner.planning import datasets, layers, remote_code, schemes
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue


def why_not(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> str | None:
    """Why nothing can or may be measured, whatever the plan's intent is; None when it can."""
    if remote_code.evaluation_would_run_code(plan, analysis):
        return "The evaluation would run code of the model's repository, which nobody approved."
    if plan.device == "cpu" and needs_gpu(plan, analysis, catalogue):
        return "The engine can run a model of this scheme only on a GPU."
    if not datasets.can_evaluate(plan.calibration.dataset, plan.entry_point, host):
        return f"The hub is off and this runner's mirror has no {datasets.EVALUATION}."
    return None


def needs_gpu(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether some layer of the plan computes only on a GPU once it is quantized."""
    names = {target.scheme for target in layers.quantized(plan, analysis)} | {plan.global_scheme}
    found = (catalogue.schemes.get(name or "") for name in names)
    return any(scheme is not None and schemes.forward_needs_gpu(scheme) for scheme in found)
