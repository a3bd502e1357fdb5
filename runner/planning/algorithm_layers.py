"""Which layers the algorithms of a plan work on, from the configurations that they will run with."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from runner.planning.host_view import HostView
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import QuantPlan

HESSIAN_ALGORITHMS = frozenset({"gptq", "gptaq", "qronos"})
"""Those that solve a layer by the second moments of its inputs. After them scales are stored as F32, and each of their
layers needs a matrix of inputs x inputs. Source: amd-quark 0.13."""

LayerSteps = list[list[LinearGroup]]
"""Groups of layers that an algorithm holds at the same time, step after step of one decoder layer."""


def configuration(algorithm: str, plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> Mapping[str, Any] | None:
    """What the algorithm runs with: the plan's own file, else the engine's built-in one; None where it is not known."""
    own = next((config.content for config in plan.algorithm_configs if config.algorithm == algorithm), None)
    if own is not None:
        return own
    family = analysis.compatibility.template or analysis.model.model_type
    return host.algorithm_configs.get(family, {}).get(algorithm)


def hessian_steps(plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> LayerSteps:
    """The steps of all Hessian algorithms of the plan. Where a configuration is not known, every group is a step.

    The engine takes all layers of a decoder layer whose name ends as the configuration says, and holds them together:
    `mlp.experts.*.up_proj` is every expert at once. Source: layer loop of amd-quark 0.13.
    """
    steps: LayerSteps = []
    for algorithm in plan.algorithms:
        if algorithm not in HESSIAN_ALGORITHMS:
            continue
        found = configuration(algorithm, plan, analysis, host)
        named = found.get("inside_layer_modules") if found is not None else None
        groups = analysis.quantization_targets.groups
        if not isinstance(named, list):
            steps += [[group] for group in groups]
            continue
        decoder = str(found.get("model_decoder_layers") or "") if found is not None else ""
        steps += [[group for group in groups if _ends_with(group, decoder, str(name))] for name in named]
    return [step for step in steps if step]


def with_wide_scales(plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> frozenset[str]:
    """Patterns of the groups whose scales are stored as F32 because of an algorithm."""
    return frozenset(group.pattern for step in hessian_steps(plan, analysis, host) for group in step)


def _ends_with(group: LinearGroup, decoder: str, name: str) -> bool:
    """Whether the layers of a group lie in a decoder layer under this name. One number stands for all of them."""
    whole = group.pattern.replace("*", "0")
    inside = f"*{decoder}.*{name}" if decoder else f"*.{name}"
    return fnmatchcase(whole, inside)
