"""What a runner answers: a document, a refusal, or nothing yet."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.commands import Analysed, Command, Delayed, Planned, Prepared, StepFailed, Submitted
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Ignore, Proceed
from bot.conversation.reached import reached
from bot.conversation.state import (
    AnalysisRevision,
    Ended,
    Ending,
    Failed,
    ManifestRevision,
    PlanRevision,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    Running,
    Stage,
    State,
    Trouble,
    Working,
)
from schemas.runs import RunState
from tests import samples
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS,
    ANALYSIS_YES,
    AWAY,
    BLOCKED,
    MANIFEST,
    NOON,
    PLAN,
    PLAN_YES,
    POLICY,
    TROUBLE,
    Talk,
    all_states,
    analysing,
    changing,
    digest_of,
    planning,
    preparing,
    run,
    submitting,
)

WORKING = [state for state in all_states().values() if isinstance(state, Working)]
working = pytest.mark.parametrize("state", WORKING, ids=lambda state: state.kind)
DIGEST = digest_of("new")


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    assert decision.verdict is None
    return decision.state


def step_failed(state: State, code: str) -> State:
    trouble = Trouble(code=code, message=f"Something is {code}.", hint="Do something.")
    return went_on(decide(state, StepFailed(state.step, NOON, trouble), POLICY))


def test_the_model_was_analysed() -> None:
    answer = Analysed(1, NOON, samples.analysis(), DIGEST, "/out/free")
    after = went_on(decide(analysing(delayed=AWAY), answer, POLICY))
    assert isinstance(after, ReviewingAnalysis)
    assert (after.step, after.revisions) == (1, {"analysis": 1})
    assert after.analysis == AnalysisRevision(
        number=1, digest=DIGEST, proposed_output="/out/free", exclude_defaults=("lm_head",), better="wanted"
    )


@pytest.mark.parametrize("facts", [{"trust_remote_code": True}, {"remote_code": ["config.json: AutoModel -> m.Odd"]}])
def test_a_model_that_brings_code_is_known_as_one(facts: dict[str, Any]) -> None:
    plain = samples.analysis()
    document = plain.model_copy(update={"model": plain.model.model_copy(update=facts)})
    after = went_on(decide(analysing(), Analysed(1, NOON, document, DIGEST, ""), POLICY))
    assert isinstance(after, ReviewingAnalysis)
    assert after.analysis.remote_code


def test_a_plan_was_made() -> None:
    answer = Planned(2, NOON, samples.plan(trust_remote_code=True, findings=BLOCKED.findings), DIGEST)
    after = went_on(decide(planning(), answer, POLICY))
    assert isinstance(after, ReviewingPlan)
    assert (after.step, after.analysis, after.approvals) == (2, ANALYSIS, (ANALYSIS_YES,))
    assert after.plan == PlanRevision(
        number=1,
        digest=DIGEST,
        scheme="fp8",
        remote_code=True,
        blocked_by=("576 is no multiple of 128. Take g32.", "The disk is too small."),
    )


def test_the_command_was_derived() -> None:
    answer = Prepared(3, NOON, samples.manifest(), DIGEST)
    after = went_on(decide(preparing(because="The script changed."), answer, POLICY))
    assert isinstance(after, ReviewingCommand)
    assert after.manifest == ManifestRevision(number=1, digest=DIGEST, output_dir="/out/qwen3-8b-fp8")
    assert (after.approvals, after.because) == ((ANALYSIS_YES, PLAN_YES), "The script changed.")


@pytest.mark.parametrize("cancelled_by", [None, ADA])
def test_the_runner_has_the_run(cancelled_by: Any) -> None:
    after = went_on(decide(submitting(cancelled_by=cancelled_by), Submitted(4, NOON, run()), POLICY))
    assert isinstance(after, Running)
    assert (after.run, after.revisions["run"], after.cancelled_by) == (run(), 1, cancelled_by)


def test_a_run_that_ended_before_the_answer_came_still_gets_its_report() -> None:
    """A restart while it is handed over: the same key answers with a run that is long over, without its report."""
    done = run(state=RunState.SUCCEEDED, last_event=9)
    after = went_on(decide(submitting(), Submitted(4, NOON, done), POLICY))
    assert isinstance(after, Running)
    talk = Talk(after)
    talk.answer()
    assert talk.state.kind == "reviewing_result"


def test_every_document_has_a_number_of_its_own() -> None:
    talk = Talk()
    talk.until("reviewing_plan")
    talk.say(changing(algorithm="awq"))
    assert isinstance(after := talk.until("reviewing_plan"), ReviewingPlan)
    assert (after.plan.number, after.analysis.number) == (2, 1)
    talk.say(changing(model="Qwen/Qwen3-4B"))
    assert isinstance(command := talk.until("reviewing_command"), ReviewingCommand)
    assert (command.analysis.number, command.plan.number, command.manifest.number) == (2, 3, 1)
    assert command.revisions == {"analysis": 2, "plan": 3, "manifest": 1}


@working
def test_waiting_is_told_once(state: State) -> None:
    delayed = Delayed(state.step, NOON, AWAY)
    after = went_on(decide(state, delayed, POLICY))
    assert after == state.model_copy(update={"delayed": AWAY})
    assert isinstance(decide(after, delayed, POLICY), Ignore)


@working
def test_an_answer_to_another_question_is_ignored(state: State) -> None:
    answers: list[Command] = [
        Analysed(state.step, NOON, samples.analysis(), DIGEST, ""),
        Planned(state.step, NOON, samples.plan(), DIGEST),
        Prepared(state.step, NOON, samples.manifest(), DIGEST),
        Submitted(state.step, NOON, run()),
    ]
    went = [answer for answer in answers if isinstance(decide(state, answer, POLICY), Proceed)]
    assert len(went) == 1


@pytest.mark.parametrize(
    ("state", "stage"),
    [
        (analysing(), Stage.INTAKE),
        (planning(), Stage.PLAN),
        (preparing(), Stage.MANIFEST),
        (submitting(), Stage.SUBMISSION),
    ],
)
def test_a_refusal_of_the_runner_is_a_failure_of_the_step(state: State, stage: Stage) -> None:
    after = went_on(decide(state, StepFailed(state.step, NOON, TROUBLE), POLICY))
    assert isinstance(after, Failed)
    assert (after.stage, after.trouble, after.step) == (stage, TROUBLE, state.step)
    assert reached(after) == reached(state)


BOTH, FIRST = (ANALYSIS_YES, PLAN_YES), (ANALYSIS_YES,)


@pytest.mark.parametrize(
    ("state", "codes", "kind", "approvals"),
    [
        (
            submitting(),
            ["runner_changed", "model_changed", "script_changed", "dataset_changed", "command_changed"],
            "preparing",
            BOTH,
        ),
        (submitting(), ["manifest_changed", "plan_changed"], "preparing", BOTH),
        (submitting(), ["plan_inconsistent", "plan_blocked", "analysis_mismatch"], "planning", FIRST),
        (submitting(), ["analysis_changed"], "analysing", ()),
        (preparing(), ["model_changed", "analysis_changed"], "analysing", ()),
        (preparing(), ["plan_inconsistent", "plan_blocked", "analysis_mismatch"], "planning", FIRST),
        (planning(), ["model_changed", "analysis_changed"], "analysing", ()),
    ],
)
def test_what_changed_on_the_host_leads_back_to_the_step_that_sees_it(
    state: State, codes: list[str], kind: str, approvals: tuple[object, ...]
) -> None:
    for code in codes:
        after = step_failed(state, code)
        assert (after.kind, after.step) == (kind, state.step + 1)
        assert reached(after).approvals == approvals
        assert getattr(after, "because", None) == f"Something is {code}."


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (analysing(), "model_changed"),
        (analysing(), "analysis_changed"),
        (planning(), "plan_blocked"),
        (planning(), "plan_inconsistent"),
        (preparing(), "runner_changed"),
        (preparing(), "output_not_empty"),
        (submitting(), "disk_full"),
        (submitting(), "key_used"),
        (submitting(), "approval_outdated"),
    ],
)
def test_the_same_question_is_never_asked_again_by_itself(state: State, code: str) -> None:
    assert isinstance(step_failed(state, code), Failed)


def test_whoever_is_asked_again_is_told_why() -> None:
    talk = Talk()
    talk.until("submitting")
    trouble = Trouble(code="analysis_changed", message="The analysis is not what is found.")
    talk.say(StepFailed(talk.state.step, NOON, trouble))
    talk.answer()
    assert isinstance(talk.state, ReviewingAnalysis)
    assert talk.state.because == "The analysis is not what is found."


def test_a_plan_that_is_asked_again_says_why_once() -> None:
    talk = Talk(preparing())
    talk.say(StepFailed(3, NOON, Trouble(code="plan_blocked", message="The disk is too small.")))
    talk.answer()
    assert isinstance(talk.state, ReviewingPlan)
    assert talk.state.because == "The disk is too small."
    assert isinstance(after := talk.until("reviewing_command"), ReviewingCommand)
    assert after.because == ""


@pytest.mark.parametrize("code", ["disk_full", "runner_changed", "analysis_changed"])
def test_a_cancelled_run_that_the_runner_does_not_take_is_over(code: str) -> None:
    after = step_failed(submitting(cancelled_by=ADA), code)
    assert isinstance(after, Ended)
    assert (after.ending, after.by, after.at, after.manifest) == (Ending.CANCELLED, ADA, NOON, MANIFEST)
    assert after.plan == PLAN
