"""Values that must not become part of a command."""

from __future__ import annotations

from typing import Any

import pytest

from runner.errors import BadRequest
from runner.planning import check_plan, make_plan
from runner.planning.values import check_value, why_refused
from schemas.artifacts.plan import PlanChoices
from tests.runner.planning.catalogue import with_gpu_torch
from tests.runner.planning.hosts import MI300X
from tests.runner.planning.models import llama

BAD = [
    "-x",
    "--trust_remote_code",
    "-",
    "",
    "  ",
    "a\nb",
    "a\0b",
    "a\u202eb",
    "a\u200bb",
    "\ud800",
    "x" * 5000,
    "a\u2028",
]
GOOD = [
    "*self_attn*",
    "model.layers.[0-3].*",
    "lm_head",
    "a b",
    "a'b\"c",
    "$(reboot)",
    "`x`",
    "é",
    "a-b",
    "a;b",
    "日本",
]


@pytest.mark.parametrize("value", BAD)
def test_what_is_refused(value: str) -> None:
    assert why_refused(value)
    with pytest.raises(BadRequest) as refusal:
        check_value(value, "exclude_layers[0]")
    assert refusal.value.code == "bad_value"
    assert refusal.value.message.isascii()
    assert len(refusal.value.message) < 300


@pytest.mark.parametrize("value", GOOD)
def test_what_is_taken(value: str) -> None:
    assert check_value(value, "a pattern") == value


@pytest.mark.parametrize(
    "choices",
    [
        {"global_scheme": "--help"},
        {"kv_cache_scheme": "-fp8"},
        {"algorithm": "-awq"},
        {"exclude_layers": ["lm_head", "-x"]},
        {"layer_quant_config": {"-x": "fp8"}},
        {"layer_quant_config": {"x": "-fp8"}},
        {"calibration": {"dataset": "--device"}},
        {"min_kv_scale": float("inf")},
        {"attention_dtype": "-fp8"},
        {"evaluation_dataset": "--device"},
        {"tasks": "arc\u200b"},
        {"template_file": "-t.json"},
    ],
)
def test_every_field_is_looked_at(choices: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        make_plan(llama(), PlanChoices(**choices), with_gpu_torch(), MI300X)


def test_a_plan_from_elsewhere_is_looked_at_too() -> None:
    plan = make_plan(llama(), PlanChoices(global_scheme="fp8"), with_gpu_torch(), MI300X)
    check_plan(plan)
    with pytest.raises(BadRequest, match="begins with a dash"):
        check_plan(plan.model_copy(update={"exclude_layers": ["--device"]}))
