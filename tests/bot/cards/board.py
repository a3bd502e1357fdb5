"""The messages of one thread, as they would stand after each transition."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.cards.card import ActionKind, Attachment, Card
from bot.cards.drawing import Documents, Drawn, draw
from bot.conversation.decision import Verdict
from bot.conversation.state import State
from tests import samples
from tests.bot.conversation.samples import NOON

ALL = Documents(analysis=samples.analysis(), plan=samples.plan(), manifest=samples.manifest())
CONVERSATION = 7


@dataclass
class Board:
    """A thread: slot to what it shows, and the state that was drawn last."""

    state: State | None = None
    slots: dict[str, Card | Attachment] = field(default_factory=dict)
    asks: dict[str, str] = field(default_factory=dict)

    def shown(self, slot: str) -> Card | None:
        """The card of a slot, as the store would answer."""
        there = self.slots.get(slot)
        return there if isinstance(there, Card) else None

    def go(
        self,
        after: State,
        verdict: Verdict | None = None,
        documents: Documents = ALL,
        at: datetime = NOON,
        patience: timedelta | None = None,
        approvers: str = "",
    ) -> list[Drawn]:
        """Draw a transition, and show what came of it."""
        drawn = draw(CONVERSATION, self.state, after, verdict, documents, self.shown, at, patience, approvers)
        for one in drawn:
            self.slots[one.slot] = one.what
            self.asks[one.slot] = one.asks
        self.state = after
        return drawn

    def card(self, slot: str) -> Card:
        """The card of a slot; fails where there is none."""
        there = self.shown(slot)
        assert there is not None, f"{slot} is empty; there are {sorted(self.slots)}"
        return there

    @property
    def with_buttons(self) -> list[str]:
        """The slots whose card has any button."""
        return [slot for slot, what in self.slots.items() if isinstance(what, Card) and what.buttons]

    @property
    def with_approve(self) -> list[str]:
        """The slots whose card can be approved."""
        return [
            slot
            for slot, what in self.slots.items()
            if isinstance(what, Card) and any(one.action.kind is ActionKind.APPROVE for one in what.buttons)
        ]


def board_at(state: State) -> Board:
    """A thread in which a state has just been drawn."""
    board = Board()
    board.go(state)
    return board
