"""Once more, back to the plan, stopping, and what nobody decides."""

from __future__ import annotations

import pytest

from bot.conversation.commands import Cancel, Expire, Remark, Retry, Revise
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Ignore, Proceed, Refuse, Verb, Verdict
from bot.conversation.person import Person
from bot.conversation.policy import Policy
from bot.conversation.reached import reached
from bot.conversation.sentences import EXAMPLES, sayable
from bot.conversation.state import Checkpoint, Ended, Ending, Running, Stage, State, Submitting
from bot.conversation.words.understand import Intent, understand
from bot.conversation.words.vocabulary import PUBLISHED
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS_YES,
    BOB,
    GRACE,
    MANIFEST,
    NOON,
    PLAN,
    PLAN_YES,
    POLICY,
    ROBO,
    ROOT,
    RUNNERS,
    WHERE,
    Talk,
    all_states,
    analysing,
    ended,
    failed,
    failed_at,
    planning,
    preparing,
    reviewing_command,
    reviewing_plan,
    reviewing_result,
    running,
    submitting,
)

RETRY, REVISE, CANCEL = Retry(ADA, NOON, WHERE), Revise(ADA, NOON, WHERE), Cancel(ADA, NOON, WHERE)
SUCH = "(for example: use int4_wo_32, calibration 256, output my-folder)"
every_state = pytest.mark.parametrize("state", all_states().values(), ids=lambda state: state.kind)


def refused(decision: Decision) -> tuple[str, str]:
    assert isinstance(decision, Refuse)
    return decision.trouble.code, decision.trouble.sentence()


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    return decision.state


@pytest.mark.parametrize(
    ("stage", "kind", "approvals"),
    [
        (Stage.INTAKE, "analysing", ()),
        (Stage.PLAN, "planning", (ANALYSIS_YES,)),
        (Stage.MANIFEST, "preparing", (ANALYSIS_YES, PLAN_YES)),
        (Stage.SUBMISSION, "preparing", (ANALYSIS_YES, PLAN_YES)),
        (Stage.RUN, "preparing", (ANALYSIS_YES, PLAN_YES)),
    ],
)
def test_a_failed_step_is_tried_again(stage: Stage, kind: str, approvals: tuple[object, ...]) -> None:
    before = failed_at(stage)
    decision = decide(before, RETRY, POLICY)
    after = went_on(decision)
    assert (after.kind, after.step) == (kind, before.step + 1)
    assert reached(after).approvals == approvals  # a run needs a new yes
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.RETRIED, ADA)


def test_what_was_never_approved_is_asked_first() -> None:
    before = failed(approvals=())
    assert went_on(decide(before, RETRY, POLICY)).kind == "analysing"
    assert went_on(decide(failed(approvals=(ANALYSIS_YES,)), RETRY, POLICY)).kind == "planning"
    of_another = failed(approvals=(ANALYSIS_YES.model_copy(update={"digest": PLAN.digest}), PLAN_YES))
    assert went_on(decide(of_another, RETRY, POLICY)).kind == "analysing"


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        (failed(), "planning"),
        (failed_at(Stage.MANIFEST), "planning"),
        (failed_at(Stage.INTAKE), "analysing"),
        (ended(), "planning"),
        (ended(ending=Ending.EXPIRED, approvals=(), plan=None, manifest=None, run=None), "analysing"),
        (preparing(), "planning"),
        (reviewing_command(), "planning"),
        (reviewing_result(), "planning"),
    ],
)
def test_the_plan_is_made_again_and_the_analysis_stays_approved(state: State, kind: str) -> None:
    after = went_on(decide(state, REVISE, POLICY))
    assert (after.kind, after.step) == (kind, state.step + 1)
    assert reached(after).approvals == ((ANALYSIS_YES,) if kind == "planning" else ())


def test_going_back_from_a_card_decides_it() -> None:
    decision = decide(reviewing_command(), REVISE, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.REVISED, ADA, Checkpoint.COMMAND, MANIFEST.digest)


@pytest.mark.parametrize("said", [RETRY, REVISE], ids=lambda said: type(said).__name__)
def test_a_second_click_does_not_go_back_twice(said: Retry | Revise) -> None:
    after = went_on(decide(failed(), said, POLICY))
    second = decide(after, said, POLICY)
    if isinstance(said, Retry):
        assert refused(second)[0] == "not_now"
    else:
        assert refused(second) == (
            "not_now",
            "The plan is being made; it comes as the next card. "
            f"You can say what shall be different {SUCH}, or cancel.",
        )


@every_state
def test_only_the_requester_goes_back(state: State) -> None:
    for person in (BOB, GRACE, ROOT):
        for said in (Retry(person, NOON, WHERE), Revise(person, NOON, WHERE)):
            assert isinstance(decide(state, said, POLICY), Refuse)


@every_state
@pytest.mark.parametrize(
    ("person", "may"), [(ADA, True), (GRACE, True), (ROOT, True), (BOB, False), (ROBO, False)], ids=lambda x: str(x)
)
def test_the_requester_approvers_and_admins_may_cancel(state: State, person: Person, may: bool) -> None:
    policy = Policy(approvers=(GRACE.id,), admins=(ROOT.id,), runners=RUNNERS)
    decision = decide(state, Cancel(person, NOON, WHERE), policy)
    over = state.kind in ("reviewing_result", "ended")
    assert isinstance(decision, Proceed) == (may and not over)
    if not may and not over and person is BOB:
        assert refused(decision) == ("not_allowed", "Only Ada (web:ada), web:grace and web:root may cancel this.")


HANDED_OVER = ("submitting", "running", "reviewing_result", "ended")


