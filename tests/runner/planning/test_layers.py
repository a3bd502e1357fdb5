"""Which layers a plan treats how, from groups of names."""

from __future__ import annotations

from typing import Any

import pytest

from runner.planning import layers
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlannedModel, QuantPlan
from tests.runner.planning.models import Shape, analysis_of, decoder, head, llama, qwen3_8b, qwen3_moe


def plan_with(exclude: list[str], overrides: dict[str, str] | None = None, **changes: Any) -> QuantPlan:
    values: dict[str, Any] = {
        "model": PlannedModel(model_type="llama", analysis_digest="0" * 64, model_path="/models/llama"),
        "global_scheme": "fp8",
        "exclude_layers": exclude,
        "exclude_layers_changed": True,
        "layer_quant_config": overrides or {},
    }
    return QuantPlan(**{**values, **changes})


def counts(plan: QuantPlan, analysis: ModelAnalysis) -> dict[str | None, int]:
    found: dict[str | None, int] = {}
    for target in layers.targets(plan, analysis):
        found[target.scheme] = found.get(target.scheme, 0) + target.count
    return found


def test_qwen3_8b_has_252_layers_to_quantize() -> None:
    assert counts(plan_with(["lm_head"]), qwen3_8b()) == {"fp8": 252, None: 1}


@pytest.mark.parametrize(
    ("exclude", "overrides", "expected"),
    [
        (["lm_head"], {}, {"fp8": 14, None: 1}),
        ([], {}, {"fp8": 15}),
        (["down_proj"], {}, {"fp8": 15}),
        (["*down_proj", "lm_head"], {}, {"fp8": 12, None: 3}),
        (["*"], {}, {None: 15}),
        (["model.layers.0.*", "lm_head"], {}, {"fp8": 7, None: 8}),
        (["model.layers.1.mlp.down_proj"], {}, {"fp8": 14, None: 1}),
        (["*layers.[01].mlp.up_proj"], {}, {"fp8": 13, None: 2}),
        (["*layers.?.self_attn.q_proj"], {}, {"fp8": 13, None: 2}),
        (["lm_head"], {"*self_attn*": "int4_wo_32"}, {"fp8": 6, "int4_wo_32": 8, None: 1}),
        (["lm_head"], {"lm_head": "int8"}, {"fp8": 14, None: 1}),
        (["lm_head"], {"*": "int8"}, {"int8": 14, None: 1}),
    ],
)
def test_exclusions_win_over_overrides_and_those_over_the_global_scheme(
    exclude: list[str], overrides: dict[str, str], expected: dict[str | None, int]
) -> None:
    assert counts(plan_with(exclude, overrides), llama()) == expected


@pytest.mark.parametrize("keys", [["*mlp*", "*down_proj", "model.layers.0.mlp.down_proj"]])
def test_the_most_specific_override_counts_whatever_the_order_of_keys(keys: list[str]) -> None:
    schemes = dict(zip(keys, ["int4_wo_32", "int8", "ptpc_fp8"], strict=True))
    backwards = dict(reversed(schemes.items()))
    expected = {"fp8": 8, "int4_wo_32": 4, "int8": 1, "ptpc_fp8": 1, None: 1}
    for overrides in (schemes, backwards):
        assert counts(plan_with(["lm_head"], overrides), llama()) == expected
        assert [pattern for pattern, _ in layers.in_order(overrides)] == keys[::-1]


def test_unchanged_exclusions_follow_the_analysis() -> None:
    """The engine may exclude a layer by a name that the weight file does not have."""
    analysis = analysis_of("llama", [*decoder(), Shape("model.layers.*.odd_router", 2, 128, 4, excluded=True)])
    assert counts(plan_with(["lm_head"], exclude_layers_changed=False), analysis) == {"fp8": 14, None: 2}
    assert counts(plan_with(["lm_head"]), analysis) == {"fp8": 16}


def test_experts_and_layers_have_their_own_numbers() -> None:
    one_expert = plan_with(["lm_head", "*.gate", "model.layers.0.mlp.experts.3.*"])
    assert counts(one_expert, qwen3_moe()) == {"fp8": 29, None: 6}


@pytest.mark.parametrize(
    ("pattern", "groups"),
    [
        ("lm_head", 1),
        ("*lm_head", 1),
        ("k_proj", 0),
        ("*k_proj", 1),
        ("*self_attn*", 4),
        ("model.layers.7.*", 0),
        ("model.layers.1.*", 7),
        ("*", 8),
        ("[", 0),
    ],
)
def test_what_a_pattern_matches(pattern: str, groups: int) -> None:
    assert len(layers.matching(pattern, llama())) == groups


def test_names_of_weight_files_are_not_exact() -> None:
    exact = analysis_of("llama", [*decoder(), head()])
    of_files = analysis_of("llama", [*decoder(), head()], targets={"method": "headers"})
    assert layers.names_are_exact(exact)
    assert not layers.names_are_exact(of_files)


def test_many_groups_are_shortened_for_a_sentence() -> None:
    shown = layers.described(llama().quantization_targets.groups)
    assert shown.endswith("and 5 more")
    assert layers.described(layers.matching("lm_head", llama())) == "lm_head"
