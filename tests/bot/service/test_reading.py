"""What typed words command, by the state that they are said in."""

from __future__ import annotations

import pytest

from bot.cards.card import Action, ActionKind, decode_action
from bot.cards.failure import failure_card
from bot.conversation.commands import (
    Approve,
    Cancel,
    Change,
    Command,
    GiveOrder,
    Reject,
    Remark,
    Retry,
    Revise,
    TakeOffer,
)
from bot.conversation.decide import decide
from bot.conversation.decision import Proceed, Refuse
from bot.conversation.offered import offer_digest
from bot.conversation.request import Changes
from bot.conversation.state import Failed, Stage, State
from bot.conversation.words.vocabulary import PUBLISHED
from bot.platforms.contract import Clicked, Event, Said
from bot.service.reading import NO_OFFER, command_of
from schemas.artifacts.report import Offer
from schemas.runs import RunState
from tests import samples as documents
from tests.bot.conversation.samples import (
    ADA,
    MANIFEST,
    NOON,
    PLACE,
    POLICY,
    all_states,
    ended,
    failed,
    failed_at,
    reviewing_command,
    reviewing_plan,
    reviewing_result,
    run,
    running,
)


def said(text: str, state: State, seen: str = "") -> Command:
    event = Event(key="web:1", person=ADA, place=PLACE, at=NOON, what=Said(text=text))
    command = command_of(event, state, seen, PUBLISHED)
    assert command is not None
    return command


def clicked(action: Action, state: State) -> Command:
    event = Event(key="web:2", person=ADA, place=PLACE, at=NOON, what=Clicked(action=action))
    command = command_of(event, state, "", PUBLISHED)
    assert command is not None
    return command


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("text", ["retry", "try again", "Once more!", "please try again", "can you try again?"])
def test_after_a_failure_the_step_is_taken_again(text: str, stage: Stage) -> None:
    state = failed_at(stage)
    command = said(text, state)
    assert isinstance(command, Retry)
    assert isinstance(decide(state, command, POLICY), Proceed)


@pytest.mark.parametrize(
    "state", [failed(), ended(), reviewing_command(), reviewing_result()], ids=lambda one: one.kind
)
@pytest.mark.parametrize(
    "text", ["back to the plan", "back to plan", "revise the plan", "let's change the plan", "ok, back to the plan"]
)
def test_the_plan_can_be_gone_back_to(text: str, state: State) -> None:
    command = said(text, state)
    assert isinstance(command, Revise)
    assert isinstance(decide(state, command, POLICY), Proceed)


@pytest.mark.parametrize("state", all_states().values(), ids=all_states().keys())
@pytest.mark.parametrize("text", ["retry", "run it again", "back to the plan", "use w8a8", "why?", "next week"])
def test_none_of_these_approves(text: str, state: State) -> None:
    assert not isinstance(said(text, state, "0" * 64), Approve | Cancel)


@pytest.mark.parametrize("state", all_states().values(), ids=all_states().keys())
def test_a_remark_tells_what_was_not_understood(state: State) -> None:
    command = said("use w8a8, please", state)
    assert isinstance(command, Remark)
    assert (command.unread, command.is_question) == ("w8a8", False)


def test_a_question_tells_nothing_of_the_kind() -> None:
    command = said("is fp8 better?", reviewing_plan())
    assert isinstance(command, Remark)
    assert (command.unread, command.is_question) == ("", True)


@pytest.mark.parametrize("state", [failed(), ended(), running(), reviewing_result()], ids=lambda one: one.kind)
def test_once_more_and_otherwise_is_a_change(state: State) -> None:
    assert said("try again with awq", state) == Change(
        ADA, NOON, "web quantize 12", Changes(choices={"algorithm": "awq"})
    )


def test_a_result_is_rejected_with_its_reason() -> None:
    assert isinstance(said("reject, too much loss", reviewing_result()), Reject)


def test_a_yes_is_to_what_was_seen() -> None:
    command = said("lgtm run it", reviewing_command(), MANIFEST.digest)
    assert isinstance(command, Approve)
    assert command.digest == MANIFEST.digest


def failed_with(*offers: Offer) -> Failed:
    """A run that failed, with what may help."""
    report = documents.report().model_copy(update={"offers": list(offers)})
    return failed(run=run(state=RunState.FAILED, report=report))


FEWER = Offer(
    label="Plan with 64 samples",
    reason="Fewer samples need less memory.",
    choices={"calibration": {"num_calib_data": 64}},
)
SHORTER = Offer(
    label="Plan with 256 tokens",
    reason="Shorter sequences need less memory.",
    choices={"calibration": {"seq_len": 256}},
)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("take the first offer", FEWER),
        ("use the suggestion", FEWER),
        ("do as suggested", FEWER),
        ("take offer 2", SHORTER),
        ("can you take the second suggestion?", SHORTER),
        ("try with fewer samples, as suggested", FEWER),
        ("try with shorter sequences as suggested", SHORTER),
    ],
)
def test_an_offer_that_is_taken_is_a_change(text: str, taken: Offer) -> None:
    state = failed_with(FEWER, SHORTER)
    command = said(text, state)
    assert isinstance(command, TakeOffer)
    decision = decide(state, command, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.state.kind == "planning"
    assert decision.verdict is not None
    assert decision.verdict.changes == Changes(choices=taken.choices)


@pytest.mark.parametrize("text", ["take offer 3", "try with less memory as suggested", "try with magic as suggested"])
def test_an_offer_that_is_not_there_is_named_no_other(text: str) -> None:
    command = said(text, failed_with(FEWER, SHORTER))
    assert isinstance(command, Remark)
    assert command.hint == "These are offered: 1. Plan with 64 samples; 2. Plan with 256 tokens."


def test_where_nothing_failed_nothing_is_offered() -> None:
    for state in (reviewing_plan(), failed(), running(), ended()):
        command = said("take the first offer", state)
        assert isinstance(command, Remark)
        assert command.hint == NO_OFFER


@pytest.mark.parametrize("text", ["pause the queue", "drain runner b", "high priority", "no hurry"])
def test_an_order_for_a_runner_moves_no_conversation(text: str) -> None:
    for state in all_states().values():
        command = said(text, state)
        assert isinstance(command, GiveOrder)
        assert command.order.kind in ("queue", "priority")
        assert not isinstance(decide(state, command, POLICY), Proceed)


def test_an_offer_that_no_plan_can_take_is_none() -> None:
    strange = [Offer(label="Magic", reason="", choices={"magic": 1}), Offer(label="Nothing", reason="", choices={})]
    command = said("take the first offer", failed_with(*strange, SHORTER))
    assert isinstance(command, TakeOffer)
    assert command.offer == offer_digest(SHORTER)


def test_the_button_of_an_offer_takes_it_once_and_never_from_an_older_card() -> None:
    state = failed_with(FEWER, SHORTER)
    buttons = [one for one in failure_card(12, state).buttons if one.action.kind is ActionKind.OFFER]
    assert [one.label for one in buttons] == [FEWER.label, SHORTER.label]
    action = decode_action(buttons[1].action.encoded())
    assert action is not None
    command = clicked(action, state)

    decision = decide(state, command, POLICY)
    assert isinstance(decision, Proceed)
    assert decision.verdict is not None
    assert decision.verdict.changes == Changes(choices=SHORTER.choices)
    again = decide(decision.state, command, POLICY)
    assert isinstance(again, Refuse)
    assert again.trouble.code == "outdated"
    later = failed_with(FEWER).model_copy(update={"step": state.step})
    assert isinstance(gone := decide(later, command, POLICY), Refuse)
    assert gone.trouble.code == "no_offer"
