"""What would be quantized, as two analyses see it: the same, or a sentence that says what differs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.request import Exclusions
from bot.conversation.targets import difference, lost_patterns
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis, QuantizationTargets
from tests import samples
from tests.bot.conversation.samples import REQUEST

HEADERS = samples.analysis()
EXPERTS = "model.layers.*.mlp.experts.*.down_proj"


def seen(*groups: LinearGroup, **changes: Any) -> ModelAnalysis:
    """An analysis with these layers."""
    count = sum(group.count for group in groups if not group.excluded_by_default)
    values: dict[str, Any] = {"linear_layer_count": count, "exclude_defaults": ["lm_head"], "groups": list(groups)}
    return samples.analysis(quantization_targets=QuantizationTargets(**{**values, **changes}))


def layers(pattern: str, count: int = 36, width: int = 4096, **changes: Any) -> LinearGroup:
    """Some layers of one shape."""
    values: dict[str, Any] = {"in_features": width, "out_features": 64, "dtype": "BF16"}
    return LinearGroup(pattern=pattern, count=count, **{**values, **changes})


HEAD = layers("lm_head", 1, excluded_by_default=True)
ATTENTION = layers("model.layers.*.self_attn.q_proj")


def test_the_same_layers_are_the_same_targets() -> None:
    assert difference(HEADERS, samples.exact_analysis()) == ""
    assert difference(HEADERS, HEADERS, all_layers=True) == ""


@pytest.mark.parametrize(
    "changes",
    [{"provisional": True}, {"dtype": "F32"}, {"numbers": ["0-35"]}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_known_of_a_layer_is_no_target(changes: dict[str, Any]) -> None:
    assert difference(seen(ATTENTION), seen(ATTENTION.model_copy(update=changes))) == ""


@given(st.integers(1, 35))
def test_layers_may_be_told_in_parts(first: int) -> None:
    parts = seen(layers(ATTENTION.pattern, first), layers(ATTENTION.pattern, 36 - first))
    assert difference(seen(ATTENTION), parts) == ""


def test_fused_experts_that_are_split_are_named() -> None:
    fused = seen(ATTENTION, linear_layer_count=193, has_non_linear_experts=True)
    split = seen(ATTENTION, layers(EXPERTS, 18_588), linear_layer_count=18_624)
    assert difference(fused, split) == (
        "The engine splits the fused experts: 18,624 layers would be quantized, not 193."
    )


def test_another_number_is_named() -> None:
    assert difference(seen(ATTENTION), seen(layers(ATTENTION.pattern, 35))) == (
        "The engine's own list of layers differs: 35 layers would be quantized, not 36."
    )


def test_other_names_and_widths_are_named() -> None:
    assert difference(seen(ATTENTION), seen(layers("language.*.q_proj"))) == (
        "The engine's own list of layers differs: it has language.*.q_proj (36 of 4,096 → 64), and it does not have "
        "model.layers.*.self_attn.q_proj (36 of 4,096 → 64)."
    )
    assert "it has model.layers.*.self_attn.q_proj (36 of 8 → 64)" in difference(
        seen(ATTENTION), seen(layers(ATTENTION.pattern, width=8))
    )


def test_other_exclusions_are_named() -> None:
    more = seen(ATTENTION, exclude_defaults=["lm_head", "*router*"])
    assert difference(seen(ATTENTION), more) == "The engine leaves *router*, lm_head alone by default, not lm_head."
    assert difference(more, seen(ATTENTION, exclude_defaults=[])) == (
        "The engine leaves nothing alone by default, not *router*, lm_head."
    )


def test_excluded_layers_count_only_where_the_exclusions_were_replaced() -> None:
    assert difference(seen(ATTENTION), seen(ATTENTION, HEAD)) == ""
    assert difference(seen(ATTENTION), seen(ATTENTION, HEAD), all_layers=True) == (
        "The engine's own list of layers differs: it has lm_head (1 of 4,096 → 64)."
    )


def test_layers_that_the_engine_never_quantizes_are_no_targets() -> None:
    router = layers("model.layers.*.mlp.gate", excluded_by_default=True)
    exact = seen(ATTENTION, router.model_copy(update={"never_quantized": True}))
    assert difference(seen(ATTENTION), exact, all_layers=True) == ""
    assert difference(seen(ATTENTION, router), exact) == ""
    assert difference(seen(ATTENTION, router), exact, all_layers=True) == (
        "The engine's own list of layers differs: it never quantizes model.layers.*.mlp.gate (36 of 4,096 → 64)."
    )


NAMED = seen(layers("model.layers.*.experts.*.w1", 8, numbers=["0-3", "0-1"]), ATTENTION)
RENAMED = seen(layers("model.layers.*.experts.*.gate_proj", 8, numbers=["0-3", "0-1"]), ATTENTION)


def test_patterns_that_lost_their_layers_are_named() -> None:
    asked = REQUEST.model_copy(
        update={
            "choices": {"layer_quant_config": {"*.2.*w1": "fp8", "*q_proj": "fp8", "*typo*": "fp8"}},
            "exclusions": Exclusions(add=("*w1*", "*experts*", "*.9.*w1")),
        }
    )
    assert lost_patterns(asked, NAMED, RENAMED) == (
        "By the engine's names, *.2.*w1, *w1* match nothing now: correct what was asked for."
    )
    assert lost_patterns(asked, NAMED, NAMED) == ""


def test_an_exclusion_of_the_engine_is_not_named_and_a_persons_whole_list_is() -> None:
    asked = REQUEST.model_copy(update={"choices": {"exclude_layers": ["lm_head", "*.w1"]}})
    before, after = seen(*NAMED.quantization_targets.groups, HEAD), RENAMED
    assert lost_patterns(asked, before, after) == (
        "By the engine's names, *.w1 matches nothing now: correct what was asked for."
    )


def test_a_sentence_stays_short_however_many_layers_differ() -> None:
    many = seen(*(layers(f"{'x' * 500}.{number}", 1) for number in range(1000)))
    one = seen(layers("x", 1000))
    assert len(difference(many, one)) < 700
    assert "and 997 more" in difference(many, one)
