"""What is recommended when nobody named a scheme."""

from __future__ import annotations

from typing import Any

import pytest

from runner.planning import HostView, make_plan
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.catalog import Catalogue
from tests.runner.planning.catalogue import recorded, with_gpu_torch, without_schemes
from tests.runner.planning.hosts import BOTH, CPU, H100, MI300X, MI355X, but
from tests.runner.planning.models import analysis_of, decoder, head, llama, qwen3_8b


def plan_for(
    analysis: ModelAnalysis, host: HostView = MI300X, catalogue: Catalogue | None = None, **choices: Any
) -> QuantPlan:
    return make_plan(analysis, PlanChoices(**choices), catalogue or with_gpu_torch(), host)


def reason(plan: QuantPlan, decision: str) -> str:
    return next(row.reason for row in plan.decisions if row.decision == decision)


TABLE = [
    ({"priority": "accuracy"}, "fp8", None),
    ({"priority": "speed"}, "fp8", None),
    ({"priority": "size"}, "int4_wo_32", "awq"),
    ({"priority": "cpu"}, "int8", None),
    ({"priority": "gguf"}, "uint4_wo_32", "awq"),
    ({"hardware": "MI300X"}, "fp8", None),
    ({"hardware": "AMD Instinct MI355X"}, "fp8", None),
    ({"hardware": "NVIDIA H100"}, "fp8", None),
    ({"hardware": "something new"}, "fp8", None),
    ({"priority": "size", "hardware": "H100"}, "int4_wo_32", "awq"),
    ({}, "fp8", None),
]


@pytest.mark.parametrize(("choices", "scheme", "algorithm"), TABLE)
def test_the_published_table(choices: dict[str, Any], scheme: str, algorithm: str | None) -> None:
    plan = plan_for(llama(), **choices)
    assert (plan.global_scheme, plan.algorithm) == (scheme, algorithm)
    assert plan.blocked_by == []


@pytest.mark.parametrize("choices", [choices for choices, _, _ in TABLE])
@pytest.mark.parametrize("host", [CPU, MI300X, MI355X, H100, HostView()], ids=["cpu", "mi300x", "mi355x", "h100", "?"])
@pytest.mark.parametrize("model_type", ["llama", "qwen3", "qwen3_moe", "opt", "deepseek_v3", "kimi_k2"])
@pytest.mark.parametrize("hidden", [128, 576, 100])
def test_a_recommendation_never_fails_for_its_scheme_or_algorithm(
    choices: dict[str, Any], host: HostView, model_type: str, hidden: int
) -> None:
    analysis = analysis_of(model_type, [*decoder(hidden, 2 * hidden), head(hidden)])
    plan = plan_for(analysis, host, recorded() if host is CPU else with_gpu_torch(), **choices)
    about_the_engine = {"unknown_scheme", "not_exportable", "group_size_divides", "algorithm_not_configured"}
    assert about_the_engine.isdisjoint(finding.code for finding in plan.blocked_by)


def test_no_algorithm_where_the_family_has_none_and_the_reason_says_so() -> None:
    plan = plan_for(qwen3_8b(), priority="size")
    assert (plan.global_scheme, plan.algorithm) == ("int4_wo_32", None)
    assert reason(plan, "algorithm") == "RTN baseline: Quark 0.13 has no built-in awq or gptq for qwen3."


def test_the_second_algorithm_where_only_that_is_built_in() -> None:
    plan = plan_for(analysis_of("deepseek", decoder()), priority="size")
    assert plan.algorithm == "gptq"


@pytest.mark.parametrize(("hidden", "scheme"), [(576, "int4_wo_32"), (100, "int4_wo_per_channel")])
def test_a_group_that_does_not_fit_is_replaced_with_the_reason(hidden: int, scheme: str) -> None:
    plan = plan_for(analysis_of("llama", decoder(hidden, 2 * hidden)), priority="size")
    assert plan.global_scheme == scheme
    assert ("a layer has 100" in reason(plan, "global_scheme")) is (hidden == 100)


def test_an_excluded_layer_does_not_count_for_the_group() -> None:
    analysis = analysis_of("llama", [*decoder(128), head(100)])
    assert plan_for(analysis, priority="size").global_scheme == "int4_wo_32"


def test_an_engine_without_the_scheme_falls_to_the_next() -> None:
    plan = plan_for(llama(), catalogue=without_schemes("fp8"), priority="accuracy")
    assert plan.global_scheme == "ptpc_fp8"
    assert "the installed engine has no fp8" in reason(plan, "global_scheme")


@pytest.mark.parametrize(
    ("host", "words"),
    [(MI300X, "only emulates FP4"), (MI355X, "amdfp4 is smaller"), (H100, "computes FP8 natively")],
)
def test_the_hosts_gpu_gives_the_reason_when_nothing_was_asked(host: HostView, words: str) -> None:
    plan = plan_for(llama(), host)
    assert words in reason(plan, "global_scheme")


def test_cpu_deployment_is_int8_with_its_warning_and_the_way_out() -> None:
    plan = plan_for(llama(), CPU, recorded(), priority="cpu")
    warning = next(finding for finding in plan.findings if finding.code == "int8_collapses")
    assert plan.global_scheme == "int8"
    assert "smoothquant" in warning.hint


def test_gguf_needs_quantize_quark() -> None:
    assert plan_for(llama(), priority="gguf").model_export == "gguf"
    without = plan_for(llama(), but(MI300X, entry_points={"own": BOTH["own"]}), priority="gguf")
    assert [finding.code for finding in without.blocked_by] == ["flag_not_offered"]
