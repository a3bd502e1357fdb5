"""Which layers a plan treats how, from groups of names."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.planning import layers
from runner.planning.globs import parse_numbers
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
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


def group(pattern: str, count: int, numbers: list[str], **changes: Any) -> LinearGroup:
    return LinearGroup(
        pattern=pattern, count=count, in_features=128, out_features=128, dtype="BF16", numbers=numbers, **changes
    )


def with_groups(*groups: LinearGroup, **targets: Any) -> ModelAnalysis:
    found = llama().quantization_targets.model_copy(update={"groups": list(groups), **targets})
    return llama().model_copy(update={"quantization_targets": found})


DEEPSEEK = with_groups(
    group("model.layers.*.self_attn.kv_b_proj", 61, ["0-60"], excluded_by_default=True),
    group("model.layers.*.mlp.down_proj", 3, ["0-2"]),
    group("model.layers.*.mlp.experts.*.down_proj", 58 * 256, ["3-60", "0-255"]),
    group("model.layers.*.mlp.gate", 58, ["3-60"], never_quantized=True),
    group("lm_head", 1, [], excluded_by_default=True),
)


@pytest.mark.parametrize(
    ("pattern", "count", "examples"),
    [
        ("lm_head", 1, ["lm_head"]),
        (
            "*down_proj",
            3 + 58 * 256,
            ["model.layers.0.mlp.down_proj", "model.layers.3.mlp.experts.0.down_proj", "model.layers.1.mlp.down_proj"],
        ),
        ("*layers.2.*", 2, ["model.layers.2.self_attn.kv_b_proj", "model.layers.2.mlp.down_proj"]),
        (
            "*experts.25[0-9]*",
            58 * 6,
            [f"model.layers.3.mlp.experts.{number}.down_proj" for number in (250, 251, 252)],
        ),
        ("model.layers.60.mlp.experts.255.down_proj", 1, ["model.layers.60.mlp.experts.255.down_proj"]),
        ("model.layers.61.*", 0, []),
        ("*mlp.gate", 0, []),
        ("down_proj", 0, []),
    ],
)
def test_matches_are_counted_exactly_with_real_names(pattern: str, count: int, examples: list[str]) -> None:
    for plan, role in ((plan_with([pattern]), "exclude"), (plan_with([], {pattern: "int8"}), "override")):
        (found,) = layers.matches(plan, DEEPSEEK)
        assert (found.pattern, found.role, found.count, found.examples) == (pattern, role, count, examples)
        assert found.exact


def test_a_group_is_split_exactly() -> None:
    plan = plan_with(
        ["lm_head", "*self_attn*", "*experts.7.*"],
        {"*layers.1?.*": "int8", "model.layers.12.mlp.experts.3.down_proj": "ptpc_fp8"},
    )
    assert counts(plan, DEEPSEEK) == {
        "ptpc_fp8": 1,
        "int8": 10 * 255 - 1,
        "fp8": 3 + 48 * 255,
        None: 61 + 58 + 58 + 1,
    }


def test_layers_that_nothing_quantizes_stay_alone() -> None:
    assert counts(plan_with([]), DEEPSEEK)[None] == 58


@pytest.mark.parametrize("numbers", [[], ["0-1"], ["0-2"], ["0-1", "0-1"], ["a"]])
def test_a_group_whose_numbers_do_not_fit_is_counted_by_share(numbers: list[str]) -> None:
    """Documents of before, or from elsewhere: 8 layers whose numbers are taken to be 0 to 7."""
    analysis = with_groups(group("model.layers.*.mlp.down_proj", 8, numbers))
    assert counts(plan_with(["*layers.[0-2].*"]), analysis) == {None: 3, "fp8": 5}
    (found,) = layers.matches(plan_with(["*layers.[0-2].*"]), analysis)
    assert (found.count, found.exact) == (3, False)


def test_a_pattern_that_no_name_has_is_certain_only_where_names_are_modules() -> None:
    headers = {"method": "headers"}
    assert layers.names_are_modules(llama())
    assert layers.names_are_modules(llama(targets=headers))
    assert not layers.names_are_modules(llama(targets={**headers, "provisional": True}))
    assert not layers.names_are_modules(llama(targets=headers, modalities=["vision"]))
    assert not layers.names_are_modules(with_groups(group("a.*", 2, ["0-1"], provisional=True), **headers))
    assert not layers.names_are_modules(analysis_of("llama", []))


_SCHEMES = st.sampled_from(["fp8", "int8", "int4_wo_32", "ptpc_fp8"])
_PATTERNS = st.sampled_from(
    [
        *("*", "lm_head", "*layers.0.*", "*layers.[!0]*", "*layers.1?.*", "*mlp*", "*self_attn.[qk]_proj", "k_proj"),
        *(
            "*experts.[0-3].*",
            "model.layers.1.mlp.experts.2.up_proj",
            "*.1.*",
            "*_proj",
            "*experts.?.down*",
            "[",
            "?*1*",
        ),
    ]
)


@given(exclude=st.lists(_PATTERNS, max_size=3), overrides=st.dictionaries(_PATTERNS, _SCHEMES, max_size=4))
@settings(max_examples=200, deadline=None)
def test_targets_are_what_the_engine_decides_name_by_name(exclude: list[str], overrides: dict[str, str]) -> None:
    analysis = with_groups(
        group("model.layers.*.self_attn.q_proj", 12, ["0-11"]),
        group("model.layers.*.mlp.experts.*.up_proj", 30, ["1-3,10-11", "0-5"]),
        group("model.layers.*.mlp.experts.*.down_proj", 8, ["4-5", "0-1,10-11"]),
        group("lm_head", 1, []),
    )
    plan = plan_with(exclude, overrides)
    expected: Counter[tuple[str, str | None, str | None]] = Counter()
    for each in analysis.quantization_targets.groups:
        for numbers in product(*(parse_numbers(text) or () for text in each.numbers)):
            name = each.pattern.replace("*", "{}").format(*numbers)
            expected[each.pattern, *_decided(name, plan)] += 1
    found = layers.targets(plan, analysis)
    assert {(target.group.pattern, target.scheme, target.pattern): target.count for target in found} == dict(expected)


def _decided(name: str, plan: QuantPlan) -> tuple[str | None, str | None]:
    """One name as the engine treats it."""
    if any(fnmatchcase(name, pattern) for pattern in plan.exclude_layers):
        return None, None
    ordered = layers.in_order(plan.layer_quant_config)
    return next(
        ((scheme, pattern) for pattern, scheme in ordered if fnmatchcase(name, pattern)), (plan.global_scheme, None)
    )
