"""A plan that says one thing in its table and another in its fields is found out, whichever of the two was edited."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.planning import make_plan
from runner.planning.consistency import contradiction, outdated
from runner.planning.estimates import READINGS
from runner.planning.plan import derived
from schemas.artifacts.plan import Decision, Finding, PlanChoices, QuantPlan, Severity
from tests.runner.planning.catalogue import with_gpu_torch
from tests.runner.planning.hosts import MI300X
from tests.runner.planning.models import llama, qwen3_moe

CHOICES: dict[str, Any] = {
    "global_scheme": "fp8",
    "kv_cache_scheme": "fp8",
    "hardware": "MI300X",
    "algorithm": "smoothquant",
    "min_kv_scale": 0.5,
    "kv_cache_post_rope": True,
    "layer_quant_config": {"*mlp*": "int8"},
    "write_algorithm_config": True,
    "attention_dtype": "fp8",
    "data_type": "float16",
    "multi_gpu": "auto",
    "multi_device": True,
    "file2file_quantization": True,
    "num_eval_data": 8,
    "evaluation_dataset": "wikitext",
    "tasks": "arc",
    "template_file": "/models/t.json",
    "tensor_parallel": 2,
}
ANALYSIS, CATALOGUE = llama(), with_gpu_torch()
PLAN = make_plan(ANALYSIS, PlanChoices(**CHOICES), CATALOGUE, MI300X)
ROWS = [row.decision for row in PLAN.decisions]
OTHER_VALUES: dict[str, Any] = {
    "global_scheme": "int4_wo_128",
    "kv_cache_scheme": None,
    "min_kv_scale": 0.25,
    "kv_cache_post_rope": False,
    "exclude_layers": [],
    "layer_quant_config": {"*mlp*": "fp8"},
    "algorithm": "awq",
    "dataset": "wikitext",
    "num_calib_data": 1,
    "seq_len": 1,
    "batch_size": 2,
    "evaluation_intent": "full",
    "model_export": "onnx",
    "device": "cpu",
    "entry_point": "quark_cli",
    "trust_remote_code": True,
    "write_algorithm_config": False,
    "attention_dtype": None,
    "data_type": "auto",
    "multi_gpu": "balanced",
    "multi_device": False,
    "file2file_quantization": False,
    "num_eval_data": 9,
    "evaluation_dataset": None,
    "tasks": "piqa",
    "template_file": "/models/u.json",
    "tensor_parallel": 4,
}


def with_rows(plan: QuantPlan, rows: list[Decision]) -> QuantPlan:
    return plan.model_copy(update={"decisions": rows})


def edited(plan: QuantPlan, field: str, value: Any) -> QuantPlan:
    """The plan with another value in a field, and the table as it was."""
    if field in type(plan.calibration).model_fields:
        return plan.model_copy(update={"calibration": plan.calibration.model_copy(update={field: value})})
    return plan.model_copy(update={field: value})


def with_estimates(**readings: Any) -> QuantPlan:
    """The plan with other readings."""
    return PLAN.model_copy(update={"estimates": PLAN.estimates.model_copy(update=readings)})


def row_of(field: str) -> str:
    return "calibration_dataset" if field == "dataset" else field


def test_the_cases_are_all_rows_that_a_plan_can_have() -> None:
    assert {row_of(field) for field in OTHER_VALUES} | {"hardware"} == set(ROWS)


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_a_field_edited_without_its_row_is_named(field: str) -> None:
    sentence = contradiction(edited(PLAN, field, OTHER_VALUES[field]))
    assert sentence is not None
    assert row_of(field) in sentence


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_a_row_edited_without_its_field_is_named(field: str) -> None:
    name, value = row_of(field), OTHER_VALUES[field]
    rows = [row.model_copy(update={"value": value}) if row.decision == name else row for row in PLAN.decisions]
    sentence = contradiction(with_rows(PLAN, rows))
    assert sentence is not None
    assert name in sentence


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_a_row_and_its_field_edited_alike_say_the_same(field: str) -> None:
    name, value = row_of(field), OTHER_VALUES[field]
    rows = [row.model_copy(update={"value": value}) if row.decision == name else row for row in PLAN.decisions]
    assert contradiction(with_rows(edited(PLAN, field, value), rows)) is None


@pytest.mark.parametrize("name", [name for name in ROWS if name != "hardware"])
def test_a_row_that_is_gone_is_missed(name: str) -> None:
    sentence = contradiction(with_rows(PLAN, [row for row in PLAN.decisions if row.decision != name]))
    assert sentence is not None
    assert f"no row {name}" in sentence


@pytest.mark.parametrize("name", ROWS)
def test_no_row_stands_twice(name: str) -> None:
    again = next(row for row in PLAN.decisions if row.decision == name)
    sentence = contradiction(with_rows(PLAN, [again.model_copy(update={"value": "x"}), *PLAN.decisions]))
    assert sentence == f"The plan's decision table has 2 rows {name}."


@pytest.mark.parametrize("name", ["note", "Global_scheme", "", "a\nb", "x" * 1000])
def test_a_row_that_is_no_decision_is_named_in_characters_that_show(name: str) -> None:
    strange = Decision(decision=name, value="fp8", reason="", source="default")
    sentence = contradiction(with_rows(PLAN, [*PLAN.decisions, strange]))
    assert sentence is not None
    assert "no decision" in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300


@pytest.mark.parametrize(("value", "field"), [(1, True), (0, False), (True, 1)])
def test_true_is_not_one(value: Any, field: Any) -> None:
    name = "trust_remote_code" if isinstance(field, bool) else "batch_size"
    rows = [row.model_copy(update={"value": value}) if row.decision == name else row for row in PLAN.decisions]
    assert contradiction(with_rows(edited(PLAN, name, field), rows)) is not None


def test_a_number_may_be_written_in_two_ways() -> None:
    plan = make_plan(ANALYSIS, PlanChoices(global_scheme="fp8", min_kv_scale=1), CATALOGUE, MI300X)
    rows = [row.model_copy(update={"value": 1}) if row.decision == "min_kv_scale" else row for row in plan.decisions]
    assert contradiction(with_rows(plan, rows)) is None


@settings(max_examples=100, deadline=None)
@given(
    choices=st.fixed_dictionaries(
        {},
        optional={
            "priority": st.sampled_from(["accuracy", "size", "speed", "cpu", "gguf"]),
            "global_scheme": st.sampled_from(["fp8", "FP8", "int4_wo_128", "mx6"]),
            "algorithm": st.sampled_from([None, "none", "AWQ", "awq,smoothquant"]),
            "kv_cache_scheme": st.sampled_from([None, "FP8"]),
            "exclude_layers": st.sampled_from([[], ["lm_head"], ["lm_head", "lm_head"], ["*gate", "lm_head"]]),
            "min_kv_scale": st.sampled_from([0, 0.5]),
            "kv_cache_post_rope": st.booleans(),
            "trust_remote_code": st.booleans(),
        },
    ),
    moe=st.booleans(),
)
def test_no_plan_of_this_runner_contradicts_itself(choices: dict[str, Any], moe: bool) -> None:
    analysis = qwen3_moe() if moe else ANALYSIS
    made = make_plan(analysis, PlanChoices(**choices), CATALOGUE, MI300X)
    plan = QuantPlan.model_validate(made.model_dump(mode="json"))
    assert contradiction(plan) is None
    assert outdated(plan, derived(plan, analysis, CATALOGUE, MI300X)) is None


BLOCKED = make_plan(ANALYSIS, PlanChoices(global_scheme="mx6", algorithm="autoround"), CATALOGUE, MI300X)
SCARE = Finding(severity=Severity.BLOCKS, code="made_up", message="Do not.")


@pytest.mark.parametrize("name", ["output_bytes", "source_bytes", "disk_bytes_needed", "disk_bytes_free"])
@pytest.mark.parametrize("value", [0, None, 10**18])
def test_an_estimate_that_is_not_computed_is_named(name: str, value: int | None) -> None:
    host = replace(MI300X, disk_free_bytes=10**12)
    plan = make_plan(ANALYSIS, PlanChoices(global_scheme="fp8"), CATALOGUE, host)
    other = plan.model_copy(update={"estimates": plan.estimates.model_copy(update={name: value})})
    sentence = outdated(other, derived(other, ANALYSIS, CATALOGUE, host))
    assert sentence is not None
    assert name in sentence


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([], f"lacks the finding {BLOCKED.findings[0].code}"),
        (BLOCKED.findings[1:], f"lacks the finding {BLOCKED.findings[0].code}"),
        ([*BLOCKED.findings, SCARE], "has a finding made_up"),
        ([*BLOCKED.findings, BLOCKED.findings[0]], f"has a finding {BLOCKED.findings[0].code}"),
        (BLOCKED.findings[::-1], "in another order"),
        (
            [BLOCKED.findings[0].model_copy(update={"severity": Severity.INFORMS}), *BLOCKED.findings[1:]],
            f"lacks the finding {BLOCKED.findings[0].code}",
        ),
    ],
)
def test_findings_that_the_rules_do_not_give_are_named(findings: list[Finding], words: str) -> None:
    assert len(BLOCKED.findings) > 1
    other = BLOCKED.model_copy(update={"findings": findings})
    sentence = outdated(other, derived(other, ANALYSIS, CATALOGUE, MI300X))
    assert sentence is not None
    assert words in sentence


def test_the_flag_of_the_exclusions_is_derived() -> None:
    other = PLAN.model_copy(update={"exclude_layers_changed": not PLAN.exclude_layers_changed})
    sentence = outdated(other, derived(other, ANALYSIS, CATALOGUE, MI300X))
    assert sentence is not None
    assert "exclude_layers_changed" in sentence


def test_every_plan_needs_a_confirmation() -> None:
    sentence = contradiction(PLAN.model_copy(update={"requires_confirmation": False}))
    assert sentence is not None
    assert "confirmation" in sentence


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf")])
def test_a_reading_that_no_moment_gives_is_named(name: str, value: float) -> None:
    sentence = contradiction(with_estimates(**{name: value}))
    assert sentence is not None
    assert name in sentence


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"seconds_least": 2.0, "seconds_most": 1.0, "runs_of_this_kind": 2}, "slowest"),
        ({"seconds_least": 1.0, "seconds_most": 2.0, "runs_of_this_kind": 0}, "0 finished runs"),
        ({"seconds_least": 1.0, "runs_of_this_kind": 2}, "none seconds"),
        ({"runs_of_this_kind": 2}, "2 finished runs"),
        ({"seconds_least": 1.0, "seconds_most": 1.0, "runs_of_this_kind": 1}, None),
        ({"seconds_least": 1.0, "seconds_most": 2.0, "runs_of_this_kind": 2}, None),
    ],
)
def test_times_are_those_of_finished_runs(readings: dict[str, Any], words: str | None) -> None:
    sentence = contradiction(with_estimates(**readings))
    assert (sentence is None) == (words is None)
    assert (words or "") in (sentence or "")
