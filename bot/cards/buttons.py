"""The buttons of cards. A click says only what its card showed; the stored state decides what it means."""

from __future__ import annotations

from dataclasses import dataclass

from bot.cards.card import Action, ActionKind, Button, ButtonStyle
from bot.cards.texts import plain
from bot.conversation.offered import offer_digest
from bot.conversation.state import Checkpoint, State, asked_at
from schemas.artifacts.report import Offer
from schemas.digest import short


@dataclass(frozen=True)
class Buttons:
    """Makes the buttons of one card."""

    conversation: int
    checkpoint: Checkpoint | None = None
    digest: str = ""
    step: int = 0

    @classmethod
    def of(cls, conversation: int, state: State) -> Buttons:
        """For the card that a state shows."""
        asked = asked_at(state)
        checkpoint, digest = asked or (None, "")
        return cls(conversation, checkpoint, digest, state.step)

    def approve(self, label: str = "Approve", confirm: str = "") -> Button:
        """Yes to exactly what the card shows."""
        return Button(label=label, action=self._action(ActionKind.APPROVE), style="primary", confirm=confirm)

    def edit(self, style: ButtonStyle = "plain") -> Button:
        """Opens the edit form."""
        return Button(label="Edit", action=self._action(ActionKind.EDIT), style=style)

    def reject(self) -> Button:
        """No to the result."""
        return Button(label="Reject", action=self._action(ActionKind.REJECT), style="danger")

    def cancel(self, confirm: str = "This ends the request. Its approvals count no more.") -> Button:
        """Stops all of it."""
        return Button(label="Cancel", action=self._action(ActionKind.CANCEL), style="danger", confirm=confirm)

    def retry(self, style: ButtonStyle = "primary") -> Button:
        """The failed step once more."""
        return Button(label="Try again", action=self._action(ActionKind.RETRY), style=style)

    def revise(self, label: str = "Back to the plan", style: ButtonStyle = "plain") -> Button:
        """Back to the plan."""
        return Button(label=label, action=self._action(ActionKind.REVISE), style=style)

    def offer(self, offer: Offer, style: ButtonStyle = "plain") -> Button:
        """What a failed run offers instead, for a new plan."""
        action = Action(
            kind=ActionKind.OFFER, conversation=self.conversation, digest=short(offer_digest(offer)), step=self.step
        )
        return Button(label=plain(offer.label), action=action, style=style)

    def pause_queue(self) -> Button:
        """No more runs start on the runner of the conversation."""
        told = "No run of anybody starts on this runner until its queue is opened. What computes goes on."
        return Button(label="Pause the queue", action=self._action(ActionKind.PAUSE_QUEUE), confirm=told)

    def open_queue(self) -> Button:
        """Runs are taken and start again on the runner of the conversation."""
        return Button(label="Open the queue", action=self._action(ActionKind.OPEN_QUEUE), style="primary")

    def _action(self, kind: ActionKind) -> Action:
        digest = plain(short(self.digest))[:64]
        return Action(
            kind=kind, conversation=self.conversation, checkpoint=self.checkpoint, digest=digest, step=self.step
        )
