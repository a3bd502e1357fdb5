"""Every rule: a plan on which it speaks and how gravely, and plans on which it is silent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from runner.planning import HostView, find_findings, make_plan
from runner.planning.rules.registry import RULES, rule
from schemas.artifacts.analysis import Compatibility, ModelAnalysis, Risk
from schemas.artifacts.plan import Finding, PlanChoices, Severity
from schemas.catalog import Catalogue
from tests.runner.planning.algorithms import host as knowing
from tests.runner.planning.algorithms import qwen3
from tests.runner.planning.algorithms import qwen3_moe as mixture
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import CPU, MI300X, MI355X, but
from tests.runner.planning.models import Shape, analysis_of, decoder, experts, head, llama, qwen3_8b, qwen3_moe

BLOCKS, WARNS, INFORMS, SILENT = Severity.BLOCKS, Severity.WARNS, Severity.INFORMS, None


@dataclass(frozen=True)
class Seen:
    """What a rule says of a plan: its code, how grave (None: nothing), and words of its sentence or hint.

    `choices` are asked for; `after` changes the finished plan, as a document from elsewhere may differ.
    """

    code: str
    severity: Severity | None
    choices: dict[str, Any] = field(default_factory=dict)
    analysis: ModelAnalysis = field(default_factory=llama)
    host: HostView = MI300X
    catalogue: Catalogue = field(default_factory=with_gpu_torch)
    after: dict[str, Any] = field(default_factory=dict)
    words: str = ""

    def findings(self) -> list[Finding]:
        """What this rule finds."""
        choices = {"global_scheme": "fp8", "kv_cache_scheme": None, **self.choices}
        plan = make_plan(self.analysis, PlanChoices(**choices), self.catalogue, self.host)
        changed = plan.model_copy(update=self.after)
        found = find_findings(changed, self.analysis, self.catalogue, self.host)
        return [finding for finding in found if finding.code == self.code]


UNFIT = but(MI300X, unfit={"quantize_quark": "needs quark.torch.new, which the installed Quark does not have"})
ONLINE = but(MI300X, offline=False)
HUB = llama(model_path="org/tiny", source="huggingface_id", revision="a" * 40, downloaded=False)
ON_CPU: dict[str, Any] = {"host": CPU, "catalogue": recorded()}
HEADERS: dict[str, Any] = {"targets": {"method": "headers"}}
TIED = llama(tied_embeddings=True)
CODE: dict[str, Any] = {"remote_code": ["config.json: AutoModelForCausalLM -> modeling.Own"]}
UNKNOWN_CODE = analysis_of(
    "own_type", decoder(), compatibility=Compatibility(status="ok", message="", template="llama"), **CODE
)
NO_KV = with_gpu_torch().model_copy(
    update={
        "templates": {
            "llama": with_gpu_torch().templates["llama"].model_copy(update={"kv_layers": [], "q_layers": []})
        },
    }
)

KNOWING = but(MI300X, algorithm_configs=knowing().algorithm_configs)
WRITE = {"write_algorithm_config": True}
WITHOUT_KEYS = {"exclude_layers": ["lm_head", "*k_proj"]}
FEW_MAPS = but(MI300X, max_map_count=65530, gpus_per_run=8)
HUGE = analysis_of("deepseek_v3", experts(256, 2048, 7168, 61), hidden_layers=61, experts=256, is_moe=True)


TEXT = but(CPU, datasets=["text.txt"], dataset_bytes={"text.txt": 84_000})
LONG_TEXT = but(TEXT, dataset_bytes={"text.txt": 4 * (128 * 512 + 8 * 512)})
KV = {"kv_cache_scheme": "fp8"}
IDLE = [f"*nothing.{number}.x" for number in range(499)]
LONG_NAME = "*" + "x" * 4000
NO_WIKITEXT = but(MI300X, datasets=["pileval"])


def own(calibration: dict[str, Any] | None = None, **choices: Any) -> dict[str, Any]:
    """Our own script on the only text of the mirror."""
    return {"entry_point": "own", "calibration": {"dataset": "text.txt", **(calibration or {})}, **choices}


def risky(code: str) -> ModelAnalysis:
    """A model of which intake found a risk."""
    risk = Risk(severity="medium", code=code, message="The engine asks for another one.", recovery_hint="Install it.")
    return llama().model_copy(update={"risks": [risk]})


MODEL = [
    Seen("model_unsupported", SILENT),
    Seen(
        "model_unsupported",
        BLOCKS,
        analysis=llama(compatibility=Compatibility(status="unsupported", message="No.")),
        words="No.",
    ),
    Seen("model_unsupported", BLOCKS, analysis=analysis_of("lama", decoder(), compatibility=None), words="llama"),
    Seen("model_unsupported", WARNS, analysis=llama(compatibility=Compatibility(status="doubtful", message="Hm."))),
    Seen("already_quantized", SILENT),
    Seen("already_quantized", BLOCKS, analysis=llama(quantized_by="fp8"), words="(fp8)"),
    Seen("nothing_quantized", SILENT),
    Seen("nothing_quantized", SILENT, analysis=analysis_of("llama", [])),
    Seen("nothing_quantized", BLOCKS, {"exclude_layers": ["*"]}),
    Seen("layers_provisional", SILENT),
    Seen("layers_provisional", INFORMS, analysis=llama(targets={"provisional": True})),
    Seen("transformers_range", SILENT),
    Seen("transformers_range", WARNS, analysis=risky("transformers_range"), words="asks for"),
    Seen("transformers_range", WARNS, analysis=risky("transformers_version")),
    Seen("transformers_range", SILENT, analysis=risky("moe")),
    Seen("template_of_the_site", SILENT),
    Seen("template_of_the_site", WARNS, {"template_file": "own.json"}, words="own.json"),
    Seen("memory_maps_few", SILENT, analysis=HUGE),
    Seen("memory_maps_few", SILENT, host=FEW_MAPS),
    Seen("memory_maps_few", SILENT, analysis=HUGE, host=but(FEW_MAPS, gpus_per_run=1)),
    Seen("memory_maps_few", SILENT, analysis=HUGE, host=but(FEW_MAPS, max_map_count=2**20)),
    Seen("memory_maps_few", WARNS, analysis=HUGE, host=FEW_MAPS, words="sysctl -w vm.max_map_count=4194304"),
    Seen("memory_maps_few", WARNS, {"multi_gpu": "auto"}, HUGE, but(FEW_MAPS, gpus_per_run=1)),
    Seen("remote_code_needed", SILENT),
    Seen("remote_code_needed", SILENT, analysis=llama(**CODE)),
    Seen("remote_code_needed", BLOCKS, analysis=UNKNOWN_CODE, words="runner.yaml"),
    Seen("remote_code_needed", BLOCKS, analysis=UNKNOWN_CODE, host=but(MI300X, remote_code=True), words="trust_remote"),
    Seen(
        "remote_code_needed",
        SILENT,
        {"trust_remote_code": True},
        analysis=UNKNOWN_CODE,
        host=but(MI300X, remote_code=True),
    ),
    Seen("remote_code_forbidden", BLOCKS, {"trust_remote_code": True}),
    Seen("remote_code_forbidden", SILENT, {"trust_remote_code": True}, host=but(MI300X, remote_code=True)),
    Seen("remote_code_runs", SILENT),
    Seen("remote_code_runs", INFORMS, analysis=llama(**CODE), words="modeling.Own"),
    Seen("remote_code_runs", WARNS, {"trust_remote_code": True}, analysis=llama(**CODE)),
]

SCHEMES = [
    Seen("unknown_scheme", SILENT),
    Seen("unknown_scheme", BLOCKS, {"global_scheme": "int4_wo_12"}, words="int4_wo_128"),
    Seen("unknown_scheme", BLOCKS, {"layer_quant_config": {"*mlp*": "fp9"}}, words="for *mlp*"),
    Seen("not_exportable", SILENT, {"global_scheme": "mxfp6_e2m3"}),
    Seen("not_exportable", BLOCKS, {"global_scheme": "mx6"}),
    Seen("not_exportable", BLOCKS, {"global_scheme": "mx9"}),
    Seen("not_exportable", BLOCKS, {"global_scheme": "bfp16"}),
    Seen("not_exportable", BLOCKS, {"layer_quant_config": {"*mlp*": "mx6"}}, words="for *mlp*"),
    Seen("group_size_divides", SILENT, {"global_scheme": "int4_wo_128"}),
    Seen("group_size_divides", BLOCKS, {"global_scheme": "int4_wo_128"}, llama(576), words="Take int4_wo_64"),
    Seen("group_size_divides", BLOCKS, {"global_scheme": "uint4_wo_32"}, llama(100), words="uint4_wo_per_channel"),
    Seen("group_size_divides", WARNS, {"global_scheme": "mxfp4"}, llama(100), words="no multiple of 32"),
    Seen("group_size_divides", SILENT, {"global_scheme": "int4_wo_per_channel"}, llama(100)),
    Seen("group_size_divides", BLOCKS, {"layer_quant_config": {"*q_proj": "int4_wo_128"}}, llama(576), words="q_proj"),
    Seen("group_size_divides", SILENT, {"layer_quant_config": {"*down_proj": "int4_wo_128"}}, llama(576)),
    Seen(
        "group_size_divides",
        SILENT,
        {"global_scheme": "int4_wo_128"},
        analysis_of("llama", [*decoder(), head(100)]),
    ),
    Seen(
        "group_size_divides",
        BLOCKS,
        {"global_scheme": "int4_wo_128", "exclude_layers": []},
        analysis_of("llama", [*decoder(), head(100)]),
        words="lm_head has 100 inputs",
    ),
    Seen("int8_collapses", SILENT),
    Seen("int8_collapses", WARNS, {"global_scheme": "int8"}, words="smoothquant"),
    Seen("int8_collapses", WARNS, {"global_scheme": "int8"}, qwen3_8b(), words="Take fp8"),
    Seen("int8_collapses", SILENT, {"global_scheme": "int8", "algorithm": "rotation"}),
    Seen("int8_collapses", WARNS, {"layer_quant_config": {"*mlp*": "int8"}}),
    Seen("fp4_emulated", SILENT),
    Seen("fp4_emulated", WARNS, {"global_scheme": "amdfp4"}),
    Seen("fp4_emulated", SILENT, {"global_scheme": "amdfp4"}, host=MI355X),
    Seen("fp4_emulated", WARNS, {"global_scheme": "mxfp4", "hardware": "MI300X"}, host=MI355X, words="MI300X"),
    Seen("fp4_emulated", SILENT, {"global_scheme": "amdfp4", "hardware": "MI355X"}),
    Seen("moe_per_channel_fp8", SILENT, {"global_scheme": "ptpc_fp8"}),
    Seen("moe_per_channel_fp8", SILENT, analysis=qwen3_moe()),
    Seen("moe_per_channel_fp8", WARNS, {"global_scheme": "ptpc_fp8"}, qwen3_moe()),
    Seen("tensor_parallel_limit", SILENT, {"global_scheme": "int4_wo_128"}, qwen3_8b()),
    Seen("tensor_parallel_limit", INFORMS, {"global_scheme": "int4_wo_64"}, llama(576), words="no tensor parallelism"),
    Seen("tensor_parallel_limit", INFORMS, {"global_scheme": "int4_wo_32"}, words="at most 4"),
    Seen("tensor_parallel_limit", SILENT, {"global_scheme": "int4_wo_32", "tensor_parallel": 8}),
    Seen("tensor_parallel_uneven", SILENT, {"global_scheme": "fp8"}),
    Seen("tensor_parallel_uneven", SILENT, {"global_scheme": "fp8", "tensor_parallel": 8}),
    Seen("tensor_parallel_uneven", WARNS, {"global_scheme": "fp8", "tensor_parallel": 7}, words="128 inputs"),
    Seen("tensor_parallel_refused", SILENT, {"global_scheme": "int4_wo_32"}),
    Seen("tensor_parallel_refused", SILENT, {"global_scheme": "int4_wo_32", "tensor_parallel": 4}),
    Seen("tensor_parallel_refused", SILENT, {"global_scheme": "fp8", "tensor_parallel": 8}),
    Seen("tensor_parallel_refused", SILENT, {"global_scheme": "int4_wo_64", "tensor_parallel": 1}, llama(576)),
    Seen(
        "tensor_parallel_refused",
        WARNS,
        {"global_scheme": "int4_wo_32", "tensor_parallel": 8},
        words="q_proj has 4 groups of 32",
    ),
    Seen("tensor_parallel_refused", WARNS, {"global_scheme": "mxfp4", "tensor_parallel": 8}, words="works is 4"),
    Seen(
        "tensor_parallel_refused",
        WARNS,
        {"global_scheme": "int4_wo_64", "tensor_parallel": 2},
        llama(576),
        words="Only a single",
    ),
    Seen("gguf_scheme", SILENT, {"global_scheme": "uint4_wo_32", "model_export": "gguf"}),
    Seen("gguf_scheme", SILENT),
    Seen("gguf_scheme", BLOCKS, {"global_scheme": "fp8", "model_export": "gguf"}, words="uint4_wo_32"),
    Seen("gguf_scheme", BLOCKS, {"global_scheme": "uint4_wo_32", "model_export": "gguf"}, qwen3_8b(), words="Qwen3"),
]

ALGORITHMS = [
    Seen("unknown_algorithm", SILENT, {"algorithm": "awq"}),
    Seen("unknown_algorithm", BLOCKS, {"algorithm": "gptqq"}, words="gptq"),
    Seen("algorithm_not_configured", SILENT, {"algorithm": "awq"}),
    Seen("algorithm_not_configured", BLOCKS, {"algorithm": "awq"}, qwen3_8b(), words="twobitscalar"),
    Seen(
        "algorithm_not_configured", BLOCKS, {"algorithm": "autosmoothquant,awq"}, qwen3_moe(), words="autosmoothquant"
    ),
    Seen("algorithm_not_configured", SILENT, {"algorithm": "nope"}),
    Seen("autoround_fails", SILENT, {"algorithm": "awq"}),
    Seen("autoround_fails", BLOCKS, {"algorithm": "autoround"}),
    Seen("algorithm_needs_gpu", BLOCKS, {"global_scheme": "mxfp4", "algorithm": "autosmoothquant"}, **ON_CPU),
    Seen("algorithm_needs_gpu", SILENT, {"global_scheme": "mxfp4", "algorithm": "autosmoothquant"}),
    Seen("algorithm_needs_gpu", SILENT, {"global_scheme": "mxfp4", "algorithm": "gptq"}, **ON_CPU),
    Seen("algorithm_repeated", SILENT, {"algorithm": "awq,gptq"}),
    Seen("algorithm_repeated", WARNS, {"algorithm": "awq,awq"}),
    Seen("algorithm_repeated", BLOCKS, {"algorithm": "awq,awq", "entry_point": "own"}),
    Seen("algorithm_odd", WARNS, {"algorithm": "awq"}, words="made for INT4"),
    Seen("algorithm_odd", WARNS, {"global_scheme": "int4_wo_128", "algorithm": "smoothquant"}),
    Seen("algorithm_odd", SILENT, {"global_scheme": "int4_wo_128", "algorithm": "awq"}),
    Seen("algorithm_odd", SILENT, {"algorithm": "smoothquant"}),
    Seen("algorithm_odd", SILENT, {"algorithm": "rotation"}),
    Seen("algorithm_not_configured", BLOCKS, {"algorithm": "awq"}, qwen3(), KNOWING, words="write the configuration"),
    Seen("algorithm_not_configured", SILENT, {"algorithm": "awq", **WRITE}, qwen3(), KNOWING),
    Seen("algorithm_config_written", SILENT, {"algorithm": "awq"}, qwen3(), KNOWING),
    Seen(
        "algorithm_config_written", WARNS, {"algorithm": "awq", **WRITE}, qwen3(), KNOWING, words="after that of qwen2"
    ),
    Seen("algorithm_config_unused", SILENT, {"algorithm": "awq", **WRITE}, qwen3(), KNOWING),
    Seen("algorithm_config_unused", WARNS, {"algorithm": "awq", **WRITE}, host=KNOWING, words="its own of awq"),
    Seen("algorithm_config_unused", WARNS, WRITE, host=KNOWING, words="no algorithm"),
    *(
        Seen("algorithm_needs_gpu", BLOCKS, {"global_scheme": name, "algorithm": "autosmoothquant"}, **ON_CPU)
        for name in ("mxfp4_fp8", "mxfp4_weight_only", "mxfp4_mxfp6_e2m3")
    ),
    Seen("algorithm_needs_gpu", SILENT, {"global_scheme": "mxfp6_e2m3", "algorithm": "autosmoothquant"}, **ON_CPU),
    *(
        Seen("algorithm_scheme_unsupported", BLOCKS, {"global_scheme": scheme, "algorithm": name}, words="two stages")
        for scheme in ("nvfp4", "int4_fp8", "fp4_block16_scale_e4m3", "amdfp4_global16")
        for name in ("awq", "gptq", "gptaq", "qronos", "autosmoothquant")
    ),
    *(
        Seen("algorithm_scheme_unsupported", BLOCKS, {"global_scheme": "mxfp6_e3m2", "algorithm": name}, words="6 bits")
        for name in ("gptq", "gptaq", "qronos")
    ),
    *(
        Seen("algorithm_scheme_unsupported", SILENT, {"global_scheme": scheme, "algorithm": name})
        for scheme, name in (
            ("nvfp4", "smoothquant"),
            ("nvfp4", "rotation"),
            ("nvfp4", "twobitscalar"),
            ("mxfp6_e3m2", "awq"),
            ("mxfp4", "gptq"),
            ("amdfp4", "gptq"),
        )
    ),
    Seen(
        "algorithm_scheme_unsupported",
        BLOCKS,
        {"algorithm": "gptq", "layer_quant_config": {"*down_proj": "nvfp4"}},
        host=KNOWING,
    ),
    Seen(  # outside the repeated layers no algorithm looks at it
        "algorithm_scheme_unsupported",
        SILENT,
        {"algorithm": "awq,gptq", "layer_quant_config": {"lm_head": "nvfp4"}, "exclude_layers": ["x"]},
        host=KNOWING,
    ),
    *(
        Seen(
            "algorithm_splits_layers",
            BLOCKS,
            {"algorithm": name, "exclude_layers": ["lm_head", left]},
            host=KNOWING,
            words=words,
        )
        for name in ("awq", "autosmoothquant")
        for left, words in (("*k_proj", "0.self_attn.k_proj"), ("*v_proj", "v_proj"), ("*1.mlp.up_proj", "1.mlp.up"))
    ),
    *(
        Seen("algorithm_splits_layers", SILENT, {"algorithm": name, "exclude_layers": ["lm_head", left]}, host=KNOWING)
        for name in ("awq", "autosmoothquant")
        for left in ("*q_proj", "*self_attn*", "*o_proj", "*layers.0.*", "*down_proj")
    ),
    Seen("algorithm_splits_layers", SILENT, {"algorithm": "smoothquant", **WITHOUT_KEYS}, host=KNOWING),
    Seen("algorithm_splits_layers", SILENT, {"algorithm": "gptq", **WITHOUT_KEYS}, host=KNOWING),
    Seen(
        "algorithm_splits_layers",
        BLOCKS,
        {"global_scheme": "int4_wo_32", "algorithm": "awq", "layer_quant_config": {"*k_proj": "int4_wo_64"}},
        host=KNOWING,
        words="same group size",
    ),
    Seen(
        "algorithm_splits_layers",
        SILENT,
        {
            "global_scheme": "int4_wo_32",
            "algorithm": "autosmoothquant",
            "layer_quant_config": {"*k_proj": "int4_wo_64"},
        },
        host=KNOWING,
    ),
    Seen(
        "algorithm_splits_layers",
        SILENT,
        {"global_scheme": "int4_wo_32", "algorithm": "awq", "layer_quant_config": {"*self_attn*": "fp8"}},
        host=KNOWING,
    ),
    *(
        Seen("rotation_size", SILENT, {"algorithm": "rotation"}, llama(hidden, hidden_size=hidden))
        for hidden in (64, 96, 576, 5120)
    ),
    Seen("rotation_size", SILENT, {"algorithm": "smoothquant"}, llama(100, hidden_size=100)),
    Seen("rotation_size", BLOCKS, {"algorithm": "rotation"}, llama(100, hidden_size=100), words="100"),
    Seen("rotation_unties", SILENT, {"algorithm": "rotation"}),
    Seen("rotation_unties", SILENT, {"algorithm": "awq"}, TIED),
    Seen("rotation_unties", WARNS, {"algorithm": "rotation"}, TIED, words="lm_head of its own"),
    Seen("experts_without_tokens", SILENT, {"algorithm": "gptq"}, host=KNOWING),
    Seen("experts_without_tokens", SILENT, {"algorithm": "gptq", **WRITE}, mixture(), KNOWING),  # attention alone
    Seen("experts_without_tokens", SILENT, {"algorithm": "awq"}, HUGE, KNOWING),
    Seen("experts_without_tokens", WARNS, {"algorithm": "gptq"}, HUGE, KNOWING, words="among 256 experts"),
    Seen("algorithm_order", SILENT, {"algorithm": "rotation,awq,gptq"}),
    Seen("algorithm_order", WARNS, {"algorithm": "gptq,awq"}, words="awq,gptq"),
    Seen("algorithm_order", WARNS, {"algorithm": "gptq,qronos"}, words="rounds again"),
]

LAYERS = [
    Seen("exclusions_differ", SILENT),
    Seen("exclusions_differ", SILENT, after={"exclude_layers": ["*"], "exclude_layers_changed": True}),
    Seen("exclusions_differ", BLOCKS, after={"exclude_layers": ["*mlp*"]}),
    Seen("exclusion_dropped", SILENT),
    Seen("exclusion_dropped", SILENT, {"exclude_layers": ["lm_head", "*o_proj"]}),
    Seen("exclusion_dropped", SILENT, {"exclude_layers": ["*lm_head*"]}),
    Seen(
        "exclusion_dropped",
        WARNS,
        {"exclude_layers": ["*o_proj"]},
        words="now 1 layer of it would be quantized: lm_head",
    ),
    Seen(
        "exclusion_dropped",
        WARNS,
        {"exclude_layers": ["lm_head"]},
        qwen3_moe(),
        words="now 2 layers of it would be quantized: model.layers.*.mlp.gate",
    ),
    Seen(
        "exclusion_dropped", WARNS, {"exclude_layers": ["*o_proj"]}, analysis_of("llama", decoder()), words="no longer"
    ),
    Seen("exclusion_matches_nothing", SILENT, {"exclude_layers": ["lm_head", "*o_proj"]}),
    Seen("exclusion_matches_nothing", SILENT, analysis=analysis_of("llama", decoder())),
    Seen("exclusion_matches_nothing", WARNS, {"exclude_layers": ["lm_head", "down_proj"]}, words="*down_proj would"),
    Seen(
        "exclusion_matches_nothing",
        WARNS,
        {"exclude_layers": ["lm_head", "down_proj"]},
        qwen3_8b(),
        words="would match 36 layers",
    ),
    Seen("exclusion_matches_nothing", WARNS, {"exclude_layers": ["lm_head", "*K_proj"]}, words="*k_proj* would"),
    Seen(
        "exclusion_matches_nothing",
        WARNS,
        {"exclude_layers": ["lm_head", *IDLE]},
        words="499 exclusions match no linear layer, so they leave nothing alone: "
        "*nothing.0.x, *nothing.1.x, *nothing.2.x and 496 more.",
    ),
    Seen(
        "override_matches_nothing",
        BLOCKS,
        {"layer_quant_config": dict.fromkeys(IDLE, "int8")},
        words="used nowhere: *nothing.100.x, *nothing.101.x, *nothing.102.x and 496 more.",
    ),
    Seen("override_matches_nothing", SILENT, {"layer_quant_config": {"*self_attn*": "int8"}}),
    Seen("override_matches_nothing", BLOCKS, {"layer_quant_config": {"*attention*": "int8"}}, words="named like"),
    Seen("override_matches_nothing", BLOCKS, {"layer_quant_config": {"self_attn": "int8"}}, words="*self_attn* would"),
    Seen("override_matches_nothing", BLOCKS, {"layer_quant_config": {"*attention*": "int8"}}, llama(**HEADERS)),
    Seen(
        "override_matches_nothing",
        WARNS,
        {"layer_quant_config": {"*attention*": "int8"}},
        llama(targets={"method": "headers", "provisional": True}),
        words="list of modules",
    ),
    Seen(
        "override_matches_nothing",
        WARNS,
        {"layer_quant_config": {"*attention*": "int8"}},
        llama(modalities=["vision"], **HEADERS),
    ),
    Seen("override_matches_nothing", SILENT, {"layer_quant_config": {"*embed_tokens": "int8"}}),
    Seen("override_reaches_embedding", SILENT, {"layer_quant_config": {"*layers*": "int8"}}),
    Seen("override_reaches_embedding", SILENT, {"layer_quant_config": {"*": "int8"}, "exclude_layers": ["*embed*"]}),
    Seen("override_reaches_embedding", WARNS, {"layer_quant_config": {"*": "int8"}}, words="model.embed_tokens"),
    Seen("override_reaches_embedding", WARNS, {"layer_quant_config": {"model.*": "int8"}}),
    Seen("override_matches_nothing", SILENT, {"layer_quant_config": {"*x*": "int8"}}, analysis_of("llama", [])),
    Seen("override_excluded", SILENT, {"layer_quant_config": {"*self_attn*": "int8"}}),
    Seen("override_excluded", WARNS, {"layer_quant_config": {"lm_head": "int8"}}, words="all layers"),
    Seen(
        "override_excluded",
        WARNS,
        {"exclude_layers": ["lm_head", "*layers.[0-8].*"], "layer_quant_config": {"*down_proj": "int8"}},
        qwen3_8b(),
        words="9 of the 36 layers",
    ),
    Seen("override_overlap", SILENT, {"layer_quant_config": {"*self_attn*": "int8", "*mlp*": "ptpc_fp8"}}),
    Seen("override_overlap", SILENT, {"layer_quant_config": {"*mlp*": "int8", "*down_proj": "int8"}}),
    Seen("override_overlap", SILENT, {"layer_quant_config": {"*layers.0.*": "int8", "*layers.1.*": "ptpc_fp8"}}),
    Seen(
        "override_overlap",
        WARNS,
        {"layer_quant_config": {"*layers.1?.*": "int8", "*down_proj": "ptpc_fp8"}},
        qwen3_8b(),
        words="both match 10 layers",
    ),
    Seen(
        "override_overlap",
        WARNS,
        {"layer_quant_config": {"*mlp*": "int8", "*down_proj": "ptpc_fp8"}},
        words="the more specific *down_proj (ptpc_fp8) counts",
    ),
    Seen("tied_head_quantized", SILENT, analysis=TIED),
    Seen("tied_head_quantized", SILENT, {"exclude_layers": []}),
    Seen("tied_head_quantized", WARNS, {"exclude_layers": []}, TIED),
]

KV_CACHE = [
    Seen("unknown_kv_scheme", SILENT, {"kv_cache_scheme": "fp8"}),
    Seen("unknown_kv_scheme", BLOCKS, {"kv_cache_scheme": "int8_per_token"}, words="It has fp8."),
    Seen("kv_layers_missing", SILENT, {"kv_cache_scheme": "fp8"}),
    Seen("kv_layers_missing", BLOCKS, {"kv_cache_scheme": "fp8"}, catalogue=NO_KV),
    Seen("kv_options_without_scheme", SILENT, {"kv_cache_scheme": "fp8", "min_kv_scale": 0.1}),
    Seen("kv_options_without_scheme", WARNS, {"min_kv_scale": 0.1}),
    Seen("kv_options_without_scheme", WARNS, {"kv_cache_post_rope": True}),
    *(
        Seen(
            "kv_layers_share_scheme", SILENT, {"kv_cache_scheme": "fp8", "layer_quant_config": {pattern: "int4_wo_32"}}
        )
        for pattern in ("*k_proj", "*self_attn*", "*attn*", "*", "*mlp*", "*layers.0.mlp*")
    ),
    Seen("kv_layers_share_scheme", SILENT, {"layer_quant_config": {"*layers.0.*": "int4_wo_32"}}),
    Seen("kv_layers_share_scheme", SILENT, {"kv_cache_scheme": "fp8", "exclude_layers": ["lm_head", "*k_proj"]}),
    Seen("kv_layers_share_scheme", SILENT, {"kv_cache_scheme": "fp8", "exclude_layers": ["lm_head", "*self_attn*"]}),
    Seen(
        "kv_layers_share_scheme",
        WARNS,
        {"kv_cache_scheme": "fp8", "layer_quant_config": {"*layers.0.*": "int4_wo_32"}},
        words="all 2 layers of *k_proj alike, as fp8; 1 layer was to get int4_wo_32",
    ),
    Seen(
        "kv_layers_share_scheme",
        WARNS,
        {"kv_cache_scheme": "fp8", "layer_quant_config": {"model.layers.5.self_attn.k_proj": "int4_wo_32"}},
        qwen3_8b(),
        words="as int4_wo_32; 35 layers were to get fp8",
    ),
    Seen(
        "kv_layers_share_scheme",
        WARNS,
        {"kv_cache_scheme": "fp8", "exclude_layers": ["lm_head", "model.layers.0.self_attn.v_proj"]},
        qwen3_8b(),
        words="as excluded; 35 layers were to get fp8",
    ),
    Seen("unknown_attention_scheme", SILENT),
    Seen("unknown_attention_scheme", SILENT, {"attention_dtype": "fp8"}),
    Seen("unknown_attention_scheme", BLOCKS, {"attention_dtype": "int8"}, words="It has fp8."),
    Seen("attention_partly", SILENT, {"attention_dtype": "fp8"}),
    Seen("attention_partly", SILENT, {"layer_quant_config": {"*self_attn*": "int4_wo_32"}}),
    Seen("attention_partly", SILENT, {"attention_dtype": "fp8", "layer_quant_config": {"*q_proj": "int4_wo_32"}}),
    Seen(
        "attention_partly",
        WARNS,
        {"attention_dtype": "fp8", "layer_quant_config": {"*self_attn*": "int4_wo_32"}},
        words="in 2 of the 2 layers of *q_proj",
    ),
    Seen(
        "attention_partly",
        WARNS,
        {"attention_dtype": "fp8", "layer_quant_config": {"model.layers.1.self_attn.q_proj": "int4_wo_32"}},
        words="1 of the 2 layers",
    ),
    Seen("attention_partly", WARNS, {"attention_dtype": "fp8", "exclude_layers": ["lm_head", "*layers.0.*"]}),
    Seen("attention_layers_missing", SILENT, {"attention_dtype": "fp8"}),
    Seen("attention_layers_missing", WARNS, {"attention_dtype": "fp8"}, catalogue=NO_KV),
    Seen("min_kv_scale_large", SILENT, {**KV, "min_kv_scale": 1}),
    Seen("min_kv_scale_large", SILENT, {"min_kv_scale": 1e308}),
    Seen("min_kv_scale_large", WARNS, {**KV, "min_kv_scale": 1.5}, words="at least that large"),
    Seen("min_kv_scale_large", WARNS, {**KV, "min_kv_scale": 1e38}),
    Seen("min_kv_scale_large", BLOCKS, {**KV, "min_kv_scale": 1e308}, words="ends at 3.39e+38"),
    Seen("min_kv_scale_large", BLOCKS, {**KV, "min_kv_scale": 65505, "data_type": "float16"}, words="65505"),
    Seen("min_kv_scale_large", BLOCKS, {**KV, "min_kv_scale": 65505}, llama(dtype="F16")),
    Seen("min_kv_scale_large", WARNS, {**KV, "min_kv_scale": 3.4e38}, llama(dtype="F32")),
    Seen("min_kv_scale_large", BLOCKS, {**KV, "min_kv_scale": 3.4e38}),
    Seen("kv_scales_ignored", SILENT),
    Seen("kv_scales_ignored", INFORMS, {"kv_cache_scheme": "fp8"}),
]

CALIBRATION = [
    Seen("dataset_not_here", SILENT),
    Seen("dataset_not_here", SILENT, {"calibration": {"dataset": "calibration.txt"}}),
    Seen("dataset_not_here", SILENT, {"calibration": {"dataset": "wikitext_for_gptq_benchmark"}}),
    Seen("dataset_not_here", BLOCKS, {"calibration": {"dataset": "cnn_dailymail"}}, words="pileval, wikitext"),
    Seen("dataset_not_here", SILENT, {"calibration": {"dataset": "cnn_dailymail"}}, host=but(MI300X, offline=False)),
    Seen("dataset_not_here", BLOCKS, {"calibration": {"dataset": "pilevall"}}, words="pileval?"),
    Seen("dataset_not_here", BLOCKS, {"calibration": {"dataset": "../x.txt"}}, host=but(MI300X, offline=False)),
    Seen("dataset_not_here", BLOCKS, host=but(MI300X, datasets=[]), words="It holds none."),
    Seen("dataset_is_file", SILENT, {"calibration": {"dataset": "calibration.txt"}}),
    Seen("dataset_is_file", BLOCKS, {"calibration": {"dataset": "calibration.txt"}, "entry_point": "quantize_quark"}),
    Seen("calibration_huge", SILENT),
    Seen("calibration_huge", SILENT, {"calibration": {"num_calib_data": 2048, "seq_len": 4096}}),
    Seen("calibration_huge", WARNS, {"calibration": {"num_calib_data": 999_999}}, words="511,999,488 tokens"),
    Seen("calibration_huge", WARNS, {"calibration": {"num_calib_data": 999_999}}, qwen3_8b(), words="very least"),
    Seen(
        "calibration_huge",
        WARNS,
        {"calibration": {"num_calib_data": 999_999, "seq_len": 131_072}},
        qwen3_8b(),
        **ON_CPU,
        words="7 years",
    ),
    Seen("calibration_huge", WARNS, {"calibration": {"num_calib_data": 1024, "batch_size": 1024}}, words="One batch"),
    Seen(
        "calibration_huge",
        WARNS,
        {"calibration": {"num_calib_data": 2, "seq_len": 1_048_576, "batch_size": 1}},
        words="1 sample of 1,048,576 tokens, which have to fit into memory at once. Take a smaller seq_len.",
    ),
    Seen("calibration_huge", SILENT, {"calibration": {"num_calib_data": 1, "batch_size": 65_536}}),
    Seen("text_too_short", SILENT, own(), host=LONG_TEXT),
    Seen("text_too_short", SILENT, own(), host=but(TEXT, dataset_bytes={})),
    Seen("text_too_short", SILENT, {"entry_point": "own"}, host=but(MI300X, dataset_bytes={"calibration.txt": 1})),
    Seen("text_too_short", SILENT, own({"num_calib_data": 19}), host=TEXT),
    Seen("text_too_short", WARNS, own(), host=but(LONG_TEXT, dataset_bytes={"text.txt": 278_000}), words="may be too"),
    Seen("text_too_short", WARNS, own(), host=but(TEXT, dataset_bytes={"text.txt": 69_616}), words="num_calib_data 14"),
    Seen(
        "text_too_short",
        BLOCKS,
        own(),
        host=but(TEXT, dataset_bytes={"text.txt": 69_615}),
        words="128 samples of 512 tokens and 4,096 for the evaluation need 69,632 tokens, and it has 69,615 bytes.",
    ),
    Seen(
        "text_too_short", BLOCKS, {}, host=but(TEXT, dataset_bytes={"text.txt": 9000}), words="Not one sample of this"
    ),
    Seen(
        "text_too_short",
        WARNS,
        own(evaluation_intent="none"),
        host=but(TEXT, dataset_bytes={"text.txt": 65_520}),
        words="128 samples of 512 tokens need 65,536 tokens",
    ),
    Seen(
        "text_too_short",
        BLOCKS,
        own(evaluation_intent="full"),
        host=but(TEXT, dataset_bytes={"text.txt": 65_536}),
        words="2,048 for the evaluation",
    ),
    Seen("batch_not_full", SILENT, {"calibration": {"batch_size": 64}}),
    Seen("batch_not_full", SILENT, {"calibration": {"batch_size": 129}}),
    Seen("batch_not_full", SILENT, {"calibration": {"batch_size": 100}, "entry_point": "own"}),
    Seen("batch_not_full", WARNS, {"calibration": {"batch_size": 100}}, words="28 samples of 128 are ignored"),
    Seen("batch_not_full", WARNS, {"calibration": {"num_calib_data": 9, "batch_size": 8}}, words="1 sample of 9 is"),
    Seen("batch_not_full", WARNS, {"calibration": {"batch_size": 3}, "entry_point": "quark_cli"}, words="126 or 129"),
    Seen("calibration_small", SILENT, {"algorithm": "gptq"}),
    Seen("calibration_small", SILENT, {"calibration": {"num_calib_data": 1, "seq_len": 8}}),
    Seen(
        "calibration_small",
        WARNS,
        {"algorithm": "gptq", "calibration": {"num_calib_data": 4}},
        llama(4096),
        words="4,096 inputs",
    ),
    Seen("seq_len_beyond_model", SILENT),
    Seen("seq_len_beyond_model", SILENT, {"calibration": {"seq_len": 2048}}, llama(max_positions=2048)),
    Seen("seq_len_beyond_model", WARNS, {"calibration": {"seq_len": 2049}}, llama(max_positions=2048), words="2,048"),
    Seen("batch_too_large", SILENT, {"calibration": {"batch_size": 128}}),
    Seen("batch_too_large", BLOCKS, {"calibration": {"batch_size": 129}}),
    Seen("batch_too_large", SILENT, {"calibration": {"batch_size": 129}, "entry_point": "own"}),
    Seen("result_unusable_here", BLOCKS, {"global_scheme": "amdfp4_global16", "evaluation_intent": "smoke"}),
    Seen("result_unusable_here", WARNS, {"global_scheme": "amdfp4_global32", "evaluation_intent": "none"}),
    Seen("result_unusable_here", SILENT, {"global_scheme": "amdfp4", "evaluation_intent": "smoke"}),
    Seen("result_unusable_here", SILENT, {"global_scheme": "nvfp4", "evaluation_intent": "smoke"}),
    Seen("evaluation_needs_gpu", SILENT, {"global_scheme": "mxfp4", "evaluation_intent": "smoke"}),
    Seen(
        "evaluation_needs_gpu", BLOCKS, {"global_scheme": "mxfp4", "evaluation_intent": "smoke"}, **ON_CPU, words="Skip"
    ),
    Seen(
        "evaluation_needs_gpu",
        BLOCKS,
        {"layer_quant_config": {"*mlp*": "mxfp4"}, "evaluation_intent": "full"},
        **ON_CPU,
    ),
    Seen("evaluation_needs_gpu", WARNS, {"global_scheme": "mxfp4"}, **ON_CPU),
    Seen(
        "evaluation_needs_gpu", SILENT, {"global_scheme": "mxfp4_weight_only", "evaluation_intent": "smoke"}, **ON_CPU
    ),
    Seen("evaluation_needs_gpu", SILENT, {"global_scheme": "mxfp6_e2m3", "evaluation_intent": "full"}, **ON_CPU),
    Seen("evaluation_runs_code", SILENT),
    Seen("evaluation_runs_code", WARNS, analysis=llama(**CODE)),
    Seen("evaluation_runs_code", BLOCKS, {"evaluation_intent": "smoke"}, llama(**CODE)),
    Seen("evaluation_runs_code", SILENT, {"evaluation_intent": "smoke", "entry_point": "own"}, llama(**CODE)),
    Seen("evaluation_runs_code", INFORMS, {"evaluation_intent": "none"}, llama(**CODE), words="as requested"),
    Seen("evaluation_data_missing", INFORMS, {"evaluation_intent": "none"}, host=NO_WIKITEXT, words="as requested"),
    Seen("evaluation_data_missing", SILENT),
    Seen("evaluation_data_missing", WARNS, host=but(MI300X, datasets=["pileval"])),
    Seen("evaluation_data_missing", BLOCKS, {"evaluation_intent": "full"}, host=but(MI300X, datasets=["pileval"])),
    Seen("evaluation_data_missing", SILENT, host=but(MI300X, datasets=["calibration.txt"])),
]

HOST = [
    Seen("device_unknown", SILENT),
    Seen("device_unknown", SILENT, **ON_CPU),
    Seen("device_unknown", WARNS, host=but(MI300X, accelerator="unknown")),
    Seen("device_unknown", WARNS, catalogue=recorded(), words="This host has a GPU"),
    Seen("device_unknown", BLOCKS, after={"device": "cuda"}, **ON_CPU),
    Seen("device_unknown", BLOCKS, after={"device": "cuda"}, host=CPU, words="this host has none"),
    Seen("entry_point_missing", SILENT),
    Seen("entry_point_missing", BLOCKS, {"entry_point": "quantize_quark"}, **ON_CPU, words="Usable here: own."),
    Seen("checkout_differs", SILENT),
    Seen("checkout_differs", SILENT, host=UNFIT),
    Seen(
        "checkout_differs",
        BLOCKS,
        {"entry_point": "quantize_quark"},
        host=UNFIT,
        words="quantize_quark needs quark.torch.new, which the installed Quark does not have: it would end",
    ),
    Seen("flag_not_offered", SILENT),
    Seen("flag_not_offered", SILENT, {"model_export": "onnx", "data_type": "float16", "tasks": "arc"}),
    Seen(
        "flag_not_offered", BLOCKS, {"model_export": "onnx"}, **ON_CPU, words="quantize_quark (not found on this host"
    ),
    Seen("flag_not_offered", SILENT, {"kv_cache_scheme": "fp8", "min_kv_scale": 0.1, "entry_point": "own"}),
    Seen("flag_not_offered", SILENT, {"min_kv_scale": 0.1, "entry_point": "quark_cli"}),
    *(
        Seen("flag_not_offered", BLOCKS, {**asked, "entry_point": entry_point}, host=host, words=words)
        for entry_point, asked, host, words in (
            ("quark_cli", {"kv_cache_scheme": "fp8", "kv_cache_post_rope": True}, ONLINE, "kv_cache_post_rope"),
            ("quark_cli", {"kv_cache_scheme": "fp8", "min_kv_scale": 0.1}, ONLINE, "Take quantize_quark or own,"),
            ("quark_cli", {"multi_gpu": "auto"}, ONLINE, "quark_cli has no flag for multi_gpu (--multi_gpu)."),
            ("quark_cli", {"data_type": "float16"}, ONLINE, "--data_type"),
            ("quark_cli", {"evaluation_dataset": "wikitext_gpt_oss_20b"}, ONLINE, "Take quantize_quark,"),
            ("quantize_quark", {"evaluation_dataset": "c4"}, MI300X, "No entry point can do that"),
            ("quantize_quark", {"template_file": "/models/t.json"}, MI300X, "Take quark_cli (not found on this host),"),
            ("quantize_quark", {"attention_dtype": "int8"}, MI300X, "takes only fp8 for attention_dtype"),
            ("own", {"attention_dtype": "fp8"}, MI300X, "Take quantize_quark,"),
            ("own", {"file2file_quantization": True}, MI300X, "--file2file_quantization"),
            ("own", {"num_eval_data": 8, "evaluation_intent": "full"}, MI300X, "--num_eval_data"),
            ("own", {"tasks": "arc"}, ONLINE, "--tasks"),
            ("own", {"model_export": "gguf"}, MI300X, "own takes only hf_format for model_export (--model_export)"),
            ("site", {"data_type": "float16"}, MI300X, "Take quantize_quark or own,"),
            ("site", {"trust_remote_code": True}, MI300X, "--trust_remote_code"),
        )
    ),
    Seen("flag_not_offered", BLOCKS, {"entry_point": "quark_cli"}, HUB, ONLINE, words="or download the model"),
    Seen("flag_not_offered", SILENT, {"entry_point": "own"}, HUB, ONLINE),
    Seen("cli_limits", SILENT),
    Seen("cli_limits", WARNS, {"entry_point": "quark_cli"}, host=ONLINE, words="not tried"),
    Seen("cli_limits", BLOCKS, {"entry_point": "quark_cli"}, words="only from the hub"),
    Seen("cli_limits", BLOCKS, {"entry_point": "quark_cli"}, **ON_CPU, words="without a GPU"),
    Seen("site_may_run_code", SILENT, {"entry_point": "site"}),
    Seen("site_may_run_code", SILENT, analysis=llama(**CODE)),
    Seen("site_may_run_code", BLOCKS, {"entry_point": "site"}, llama(**CODE), words="modeling.Own"),
    Seen("several_gpus", SILENT, {"multi_gpu": "auto"}, host=but(MI300X, gpus_per_run=4)),
    Seen("several_gpus", WARNS, {"multi_gpu": "auto"}, words="one GPU"),
    Seen("several_gpus", SILENT, {"multi_device": True}),
    Seen("several_gpus", BLOCKS, {"multi_device": True, "algorithm": "smoothquant"}, words="smoothquant"),
    Seen("several_gpus", BLOCKS, {"multi_gpu": "auto"}, **ON_CPU, words="multi_gpu needs a GPU"),
    Seen("file2file_limits", SILENT),
    Seen("file2file_limits", SILENT, {"global_scheme": "mxfp4", "file2file_quantization": True}),
    Seen("file2file_limits", SILENT, {"global_scheme": "ptpc_fp8", "file2file_quantization": True}),
    Seen("file2file_limits", BLOCKS, {"file2file_quantization": True}, words="fp8 has activation scales"),
    *(
        Seen("file2file_limits", severity, {"global_scheme": "mxfp4", "file2file_quantization": True, **asked}, **where)
        for severity, asked, where in (
            (BLOCKS, {"kv_cache_scheme": "fp8"}, {"words": "KV cache"}),
            (BLOCKS, {"algorithm": "awq"}, {"words": "awq needs the model"}),
            (BLOCKS, {"attention_dtype": "fp8"}, {"words": "attention scales"}),
            (BLOCKS, {"model_export": "onnx"}, {"words": "only hf_format"}),
            (BLOCKS, {}, {**ON_CPU, "words": "only on a GPU"}),
            (WARNS, {"evaluation_intent": "smoke"}, {"words": "Nothing is measured"}),
        )
    ),
    Seen("evaluation_option_unused", SILENT, {"tasks": "arc"}),
    Seen("evaluation_option_unused", WARNS, {"tasks": "arc", "evaluation_intent": "none"}, words="tasks has no effect"),
    Seen("evaluation_option_unused", WARNS, {"num_eval_data": 8, "evaluation_intent": "none"}),
    Seen("tasks_need_hub", SILENT, {"tasks": "arc"}, host=ONLINE),
    Seen("tasks_need_hub", SILENT, {"tasks": "arc", "evaluation_intent": "none"}),
    Seen("tasks_need_hub", BLOCKS, {"tasks": "arc"}),
    Seen("template_file_path", SILENT, {"template_file": "/models/t.json"}),
    Seen("template_file_path", BLOCKS, {"template_file": "t.json"}, words="whole path"),
    Seen("disk_too_small", SILENT),
    Seen("disk_too_small", SILENT, host=but(MI300X, disk_free_bytes=None)),
    Seen("disk_too_small", BLOCKS, host=but(MI300X, disk_free_bytes=10**6), words="1.4 MB"),
    Seen("disk_too_small", SILENT, host=but(MI300X, disk_free_bytes=10**9)),
    Seen(
        "disk_too_small", BLOCKS, host=but(MI300X, disk_free_bytes=10**9, disk_reserve_bytes=10**9), words="1.0 GB stay"
    ),
]

GPU_80 = but(MI300X, gpu_memory=(80 * 10**9,), gpu_free=(80 * 10**9,))
GPU_24 = but(MI300X, gpu_memory=(24 * 10**9,), gpu_free=(24 * 10**9,))
GPU_12 = but(MI300X, gpu_memory=(12 * 10**9,) * 2, gpu_free=(12 * 10**9,) * 2)
RAM_64 = but(CPU, host_memory_bytes=64 * 10**9, host_memory_free_bytes=60 * 10**9)
LONG: dict[str, Any] = {"calibration": {"num_calib_data": 4096, "seq_len": 4096}, "algorithm": "gptq"}
MEMORY = [
    Seen("gpu_memory_short", SILENT, analysis=qwen3_8b(), host=GPU_80),
    Seen("gpu_memory_short", SILENT, analysis=qwen3_8b(), host=MI300X),
    Seen("gpu_memory_short", SILENT, analysis=qwen3_8b(), host=CPU, catalogue=recorded()),
    Seen("gpu_memory_short", WARNS, analysis=qwen3_8b(), host=GPU_24, words="35.3 GB"),
    Seen("gpu_memory_short", WARNS, {"global_scheme": "ptpc_fp8"}, qwen3_8b(), GPU_24, words="file2file"),
    Seen("gpu_memory_short", WARNS, LONG, qwen3_8b(), GPU_80, words="fewer or shorter samples"),
    Seen("gpu_memory_short", WARNS, analysis=qwen3_8b(), host=but(GPU_80, gpu_free=(9**9,)), words="let it end"),
    Seen("gpu_memory_short", BLOCKS, analysis=qwen3_8b(), host=GPU_12, words="12.0 GB"),
    Seen("gpu_memory_short", BLOCKS, analysis=qwen3_8b(), host=but(GPU_12, gpus_per_run=2), words="multi_gpu"),
    Seen(
        "gpu_memory_short",
        WARNS,
        {"multi_gpu": "auto", "entry_point": "own"},
        qwen3_8b(),
        but(GPU_12, gpus_per_run=2),
        words="24.0 GB are there",
    ),
    Seen("host_memory_short", SILENT, analysis=qwen3_8b(), host=RAM_64, catalogue=recorded()),
    Seen("host_memory_short", SILENT, analysis=qwen3_8b(), **ON_CPU),
    Seen(
        "host_memory_short",
        WARNS,
        analysis=qwen3_8b(),
        host=but(RAM_64, host_memory_bytes=24 * 10**9),
        catalogue=recorded(),
        words="24.0 GB are there",
    ),
    Seen(
        "host_memory_short",
        WARNS,
        analysis=qwen3_8b(),
        host=but(RAM_64, host_memory_free_bytes=8 * 10**9),
        catalogue=recorded(),
        words="8.0 GB were available",
    ),
    Seen(
        "host_memory_short",
        BLOCKS,
        analysis=qwen3_8b(),
        host=but(RAM_64, host_memory_bytes=16 * 10**9),
        catalogue=recorded(),
        words="16.4 GB",
    ),
]

TABLE = [*MODEL, *SCHEMES, *ALGORITHMS, *LAYERS, *KV_CACHE, *CALIBRATION, *MEMORY, *HOST]


@pytest.mark.parametrize("seen", TABLE, ids=[f"{i}-{s.code}-{s.severity or 'silent'}" for i, s in enumerate(TABLE)])
def test_what_a_rule_says(seen: Seen) -> None:
    found = seen.findings()
    if seen.severity is None:
        assert found == []
        return
    assert found, "the rule says nothing"
    assert found[0].severity is seen.severity
    assert seen.words in " ".join(f"{finding.message} {finding.hint}" for finding in found)


def test_every_rule_is_seen_to_speak_and_to_be_silent() -> None:
    assert set(RULES) == {seen.code for seen in TABLE if seen.severity} == {s.code for s in TABLE if not s.severity}


def test_every_rule_says_where_it_comes_from() -> None:
    assert [code for code, found in RULES.items() if not (found.__doc__ or "").strip()] == []


def test_a_code_belongs_to_one_rule() -> None:
    with pytest.raises(ValueError, match="two rules"):
        rule("unknown_scheme")(lambda _: iter(()))


@pytest.mark.parametrize("seen", [seen for seen in TABLE if seen.severity], ids=lambda seen: seen.code)
def test_findings_are_sentences(seen: Seen) -> None:
    for finding in seen.findings():
        for text in filter(None, (finding.message, finding.hint)):
            assert text[-1] in ".?", text
            assert "None" not in text
            assert "  " not in text


def test_one_finding_tells_of_all_patterns_that_match_nothing() -> None:
    asked = {"exclude_layers": ["lm_head", *IDLE], "layer_quant_config": dict.fromkeys(IDLE, "int8")}
    plan = make_plan(llama(), PlanChoices(global_scheme="fp8", **asked), with_gpu_torch(), MI300X)
    for code in ("exclusion_matches_nothing", "override_matches_nothing"):
        assert [finding.code for finding in plan.findings].count(code) == 1


@pytest.mark.parametrize("blank", ["", " "])
def test_no_finding_quotes_a_pattern_without_end(blank: str) -> None:
    long = LONG_NAME.replace("xxxx", f"xxxx{blank}")[:4000]
    asked = {
        "exclude_layers": [long, f"{long}y", "*q_proj*" + "*" * 3000],
        "layer_quant_config": {long: "int8", "*k_proj*" + "*" * 3000: "fp9", "*" * 3000: "int8"},
        "kv_cache_scheme": "x" * 3000,
        "algorithm": "y" * 3000,
        "template_file": "z" * 3000,
    }
    plan = make_plan(llama(), PlanChoices(global_scheme="w" * 3000, **asked), with_gpu_torch(), MI300X)
    assert plan.findings
    for finding in plan.findings:
        assert len(finding.message) < 600
        assert len(finding.hint) < 600


def test_hundreds_of_findings_of_one_kind_are_told_by_a_few() -> None:
    names = {f"model.layers.{number}.*": "int8" for number in range(36)}
    choices = PlanChoices(global_scheme="fp8", layer_quant_config={**names, "*q_proj": "ptpc_fp8"})
    plan = make_plan(qwen3_8b(), choices, with_gpu_torch(), MI300X)
    found = [finding.message for finding in plan.findings if finding.code == "override_overlap"]
    assert len(found) == 4
    assert found[3] == "The like holds 33 more times in this plan."


def test_what_nobody_wanted_evaluated_is_no_risk() -> None:
    plan = make_plan(llama(), PlanChoices(global_scheme="fp8", evaluation_intent="none"), with_gpu_torch(), NO_WIKITEXT)
    assert "evaluation_data_missing" not in plan.risks


def test_a_substitute_that_is_too_short_for_the_defaults_is_told() -> None:
    plan = make_plan(
        llama(), PlanChoices(global_scheme="fp8"), with_gpu_torch(), but(TEXT, dataset_bytes={"text.txt": 9})
    )
    assert (plan.calibration.dataset, plan.calibration.num_calib_data) == ("text.txt", 128)
    assert "text_too_short" in [finding.code for finding in plan.blocked_by]


def test_findings_come_gravest_first() -> None:
    choices = PlanChoices(global_scheme="int8", kv_cache_scheme="fp8", algorithm="autoround", exclude_layers=["x"])
    plan = make_plan(llama(), choices, with_gpu_torch(), MI300X)
    order = [Severity.BLOCKS, Severity.WARNS, Severity.INFORMS]
    ranks = [order.index(finding.severity) for finding in plan.findings]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}


def test_a_large_mixture_is_planned_while_a_person_waits() -> None:
    """46,848 expert layers, and a default exclusion that names one layer, so that every name is looked at."""
    shapes = [*experts(256, 2048, hidden=7168, layers=61), Shape("lm_head", 1, 7168, 129_280, excluded=True)]
    analysis = analysis_of("deepseek_v32", shapes, hidden_layers=61, experts=256, is_moe=True)
    started = time.monotonic()
    plan = make_plan(analysis, PlanChoices(global_scheme="fp8"), with_gpu_torch(), MI300X)
    assert time.monotonic() - started < 10
    assert plan.blocked_by == []
