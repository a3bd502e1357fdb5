"""Changes of a part of what stands: layers beside those excluded, schemes beside others, one algorithm less."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.changes import changed, touched
from bot.conversation.commands import Change
from bot.conversation.decide import decide
from bot.conversation.decision import Proceed, Refuse
from bot.conversation.reached import Stop
from bot.conversation.request import Changes, Exclusions, Request
from bot.conversation.wording import changes_in_words, request_in_words
from bot.conversation.words import understand
from tests.bot.conversation.samples import ADA, ANALYSIS, NOON, POLICY, REQUEST, WHERE, analysing, reviewing_plan
from tests.bot.conversation.words.sentences import PLAN

DEFAULTS = ("lm_head", "*mlp.gate")
KNOWN = ANALYSIS.model_copy(update={"exclude_defaults": DEFAULTS})


def saying(*sentences: str, request: Request = REQUEST) -> Request:
    """The request after all of these."""
    for sentence in sentences:
        request = changed(request, understand(sentence, PLAN).changes, POLICY)
    return request


def excluded(request: Request) -> list[str] | None:
    return request.choices_on(DEFAULTS).exclude_layers


def overrides(request: Request) -> Any:
    return request.choices_on(DEFAULTS).layer_quant_config


EXCLUDED: dict[tuple[str, ...], list[str] | None] = {
    ("keep layer 0",): [*DEFAULTS, "*layers.0.*"],
    ("keep layer 0", "also exclude lm_head"): [*DEFAULTS, "*layers.0.*"],
    ("keep layer 0", "keep layer 1"): [*DEFAULTS, "*layers.0.*", "*layers.1.*"],
    ("quantize lm_head too",): ["*mlp.gate"],
    ("keep layer 0 and quantize lm_head too",): ["*mlp.gate", "*layers.0.*"],
    ("quantize lm_head too", "keep lm_head"): [*DEFAULTS],
    ("keep layer 0", "don't exclude layer 0"): [*DEFAULTS],
    ("exclude lm_head",): ["lm_head"],
    ("exclude lm_head", "also exclude *down_proj*"): ["lm_head", "*down_proj*"],
    ("exclude lm_head and *down_proj*", "don't exclude lm_head"): ["*down_proj*"],
    ("keep layer 0", "exclude lm_head"): ["lm_head"],
    ("keep layer 0", "use the default exclusions"): None,
    ("exclude nothing", "keep lm_head"): ["lm_head"],
    ("use awq",): None,
}


@pytest.mark.parametrize(("sentences", "expected"), EXCLUDED.items())
def test_exclusions_are_laid_over_what_stands(sentences: tuple[str, ...], expected: list[str] | None) -> None:
    assert excluded(saying(*sentences)) == expected


def test_what_is_added_outlives_another_model_and_lies_over_its_own_defaults() -> None:
    after = saying("keep layer 0", "use Qwen/Qwen3-4B")
    assert after.choices_on(["*router"]).exclude_layers == ["*router", "*layers.0.*"]


def test_a_pattern_covers_what_it_may_match_and_its_own_spelling() -> None:
    assert Exclusions(drop=("*experts*",)).of(["*mlp.experts*", "lm_head"]) == ["lm_head"]
    assert Exclusions(drop=("lm_head",)).of(["*lm_head", "lm_head", "*lm_head_2"]) == ["*lm_head_2"]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (("attention in fp8",), {"*self_attn*": "fp8"}),
        (("attention in fp8", "down_proj in int8"), {"*self_attn*": "fp8", "*down_proj*": "int8"}),
        (("attention in fp8", "attention in int8"), {"*self_attn*": "int8"}),
        (("attention in fp8", "down_proj in int8", "no override for *self_attn*"), {"*down_proj*": "int8"}),
        (("attention in fp8", "no layer overrides"), {}),
    ],
)
def test_schemes_of_layers_stand_beside_each_other(sentences: tuple[str, ...], expected: dict[str, str]) -> None:
    assert overrides(saying(*sentences)) == expected


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (("use awq and smoothquant", "drop smoothquant"), "awq"),
        (("use awq and smoothquant", "no algorithm"), None),
        (("use awq", "not awq"), None),
        (("use awq", "add smoothquant"), "awq,smoothquant"),
        (("use awq and gptq", "also rotation, drop gptq"), "awq,rotation"),
        (("use awq", "also awq"), "awq"),
        (("add smoothquant",), "smoothquant"),
        (("no algorithm", "add smoothquant"), "smoothquant"),
        (("use awq, gptq and rotation", "drop gptq"), "awq,rotation"),
    ],
)
def test_one_algorithm_less_leaves_the_others(sentences: tuple[str, ...], expected: str | None) -> None:
    after = saying(*sentences).plan_choices
    assert (after.algorithm, after.asks("algorithm")) == (expected, True)


@pytest.mark.parametrize("sentence", ["no smoothquant", "drop smoothquant", "not awq"])
def test_what_no_algorithm_takes_away_changes_nothing(sentence: str) -> None:
    for request in (REQUEST, saying("use gptq"), saying("no algorithm")):
        refused = decide(reviewing_plan(request=request), _said(sentence), POLICY)
        assert isinstance(refused, Refuse)
        assert refused.trouble.message == "That is how it stands already; nothing was changed."


def test_an_algorithm_that_a_priority_may_bring_can_be_left_out_but_has_none_added() -> None:
    smallest = REQUEST.model_copy(update={"choices": {"priority": "size"}})
    after = saying("not awq", request=smallest).plan_choices
    assert (after.algorithm, after.asks("algorithm")) == (None, True)
    refused = decide(reviewing_plan(request=smallest), _said("add smoothquant"), POLICY)
    assert isinstance(refused, Refuse)
    assert (refused.trouble.code, "use smoothquant and awq" in refused.trouble.hint) == ("algorithm_chosen", True)
    assert isinstance(decide(reviewing_plan(request=smallest), _said("use gptq, add awq"), POLICY), Proceed)


def _replaced(sentence: str, *before: str) -> str:
    state = reviewing_plan(analysis=KNOWN, request=saying(*before))
    proceeded = decide(state, _said(sentence), POLICY)
    assert isinstance(proceeded, Proceed)
    return proceeded.told.partition(". ")[2]


def test_a_whole_list_says_all_that_is_not_excluded_any_more() -> None:
    end = "the plan will say what that means."
    assert "*layers.0.* and the engine's defaults lm_head, *mlp.gate;" in _replaced("exclude o_proj", "keep layer 0")
    # What was let go before is not lost again.
    assert _replaced("exclude o_proj", "keep layer 0", "quantize lm_head too") == (
        f"This replaces *layers.0.* and the engine's defaults *mlp.gate; {end}"
    )
    assert _replaced("exclude o_proj", "exclude lm_head and q_proj") == f"This replaces lm_head, *q_proj*; {end}"
    assert _replaced("exclude o_proj", "exclude nothing", "keep layer 1") == f"This replaces *layers.1.*; {end}"
    assert _replaced("exclude o_proj and lm_head", "exclude lm_head") == ""
    many = ", ".join(f"*layers.{number}.*" for number in range(12))
    assert f"replaces {many} and the engine's" in _replaced("exclude o_proj", "keep layers 0-11")
    assert _replaced("use the default exclusions", "keep layer 0") == "No longer excluded: *layers.0.*."
    assert _replaced("use the default exclusions", "exclude lm_head") == ""


def test_before_the_analysis_the_defaults_have_no_names() -> None:
    proceeded = decide(analysing(request=saying("keep layer 0")), _said("exclude o_proj"), POLICY)
    assert isinstance(proceeded, Proceed)
    assert "This replaces *layers.0.* and the engine's defaults; the plan" in proceeded.told


def test_they_touch_the_plan() -> None:
    for sentence in ("keep layer 0", "quantize lm_head too", "attention in fp8", "add awq"):
        assert touched(REQUEST, saying(sentence)) is Stop.PLAN


def test_a_request_keeps_them_until_the_engine_s_defaults_are_known() -> None:
    changes = understand("quantize Qwen/Qwen3-8B, keep layer 0", None).changes
    request = Request(model="Qwen/Qwen3-8B").changed(changes)
    assert "exclude_layers" not in request.choices
    assert excluded(request) == [*DEFAULTS, "*layers.0.*"]
    assert not request.replaces_exclusions
    assert saying("quantize lm_head too").replaces_exclusions
    assert Request.model_validate_json(request.model_dump_json()) == request


def test_what_is_not_excluded_cannot_be_taken_out() -> None:
    state = reviewing_plan(analysis=KNOWN)
    refused = decide(state, _said("quantize *down_proj* too"), POLICY)
    assert isinstance(refused, Refuse)
    assert refused.trouble.code == "not_excluded"
    assert refused.trouble.message == (
        "*down_proj* is not named among the excluded layers, so nothing was changed. Excluded are: lm_head, *mlp.gate."
    )
    assert isinstance(decide(state, _said("quantize lm_head too"), POLICY), Proceed)
    # Without an analysis nobody knows yet.
    assert isinstance(decide(analysing(), _said("quantize *down_proj* too"), POLICY), Proceed)


def test_what_stands_already_changes_nothing() -> None:
    request = saying("keep layer 0")
    refused = decide(reviewing_plan(analysis=KNOWN, request=request), _said("keep layer 0"), POLICY)
    assert isinstance(refused, Refuse)
    assert refused.trouble.code == "nothing_changed"


def test_people_read_them_as_what_they_are() -> None:
    told = changes_in_words(
        understand("use fp8, keep layer 0, quantize lm_head too, attention in int8, not awq", PLAN).changes
    )
    assert told == (
        "scheme fp8, also excluded: *layers.0.*, no longer excluded: lm_head, *self_attn* = int8, awq left out"
    )
    assert request_in_words(saying("keep layer 0")) == "scheme fp8, also excluded: *layers.0.*"
    assert changes_in_words(understand("use the default exclusions", PLAN).changes) == (
        "excluded layers: the engine's defaults"
    )
    assert changes_in_words(understand("no override for lm_head", PLAN).changes) == "no scheme of its own for lm_head"


def test_nothing_replaces_the_defaults_where_layers_are_only_added() -> None:
    proceeded = decide(reviewing_plan(analysis=KNOWN), _said("keep layer 0"), POLICY)
    assert isinstance(proceeded, Proceed)
    assert proceeded.told == "A new plan is made, with also excluded: *layers.0.*."


def test_algorithms_are_added_and_left_out_in_plain_words() -> None:
    state = reviewing_plan(request=saying("use awq and smoothquant"))
    proceeded = decide(state, _said("drop smoothquant, add rotation"), POLICY)
    assert isinstance(proceeded, Proceed)
    assert proceeded.told == "A new plan is made, with rotation added, smoothquant left out."


def test_changes_without_any_are_nothing() -> None:
    assert Changes().nothing
    assert not Changes(exclusions=Exclusions(add=("x",))).nothing
    assert not Changes(layer_schemes={"x": "fp8"}).nothing


def _said(sentence: str) -> Change:
    return Change(ADA, NOON, WHERE, understand(sentence, PLAN).changes)
