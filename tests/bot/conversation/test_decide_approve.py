"""Yes and no: for exactly what was shown, once, and only from who may say it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from bot.conversation.approvals import signed, who_may_run
from bot.conversation.commands import Approve, Reject
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Proceed, Refuse, Verb, Verdict
from bot.conversation.person import Person
from bot.conversation.policy import Policy
from bot.conversation.state import (
    Checkpoint,
    Ended,
    Ending,
    Planning,
    Preparing,
    ReviewingPlan,
    State,
    Submitting,
    asked_at,
)
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS,
    ANALYSIS_YES,
    BLOCKED,
    BOB,
    COMMAND_YES,
    GRACE,
    MANIFEST,
    NOON,
    PLAN,
    PLAN_YES,
    POLICY,
    ROOT,
    RUNNERS,
    WHERE,
    Talk,
    all_states,
    changing,
    digest_of,
    ended,
    failed,
    no,
    preparing,
    reviewing_analysis,
    reviewing_command,
    reviewing_plan,
    reviewing_result,
    running,
    submitting,
    yes,
)

ASKING = [reviewing_analysis(), reviewing_plan(), reviewing_command(), reviewing_result()]
RAN = (Checkpoint.RESULT, Checkpoint.COMMAND)
asking = pytest.mark.parametrize("state", ASKING, ids=lambda state: state.kind)


def refused(decision: Decision) -> tuple[str, str]:
    assert isinstance(decision, Refuse)
    return decision.trouble.code, decision.trouble.sentence()


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    return decision.state


def test_the_analysis_is_approved() -> None:
    before = reviewing_analysis()
    assert went_on(decide(before, yes(before), POLICY)) == Planning(
        request=before.request,
        requester=ADA,
        step=2,
        revisions={"analysis": 1},
        analysis=ANALYSIS,
        approvals=(ANALYSIS_YES,),
    )


def test_the_plan_is_approved() -> None:
    before = reviewing_plan()
    after = went_on(decide(before, yes(before), POLICY))
    assert isinstance(after, Preparing)
    assert (after.step, after.approvals, after.plan) == (3, (ANALYSIS_YES, PLAN_YES), PLAN)


def test_the_command_is_approved_and_handed_over_once() -> None:
    before = reviewing_command()
    after = went_on(decide(before, yes(before), POLICY))
    assert isinstance(after, Submitting)
    assert (after.step, after.manifest) == (4, MANIFEST)
    assert after.approvals == (ANALYSIS_YES, PLAN_YES, COMMAND_YES)


def test_the_result_is_accepted() -> None:
    before = reviewing_result()
    after = went_on(decide(before, yes(before), POLICY))
    assert isinstance(after, Ended)
    assert (after.ending, after.by, after.at, after.step) == (Ending.ACCEPTED, ADA, NOON, before.step)
    assert (after.run, after.approvals) == (before.run, before.approvals)


@asking
def test_the_record_names_the_whole_digest(state: State) -> None:
    asked = asked_at(state)
    assert asked is not None
    clicked = replace(yes(state), digest=asked[1][:12])
    decision = decide(state, clicked, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict == Verdict(Verb.APPROVED, ADA, asked[0], asked[1])


@asking
@pytest.mark.parametrize("digits", [12, 13, 40, 64])
def test_twelve_digits_and_more_name_what_is_approved(state: State, digits: int) -> None:
    whole = yes(state)
    assert decide(state, replace(whole, digest=whole.digest[:digits]), POLICY) == decide(state, whole, POLICY)


@asking
def test_other_digits_are_those_of_an_older_card(state: State) -> None:
    whole = yes(state)
    digest = whole.digest
    for other in (digest[:11], digest[1:], digest + "0", digest_of("old")[:12], "0" * 64):
        assert refused(decide(state, replace(whole, digest=other), POLICY))[0] == "outdated"


@asking
def test_a_yes_to_another_checkpoint_does_not_count(state: State) -> None:
    whole = yes(state)
    for checkpoint in set(Checkpoint) - {whole.checkpoint}:
        code, _ = refused(decide(state, replace(whole, checkpoint=checkpoint), POLICY))
        # The digest of the command that ran is also what its result is asked about.
        assert code == ("already_decided" if (whole.checkpoint, checkpoint) == RAN else "outdated")


@asking
def test_words_before_the_card_was_shown_approve_nothing(state: State) -> None:
    code, sentence = refused(decide(state, replace(yes(state), digest=""), POLICY))
    assert code == "not_seen"
    assert sentence == "The card had not been shown yet when you said that. Look at the newest card."


def test_a_yes_to_an_older_plan_is_told_which_stands_now() -> None:
    state = reviewing_plan(plan=PLAN.model_copy(update={"number": 3, "digest": digest_of("plan 3")}))
    old = Approve(ADA, NOON, WHERE, Checkpoint.PLAN, PLAN.digest)
    assert refused(decide(state, old, POLICY)) == (
        "outdated",
        "The plan was changed since (plan 3 stands now). Look at the newest card.",
    )


@pytest.mark.parametrize(
    "state",
    [
        reviewing_plan(),
        preparing(),
        reviewing_command(),
        submitting(),
        running(),
        reviewing_result(),
        failed(),
        ended(),
    ],
    ids=lambda state: state.kind,
)
def test_a_second_click_is_told_who_decided_and_when(state: State) -> None:
    late = Approve(BOB, NOON + timedelta(seconds=1), WHERE, Checkpoint.ANALYSIS, ANALYSIS.digest[:12])
    assert refused(decide(state, late, POLICY)) == (
        "already_decided",
        "Ada approved this analysis on 2026-03-02 12:00 UTC.",
    )


@pytest.mark.parametrize("ending", [Ending.ACCEPTED, Ending.REJECTED])
@pytest.mark.parametrize("say", [Approve, Reject])
def test_a_second_decision_about_a_result_is_told_the_first(ending: Ending, say: type[Approve] | type[Reject]) -> None:
    late = say(BOB, NOON, WHERE, Checkpoint.RESULT, MANIFEST.digest[:12])
    sentence = f"Ada {ending.value} the result on 2026-03-02 12:00 UTC."
    assert refused(decide(ended(ending=ending), late, POLICY)) == ("already_decided", sentence)
    other = replace(late, digest=digest_of("another run"))
    assert refused(decide(ended(ending=ending), other, POLICY))[0] == "not_now"


def test_a_run_that_was_cancelled_has_no_result_to_decide() -> None:
    late = Approve(ADA, NOON, WHERE, Checkpoint.RESULT, MANIFEST.digest)
    assert refused(decide(ended(ending=Ending.CANCELLED), late, POLICY))[0] == "not_now"


def test_times_are_told_in_utc() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=9)))
    state = ended(ending=Ending.REJECTED, at=east)
    assert "2026-03-02 12:00 UTC" in refused(decide(state, yes(state), POLICY))[1]


def test_a_plan_that_cannot_run_is_not_approved() -> None:
    talk = Talk()
    talk.until("planning")
    talk.answer(findings=BLOCKED.findings)
    assert isinstance(talk.state, ReviewingPlan)
    assert talk.state.plan.blocked_by == ("576 is no multiple of 128. Take g32.", "The disk is too small.")
    assert refused(talk.approve()) == (
        "plan_blocked",
        "This plan cannot run: 576 is no multiple of 128. Take g32. (1 more reason stands on the card.) "
        "Say what shall be different.",
    )


@asking
def test_nobody_but_the_requester_decides(state: State) -> None:
    for person in (BOB, GRACE, ROOT):
        assert refused(decide(state, yes(state, person), POLICY))[0] == "not_allowed"


def test_approvers_approve_commands_as_soon_as_there_are_any() -> None:
    policy = Policy(runners=RUNNERS, approvers=(GRACE.id,))
    state = reviewing_command()
    assert refused(decide(state, yes(state), policy)) == ("not_allowed", "Only web:grace may approve this command.")
    after = went_on(decide(state, yes(state, GRACE), policy))
    assert isinstance(after, Submitting)
    assert after.approvals[-1].by == "Grace (web:grace)"
    for other in (reviewing_analysis(), reviewing_plan(), reviewing_result()):
        assert refused(decide(other, yes(other, GRACE), policy))[0] == "not_allowed"


def test_a_command_that_runs_the_models_own_code_needs_who_is_named_for_it() -> None:
    state = reviewing_command(plan=PLAN.model_copy(update={"remote_code": True}))
    assert refused(decide(state, yes(state), POLICY))[0] == "not_allowed"
    assert refused(decide(state, yes(state), Policy(runners=RUNNERS, remote_code=(GRACE.id,))))[0] == "not_allowed"
    named = Policy(runners=RUNNERS, remote_code=(GRACE.id,), approvers=(GRACE.id, BOB.id))
    assert refused(decide(state, yes(state, BOB), named)) == (
        "not_allowed",
        "Only web:grace may approve this command, because code that the model brings along would run.",
    )
    assert isinstance(decide(state, yes(state, GRACE), named), Proceed)


def test_two_conversations_with_the_same_command_are_two_runs() -> None:
    state = reviewing_command()
    here = went_on(decide(state, yes(state), POLICY))
    there = went_on(decide(state, replace(yes(state), where="web quantize 13"), POLICY))
    assert isinstance(here, Submitting)
    assert isinstance(there, Submitting)
    assert here.key != there.key
    assert len(here.key) <= 200
    assert here == went_on(decide(state, yes(state), POLICY))


def test_a_run_that_is_approved_again_is_another_run() -> None:
    first = reviewing_command()
    again = reviewing_command(step=5)
    keys = {s.key for s in (went_on(decide(x, yes(x), POLICY)) for x in (first, again)) if isinstance(s, Submitting)}
    assert len(keys) == 2


def test_a_result_is_rejected() -> None:
    before = reviewing_result()
    decision = decide(before, no(before), POLICY)
    assert isinstance(decision, Proceed)
    assert isinstance(decision.state, Ended)
    assert (decision.state.ending, decision.state.by, decision.state.at) == (Ending.REJECTED, ADA, NOON)
    assert decision.verdict == Verdict(Verb.REJECTED, ADA, Checkpoint.RESULT, MANIFEST.digest)
    assert went_on(decide(before, replace(no(before), checkpoint=None), POLICY)) == decision.state


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (no(reviewing_result(), BOB), "not_allowed"),
        (replace(no(reviewing_result()), digest=""), "not_seen"),
        (replace(no(reviewing_result()), digest=digest_of("another run")), "outdated"),
        (replace(no(reviewing_result()), checkpoint=Checkpoint.PLAN), "outdated"),
        (Reject(ADA, NOON, WHERE, Checkpoint.PLAN, PLAN.digest), "already_decided"),
    ],
)
def test_a_no_that_does_not_count_rejects_nothing(said: Reject, code: str) -> None:
    assert refused(decide(reviewing_result(), said, POLICY))[0] == code


@pytest.mark.parametrize("state", ASKING[:3], ids=lambda state: state.kind)
def test_a_no_before_the_run_asks_what_instead(state: State) -> None:
    code, sentence = refused(decide(state, no(state), POLICY))
    assert code == "what_instead"
    assert sentence.startswith("What shall be different? Nothing was decided. You can say ")
    assert refused(decide(state, replace(no(state), digest=digest_of("old")), POLICY))[0] == "outdated"


def test_an_edit_makes_the_yes_before_it_worthless() -> None:
    talk = Talk()
    plan = talk.until("reviewing_plan")
    old = yes(plan)
    talk.approve()
    talk.say(changing(algorithm="gptq"))
    assert refused(talk.say(old))[0] == "outdated"  # while the new plan is made
    talk.answer()
    assert refused(talk.say(old))[0] == "outdated"  # when it is shown


@pytest.mark.parametrize(
    ("person", "expected"),
    [
        (Person(id="slack:U1", name="Ada"), "Ada (slack:U1)"),
        (Person(id="slack:U1", name="Ada (ops)"), "Ada (ops) (slack:U1)"),
        (Person(id="slack:U1", name=""), "slack:U1"),
        (Person(id="slack:U1", name="a" * 200), "a" * 189 + " (slack:U1)"),
        (Person(id="s" * 200, name="Ada"), "s" * 200),
    ],
)
def test_an_approval_names_its_person_within_the_limit(person: Person, expected: str) -> None:
    assert signed(person) == expected
    assert len(expected) <= 200


def test_long_names_and_places_do_not_stop_an_approval() -> None:
    person = Person(id="slack:" + "u" * 194, name="n" * 200)
    state = reviewing_analysis(requester=person)
    after = went_on(decide(state, replace(yes(state, person), where="w" * 900), POLICY))
    assert isinstance(after, Planning)
    assert len(after.approvals[0].where) == 500


def test_who_may_run_is_said_of_a_command_and_of_nothing_else() -> None:
    policy = Policy(runners=RUNNERS, approvers=(GRACE.id, BOB.id), remote_code=(GRACE.id,))
    assert who_may_run(reviewing_command(), policy) == "Only web:grace and web:bob may approve this command."
    code = reviewing_command(plan=PLAN.model_copy(update={"remote_code": True}))
    for state in (code, reviewing_command()):
        assert refused(decide(state, yes(state), policy)) == ("not_allowed", who_may_run(state, policy))
    others = [state for state in all_states().values() if state.kind != "reviewing_command"]
    assert {who_may_run(state, policy) for state in others} == {""}
    assert who_may_run(reviewing_command(), POLICY) == ""
