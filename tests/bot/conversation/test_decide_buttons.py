"""A button acts on what its card showed, and on nothing that came after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.conversation.commands import Approve, Cancel, Reject, Retry, Revise, RunMissing, RunNews
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Proceed, Refuse
from bot.conversation.sentences import standing
from bot.conversation.state import Ending, Failed, Running, State, asked_at
from schemas.runs import RunState
from tests.bot.conversation.samples import (
    ADA,
    NOON,
    POLICY,
    TROUBLE,
    WHERE,
    Talk,
    all_states,
    analysing,
    ended,
    failed,
    no,
    reviewing_analysis,
    reviewing_command,
    reviewing_result,
    running,
    submitting,
    yes,
)

Pressed = Callable[[int], Cancel | Retry | Revise]
BUTTONS: tuple[Pressed, ...] = (
    lambda step: Cancel(ADA, NOON, WHERE, step),
    lambda step: Retry(ADA, NOON, WHERE, step),
    lambda step: Revise(ADA, NOON, WHERE, step),
)
every_button = pytest.mark.parametrize("pressed", BUTTONS, ids=["cancel", "retry", "revise"])
every_state = pytest.mark.parametrize("state", all_states().values(), ids=lambda state: state.kind)


def outdated(decision: Decision) -> str:
    assert isinstance(decision, Refuse)
    assert decision.trouble.code == "outdated"
    return decision.trouble.message


@every_state
@every_button
def test_a_button_of_another_step_does_nothing_and_says_what_is_current(state: State, pressed: Pressed) -> None:
    for step in (state.step - 1, state.step + 1, 99):
        if step == 0:
            continue  # bound to none
        assert standing(state) in outdated(decide(state, pressed(step), POLICY))


@every_state
@every_button
def test_a_button_of_this_step_means_what_the_words_mean(state: State, pressed: Pressed) -> None:
    assert decide(state, pressed(state.step), POLICY) == decide(state, pressed(0), POLICY)


def test_back_to_the_plan_on_a_failed_card_does_not_discard_a_later_result() -> None:
    talk = Talk(state=failed())
    stale = Revise(ADA, NOON, WHERE, talk.state.step)
    talk.say(Retry(ADA, NOON, WHERE, talk.state.step))
    result = talk.until("reviewing_result")
    assert "its result waits for a decision" in outdated(talk.say(stale))
    assert talk.state == result


def test_cancel_on_the_analysis_does_not_end_the_run() -> None:
    talk = Talk()
    stale = Cancel(ADA, NOON, WHERE, talk.until("reviewing_analysis").step)
    run = talk.until("running")
    outdated(talk.say(stale))
    assert talk.state == run


@pytest.mark.parametrize(
    ("shown", "now"),
    [
        (analysing(), reviewing_analysis()),
        (submitting(), running()),
        (submitting(), running(run=running().run.model_copy(update={"state": RunState.QUEUED}))),
    ],
    ids=["analysis", "run", "queue"],
)
def test_cancel_lives_as_long_as_the_step_of_its_card(shown: State, now: State) -> None:
    assert isinstance(decide(now, Cancel(ADA, NOON, WHERE, shown.step), POLICY), Proceed)


def test_cancel_of_a_run_that_was_given_up_does_not_end_it_when_it_is_found() -> None:
    talk = Talk()
    state = talk.until("running")
    assert isinstance(state, Running)
    talk.say(RunMissing(state.run.id, TROUBLE, NOON))
    stale = Cancel(ADA, NOON, WHERE, talk.state.step)
    talk.say(RunNews(state.run, NOON))
    assert talk.state.kind == "running"
    outdated(talk.say(stale))
    assert isinstance(talk.say(replace(stale, step=talk.state.step)), Proceed)


def test_back_to_the_plan_on_an_end_counts_once() -> None:
    talk = Talk(state=ended(ending=Ending.REJECTED))
    pressed = Revise(ADA, NOON, WHERE, talk.state.step)
    assert isinstance(talk.say(pressed), Proceed)
    after = talk.until("reviewing_result")
    outdated(talk.say(pressed))
    assert talk.state == after


@pytest.mark.parametrize("first", [reviewing_command(), reviewing_result()], ids=["command", "result"])
@pytest.mark.parametrize("said", [yes, no], ids=["yes", "no"])
def test_the_same_document_asked_about_again_needs_a_new_click(
    first: State, said: Callable[[State], Approve | Reject]
) -> None:
    click = replace(said(first), step=first.step)
    again = first.model_copy(update={"step": first.step + 4})
    assert asked_at(again) == asked_at(first)
    outdated(decide(again, click, POLICY))
    assert decide(again, replace(click, step=again.step), POLICY) == decide(again, said(again), POLICY)


def test_a_second_click_on_a_decided_card_is_told_who_decided() -> None:
    talk = Talk()
    state = talk.until("reviewing_analysis")
    click = replace(yes(state), step=state.step)
    assert isinstance(talk.say(click), Proceed)
    second = talk.say(click)
    assert isinstance(second, Refuse)
    assert second.trouble.code == "already_decided"


def test_a_failure_is_not_told_twice_to_be_tried() -> None:
    talk = Talk(state=failed())
    assert isinstance(talk.state, Failed)
    pressed = Retry(ADA, NOON, WHERE, talk.state.step)
    assert isinstance(talk.say(pressed), Proceed)
    outdated(talk.say(pressed))
