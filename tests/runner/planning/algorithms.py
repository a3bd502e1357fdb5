"""Hosts that know the engine's configurations of algorithms, and models whose normalisation layers are known."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from runner.planning import HostView
from schemas.artifacts.analysis import ModelAnalysis
from tests.runner.planning.catalogue import RECORDED
from tests.runner.planning.hosts import CPU
from tests.runner.planning.models import Shape, analysis_of, decoder, experts, head, routers

LAYER_NORMS = ["model.layers.*.input_layernorm", "model.layers.*.post_attention_layernorm"]
HEAD_NORMS = ["model.layers.*.self_attn.q_norm", "model.layers.*.self_attn.k_norm"]
GEMMA_NORMS = [f"model.layers.*.{place}_feedforward_layernorm" for place in ("pre", "post")]
FINAL = ["model.norm"]


@cache
def configs() -> dict[str, dict[str, dict[str, Any]]]:
    """The engine's built-in configurations, as recorded."""
    probed = json.loads(RECORDED.with_name("catalogue-probe-0.13.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, dict[str, Any]]] = probed["algorithm_configs"]
    return found


def host(**changes: Any) -> HostView:
    return replace(CPU, **{"algorithm_configs": configs(), **changes})


def with_norms(analysis: ModelAnalysis, norms: list[str]) -> ModelAnalysis:
    found = analysis.quantization_targets.model_copy(update={"norms": norms})
    return analysis.model_copy(update={"quantization_targets": found})


def qwen3(norms: list[str] | None = None, shapes: list[Shape] | None = None) -> ModelAnalysis:
    made = analysis_of("qwen3", shapes or [*decoder(), head()])
    return with_norms(made, [*LAYER_NORMS, *HEAD_NORMS, *FINAL] if norms is None else norms)


def qwen3_moe(norms: list[str] | None = None, count: int = 4) -> ModelAnalysis:
    shapes = [*experts(count, 128), routers(), head()]
    made = analysis_of("qwen3_moe", shapes, is_moe=True, experts=count)
    return with_norms(made, [*LAYER_NORMS, *HEAD_NORMS, *FINAL] if norms is None else norms)
