"""Results with one thing wrong, and what the report has to say of each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.runs.evidence import ReloadOutcome
from runner.runs.tables import ExclusionTable, ReplacementTable
from schemas.artifacts.plan import Estimates
from schemas.artifacts.report import FailureClass
from tests.runner.runs.exported import Export

KV = "llama-fp8-kv"


@dataclass(frozen=True)
class Case:
    """One thing that is not as it should be, and what the report has to say of it."""

    status: str
    check: str
    says: str
    change: Callable[[Export], None] = lambda _: None
    spoil: Callable[[Path], None] = lambda _: None
    export: str = KV
    plan: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    outcome: str = "failed"
    failure: FailureClass | None = None


def retype(pattern: str, dtype: str, shape: list[int] | None = None) -> Callable[[Export], None]:
    """Give each tensor whose name ends so another dtype, and another shape when one is given."""

    def change(export: Export) -> None:
        for name, (_, old) in export.tensors.items():
            if name.endswith(pattern):
                export.tensors[name] = (dtype, shape or old)

    return change


def drop(*endings: str) -> Callable[[Export], None]:
    """Leave out the tensors whose names end so."""

    def change(export: Export) -> None:
        for name in [name for name in export.tensors if name.endswith(endings)]:
            del export.tensors[name]

    return change


def told(*path: str | int, value: Any) -> Callable[[Export], None]:
    """Change one value in quantization_config."""

    def change(export: Export) -> None:
        place: Any = export.told
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return change


def quantize_head(export: Export) -> None:
    export.tensors["lm_head.weight"] = ("F8_E4M3", [320, 128])
    export.tensors["lm_head.weight_scale"] = ("BF16", [])


def as_bf16(export: Export) -> None:
    """The down projections come out of the run as they went in."""
    retype("down_proj.weight", "BF16")(export)
    drop("down_proj.weight_scale", "down_proj.input_scale")(export)


def nothing_quantized(export: Export) -> None:
    for name in list(export.tensors):
        if "scale" in name:
            del export.tensors[name]
        else:
            export.tensors[name] = ("BF16", export.tensors[name][1])


def some_experts_unseen(export: Export) -> None:
    """What amd-quark 0.13 writes for experts that no calibration token came to."""
    for name in export.tensors:
        if "experts.3." in name and name.endswith("input_scale"):
            export.tensors[name] = ("F32", [])


def link(name: str) -> Callable[[Path], None]:
    """Replace a file by a link to it."""

    def spoil(folder: Path) -> None:
        kept = folder.parent / f"{folder.name}-{name}"
        (folder / name).rename(kept)
        (folder / name).symlink_to(kept)

    return spoil


def text(name: str, content: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_text(content)

    return spoil


def remove(*names: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return spoil


def cut(name: str, to: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        os.truncate(folder / name, to)

    return spoil


E, Q = FailureClass.EXPORT, FailureClass.QUANTIZATION
FILES = {
    "no weights": Case(
        "failed", "files", "a disk that fills up", spoil=remove("model.safetensors"), failure=E
    ),
    "empty weights": Case("failed", "files", "no weights", spoil=cut("model.safetensors", 0), failure=E),
    "truncated weights": Case(
        "failed", "files", "bytes of weights", spoil=cut("model.safetensors", 100_000), failure=E
    ),
    "truncated header": Case("failed", "files", "within its header", spoil=cut("model.safetensors", 900), failure=E),
    "no config.json": Case("failed", "files", "config.json is not in", spoil=remove("config.json"), failure=E),
    "empty config.json": Case("failed", "files", "config.json is empty", spoil=cut("config.json", 0), failure=E),
    "only a tokenizer": Case(
        "failed", "files", "Neither config.json nor weights", failure=E,
        spoil=remove("config.json", "model.safetensors"),
    ),
    "no tokenizer": Case(
        "partial", "files", "tokenizer.json, tokenizer_config.json is missing",
        spoil=remove("tokenizer.json", "tokenizer_config.json"),
    ),
    "an expected file": Case(
        "partial", "files", "generation_config.json is missing", spoil=remove("generation_config.json")
    ),
    "linked weights": Case("failed", "files", "is a link", spoil=link("model.safetensors"), failure=E),
    "linked config": Case("failed", "files", "is a link", spoil=link("config.json"), failure=E),
    "linked something": Case(
        "partial", "files", "special_tokens_map.json is a link", spoil=link("special_tokens_map.json")
    ),
    "a missing shard": Case(
        "failed", "files", "weight files, and 1 of them",
        spoil=lambda folder: (
            (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors"),
            text(
                "model.safetensors.index.json",
                json.dumps({"weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors"}}),
            )(folder),
        )[1],
        failure=E,
    ),
}  # fmt: skip
CONFIG = {
    "broken json": Case(
        "failed", "quantization_config", "is not JSON", spoil=text("config.json", '{"a": '), failure=E
    ),
    "a list": Case("failed", "quantization_config", "JSON object", spoil=text("config.json", "[1]"), failure=E),
    "not quantized": Case(
        "failed", "quantization_config", "has no quantization_config",
        change=lambda export: export.config.pop("quantization_config"), failure=E,
    ),
    "another method": Case(
        "failed", "quantization_config", "quant_method in config.json is fp8",
        change=told("quant_method", value="fp8"), failure=E,
    ),
    "another dtype": Case(
        "failed", "quantization_config", "weight dtype is int8 and should be fp8_e4m3 (fp8)",
        change=told("global_quant_config", "weight", "dtype", value="int8"), failure=E,
    ),
    "another input": Case(
        "failed", "quantization_config", "input is_dynamic is True and should be False",
        change=told("global_quant_config", "input_tensors", "is_dynamic", value=True), failure=E,
    ),
    "no input": Case(
        "failed", "quantization_config", "input has 0 stages and should have 1",
        change=told("global_quant_config", "input_tensors", value=None), failure=E,
    ),
    "another group size": Case(
        "failed", "quantization_config", "group_size is 64 and should be 32", export="llama-int4_wo_32",
        change=told("global_quant_config", "weight", "group_size", value=64), failure=E,
    ),
    "lost exclusion": Case(
        "failed", "quantization_config", "lm_head is quantized in config.json and left alone",
        change=told("exclude", value=[]), failure=E,
    ),
    "added exclusion": Case(
        "failed", "quantization_config", "model.layers.*.mlp.up_proj is excluded in config.json",
        change=told("exclude", value=["lm_head", "*up_proj"]), failure=E,
    ),
    "lost override": Case(
        "failed", "quantization_config", "model.layers.*.mlp.down_proj weight dtype is fp8_e4m3",
        export="llama-fp8-down-int4", change=told("layer_quant_config", value={}), failure=E,
    ),
    "added override": Case(
        "failed", "quantization_config", "model.layers.*.mlp.up_proj has a configuration that cannot be read",
        change=told("layer_quant_config", "model.layers.1.mlp.up_proj", value="int4"), failure=E,
    ),
    "no KV cache": Case(
        "failed", "KV cache configuration", "says nothing of a quantized KV cache",
        change=told("kv_cache_quant_config", value={}), failure=E,
    ),
    "after RoPE": Case(
        "failed", "KV cache configuration", "than the plan, before RoPE",
        change=told("kv_cache_post_rope", value=True), failure=E,
    ),
    "least scale": Case(
        "partial", "KV cache configuration", "min_kv_scale in config.json is 0.0 and should be 0.5",
        plan={"min_kv_scale": 0.5},
    ),
}  # fmt: skip
TENSORS = {
    "layers left in BF16": Case(
        "failed", "tensor dtypes", "down_proj is BF16 and should be F8_E4M3 (fp8)", change=as_bf16, failure=Q
    ),
    "no weight scale": Case(
        "failed", "tensor dtypes", "model.layers.*.mlp.up_proj has no weight_scale",
        change=drop("up_proj.weight_scale"), failure=Q,
    ),
    "another packing": Case(
        "failed", "tensor dtypes", "q_proj is U8 and should be F8_E4M3", change=retype("q_proj.weight", "U8"),
        failure=Q,
    ),
    "half a weight": Case(
        "failed", "tensor dtypes", "k_proj has 4,096 bytes where fp8 takes 8,192",
        change=retype("k_proj.weight", "F8_E4M3", [64, 64]), failure=Q,
    ),
    "half a packed weight": Case(
        "failed", "tensor dtypes", "k_proj has 2,048 bytes where int4_wo_32 takes 4,096", export="llama-int4_wo_32",
        change=retype("k_proj.weight", "I32", [64, 8]), failure=Q,
    ),
    "the global scheme in place of the override": Case(
        "failed", "tensor dtypes", "down_proj is F8_E4M3 and should be I32 (int4_wo_32)", export="llama-fp8-down-int4",
        change=retype("down_proj.weight", "F8_E4M3", [128, 256]), failure=Q,
    ),
    "nothing quantized": Case("failed", "layers", "No layer is quantized", change=nothing_quantized, failure=Q),
    "a lost layer": Case(
        "failed", "layers", "model.layers.*.mlp.up_proj (1 of 2)",
        change=drop("layers.1.mlp.up_proj.weight", "layers.1.mlp.up_proj.weight_scale"), failure=E,
    ),
    "a lost head": Case("failed", "layers", "lm_head (0 of 1)", change=drop("lm_head.weight"), failure=E),
    "quantized head": Case(
        "failed", "exclusions", "Quantized although the plan excludes it: lm_head (F8_E4M3)",
        change=quantize_head, failure=Q,
    ),
    "head with a scale": Case(
        "failed", "exclusions", "lm_head (BF16)",
        change=lambda export: export.tensors.update({"lm_head.weight_scale": ("BF16", [])}), failure=Q,
    ),
    "head in another float": Case(
        "partial", "exclusions", "lm_head is F32 and was BF16", change=retype("lm_head.weight", "F32")
    ),
    "router quantized": Case(
        "failed", "exclusions", "model.layers.*.mlp.gate (F8_E4M3)", export="qwen3_moe-fp8-kv",
        change=retype("mlp.gate.weight", "F8_E4M3"), failure=Q,
    ),
    "KV scale missing": Case(
        "failed", "KV cache scales", "missing in 1 of 4 layers: model.layers.1.self_attn.v_proj",
        change=drop("layers.1.self_attn.v_proj.output_scale"), failure=Q,
    ),
    "KV scale of an excluded layer missing": Case(
        "failed", "KV cache scales", "missing in 2 of 4 layers", export="llama-fp8-kv-exclude-k",
        change=drop("k_proj.output_scale"), failure=Q,
    ),
    "input scale missing": Case(
        "failed", "input scales", "missing in 2 layers: model.layers.*.self_attn.o_proj",
        change=drop("o_proj.input_scale"), failure=Q,
    ),
    "experts without a token": Case(
        "partial", "input scales", "No calibration token reached 6 of 32 layers", export="qwen3_moe-fp8-kv",
        change=some_experts_unseen,
    ),
    "another size": Case(
        "partial", "size", "483.1 kB where 3.0 MB were predicted (-83.9 %)",
        plan={"estimates": Estimates(output_bytes=3_000_000)},
    ),
    "no prediction": Case(
        "success", "size", "the plan made no prediction", plan={"estimates": Estimates()}, outcome="skipped"
    ),
    "a scheme that nobody knows": Case(
        "partial", "tensor dtypes", "does not know fp9", plan={"layer_quant_config": {"*nothing": "fp9"}},
        outcome="skipped",
    ),
}  # fmt: skip

RUN = {
    "lost in the log": Case(
        "partial", "log: exclusions", "lm_head of the plan is not in it",
        evidence={"exclusions": ExclusionTable({"down_proj": 0})},
    ),
    "added in the log": Case(
        "partial", "log: exclusions", "*q_proj is not in the plan",
        evidence={"exclusions": ExclusionTable({"lm_head": 1, "*q_proj": 2})},
    ),
    "idle exclusion of a person": Case(
        "partial", "log: exclusions", "*k_proj matched no module", export="llama-fp8-kv-exclude-k",
        evidence={"exclusions": ExclusionTable({"lm_head": 1, "*k_proj": 0})},
    ),
    "idle default exclusion": Case(
        "success", "log: exclusions", "lm_head 0", evidence={"exclusions": ExclusionTable({"lm_head": 0})}, outcome="ok"
    ),
    "no table of exclusions": Case(
        "success", "log: exclusions", "no table", evidence={"exclusions": None}, outcome="skipped"
    ),
    "nothing replaced": Case(
        "failed", "log: replaced modules", "replaced no module",
        evidence={"replacements": ReplacementTable({"Linear": (15, 0)})}, failure=Q,
    ),
    "fewer replaced": Case(
        "partial", "log: replaced modules", "replaced 12 modules, but the output has 14 quantized layers",
        evidence={"replacements": ReplacementTable({"Linear": (15, 12)})},
    ),
    "no table of replacements": Case(
        "success", "log: replaced modules", "no table", evidence={"replacements": None}, outcome="skipped"
    ),
    "does not load": Case(
        "failed", "reload", "cannot be loaded: size mismatch", failure=FailureClass.LOAD,
        evidence={"reload": ReloadOutcome(False, "size mismatch for q_proj")},
    ),
    "computes nonsense": Case(
        "failed", "reload", "infinite or none", failure=Q,
        evidence={"reload": ReloadOutcome(True, logits_finite=False)},
    ),
    "cannot be loaded here": Case(
        "success", "reload", "needs a GPU", evidence={"reload": ReloadOutcome(None, "MXFP4 needs a GPU.")},
        outcome="skipped",
    ),
    "not loaded": Case("success", "reload", "was not tried", evidence={"reload": None}, outcome="skipped"),
    "collapse": Case(
        "failed", "perplexity", "more than twice", evidence={"quantized_perplexity": 253.0},
        failure=FailureClass.EVALUATION,
    ),
    "infinite": Case(
        "failed", "perplexity", "infinite", evidence={"quantized_perplexity": float("inf")},
        failure=FailureClass.EVALUATION,
    ),
    "not a number, alone": Case(
        "failed", "perplexity", "not a number", failure=FailureClass.EVALUATION,
        evidence={"quantized_perplexity": float("nan"), "original_perplexity": None},
    ),
    "worse than the band": Case(
        "partial", "perplexity", "(+10.9 %); FP8 usually costs at most +4.0 %",
        evidence={"quantized_perplexity": 8.0},
    ),
    "too good": Case(
        "partial", "perplexity", "cannot improve a model so much", evidence={"quantized_perplexity": 5.0}
    ),
    "only the quantized": Case(
        "success", "perplexity", "the original was not measured", evidence={"original_perplexity": None},
        outcome="skipped",
    ),
    "an original that is no number": Case(
        "success", "perplexity", "the original was not measured", outcome="skipped",
        evidence={"original_perplexity": float("nan")},
    ),
    "worse than guessing": Case(
        "partial", "perplexity", "worse than guessing among 320 tokens",
        evidence={"original_perplexity": None, "quantized_perplexity": 5000.0},
    ),
    "not evaluated": Case(
        "partial", "perplexity", "none took place",
        evidence={"original_perplexity": None, "quantized_perplexity": None}, outcome="skipped",
    ),
    "no evaluation planned": Case(
        "success", "perplexity", "asks for no evaluation", plan={"evaluation_intent": "none"}, outcome="skipped",
        evidence={"original_perplexity": None, "quantized_perplexity": None},
    ),
    "exit status unknown": Case(
        "partial", "exit status", "its supervisor told nothing", evidence={"exit_code": None}, outcome="skipped"
    ),
}  # fmt: skip
CASES = {**FILES, **CONFIG, **TENSORS, **RUN}
