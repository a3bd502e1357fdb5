"""Whether perplexity can be measured after a plan's quantization, and whether it may be."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import datasets, layers, remote_code, schemes
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue, Scheme


def why_not(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> str | None:
    """Why nothing can or may be measured, whatever the plan's intent is; None when it can."""
    if plan.file2file_quantization:
        return "File-to-file quantization loads no model and ends before an evaluation."
    if remote_code.evaluation_would_run_code(plan, analysis):
        return "The evaluation would run code of the model's repository, which nobody approved."
    if plan.device == "cpu" and needs_gpu(plan, analysis, catalogue):
        return "The engine can run a model of this scheme only on a GPU."
    if unusable := cannot_compute(plan, analysis, catalogue):
        return f"The installed engine cannot compute with a model that it wrote as {unusable}."
    if not datasets.can_evaluate(plan.calibration.dataset, plan.entry_point, host):
        return f"The hub is off and this runner's mirror has no {datasets.EVALUATION}."
    return None


def needs_gpu(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether some layer of the plan computes only on a GPU once it is quantized."""
    return any(schemes.forward_needs_gpu(scheme) for scheme in _used(plan, analysis, catalogue))


def cannot_compute(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> str | None:
    """The first scheme of the plan whose export the installed engine cannot compute with; None when there is none."""
    failing = (scheme.name for scheme in _used(plan, analysis, catalogue) if schemes.forward_fails(scheme))
    return next(failing, None)


def _used(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> Iterator[Scheme]:
    names = {target.scheme for target in layers.quantized(plan, analysis)} | {plan.global_scheme}
    return (catalogue.schemes[name] for name in sorted(filter(None, names)) if name in catalogue.schemes)
