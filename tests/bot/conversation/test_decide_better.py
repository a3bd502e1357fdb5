"""The engine's own list of layers comes after the headers: what becomes of what people saw and approved by then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.conversation.commands import Approve, NoBetterAnalysis, Retry
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Ignore, Proceed, Refuse
from bot.conversation.reached import reached
from bot.conversation.state import (
    STATES,
    Checkpoint,
    ExactList,
    ReviewingAnalysis,
    Stage,
    State,
    Trouble,
    asked_at,
)
from bot.conversation.work import AskBetterAnalysis, background, work
from schemas.artifacts.analysis import Risk
from tests import samples
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS,
    NOON,
    POLICY,
    REQUEST,
    TROUBLE,
    WHERE,
    all_states,
    better_analysis,
    digest_of,
    failed_at,
    planning,
    reviewing_analysis,
    reviewing_command,
    reviewing_plan,
)

SAME, MORE = samples.exact_analysis(), samples.exact_analysis(count=144)
BEFORE_THE_COMMAND = ("reviewing_analysis", "planning", "reviewing_plan", "preparing", "reviewing_command")
APPROVED = BEFORE_THE_COMMAND[1:]


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    assert STATES.validate_json(STATES.dump_json(decision.state)) == decision.state
    return decision.state


def hears(state: State, document: Any = SAME) -> State:
    """The state after the better analysis came."""
    return went_on(decide(state, better_analysis(state, document), POLICY))


@pytest.mark.parametrize("kind", all_states())
def test_the_runner_is_asked_beside_while_the_analysis_may_become_better(kind: str) -> None:
    state = all_states()[kind]
    task = AskBetterAnalysis(
        runner="local", of=ANALYSIS.digest, number=1, model="Qwen/Qwen3-8B", revision=None, trust_remote_code=False
    )
    assert background(state) == (task if kind in BEFORE_THE_COMMAND else None)
    assert background(STATES.validate_json(STATES.dump_json(state))) == background(state)


@pytest.mark.parametrize("kind", BEFORE_THE_COMMAND)
@pytest.mark.parametrize("document", [SAME, MORE], ids=["same", "more"])
def test_it_is_not_asked_for_again_once_it_came_or_will_not(kind: str, document: Any) -> None:
    state = all_states()[kind]
    assert background(hears(state, document)) is None
    assert background(went_on(decide(state, NoBetterAnalysis(ANALYSIS.digest, NOON, TROUBLE), POLICY))) is None


def test_what_the_question_says_is_that_of_the_analysis() -> None:
    asked = REQUEST.model_copy(
        update={"revision": "v2", "runner": "mi300", "choices": {"trust_remote_code": True}, "model": "odd/model"}
    )
    task = background(reviewing_plan(request=asked))
    assert task is not None
    assert (task.runner, task.model, task.revision, task.trust_remote_code) == ("mi300", "odd/model", "v2", True)


@pytest.mark.parametrize("document", [SAME, MORE], ids=["same", "more"])
def test_before_checkpoint_1_it_takes_the_place_of_the_other(document: Any) -> None:
    after = hears(reviewing_analysis(because="Asked again."), document)
    assert isinstance(after, ReviewingAnalysis)
    assert (after.step, after.revisions, after.because) == (1, {"analysis": 2}, "Asked again.")
    assert (after.analysis.number, after.analysis.digest) == (2, digest_of("analysis 2"))
    assert after.analysis.exact
    assert after.analysis.proposed_output == ANALYSIS.proposed_output
    assert after.analysis.exclude_defaults == ("lm_head",)


def test_a_yes_to_the_older_analysis_counts_for_nothing_and_says_why() -> None:
    after = hears(reviewing_analysis())
    for digest in (ANALYSIS.digest, ANALYSIS.digest[:12]):
        refused = decide(after, Approve(ADA, NOON, WHERE, Checkpoint.ANALYSIS, digest, 1), POLICY)
        assert isinstance(refused, Refuse)
        assert refused.trouble.code == "outdated"
        assert refused.trouble.message == "The exact list of layers arrived since, in a new analysis."
    other = decide(after, Approve(ADA, NOON, WHERE, Checkpoint.ANALYSIS, digest_of("what?"), 1), POLICY)
    assert isinstance(other, Refuse)
    assert "exact list" not in other.trouble.message
    now = Approve(ADA, NOON, WHERE, Checkpoint.ANALYSIS, digest_of("analysis 2"), 1)
    assert went_on(decide(after, now, POLICY)).kind == "planning"


@pytest.mark.parametrize("kind", APPROVED)
def test_the_same_targets_void_nothing(kind: str) -> None:
    before = all_states()[kind]
    after = hears(before)
    assert (after.kind, after.step) == (before.kind, before.step)
    assert asked_at(after) == asked_at(before)
    was, now = reached(before), reached(after)
    assert (now.approvals, now.plan, now.manifest) == (was.approvals, was.plan, was.manifest)
    assert now.analysis is not None
    assert (now.analysis.number, now.analysis.digest) == (1, ANALYSIS.digest)
    assert now.analysis.confirmed == ExactList(number=2, linear_layers=108)
    assert after.revisions["analysis"] == 2
    assert work(after) == work(before)


def test_what_only_the_engine_finds_is_added() -> None:
    known = samples.analysis().risks[0]
    found = Risk(severity="high", code="new", message="Some layers are no linear ones.", recovery_hint="Look at them.")
    after = hears(reviewing_plan(), SAME.model_copy(update={"risks": [known, found]}))
    analysis = reached(after).analysis
    assert analysis is not None
    assert analysis.confirmed is not None
    assert analysis.confirmed.risks == ("Some layers are no linear ones. Look at them.",)


@pytest.mark.parametrize("kind", APPROVED)
def test_other_targets_lead_back_to_checkpoint_1(kind: str) -> None:
    before = all_states()[kind]
    after = hears(before, MORE)
    assert isinstance(after, ReviewingAnalysis)
    assert after.step == before.step + 1
    assert after.because == "The engine's own list of layers differs: 432 layers would be quantized, not 108."
    assert reached(after).approvals == ()
    assert after.revisions["analysis"] == 2
    assert after.request == before.request


def renamed(pattern: str) -> Any:
    """The exact list with other names for the q_proj layers."""
    targets = SAME.quantization_targets
    first = targets.groups[0].model_copy(update={"pattern": pattern})
    return SAME.model_copy(update={"quantization_targets": targets.model_copy(update={"groups": [first]})})


@pytest.mark.parametrize("kind", BEFORE_THE_COMMAND)
def test_patterns_that_match_nothing_any_more_are_named(kind: str) -> None:
    asked = REQUEST.model_copy(update={"choices": {"layer_quant_config": {"*down_proj": "int4_wo_128"}}})
    before = all_states()[kind].model_copy(update={"request": asked})
    after = hears(before, renamed("model.layers.*.fused.q_proj"))
    assert isinstance(after, ReviewingAnalysis)
    assert after.because.endswith("By the engine's names, *down_proj matches nothing now: correct what was asked for.")
    assert after.request == asked


def test_replaced_exclusions_make_every_layer_a_target() -> None:
    head = (
        samples.analysis()
        .quantization_targets.groups[0]
        .model_copy(update={"pattern": "lm_head", "count": 1, "excluded_by_default": True})
    )
    targets = SAME.quantization_targets
    with_head = SAME.model_copy(
        update={"quantization_targets": targets.model_copy(update={"groups": [*targets.groups, head]})}
    )
    assert hears(reviewing_plan(), with_head).kind == "reviewing_plan"
    replaced = REQUEST.model_copy(update={"choices": {"exclude_layers": []}})
    after = hears(reviewing_plan(request=replaced), with_head)
    assert isinstance(after, ReviewingAnalysis)
    assert "it has lm_head" in after.because


@pytest.mark.parametrize("state", all_states().values(), ids=lambda state: state.kind)
def test_an_answer_about_another_analysis_is_late(state: State) -> None:
    for command in (better_analysis(state, MORE), NoBetterAnalysis("", NOON, TROUBLE)):
        late = replace(command, of=digest_of("an older one"))
        assert isinstance(decide(state, late, POLICY), Ignore)


@pytest.mark.parametrize("kind", BEFORE_THE_COMMAND)
def test_it_counts_once(kind: str) -> None:
    state = all_states()[kind]
    command = better_analysis(state, SAME)
    assert isinstance(decide(went_on(decide(state, command, POLICY)), command, POLICY), Ignore)


def test_an_exact_analysis_has_no_better_one() -> None:
    exact = ANALYSIS.model_copy(update={"exact": True, "better": "none"})
    assert background(reviewing_analysis(analysis=exact)) is None
    assert isinstance(
        decide(reviewing_analysis(analysis=exact), better_analysis(reviewing_analysis(), SAME), POLICY), Ignore
    )


def test_headers_again_are_nothing_better() -> None:
    state = reviewing_command()
    after = went_on(decide(state, better_analysis(state, samples.analysis()), POLICY))
    assert after == state.model_copy(update={"analysis": ANALYSIS.model_copy(update={"better": "none"})})


@pytest.mark.parametrize(
    ("code", "told"), [("depth_not_offered", ""), ("modules_need_code", "There is no model there.")]
)
def test_why_there_is_none_is_noted_and_an_older_runner_is_no_news(code: str, told: str) -> None:
    trouble = Trouble(code=code, message="There is no model there.", hint="Name another.")
    after = went_on(decide(planning(), NoBetterAnalysis(ANALYSIS.digest, NOON, trouble), POLICY))
    known = reached(after).analysis
    assert known is not None
    assert (known.better, known.no_better) == ("none", told)
    assert after == planning(analysis=known)


@pytest.mark.parametrize("code", ["engine_broken", "probe_timeout", "modules_not_built", "hub_timeout"])
def test_a_failure_that_may_pass_is_asked_about_again_in_the_next_step(code: str) -> None:
    trouble = Trouble(code=code, message="The probe failed.")
    failed = went_on(decide(reviewing_plan(), NoBetterAnalysis(ANALYSIS.digest, NOON, trouble), POLICY))
    assert background(failed) is None
    later = failed.model_copy(update={"step": failed.step + 1})
    assert background(later) == background(reviewing_plan())
    again = went_on(decide(later, NoBetterAnalysis(ANALYSIS.digest, NOON, trouble), POLICY))
    assert background(again) is None
    known = reached(hears(later)).analysis
    assert known is not None
    assert (known.better, known.no_better, known.again_after) == ("none", "", None)
    assert known.confirmed is not None


@pytest.mark.parametrize("code", ["depth_not_offered", "modules_need_code", "modules_unknown_family"])
def test_what_is_so_for_good_is_not_asked_about_again(code: str) -> None:
    trouble = Trouble(code=code, message="Not here.")
    failed = went_on(decide(reviewing_plan(), NoBetterAnalysis(ANALYSIS.digest, NOON, trouble), POLICY))
    assert background(failed.model_copy(update={"step": failed.step + 1})) is None


@pytest.mark.parametrize("stage", [Stage.PLAN, Stage.MANIFEST])
def test_what_failed_asks_again_once_it_goes_on(stage: Stage) -> None:
    state = failed_at(stage)
    assert background(state) is None
    assert isinstance(decide(state, better_analysis(state, SAME), POLICY), Ignore)
    again = went_on(decide(state, Retry(ADA, NOON, WHERE), POLICY))
    assert background(again) == background(planning())