@pytest.mark.parametrize(
    "state", [state for state in all_states().values() if state.kind not in HANDED_OVER], ids=lambda state: state.kind
)
def test_what_runs_nowhere_ends_at_once(state: State) -> None:
    after = went_on(decide(state, CANCEL, POLICY))
    assert isinstance(after, Ended)
    assert (after.ending, after.by, after.at, after.step) == (Ending.CANCELLED, ADA, NOON, state.step)
    assert reached(after) == reached(state)


def test_the_card_that_was_asked_is_closed_by_a_cancel() -> None:
    decision = decide(reviewing_plan(), CANCEL, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.CANCELLED, ADA, Checkpoint.PLAN, PLAN.digest)


@pytest.mark.parametrize("state", [submitting(), running()], ids=lambda state: state.kind)
def test_what_a_runner_may_have_is_cancelled_there(state: State) -> None:
    decision = decide(state, CANCEL, POLICY)
    after = went_on(decision)
    assert isinstance(after, Submitting | Running)
    assert after == state.model_copy(update={"cancelled_by": ADA})
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.CANCELLED, ADA)
    code, sentence = refused(decide(after, Cancel(ROOT, NOON, WHERE), POLICY))
    assert code == "already_decided"
    assert sentence.startswith("Ada cancelled ")
    assert sentence.endswith("It ends as soon as the runner has ended it.")


@pytest.mark.parametrize(
    ("state", "code", "sentence"),
    [
        (
            reviewing_result(),
            "not_now",
            "The run has ended, so there is nothing to cancel. Accept or reject its result.",
        ),
        (
            ended(),
            "not_now",
            "There is nothing to cancel. Ada accepted the result on 2026-03-02 12:00 UTC. "
            f"You can go back to the plan, say what shall be different {SUCH}, or start a new request.",
        ),
        (
            ended(ending=Ending.EXPIRED, by=None),
            "not_now",
            "There is nothing to cancel. Nobody decided for too long, so this ended on 2026-03-02 12:00 UTC. "
            f"You can go back to the plan, say what shall be different {SUCH}, or start a new request.",
        ),
        (ended(ending=Ending.CANCELLED), "already_decided", "Ada cancelled this on 2026-03-02 12:00 UTC."),
        (
            ended(ending=Ending.CANCELLED, by=None),
            "already_decided",
            "This was cancelled outside this conversation on 2026-03-02 12:00 UTC.",
        ),
    ],
)
def test_what_is_over_is_not_cancelled(state: State, code: str, sentence: str) -> None:
    assert refused(decide(state, CANCEL, POLICY)) == (code, sentence)


@every_state
def test_only_an_open_question_or_a_failure_expires(state: State) -> None:
    decision = decide(state, Expire(state.step, state.kind, NOON), POLICY)
    if state.kind in ("reviewing_analysis", "reviewing_plan", "reviewing_command", "failed"):
        after = went_on(decision)
        assert isinstance(after, Ended)
        assert (after.ending, after.by, after.at) == (Ending.EXPIRED, None, NOON)
        assert reached(after) == reached(state)
    else:
        assert isinstance(decision, Ignore)


def test_what_went_on_meanwhile_does_not_expire() -> None:
    for step, kind in ((1, "reviewing_plan"), (2, "reviewing_analysis"), (3, "reviewing_plan")):
        assert isinstance(decide(reviewing_plan(), Expire(step, kind, NOON), POLICY), Ignore)


def test_an_expired_conversation_can_be_taken_up_again() -> None:
    talk = Talk()
    state = talk.until("reviewing_command")
    talk.say(Expire(state.step, state.kind, NOON))
    assert went_on(talk.say(REVISE)).kind == "planning"
    assert talk.until("submitting").revisions == {"analysis": 1, "plan": 2, "manifest": 2}


@every_state
def test_words_that_decide_nothing_are_told_what_can_be_said(state: State) -> None:
    code, sentence = refused(decide(state, Remark(BOB, NOON, WHERE, "hm"), POLICY))
    assert code == "not_understood"
    assert sentence.startswith("This was not understood, and nothing was decided. ")
    assert "You can " in sentence
    code, sentence = refused(decide(state, Remark(BOB, NOON, WHERE, "why?", is_question=True), POLICY))
    assert code == "question"
    assert "You can " in sentence
    assert isinstance(decide(state, Remark(ROBO, NOON, WHERE, "hm"), POLICY), Ignore)


@every_state
def test_words_that_were_not_understood_are_named(state: State) -> None:
    code, sentence = refused(decide(state, Remark(BOB, NOON, WHERE, "use xyz", unread="xyz"), POLICY))
    assert code == "not_understood"
    assert sentence.startswith("I did not understand 'xyz' in this, and nothing was decided. ")
    _, sentence = refused(decide(state, Remark(BOB, NOON, WHERE, "x", unread="a\x1b\u202e" * 100), POLICY))
    assert len(sentence) < 900
    assert sentence.isprintable()


@every_state
def test_wherever_something_can_be_changed_an_example_is_given(state: State) -> None:
    can_be_changed = not isinstance(state, Submitting | Running)
    assert (SUCH in sayable(state)) == can_be_changed


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("checkpoint", [None, *Checkpoint])
def test_the_examples_are_understood(example: str, checkpoint: Checkpoint | None) -> None:
    understood = understand(example, checkpoint, PUBLISHED)
    assert understood.intent is Intent.CHANGE
    assert not understood.changes.nothing


def test_each_state_says_something_of_its_own() -> None:
    states = [analysing(), planning(), *all_states().values()]
    told = {
        state.kind: refused(decide(state, Remark(BOB, NOON, WHERE, "?", is_question=True), POLICY)) for state in states
    }
    assert len(set(told.values())) == len(told)
