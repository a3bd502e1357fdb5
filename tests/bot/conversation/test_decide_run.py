"""What becomes of a run, as its conversation sees it."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.commands import RunMissing, RunNews, RunSilent
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Ignore, Proceed
from bot.conversation.reached import reached
from bot.conversation.state import (
    Ended,
    Ending,
    Failed,
    Preparing,
    ReviewingResult,
    Running,
    Stage,
    State,
    Trouble,
)
from bot.conversation.work import Watch, work
from schemas.artifacts.report import FailureClass, ValidationReport
from schemas.runs import Progress, RunState
from tests import samples
from tests.bot.conversation.samples import (
    ADA,
    ANALYSIS_YES,
    AWAY,
    NOON,
    PLAN_YES,
    POLICY,
    ROOT,
    TROUBLE,
    failed,
    failed_at,
    run,
    running,
)

QUIET = Trouble(code="runner_silent", message="The runner is not heard.")


def went_on(decision: Decision) -> State:
    assert isinstance(decision, Proceed)
    return decision.state


def hears(before: Running, /, **changes: Any) -> Decision:
    return decide(before, RunNews(run(**{"last_event": 4, **changes}), NOON), POLICY)


@pytest.mark.parametrize(
    "state",
    [
        RunState.QUEUED,
        RunState.STARTING,
        RunState.RUNNING,
        RunState.VERIFYING,
        RunState.CANCELLING,
        RunState.UNKNOWN,
    ],
)
def test_a_run_that_has_not_ended_goes_on(state: RunState) -> None:
    assert went_on(hears(running(), state=state)) == running(run=run(state=state, last_event=4))


def test_every_state_of_a_run_has_a_meaning() -> None:
    for state in RunState:
        assert isinstance(hears(running(), state=state), Proceed)


def test_news_end_the_silence() -> None:
    assert went_on(hears(running(silent=QUIET))) == running(run=run(last_event=4))
    same = decide(running(silent=QUIET), RunNews(run(), NOON), POLICY)
    assert went_on(same) == running()


def test_news_that_are_none_are_ignored() -> None:
    assert isinstance(hears(running(), last_event=3), Ignore)
    assert isinstance(hears(running(), last_event=2, progress=Progress(percent=9.0)), Ignore)
    assert isinstance(hears(running(silent=QUIET), last_event=2), Ignore)
    assert isinstance(hears(running(), id="run-of-another"), Ignore)


def test_the_place_in_the_queue_changes_without_an_event() -> None:
    waiting = running(run=run(state=RunState.QUEUED, position=2))
    assert went_on(hears(waiting, state=RunState.QUEUED, position=1, last_event=3)).kind == "running"


def test_a_run_that_succeeded_is_reviewed() -> None:
    done = {"state": RunState.SUCCEEDED, "report": samples.report()}
    after = went_on(hears(running(silent=QUIET), **done))
    assert isinstance(after, ReviewingResult)
    assert after.run == run(**done, last_event=4)
    assert reached(after) == reached(running(run=after.run))


def test_a_cancel_that_came_too_late_does_not_hide_the_result() -> None:
    after = went_on(hears(running(cancelled_by=ROOT), state=RunState.SUCCEEDED))
    assert isinstance(after, ReviewingResult)


REPORT = ValidationReport(
    status="failed",
    summary="Quantization failed: the GPU's memory is full.",
    failure=FailureClass.MEMORY,
    cause="the GPU's memory is full",
    next_actions=["Use another GPU.", "Use a smaller batch."],
)


@pytest.mark.parametrize(
    ("changes", "trouble"),
    [
        (
            {"code": "exit_code", "reason": REPORT.summary, "report": REPORT},
            Trouble(code="exit_code", message=REPORT.summary, hint="Use another GPU."),
        ),
        (
            {"code": "exit_code", "reason": "", "report": REPORT},
            Trouble(code="exit_code", message="the GPU's memory is full", hint="Use another GPU."),
        ),
        (
            {"reason": "It was not started: the disk is full.", "code": "disk_full"},
            Trouble(
                code="disk_full",
                message="It was not started: the disk is full.",
                hint="Look into its log and its output folder before another run.",
            ),
        ),
        (
            {},
            Trouble(
                code="run_failed",
                message="The run failed, and no reason is known.",
                hint="Look into its log and its output folder before another run.",
            ),
        ),
        (
            {"state": RunState.LOST},
            Trouble(
                code="run_lost",
                message="The run was lost, so its outcome is not known.",
                hint="Look into its log and its output folder before another run.",
            ),
        ),
    ],
)
def test_a_failure_says_why_and_what_to_do(changes: dict[str, Any], trouble: Trouble) -> None:
    after = went_on(hears(running(), **{"state": RunState.FAILED, **changes}))
    assert isinstance(after, Failed)
    assert (after.stage, after.trouble) == (Stage.RUN, trouble)
    assert after.run is not None
    assert reached(after) == reached(running(run=after.run))


def test_a_run_that_was_refused_when_its_turn_came_is_offered_again() -> None:
    refusal = {"state": RunState.FAILED, "started_at": None, "code": "runner_changed", "reason": "It was not started."}
    after = went_on(hears(running(), **refusal))
    assert isinstance(after, Preparing)
    assert (after.step, after.because, after.approvals) == (5, "It was not started.", (ANALYSIS_YES, PLAN_YES))
    # Not where it had begun, and not where somebody cancelled it.
    assert went_on(hears(running(), **{**refusal, "started_at": NOON})).kind == "failed"
    assert went_on(hears(running(cancelled_by=ADA), **refusal)).kind == "ended"


@pytest.mark.parametrize("by", [ADA, ROOT, None])
def test_a_cancelled_run_ends_the_conversation(by: Any) -> None:
    after = went_on(hears(running(cancelled_by=by), state=RunState.CANCELLED))
    assert isinstance(after, Ended)
    assert (after.ending, after.by, after.at) == (Ending.CANCELLED, by, NOON)


def test_a_run_that_failed_while_it_was_cancelled_is_over_too() -> None:
    after = went_on(hears(running(cancelled_by=ROOT), state=RunState.FAILED, reason="It fell."))
    assert isinstance(after, Ended)
    assert (after.ending, after.by) == (Ending.CANCELLED, ROOT)
    assert after.run is not None
    assert after.run.state is RunState.FAILED
    # What was lost may have left something behind: a person looks first.
    assert went_on(hears(running(cancelled_by=ROOT), state=RunState.LOST)).kind == "failed"


def test_an_end_counts_also_where_the_journal_fell_behind() -> None:
    assert went_on(hears(running(), state=RunState.LOST, last_event=0)).kind == "failed"


def test_silence_is_told_once_and_ends_nothing() -> None:
    silent = RunSilent(run().id, AWAY, NOON)
    after = went_on(decide(running(), silent, POLICY))
    assert after == running(silent=AWAY)
    assert isinstance(decide(after, silent, POLICY), Ignore)
    assert went_on(decide(after, RunSilent(run().id, QUIET, NOON), POLICY)) == running(silent=QUIET)
    assert isinstance(decide(running(), RunSilent("run-of-another", AWAY, NOON), POLICY), Ignore)


def test_a_run_that_its_runner_does_not_know_is_unresolved() -> None:
    after = went_on(decide(running(), RunMissing(run().id, TROUBLE, NOON), POLICY))
    assert isinstance(after, Failed)
    assert after.stage is Stage.RUN
    assert after.trouble == Trouble(
        code="run_missing",
        message="The runner local does not know the run run-0123456789abcdef, so its outcome is not known.",
        hint="Look into its log and its output folder before another run.",
    )
    assert after.run == run()
    assert isinstance(decide(running(), RunMissing("run-of-another", TROUBLE, NOON), POLICY), Ignore)


def given_up(before: Running | None = None) -> Failed:
    """A run that its runner did not know."""
    after = went_on(decide(before or running(), RunMissing(run().id, TROUBLE, NOON), POLICY))
    assert isinstance(after, Failed)
    return after


@pytest.mark.parametrize("state", [state for state in RunState if not state.ended])
def test_a_run_that_is_found_again_goes_on_as_a_new_step(state: RunState) -> None:
    found = run(state=state, last_event=1)  # the journal of a runner that was restored may have fallen behind
    after = went_on(decide(given_up(), RunNews(found, NOON), POLICY))
    assert after == running(run=found, step=5)


def test_a_run_that_is_found_succeeded_is_reviewed() -> None:
    done = run(state=RunState.SUCCEEDED, report=samples.report(), last_event=9)
    after = went_on(decide(given_up(), RunNews(done, NOON), POLICY))
    assert isinstance(after, ReviewingResult)
    assert (after.step, after.run, after.revisions["run"]) == (5, done, 1)
    assert reached(after).approvals == running().approvals


def test_a_lost_run_that_is_found_has_a_report_of_its_own() -> None:
    """The one that said lost is kept under its number for good."""
    lost = went_on(hears(running(), state=RunState.LOST, report=REPORT))
    assert isinstance(lost, Failed)
    done = run(state=RunState.SUCCEEDED, report=samples.report(), last_event=9)
    assert went_on(decide(lost, RunNews(done, NOON), POLICY)).revisions["run"] == 2
    again = run(state=RunState.LOST, report=REPORT, last_event=10)
    assert isinstance(decide(lost, RunNews(again, NOON), POLICY), Ignore)


def test_a_run_that_is_found_failed_says_why() -> None:
    fell = run(state=RunState.FAILED, code="exit_code", reason=REPORT.summary, report=REPORT, last_event=9)
    after = went_on(decide(given_up(), RunNews(fell, NOON), POLICY))
    assert isinstance(after, Failed)
    assert (after.step, after.trouble.code, after.unresolved) == (5, "exit_code", False)
    assert isinstance(decide(after, RunNews(run(), NOON), POLICY), Ignore)  # that end is final


def test_who_wanted_it_to_end_still_wants_that() -> None:
    before = given_up(running(cancelled_by=ROOT))
    after = went_on(decide(before, RunNews(run(), NOON), POLICY))
    assert after == running(cancelled_by=ROOT, step=5)
    assert work(after) == Watch(runner="local", run=run().id, cancel=True)
    over = went_on(decide(before, RunNews(run(state=RunState.CANCELLED), NOON), POLICY))
    assert isinstance(over, Ended)
    assert (over.ending, over.by, over.step) == (Ending.CANCELLED, ROOT, 5)


def test_a_run_that_was_refused_meanwhile_is_offered_again() -> None:
    refusal = run(state=RunState.FAILED, started_at=None, code="runner_changed", reason="It was not started.")
    after = went_on(decide(given_up(), RunNews(refusal, NOON), POLICY))
    assert isinstance(after, Preparing)
    assert (after.step, after.because) == (5, "It was not started.")


def test_only_the_run_that_was_given_up_is_taken_up() -> None:
    for other in (run(id="run-of-another"), run(id="run-of-another", state=RunState.SUCCEEDED)):
        assert isinstance(decide(given_up(), RunNews(other, NOON), POLICY), Ignore)
    for state in (failed(), *(failed_at(stage) for stage in Stage)):
        assert isinstance(decide(state, RunNews(run(), NOON), POLICY), Ignore)
    assert isinstance(decide(given_up(), RunMissing(run().id, TROUBLE, NOON), POLICY), Ignore)
    assert isinstance(decide(given_up(), RunSilent(run().id, AWAY, NOON), POLICY), Ignore)
