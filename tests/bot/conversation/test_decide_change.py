"""Something shall be otherwise: where the conversation goes on, and what stays approved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.conversation.commands import Change
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Proceed, Refuse, Verb, Verdict
from bot.conversation.policy import Policy
from bot.conversation.reached import reached
from bot.conversation.state import (
    Checkpoint,
    Ending,
    Planning,
    Preparing,
    ReviewingPlan,
    Stage,
    State,
    asked_at,
)
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS,
    ANALYSIS_YES,
    AWAY,
    BOB,
    MANIFEST,
    PLAN,
    PLAN_YES,
    POLICY,
    REQUEST,
    ROOT,
    RUNNERS,
    Talk,
    all_states,
    analysing,
    changing,
    digest_of,
    ended,
    failed,
    failed_at,
    planning,
    preparing,
    reviewing_analysis,
    reviewing_command,
    reviewing_plan,
    reviewing_result,
    running,
    submitting,
)

MODEL: dict[str, Any] = {"model": "Qwen/Qwen3-4B"}
REVISION: dict[str, Any] = {"revision": "main"}
RUNNER: dict[str, Any] = {"runner": "mi300"}
SCHEME: dict[str, Any] = {"global_scheme": "int4_wo_128"}
OUTPUT: dict[str, Any] = {"output_dir": "/out/elsewhere"}
FIRST = (ANALYSIS_YES,)
BOTH = (ANALYSIS_YES, PLAN_YES)
CODE = Policy(runners=RUNNERS, remote_code=(ADA.id,))


def refused(decision: Decision) -> str:
    assert isinstance(decision, Refuse)
    return decision.trouble.code


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    return decision.state


# The state, what is changed, where it goes on, by how much the step grows, and what stays approved.
CASES = [
    *((state, touch, "analysing", 1, ()) for touch in (MODEL, REVISION, RUNNER, {**MODEL, **SCHEME, **OUTPUT})
      for state in all_states().values() if state.kind not in ("submitting", "running")),
    (analysing(), SCHEME, "analysing", 0, ()),
    (analysing(), OUTPUT, "analysing", 1, ()),  # the runner examines it with the model
    (reviewing_analysis(), SCHEME, "reviewing_analysis", 0, ()),
    (reviewing_analysis(), OUTPUT, "reviewing_analysis", 0, ()),
    (planning(), SCHEME, "planning", 1, FIRST),
    (planning(), OUTPUT, "planning", 0, FIRST),
    (reviewing_plan(), SCHEME, "planning", 1, FIRST),
    (reviewing_plan(), OUTPUT, "reviewing_plan", 0, FIRST),
    (preparing(), SCHEME, "planning", 1, FIRST),
    (preparing(), OUTPUT, "preparing", 1, BOTH),
    (reviewing_command(), SCHEME, "planning", 1, FIRST),
    (reviewing_command(), OUTPUT, "preparing", 1, BOTH),
    (reviewing_command(), {**SCHEME, **OUTPUT}, "planning", 1, FIRST),
    (reviewing_result(), SCHEME, "planning", 1, FIRST),
    (reviewing_result(), OUTPUT, "preparing", 1, BOTH),
    (failed_at(Stage.INTAKE), SCHEME, "analysing", 1, ()),
    (failed_at(Stage.INTAKE), OUTPUT, "analysing", 1, ()),
    (failed_at(Stage.PLAN), SCHEME, "planning", 1, FIRST),
    (failed_at(Stage.PLAN), OUTPUT, "planning", 1, FIRST),
    (failed_at(Stage.MANIFEST), SCHEME, "planning", 1, FIRST),
    (failed_at(Stage.MANIFEST), OUTPUT, "preparing", 1, BOTH),
    (failed_at(Stage.SUBMISSION), OUTPUT, "preparing", 1, BOTH),
    (failed(), SCHEME, "planning", 1, FIRST),
    (failed(), OUTPUT, "preparing", 1, BOTH),
    (ended(), SCHEME, "planning", 1, FIRST),
    (ended(), OUTPUT, "planning", 1, FIRST),
    (ended(ending=Ending.CANCELLED, approvals=(), plan=None, manifest=None, run=None), SCHEME, "analysing", 1, ()),
]  # fmt: skip


@pytest.mark.parametrize(("state", "change", "kind", "grows", "approvals"), CASES)
def test_a_change_goes_back_to_the_earliest_step_it_touches(
    state: State, change: dict[str, Any], kind: str, grows: int, approvals: tuple[object, ...]
) -> None:
    after = went_on(decide(state, changing(**change), POLICY))
    assert (after.kind, after.step - state.step) == (kind, grows)
    assert reached(after).approvals == approvals
    assert after.revisions == state.revisions
    for name, value in change.items():
        known = after.request.choices if name == "global_scheme" else after.request.model_dump()
        assert known[name] == value


def test_a_change_that_touches_what_is_asked_decides_the_card() -> None:
    decision = decide(reviewing_plan(), changing(**SCHEME), POLICY)
    assert isinstance(decision, Proceed)
    changes = changing(**SCHEME).changes
    assert decision.verdict == Verdict(Verb.CHANGED, ADA, Checkpoint.PLAN, PLAN.digest, changes)
    assert decision.told == "A new plan is made, with scheme int4_wo_128."


def test_a_change_for_later_leaves_the_card_open() -> None:
    decision = decide(reviewing_analysis(), changing(**SCHEME), POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.CHANGED, ADA, changes=changing(**SCHEME).changes)
    assert decision.told == "Noted for the plan: scheme int4_wo_128."
    assert asked_at(decision.state) == asked_at(reviewing_analysis())
    noted = decide(reviewing_plan(), changing(**OUTPUT), POLICY)
    assert isinstance(noted, Proceed)
    assert noted.told == "Noted for the command: output folder /out/elsewhere."


def test_a_kept_change_does_not_hide_that_the_runner_is_away() -> None:
    after = went_on(decide(planning(delayed=AWAY), changing(**OUTPUT), POLICY))
    assert isinstance(after, Planning)
    assert after.delayed == AWAY
    again = went_on(decide(planning(delayed=AWAY), changing(**SCHEME), POLICY))
    assert isinstance(again, Planning)
    assert again.delayed is None


def test_many_changes_are_told_in_words() -> None:
    said = changing(
        algorithm=None, exclude_layers=["lm_head", "*.gate"], calibration={"seq_len": 1024}, kv_cache_post_rope=True
    )
    decision = decide(reviewing_plan(), said, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.told == (
        "A new plan is made, with algorithm none, excluded layers lm_head, *.gate, "
        "calibration: samples of 1024 tokens, KV cache after RoPE yes."
    )
    long = decide(reviewing_plan(), changing(exclude_layers=["x" * 100] * 100), POLICY)
    assert isinstance(long, Proceed)
    assert len(long.told) < 400


def test_the_edited_result_is_not_accepted() -> None:
    decision = decide(reviewing_result(), changing(**SCHEME), POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict is not None
    assert (decision.verdict.verb, decision.verdict.checkpoint) == (Verb.CHANGED, Checkpoint.RESULT)


@pytest.mark.parametrize("state", [submitting(), running()], ids=lambda state: state.kind)
def test_a_run_that_was_handed_over_is_not_changed(state: State) -> None:
    decision = decide(state, changing(**SCHEME), POLICY)
    assert isinstance(decision, Refuse)
    assert decision.trouble.sentence() == "The run was handed over and cannot be changed. Cancel it first."
    cancelled = state.model_copy(update={"cancelled_by": ROOT})
    assert refused(decide(cancelled, changing(**SCHEME), POLICY)) == "not_now"


@pytest.mark.parametrize(
    "said",
    [
        changing(),
        changing(global_scheme="fp8"),
        changing(model=REQUEST.model),
        changing(runner="local"),
        changing(runner=""),
    ],
)
def test_a_change_of_nothing_is_said_to_be_one(said: Change) -> None:
    for state in (analysing(), reviewing_plan(), reviewing_result(), failed(), ended()):
        assert refused(decide(state, said, POLICY)) == "nothing_changed"


def test_the_same_model_keeps_its_revision_and_another_does_not() -> None:
    state = reviewing_plan(request=REQUEST.model_copy(update={"revision": "v2"}))
    assert refused(decide(state, changing(model=REQUEST.model), POLICY)) == "nothing_changed"
    after = went_on(decide(state, changing(model=REQUEST.model, global_scheme="int8"), POLICY))
    assert (after.kind, after.request.revision) == ("planning", "v2")
    assert went_on(decide(state, changing(**MODEL), POLICY)).request.revision is None


def test_only_the_requester_changes_a_request() -> None:
    for state in all_states().values():
        for person in (BOB, ROOT):
            decision = decide(state, changing(person, **SCHEME), POLICY)
            assert isinstance(decision, Refuse)
            assert decision.trouble.message == "Only Ada (web:ada) may change this request."


def test_an_unknown_runner_is_refused_with_those_that_are_known() -> None:
    decision = decide(reviewing_plan(), changing(runner="h100"), POLICY)
    assert isinstance(decision, Refuse)
    assert decision.trouble.sentence() == "There is no runner called 'h100'. Known: local, mi300."
    back = decide(reviewing_plan(request=REQUEST.model_copy(update={"runner": "mi300"})), changing(runner=""), POLICY)
    assert went_on(back).request.runner == "local"
    assert refused(decide(reviewing_plan(), changing(runner=""), Policy())) == "no_runner"


def test_a_form_from_an_older_card_changes_nothing() -> None:
    talk = Talk()
    plan = talk.until("reviewing_plan")
    assert isinstance(plan, ReviewingPlan)
    form = changing(digest=plan.plan.digest[:12], **SCHEME)
    assert isinstance(talk.say(form), Proceed)
    again = replace(form, changes=changing(algorithm="awq").changes)
    assert refused(talk.say(again)) == "outdated"  # the new plan is being made
    talk.answer()
    assert refused(talk.say(again)) == "outdated"
    assert isinstance(talk.state, ReviewingPlan)
    assert isinstance(talk.say(replace(again, digest=talk.state.plan.digest)), Proceed)


@pytest.mark.parametrize(
    ("state", "digest", "code"),
    [
        (reviewing_command(), PLAN.digest, "outdated"),
        (reviewing_command(), MANIFEST.digest[:11], "outdated"),
        (analysing(), ANALYSIS.digest, "outdated"),
        (planning(), PLAN.digest, "outdated"),
        (failed(), digest_of("plan 0"), "outdated"),
        (planning(), ANALYSIS.digest, None),
        (failed(), PLAN.digest[:12], None),
        (ended(), MANIFEST.digest, None),
        (reviewing_result(), MANIFEST.digest, None),
    ],
)
def test_a_form_counts_while_what_it_was_opened_from_stands(state: State, digest: str, code: str | None) -> None:
    decision = decide(state, changing(digest=digest, **SCHEME), POLICY)
    if code is None:
        assert isinstance(decision, Proceed)
    else:
        assert refused(decision) == code


def test_asking_for_the_models_own_code_is_a_change_of_checkpoint_1_for_who_is_named() -> None:
    said = changing(trust_remote_code=True)
    assert refused(decide(reviewing_plan(), said, POLICY)) == "not_allowed"
    after = went_on(decide(reviewing_plan(), said, CODE))
    assert (after.kind, after.request.choices["trust_remote_code"]) == ("analysing", True)
    off = went_on(decide(reviewing_plan(request=after.request), changing(trust_remote_code=False), POLICY))
    assert (off.kind, off.request.choices["trust_remote_code"]) == ("analysing", False)
    denied = went_on(decide(reviewing_plan(), changing(trust_remote_code=False), POLICY))
    assert denied.kind == "planning"  # it was not trusted before, and the model is read all the same


@pytest.mark.parametrize("change", [MODEL, REVISION])
def test_trust_in_a_models_code_ends_with_the_model(change: dict[str, Any]) -> None:
    trusting = REQUEST.model_copy(update={"choices": {"global_scheme": "fp8", "trust_remote_code": True}})
    after = went_on(decide(reviewing_plan(request=trusting), changing(**change), CODE))
    assert after.request.choices == {"global_scheme": "fp8"}
    anew = went_on(decide(reviewing_plan(request=trusting), changing(**change, trust_remote_code=True), CODE))
    assert anew.request.choices["trust_remote_code"] is True
    elsewhere = went_on(decide(reviewing_plan(request=trusting), changing(**RUNNER), CODE))
    assert elsewhere.request.choices["trust_remote_code"] is True


def test_what_was_kept_is_there_when_its_step_comes() -> None:
    talk = Talk()
    talk.until("reviewing_analysis")
    talk.say(changing(**SCHEME))
    talk.say(changing(**OUTPUT))
    after = went_on(talk.approve())
    assert isinstance(after, Planning)
    assert after.request.choices["global_scheme"] == "int4_wo_128"
    preparing_it = talk.until("preparing")
    assert isinstance(preparing_it, Preparing)
    assert preparing_it.request.output_dir == "/out/elsewhere"


def _told(state: State, **choices: Any) -> str:
    decision = decide(state, changing(**choices), POLICY)
    assert isinstance(decision, Proceed)
    return decision.told


def test_excluded_layers_replace_the_defaults_and_that_is_said() -> None:
    known = ANALYSIS.model_copy(update={"exclude_defaults": ("lm_head", "*.router")})
    plan = reviewing_plan(analysis=known)
    assert _told(plan, exclude_layers=["*mlp.gate"]) == (
        "A new plan is made, with excluded layers *mlp.gate. "
        "This replaces the engine's defaults lm_head, *.router; the plan will say what that means."
    )
    assert "defaults *.router;" in _told(plan, exclude_layers=["lm_head", "*mlp.gate"])
    assert _told(plan, exclude_layers=None) == "A new plan is made, with excluded layers: the engine's defaults."
    early = reviewing_analysis(analysis=known)
    assert "replaces the engine's defaults lm_head" in _told(early, exclude_layers=["*mlp.gate"])
    # Before the analysis nobody knows what they are.
    assert "This replaces the engine's defaults; the plan" in _told(analysing(), exclude_layers=["*mlp.gate"])


def test_what_replaces_nothing_is_not_told() -> None:
    known = ANALYSIS.model_copy(update={"exclude_defaults": ("lm_head",)})
    assert "replaces" not in _told(reviewing_plan(analysis=known), exclude_layers=["lm_head", "*mlp.gate"])
    assert "replaces" not in _told(reviewing_plan(), exclude_layers=["*mlp.gate"])  # it has no defaults
    assert "replaces" not in _told(reviewing_plan(analysis=known), global_scheme="int8")
    many = ANALYSIS.model_copy(update={"exclude_defaults": tuple(f"layer.{number}" for number in range(900))})
    assert "layer.39 and 860 more;" in _told(reviewing_plan(analysis=many), exclude_layers=["x"])
