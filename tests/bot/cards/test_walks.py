"""Whatever happens to a conversation, its thread stays true: one card asks, all others say what became of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.card import ActionKind, Attachment, Card, Tone
from bot.cards.drawing import Drawn, front_slot
from bot.conversation.decide import decide
from bot.conversation.decision import Proceed
from bot.conversation.person import Person
from bot.conversation.policy import Policy
from bot.conversation.state import Ended, Ending, ReviewingPlan, Stage, State, asked_at
from schemas.digest import short
from tests.bot.cards.board import Board, board_at
from tests.bot.conversation import samples as states

# Whoever acts may be somebody else than the requester: here Grace approves commands, and Root cancels.
POLICY = Policy(approvers=(states.ADA.id, states.GRACE.id), admins=(states.ROOT.id,), runners=states.RUNNERS)
PEOPLE = (states.ADA, states.GRACE, states.ROOT)
COMMANDS = sorted(states.all_commands(states.analysing()))
STARTS = [
    *states.all_states().values(),
    *(states.failed_at(stage) for stage in Stage),
    *(states.ended(ending=ending) for ending in (Ending.REJECTED, Ending.CANCELLED, Ending.EXPIRED)),
    states.failed(run=states.run()),  # its runner did not know it
]

Step = tuple[str, Person]


def _look(board: Board, before: dict[str, Card | Attachment], drawn: list[Drawn]) -> None:
    """What has to hold after every transition."""
    state = board.state
    assert state is not None
    front = front_slot(state)
    if isinstance(state, Ended):
        _look_at_end(board, state)
    else:
        assert set(board.with_buttons) <= {front}
    for slot in board.with_buttons:
        assert {button.action.step for button in board.card(slot).buttons} == {state.step}
    assert len(board.with_approve) <= 1
    asked = asked_at(state)
    if asked is not None and not (isinstance(state, ReviewingPlan) and state.plan.blocked_by):
        assert board.with_approve == [front]
        (approve,) = [one for one in board.card(front or "").buttons if one.action.kind is ActionKind.APPROVE]
        assert (approve.action.checkpoint, approve.action.digest) == (asked[0], short(asked[1]))
        assert board.asks[front or ""] == asked[1]
    assert len({one.slot for one in drawn}) == len(drawn)
    for one in drawn:
        _look_at(one, before.get(one.slot), state, front)


def _look_at_end(board: Board, state: Ended) -> None:
    """One way back, and none from what was accepted."""
    kinds = [button.action.kind for slot in board.with_buttons for button in board.card(slot).buttons]
    assert kinds == ([] if state.ending is Ending.ACCEPTED else [ActionKind.REVISE])


def _look_at(one: Drawn, previous: Card | Attachment | None, state: State, front: str | None) -> None:
    if isinstance(one.what, Attachment):
        assert one.slot.endswith(":file")
        return
    assert Card.model_validate_json(one.what.model_dump_json()) == one.what
    assert one.what != previous
    assert one.what.mention in (None, state.requester)
    assert (one.asks != "") <= (one.slot == front)
    if isinstance(previous, Card) and one.slot != front and not one.slot.startswith("run:"):
        assert one.what.body == previous.body  # it was decided or outdated: what was decided about stays readable
        assert one.what.outcome
        assert one.what.tone is Tone.CLOSED


def _walk(board: Board, name: str, by: Person) -> bool:
    """Say one command to the conversation; whether it went on."""
    state = board.state
    assert state is not None
    decision = decide(state, states.all_commands(state, by)[name], POLICY)
    if not isinstance(decision, Proceed):
        return False
    before = dict(board.slots)
    drawn = board.go(decision.state, decision.verdict)
    _look(board, before, drawn)
    return True


@pytest.mark.parametrize("start", STARTS, ids=lambda state: f"{state.kind}-{getattr(state, 'stage', '')}")
def test_every_transition_leaves_one_card_that_asks(start: State) -> None:
    moved = 0
    for name in COMMANDS:
        for by in PEOPLE:
            board = board_at(start)
            _look(board, {}, [])
            moved += _walk(board, name, by)
    assert moved > 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(COMMANDS), st.sampled_from(PEOPLE)), max_size=40))
def test_a_thread_stays_true_on_any_way(way: list[Step]) -> None:
    board = board_at(states.analysing())
    for name, by in way:
        _walk(board, name, by)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.none(), st.tuples(st.sampled_from(COMMANDS), st.sampled_from(PEOPLE))), max_size=40))
def test_a_thread_stays_true_on_ways_that_lead_far(way: list[Step | None]) -> None:
    """As above, but most steps are those that lead on: the runner answers, and people say yes."""
    board = board_at(states.analysing())
    for step in way:
        state = board.state
        assert state is not None
        if step is None:
            step = (_onwards(state), states.ADA)
        _walk(board, *step)


def _onwards(state: State) -> str:
    names: dict[str, Callable[[], str]] = {
        "analysing": lambda: "Analysed",
        "planning": lambda: "Planned",
        "preparing": lambda: "Prepared",
        "submitting": lambda: "Submitted",
        "running": lambda: "RunNews",
        "failed": lambda: "Retry",
        "ended": lambda: "Revise",
    }
    return names.get(state.kind, lambda: "Approve")()


def test_the_ways_lead_somewhere() -> None:
    board = board_at(states.analysing())
    for _ in range(8):
        state = board.state
        assert state is not None
        _walk(board, _onwards(state), states.ADA)
    assert board.state is not None
    assert board.state.kind == "running"
    assert sorted(board.slots) == [
        "analysis:1",
        "analysis:1:file",
        "command:3",
        "command:3:file",
        "plan:2",
        "plan:2:file",
        "run:4",
    ]
