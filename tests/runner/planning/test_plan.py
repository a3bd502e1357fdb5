"""The decision table: every value, its reason, and where the reason comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import BadRequest
from runner.planning import HostView, make_plan
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.catalog import Catalogue
from schemas.digest import digest
from schemas.documents import read_document
from tests.runner.planning.catalogue import recorded, with_gpu_torch, with_versions
from tests.runner.planning.hosts import BOTH, CPU, MI300X, but
from tests.runner.planning.models import analysis_of, decoder, head, llama, qwen3_8b, qwen3_moe

PUBLISHED_ROWS: dict[str, Any] = {
    "global_scheme": "fp8",
    "kv_cache_scheme": "fp8",
    "exclude_layers": ["lm_head"],
    "layer_quant_config": {},
    "algorithm": None,
    "calibration_dataset": "pileval",
    "num_calib_data": 128,
    "seq_len": 512,
    "evaluation_intent": "smoke",
}


EVERY = but(MI300X, offline=False, entry_points={**BOTH, "quark_cli": "/opt/venv/bin/quark-cli", "site": "/srv/ptq.py"})


def without(*names: str) -> HostView:
    """A host that lacks some entry points."""
    return but(EVERY, entry_points={name: path for name, path in EVERY.entry_points.items() if name not in names})


def plan_for(
    analysis: ModelAnalysis | None = None,
    host: HostView = MI300X,
    catalogue: Catalogue | None = None,
    **choices: Any,
) -> QuantPlan:
    return make_plan(analysis or llama(), PlanChoices(**choices), catalogue or with_gpu_torch(), host)


def row(plan: QuantPlan, decision: str) -> Any:
    return next(row for row in plan.decisions if row.decision == decision)


def test_the_published_example_gives_the_published_table() -> None:
    plan = plan_for(qwen3_8b(), global_scheme="fp8")
    table = {row.decision: row.value for row in plan.decisions}
    assert {name: table[name] for name in PUBLISHED_ROWS} == PUBLISHED_ROWS
    assert row(plan, "kv_cache_scheme").reason == "Recommended for FP8 inference."
    assert row(plan, "algorithm").reason == "RTN baseline (fastest)."
    assert plan.blocked_by == []


def test_the_table_has_every_decision_once_and_the_plan_says_the_same() -> None:
    plan = plan_for(global_scheme="int4_wo_32", algorithm="awq", layer_quant_config={"*self_attn*": "fp8"})
    names = [row.decision for row in plan.decisions]
    assert names == [
        "global_scheme",
        "kv_cache_scheme",
        "exclude_layers",
        "layer_quant_config",
        "algorithm",
        "calibration_dataset",
        "num_calib_data",
        "seq_len",
        "batch_size",
        "evaluation_intent",
        "model_export",
        "device",
        "entry_point",
        "trust_remote_code",
    ]
    assert all(row.reason.endswith(".") for row in plan.decisions)
    for name in ("global_scheme", "kv_cache_scheme", "algorithm", "device", "entry_point", "layer_quant_config"):
        assert row(plan, name).value == getattr(plan, name)


def test_a_plan_is_a_valid_document_and_names_its_analysis() -> None:
    analysis = llama()
    plan = plan_for(analysis, global_scheme="fp8")
    assert read_document(QuantPlan, plan.model_dump(mode="json")) == plan
    assert plan.model.analysis_digest == digest(analysis)
    assert plan.requires_confirmation


@pytest.mark.parametrize(
    ("choices", "scheme", "source"),
    [
        ({"global_scheme": "fp8"}, "fp8", "published"),
        ({"global_scheme": "ptpc_fp8"}, "fp8", "published"),
        ({"global_scheme": "fp8", "kv_cache_scheme": None}, None, "request"),
        ({"global_scheme": "fp8", "kv_cache_scheme": "none"}, None, "request"),
        ({"global_scheme": "int4_wo_32"}, None, "default"),
        ({"global_scheme": "int4_wo_32", "kv_cache_scheme": "FP8"}, "fp8", "request"),
        ({"global_scheme": "mxfp4_fp8"}, None, "default"),
    ],
)
def test_the_kv_cache(choices: dict[str, Any], scheme: str | None, source: str) -> None:
    plan = plan_for(**choices)
    assert (plan.kv_cache_scheme, row(plan, "kv_cache_scheme").source) == (scheme, source)


def test_no_kv_cache_is_proposed_without_a_gpu() -> None:
    assert plan_for(host=CPU, catalogue=recorded(), global_scheme="fp8").kv_cache_scheme is None


@pytest.mark.parametrize(
    ("asked", "exclude", "changed"),
    [
        (None, ["lm_head", "*.gate"], False),
        (["lm_head", "*.gate"], ["lm_head", "*.gate"], False),
        (["*.gate", "lm_head"], ["lm_head", "*.gate"], False),
        (["lm_head"], ["lm_head"], True),
        ([], [], True),
        (["lm_head", "*.gate", "*o_proj", "*o_proj"], ["lm_head", "*.gate", "*o_proj"], True),
    ],
)
def test_exclusions_are_changed_only_when_they_differ(
    asked: list[str] | None, exclude: list[str], changed: bool
) -> None:
    plan = plan_for(qwen3_moe(), global_scheme="fp8", exclude_layers=asked)
    assert (plan.exclude_layers, plan.exclude_layers_changed) == (exclude, changed)


@pytest.mark.parametrize(
    ("asked", "algorithm"),
    [
        ("awq", "awq"),
        (" AWQ , SmoothQuant ", "awq,smoothquant"),
        ("none", None),
        (None, None),
        ("awq,awq", "awq,awq"),
    ],
)
def test_algorithms_are_spelled_as_the_engine_does(asked: str | None, algorithm: str | None) -> None:
    assert plan_for(global_scheme="int4_wo_32", algorithm=asked).algorithm == algorithm


def test_an_asked_scheme_gets_no_algorithm_by_itself() -> None:
    assert plan_for(global_scheme="int4_wo_32", priority="size").algorithm is None


@pytest.mark.parametrize("asked", ["FP8", "fp8", " Fp8 "])
def test_people_may_write_schemes_in_capitals(asked: str) -> None:
    assert plan_for(global_scheme=asked).global_scheme == "fp8"


def test_an_unknown_scheme_is_kept_as_it_was_written_and_blocked() -> None:
    plan = plan_for(global_scheme="FP7")
    assert plan.global_scheme == "FP7"
    assert [finding.code for finding in plan.blocked_by] == ["unknown_scheme"]


def test_overrides_come_in_the_order_in_which_the_engine_uses_them() -> None:
    plan = plan_for(global_scheme="fp8", layer_quant_config={"*mlp*": "INT8", "*mlp.up_proj": "fp8"})
    assert list(plan.layer_quant_config.items()) == [("*mlp.up_proj", "fp8"), ("*mlp*", "int8")]


@pytest.mark.parametrize(
    ("datasets", "asked", "expected"),
    [
        (["pileval"], None, "pileval"),
        (["wikitext", "notes.txt"], None, "wikitext"),
        (["notes.txt", "articles.jsonl"], None, "articles.jsonl"),
        ([], None, "pileval"),
        (["wikitext"], "cnn_dailymail", "cnn_dailymail"),
    ],
)
def test_a_missing_default_dataset_is_replaced_by_what_the_mirror_holds(
    datasets: list[str], asked: str | None, expected: str
) -> None:
    choices: dict[str, Any] = {"calibration": {"dataset": asked}} if asked else {}
    plan = plan_for(host=but(MI300X, datasets=datasets), global_scheme="fp8", **choices)
    assert plan.calibration.dataset == expected
    assert any(finding.code == "dataset_not_here" for finding in plan.blocked_by) is (expected not in datasets)


def test_calibration_takes_what_was_asked_and_standards_for_the_rest() -> None:
    plan = plan_for(global_scheme="fp8", calibration={"num_calib_data": 256})
    assert (plan.calibration.num_calib_data, plan.calibration.seq_len, plan.calibration.batch_size) == (256, 512, 1)
    assert row(plan, "num_calib_data").source == "request"
    assert row(plan, "seq_len").source == "published"


def test_a_runner_may_have_calibration_defaults_of_its_own() -> None:
    host = replace(CPU, num_calib_data=8, seq_len=256)
    plan = plan_for(host=host, global_scheme="fp8", calibration={"seq_len": 64})
    assert (plan.calibration.num_calib_data, plan.calibration.seq_len) == (8, 64)
    assert (row(plan, "num_calib_data").source, row(plan, "seq_len").source) == ("host", "request")


@pytest.mark.parametrize(
    ("host", "build", "device"),
    [
        (MI300X, "rocm7.1", "cuda"),
        (MI300X, "cpu", "cpu"),
        (CPU, "cpu", "cpu"),
        (CPU, "cu126", "cpu"),
        (HostView(), "cpu", "cpu"),
        (HostView(), "cu126", "cuda"),
        (HostView(), None, "cuda"),
    ],
)
def test_the_device_follows_the_evidence(host: HostView, build: str | None, device: str) -> None:
    plan = plan_for(host=host, catalogue=with_versions(torch_build=build), global_scheme="fp8")
    assert plan.device == device
    warned = any(finding.code == "device_unknown" for finding in plan.findings)
    assert warned is ((host is MI300X and build == "cpu") or (not host.entry_points and device == "cuda"))


@pytest.mark.parametrize(
    ("host", "choices", "entry_point"),
    [
        (MI300X, {}, "quantize_quark"),
        (but(MI300X, entry_points={"own": "/x"}), {}, "own"),
        (but(MI300X, entry_points={"quantize_quark": "/x"}), {}, "quantize_quark"),
        (but(CPU, entry_points=BOTH), {}, "own"),
        (but(CPU, entry_points=BOTH), {"entry_point": "quantize_quark"}, "quantize_quark"),
        (MI300X, {"calibration": {"dataset": "calibration.txt"}}, "own"),
        (MI300X, {"entry_point": "own"}, "own"),
        (but(MI300X, default_entry_point="own"), {}, "own"),
        (but(MI300X, default_entry_point="own"), {"entry_point": "auto"}, "quantize_quark"),
        (but(CPU, entry_points=BOTH), {"model_export": "onnx"}, "quantize_quark"),
        (EVERY, {}, "quantize_quark"),
        (EVERY, {"attention_dtype": "fp8"}, "quantize_quark"),
        (EVERY, {"tasks": "arc"}, "quantize_quark"),
        (EVERY, {"template_file": "/models/t.json"}, "quark_cli"),
        (but(EVERY, offline=True), {"template_file": "/models/t.json"}, "quantize_quark"),
        (EVERY, {"evaluation_dataset": "wikitext_gpt_oss_120b", "entry_point": "auto"}, "quantize_quark"),
        (without("quantize_quark"), {"evaluation_dataset": "wikitext_gpt_oss_120b"}, "quark_cli"),
        (without("quantize_quark"), {"evaluation_dataset": "wikitext_gpt_oss_20b"}, "own"),
        (without("quantize_quark"), {"multi_device": True}, "quark_cli"),
        (without("quantize_quark"), {"data_type": "float16"}, "own"),
        (without("quantize_quark", "own"), {}, "quark_cli"),
        (without("quantize_quark", "own", "quark_cli"), {}, "own"),
        (EVERY, {"entry_point": "site"}, "site"),
        (but(EVERY, default_entry_point="site"), {}, "site"),
        (but(EVERY, default_entry_point="site"), {"entry_point": "auto"}, "quantize_quark"),
    ],
)
def test_the_entry_point_is_the_one_that_can_do_it(host: HostView, choices: dict[str, Any], entry_point: str) -> None:
    catalogue = recorded() if host.accelerator == "cpu" else with_gpu_torch()
    plan = plan_for(host=host, catalogue=catalogue, global_scheme="fp8", **choices)
    assert plan.entry_point == entry_point
    assert row(plan, "entry_point").reason


@pytest.mark.parametrize(
    ("host", "choices", "reason"),
    [
        (EVERY, {}, "Quark's published script, found in the configured checkout."),
        (
            EVERY,
            {"template_file": "/models/t.json"},
            "It can do what this plan asks: quantize_quark has no --template_file; own has no --template_file.",
        ),
        (
            EVERY,
            {"calibration": {"dataset": "calibration.txt"}},
            "It can do what this plan asks: quantize_quark takes only named datasets, and this one is a file.",
        ),
        (
            without("quantize_quark", "quark_cli"),
            {"model_export": "gguf"},
            "It is the only entry point here, and it takes no --model_export gguf; quantize_quark could, and was not "
            "found.",
        ),
        (without("quantize_quark"), {}, "No Quark checkout with quantize_quark.py was found."),
        (without("quantize_quark", "own"), {}, "It is the only entry point here."),
        (
            but(EVERY, unfit={"quantize_quark": "needs quark.torch.new, which the installed Quark does not have"}),
            {},
            "It can do what this plan asks: quantize_quark needs quark.torch.new, which the installed Quark does not "
            "have.",
        ),
        (EVERY, {"entry_point": "quark_cli"}, "Requested."),
        (but(EVERY, default_entry_point="quark_cli"), {}, "runner.yaml names it."),
    ],
)
def test_why_an_entry_point_was_chosen_is_said(host: HostView, choices: dict[str, Any], reason: str) -> None:
    assert row(plan_for(host=host, global_scheme="fp8", **choices), "entry_point").reason == reason


@pytest.mark.parametrize(("host", "expected"), [(EVERY, "quantize_quark"), (without("quantize_quark"), "own")])
def test_a_model_that_is_still_on_the_hub_takes_a_program_that_can_pin_it(host: HostView, expected: str) -> None:
    hub = llama(model_path="org/tiny", source="huggingface_id", revision="a" * 40, downloaded=False)
    plan = plan_for(hub, but(host, offline=False), global_scheme="fp8")
    assert (plan.entry_point, plan.blocked_by) == (expected, [])


def test_nothing_is_measured_from_file_to_file() -> None:
    plan = plan_for(global_scheme="ptpc_fp8", file2file_quantization=True)
    assert (plan.evaluation_intent, plan.kv_cache_scheme, plan.entry_point) == ("none", None, "quantize_quark")
    assert plan.blocked_by == []


@pytest.mark.parametrize(
    ("scheme", "host", "choices", "intent"),
    [
        ("fp8", CPU, {}, "smoke"),
        ("fp8", CPU, {"evaluation_intent": "full"}, "full"),
        ("mxfp4", CPU, {}, "none"),
        ("mxfp4", CPU, {"evaluation_intent": "smoke"}, "smoke"),
        ("mxfp4", MI300X, {}, "smoke"),
        ("fp8", but(CPU, datasets=["pileval"]), {}, "none"),
        ("fp8", but(CPU, datasets=["calibration.txt"]), {}, "smoke"),
        ("fp8", but(CPU, datasets=[], offline=False), {}, "smoke"),
    ],
)
def test_the_evaluation_is_left_out_where_it_cannot_be_made(
    scheme: str, host: HostView, choices: dict[str, Any], intent: str
) -> None:
    catalogue = recorded() if host.accelerator == "cpu" else with_gpu_torch()
    plan = plan_for(host=host, catalogue=catalogue, global_scheme=scheme, **choices)
    assert plan.evaluation_intent == intent


def test_unapproved_code_is_not_run_by_an_evaluation() -> None:
    analysis = llama(remote_code=["tokenizer_config.json: AutoTokenizer -> tokenization.Own"])
    assert plan_for(analysis, global_scheme="fp8").evaluation_intent == "none"
    assert plan_for(analysis, global_scheme="fp8", entry_point="own").evaluation_intent == "smoke"
    trusting = but(MI300X, remote_code=True)
    assert plan_for(analysis, trusting, global_scheme="fp8", trust_remote_code=True).evaluation_intent == "smoke"


def test_estimates_say_what_the_disk_needs() -> None:
    plan = plan_for(qwen3_8b(), but(MI300X, disk_free_bytes=20 * 10**9, disk_reserve_bytes=10**9), global_scheme="fp8")
    found = plan.estimates
    assert found.output_bytes is not None
    assert found.disk_bytes_needed is not None
    assert found.output_bytes == pytest.approx(9.43e9, rel=0.01)
    assert found.disk_bytes_needed == pytest.approx(found.output_bytes * 1.05, rel=1e-6)
    assert found.disk_bytes_free == 20 * 10**9


def test_a_model_that_is_only_on_the_hub_has_to_be_downloaded() -> None:
    here = plan_for(qwen3_8b(), global_scheme="fp8").estimates
    remote = qwen3_8b(model_path="Qwen/Qwen3-8B", source="huggingface_id", downloaded=False)
    there = plan_for(remote, global_scheme="fp8").estimates
    assert here.disk_bytes_needed is not None
    assert there.disk_bytes_needed == here.disk_bytes_needed + 16_381_470_720


def test_a_tied_head_that_is_quantized_comes_on_top_of_the_embedding() -> None:
    tied = analysis_of("llama", [*decoder(), head()], source_bytes=1_117_520, tied_embeddings=True)
    kept = plan_for(tied, global_scheme="fp8").estimates.output_bytes
    quantized = plan_for(tied, global_scheme="fp8", exclude_layers=[]).estimates.output_bytes
    assert kept is not None
    assert quantized is not None
    assert quantized - kept == pytest.approx(2048 * 128, abs=300)


def test_what_cannot_be_computed_is_not_guessed() -> None:
    assert plan_for(analysis_of("llama", []), global_scheme="fp8").estimates.output_bytes is None
    assert plan_for(llama(), global_scheme="fp7").estimates.output_bytes is None


_TEXT = st.text(max_size=12) | st.sampled_from(["fp8", "int4_wo_128", "mx6", "*proj*", "lm_head", "awq", "-x", "none"])
_CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.sampled_from(["accuracy", "size", "speed", "cpu", "gguf"]),
        "hardware": _TEXT,
        "global_scheme": _TEXT,
        "kv_cache_scheme": st.none() | _TEXT,
        "min_kv_scale": st.floats(0, allow_nan=False),
        "kv_cache_post_rope": st.booleans(),
        "exclude_layers": st.lists(_TEXT, max_size=3),
        "layer_quant_config": st.dictionaries(_TEXT, _TEXT, max_size=3),
        "algorithm": st.none() | _TEXT,
        "calibration": st.fixed_dictionaries({}, optional={"dataset": _TEXT, "batch_size": st.integers(1, 65_536)}),
        "evaluation_intent": st.sampled_from(["none", "smoke", "full"]),
        "model_export": st.sampled_from(["hf_format", "onnx", "gguf"]),
        "entry_point": st.sampled_from(["auto", "own", "quantize_quark", "quark_cli", "site"]),
        "trust_remote_code": st.booleans(),
        "write_algorithm_config": st.booleans(),
        "attention_dtype": _TEXT,
        "data_type": st.sampled_from(["auto", "float16"]),
        "multi_gpu": st.sampled_from(["auto", "balanced"]),
        "multi_device": st.booleans(),
        "file2file_quantization": st.booleans(),
        "num_eval_data": st.integers(1, 1000),
        "evaluation_dataset": _TEXT,
        "tasks": _TEXT,
        "template_file": _TEXT,
        "tensor_parallel": st.integers(1, 8),
    },
)


@settings(max_examples=150, deadline=None)
@given(choices=_CHOICES, host=st.sampled_from([CPU, MI300X, HostView()]))
def test_any_request_gives_a_plan_or_one_sentence(choices: dict[str, Any], host: HostView) -> None:
    asked = PlanChoices(**choices)
    made = _plan_or_refusal(asked, host)
    if isinstance(made, BadRequest):
        assert made.code == "bad_value"
        assert "\n" not in made.message
        return
    assert _plan_or_refusal(asked, host) == made
    assert read_document(QuantPlan, made.model_dump(mode="json")) == made
    assert made.blocked_by or made.global_scheme in with_gpu_torch().schemes


def _plan_or_refusal(asked: PlanChoices, host: HostView) -> QuantPlan | BadRequest:
    try:
        return make_plan(qwen3_moe(), asked, with_gpu_torch(), host)
    except BadRequest as refusal:
        return refusal
