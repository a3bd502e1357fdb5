"""The buttons of cards. A click says only an id, a checkpoint and a digest; the stored state decides what it means."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cards.card import Action, ActionKind, Button
from bot.cards.texts import plain
from bot.conversation.state import Checkpoint, State, asked_at
from schemas.digest import short


@dataclass(frozen=True)
class Buttons:
    """Makes the buttons of one card."""

    conversation: int
    checkpoint: Checkpoint | None = None
    digest: str = ""

    @classmethod
    def of(cls, conversation: int, state: State) -> Buttons:
        """For the card that a state shows."""
        asked = asked_at(state)
        return cls(conversation, *asked) if asked else cls(conversation)

    def approve(self, label: str = "Approve", confirm: str = "") -> Button:
        """Yes to exactly what the card shows."""
        return Button(label=label, action=self._action(ActionKind.APPROVE), style="primary", confirm=confirm)

    def edit(self) -> Button:
        """Opens the edit form."""
        return Button(label="Edit", action=self._action(ActionKind.EDIT))

    def reject(self) -> Button:
        """No to the result."""
        return Button(label="Reject", action=self._action(ActionKind.REJECT), style="danger")

    def cancel(self, confirm: str = "This ends the request. Its approvals count no more.") -> Button:
        """Stops all of it."""
        return Button(label="Cancel", action=self._action(ActionKind.CANCEL), style="danger", confirm=confirm)

    def retry(self) -> Button:
        """The failed step once more."""
        return Button(label="Try again", action=self._action(ActionKind.RETRY), style="primary")

    def revise(self) -> Button:
        """Back to the plan."""
        return Button(label="Back to the plan", action=self._action(ActionKind.REVISE))

    def _action(self, kind: ActionKind) -> Action:
        digest = plain(short(self.digest))[:64]
        return Action(kind=kind, conversation=self.conversation, checkpoint=self.checkpoint, digest=digest)
