"""Every rule: a plan on which it speaks and how gravely, and plans on which it is silent."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from runner.planning import HostView, find_findings, make_plan
from runner.planning.rules.registry import RULES, rule
from schemas.artifacts.analysis import Compatibility, ModelAnalysis
from schemas.artifacts.plan import Finding, PlanChoices, Severity
from schemas.catalog import Catalogue
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


ON_CPU: dict[str, Any] = {"host": CPU, "catalogue": recorded()}
HEADERS: dict[str, Any] = {"targets": {"method": "headers"}}
TIED = llama(tied_embeddings=True)
CODE: dict[str, Any] = {"remote_code": ["config.json: AutoModelForCausalLM -> modeling.Own"]}
UNKNOWN_CODE = analysis_of(
    "own_type", decoder(), compatibility=Compatibility(status="ok", message="", template="llama"), **CODE
)
NO_KV = with_gpu_torch().model_copy(
    update={
        "templates": {"llama": with_gpu_torch().templates["llama"].model_copy(update={"kv_layers": []})},
    }
)

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
]

LAYERS = [
    Seen("exclusions_differ", SILENT),
    Seen("exclusions_differ", SILENT, after={"exclude_layers": ["*"], "exclude_layers_changed": True}),
    Seen("exclusions_differ", BLOCKS, after={"exclude_layers": ["*mlp*"]}),
    Seen("exclusion_dropped", SILENT),
    Seen("exclusion_dropped", SILENT, {"exclude_layers": ["lm_head", "*o_proj"]}),
    Seen("exclusion_dropped", SILENT, {"exclude_layers": ["*lm_head*"]}),
    Seen("exclusion_dropped", WARNS, {"exclude_layers": ["*o_proj"]}, words="lm_head would be quantized"),
    Seen("exclusion_dropped", WARNS, {"exclude_layers": ["lm_head"]}, qwen3_moe(), words="mlp.gate would be quantized"),
    Seen(
        "exclusion_dropped", WARNS, {"exclude_layers": ["*o_proj"]}, analysis_of("llama", decoder()), words="no longer"
    ),
    Seen("exclusion_matches_nothing", SILENT, {"exclude_layers": ["lm_head", "*o_proj"]}),
    Seen("exclusion_matches_nothing", SILENT, analysis=analysis_of("llama", decoder())),
    Seen("exclusion_matches_nothing", WARNS, {"exclude_layers": ["lm_head", "down_proj"]}, words="*down_proj would"),
    Seen("override_matches_nothing", SILENT, {"layer_quant_config": {"*self_attn*": "int8"}}),
    Seen("override_matches_nothing", BLOCKS, {"layer_quant_config": {"*attention*": "int8"}}, words="named like"),
    Seen("override_matches_nothing", BLOCKS, {"layer_quant_config": {"self_attn": "int8"}}, words="*self_attn* would"),
    Seen("override_matches_nothing", WARNS, {"layer_quant_config": {"*attention*": "int8"}}, llama(**HEADERS)),
    Seen("override_matches_nothing", SILENT, {"layer_quant_config": {"*x*": "int8"}}, analysis_of("llama", [])),
    Seen("override_excluded", SILENT, {"layer_quant_config": {"*self_attn*": "int8"}}),
    Seen("override_excluded", WARNS, {"layer_quant_config": {"lm_head": "int8"}}, words="lm_head is excluded"),
    Seen("override_overlap", SILENT, {"layer_quant_config": {"*self_attn*": "int8", "*mlp*": "ptpc_fp8"}}),
    Seen("override_overlap", SILENT, {"layer_quant_config": {"*mlp*": "int8", "*down_proj": "int8"}}),
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
    Seen("export_not_supported", SILENT, {"model_export": "onnx"}),
    Seen("export_not_supported", BLOCKS, {"model_export": "onnx"}, **ON_CPU),
    Seen("cli_limits", SILENT),
    Seen("cli_limits", WARNS, {"entry_point": "quark_cli"}, host=but(MI300X, offline=False), words="not tried"),
    Seen("cli_limits", BLOCKS, {"entry_point": "quark_cli"}, words="only from the hub"),
    Seen(
        "cli_limits",
        BLOCKS,
        {"entry_point": "quark_cli", "kv_cache_scheme": "fp8", "kv_cache_post_rope": True},
        host=but(MI300X, offline=False),
        words="kv_cache_post_rope",
    ),
    Seen("cli_limits", BLOCKS, {"entry_point": "quark_cli"}, **ON_CPU, words="without a GPU"),
    Seen("disk_too_small", SILENT),
    Seen("disk_too_small", SILENT, host=but(MI300X, disk_free_bytes=None)),
    Seen("disk_too_small", BLOCKS, host=but(MI300X, disk_free_bytes=10**6), words="1.4 MB"),
    Seen("disk_too_small", SILENT, host=but(MI300X, disk_free_bytes=10**9)),
    Seen(
        "disk_too_small", BLOCKS, host=but(MI300X, disk_free_bytes=10**9, disk_reserve_bytes=10**9), words="1.0 GB stay"
    ),
]

TABLE = [*MODEL, *SCHEMES, *ALGORITHMS, *LAYERS, *KV_CACHE, *CALIBRATION, *HOST]


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
