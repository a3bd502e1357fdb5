"""Analyses of small and large models, made by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from schemas.artifacts.analysis import (
    Compatibility,
    FileFact,
    LinearGroup,
    ModelAnalysis,
    ModelFacts,
    ModelSize,
    QuantizationTargets,
)
from tests.runner.planning.catalogue import recorded


@dataclass(frozen=True)
class Shape:
    """One group of linear layers: how many, and their inputs and outputs."""

    pattern: str
    count: int
    inputs: int
    outputs: int
    excluded: bool = False


def decoder(
    hidden: int = 128, intermediate: int = 256, layers: int = 2, kv: int = 64, queries: int | None = None
) -> list[Shape]:
    """Attention and feed-forward of a Llama-like model."""
    wide = queries or hidden
    name = "model.layers.*."
    return [
        Shape(f"{name}self_attn.q_proj", layers, hidden, wide),
        Shape(f"{name}self_attn.k_proj", layers, hidden, kv),
        Shape(f"{name}self_attn.v_proj", layers, hidden, kv),
        Shape(f"{name}self_attn.o_proj", layers, wide, hidden),
        Shape(f"{name}mlp.gate_proj", layers, hidden, intermediate),
        Shape(f"{name}mlp.up_proj", layers, hidden, intermediate),
        Shape(f"{name}mlp.down_proj", layers, intermediate, hidden),
    ]


def experts(count: int, intermediate: int, hidden: int = 128, layers: int = 2) -> list[Shape]:
    """Attention and routed experts of a Llama-like mixture."""
    attention = decoder(hidden)[:4]
    name = "model.layers.*.mlp.experts.*."
    return [
        *attention,
        Shape(f"{name}gate_proj", layers * count, hidden, intermediate),
        Shape(f"{name}up_proj", layers * count, hidden, intermediate),
        Shape(f"{name}down_proj", layers * count, intermediate, hidden),
    ]


def head(hidden: int = 128, vocabulary: int = 2048) -> Shape:
    """The output head, which every template leaves alone."""
    return Shape("lm_head", 1, hidden, vocabulary, excluded=True)


def routers(hidden: int = 128, count: int = 4, layers: int = 2) -> Shape:
    """Routers that are linear layers of their own."""
    return Shape("model.layers.*.mlp.gate", layers, hidden, count, excluded=True)


def numbers_of(shape: Shape, layers: int, experts: int | None) -> list[str]:
    """The numbers of a group's names: layers from 0, then experts; none where they do not make up the count."""
    stars = shape.pattern.count("*")
    if stars == 1:
        return [_until(shape.count)]
    if stars == 2 and experts and shape.count % experts == 0 and shape.count // experts <= layers:
        return [_until(shape.count // experts), _until(experts)]
    return []


def _until(count: int) -> str:
    return f"0-{count - 1}" if count > 1 else "0"


def analysis_of(
    model_type: str,
    shapes: list[Shape],
    *,
    source_bytes: int = 1_641_920,
    files: list[FileFact] | None = None,
    targets: dict[str, Any] | None = None,
    compatibility: Compatibility | None = None,
    **facts: Any,
) -> ModelAnalysis:
    """The analysis of a model with these layers; `facts` go to ModelFacts, `targets` to QuantizationTargets."""
    template = recorded().templates.get(model_type)
    groups = [
        LinearGroup(
            pattern=shape.pattern,
            count=shape.count,
            in_features=shape.inputs,
            out_features=shape.outputs,
            dtype="BF16",
            excluded_by_default=shape.excluded,
            numbers=numbers_of(shape, facts.get("hidden_layers", 2), facts.get("experts")),
        )
        for shape in shapes
    ]
    values: dict[str, Any] = {"hidden_layers": 2, "hidden_size": 128, "dtype": "BF16", **facts}
    return ModelAnalysis(
        analysis_status="complete",
        model=ModelFacts(**{"model_path": f"/models/{model_type}", "model_type": model_type, **values}),
        quantization_targets=QuantizationTargets(
            **{
                "linear_layer_count": sum(shape.count for shape in shapes if not shape.excluded),
                "exclude_defaults": template.exclude_defaults if template else [],
                "groups": groups,
                "method": "modules",
                **(targets or {}),
            }
        ),
        size=ModelSize(weight_bytes=source_bytes, parameters=source_bytes // 2, files=files or []),
        compatibility=compatibility
        or Compatibility(status="ok", message=f"The engine has a template for {model_type}.", template=model_type),
    )


def llama(hidden: int = 128, **changes: Any) -> ModelAnalysis:
    """A tiny Llama."""
    return analysis_of("llama", [*decoder(hidden), head(hidden)], architectures=["LlamaForCausalLM"], **changes)


def qwen3_8b(**changes: Any) -> ModelAnalysis:
    """Qwen3-8B with its real shapes."""
    shapes = decoder(hidden=4096, intermediate=12288, layers=36, kv=1024)
    facts = {"hidden_layers": 36, "hidden_size": 4096, "vocab_size": 151936, "architectures": ["Qwen3ForCausalLM"]}
    known = {"model_path": "/models/Qwen3-8B", "source_bytes": 16_381_470_720}
    return analysis_of("qwen3", [*shapes, head(4096, 151936)], **{**facts, **known, **changes})


def qwen3_moe(**changes: Any) -> ModelAnalysis:
    """A tiny mixture with routers that are linear layers."""
    shapes = [*experts(4, 128), routers(), head()]
    return analysis_of("qwen3_moe", shapes, **{"source_bytes": 2_040_184, "is_moe": True, "experts": 4, **changes})


def matrix_models() -> dict[str, ModelAnalysis]:
    """The tiny models of the recorded matrix, with the sizes of their weight files."""
    opt = [
        replace(shape, pattern=shape.pattern.replace("model.layers", "model.decoder.layers"), outputs=128)
        for shape in decoder()[:4]
    ] + [
        Shape("model.decoder.layers.*.fc1", 2, 128, 256),
        Shape("model.decoder.layers.*.fc2", 2, 256, 128),
    ]
    deepseek = [
        Shape("model.layers.*.self_attn.kv_b_proj", 14, 128, 128, excluded=True),
        Shape("model.layers.*.mlp.gate_proj", 1, 128, 256),
        Shape("model.layers.*.mlp.up_proj", 1, 128, 256),
        Shape("model.layers.*.mlp.down_proj", 1, 256, 128),
        Shape("model.layers.*.mlp.experts.*.gate_proj", 30, 128, 128),
    ]
    tied = {"source_bytes": 1_117_520, "tied_embeddings": True}
    return {
        "llama": llama(),
        "llama_tied": llama(**tied),
        "llama_h96": analysis_of("llama", [*decoder(96, 192, kv=48), head(96)], source_bytes=1_121_352),
        "qwen3": analysis_of("qwen3", [*decoder(), head()], source_bytes=1_642_592),
        "qwen3_h100": analysis_of("qwen3", [*decoder(100, 200, kv=64, queries=128), head(100)], source_bytes=1_216_688),
        "mixtral": analysis_of("mixtral", [*experts(4, 256), head()], source_bytes=2_826_136, is_moe=True, experts=4),
        "qwen3_moe": qwen3_moe(),
        "opt": analysis_of("opt", [*opt, head()], source_bytes=1_583_528),
        "gemma3_text": analysis_of("gemma3_text", [*decoder(), head()], source_bytes=1_119_664, tied_embeddings=True),
        "deepseek_v3": analysis_of("deepseek_v3", [*deepseek, head()], source_bytes=2_953_872, is_moe=True, experts=8),
    }
