"""What the buttons of cards carry, and what is read of it again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards.card import Action, ActionKind, Card, decode_action
from bot.conversation.state import Checkpoint, Ending, Stage, State
from tests.bot.cards.board import board_at
from tests.bot.conversation import samples as states

SHOWN = [
    *states.all_states().values(),
    *(states.failed_at(stage) for stage in Stage),
    *(states.ended(ending=ending) for ending in Ending),
]
ACTIONS = st.builds(
    Action,
    kind=st.sampled_from(ActionKind),
    conversation=st.integers(0, 10**15 - 1),
    checkpoint=st.none() | st.sampled_from(Checkpoint),
    digest=st.text("0123456789abcdef", max_size=12),
    step=st.integers(0, 10**15 - 1),
)


@pytest.mark.parametrize("state", SHOWN, ids=lambda state: f"{state.kind}-{getattr(state, 'stage', '')}")
@pytest.mark.parametrize("step", [3, 4711])
def test_every_button_is_bound_to_the_step_of_its_card(state: State, step: int) -> None:
    board = board_at(state.model_copy(update={"step": step}))
    cards = [card for card in board.slots.values() if isinstance(card, Card)]
    assert cards
    for button in (button for card in cards for button in card.buttons):
        assert button.action.step == step
        assert button.action.encoded().endswith(f":{step}")
        assert decode_action(button.action.encoded()) == button.action


@given(ACTIONS)
def test_an_action_is_read_as_it_was_written(action: Action) -> None:
    assert len(action.encoded()) < 100
    assert decode_action(action.encoded()) == action


@pytest.mark.parametrize(
    "value",
    [
        "",
        "ptq:cancel:1::",  # of no step at all
        "ptq:cancel:1:::",
        "ptq:cancel:1:::x",
        "ptq:cancel:1:::-1",
        "ptq:cancel:1:::1:2",
        "ptq:cancel:1:::\u0661",
        "ptq:cancel:\u00b2:::1",
        "ptq:cancel:1:::1111111111111111",
        "ptq:cancel:1111111111111111:::1",
        "ptq:destroy:1:::1",
        "ptq:approve:1:moon::1",
        f"ptq:approve:1:plan:{'0' * 65}:1",
        "other:cancel:1:::1",
    ],
)
def test_what_this_program_did_not_make_is_no_action(value: str) -> None:
    assert decode_action(value) is None
