"""What a card says once it is decided or outdated: who did what and when, in place of its buttons."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.cards import amounts
from bot.cards.blocks import ALTERNATIVE_LENGTH
from bot.cards.card import Button, Card, Tone
from bot.cards.changes import changes_in_words
from bot.cards.texts import line, plain, some, who
from bot.conversation.decision import Verb, Verdict
from bot.conversation.state import (
    Analysing,
    Checkpoint,
    Ended,
    Ending,
    Planning,
    Preparing,
    ReviewingAnalysis,
    ReviewingPlan,
    ReviewingResult,
    Running,
    State,
)

_RISKS = 6  # named in one line


def decided(card: Card, outcome: str, buttons: tuple[Button, ...] = ()) -> Card:
    """The same card after it was decided: the same body, with the outcome in place of the buttons that asked.

    A card that ended a request keeps its outcome and adds what came after; `buttons` lead back from an end.
    """
    after = f"{card.outcome}; {outcome[:1].lower()}{outcome[1:]}" if card.outcome and outcome else outcome
    told = line(after or card.outcome, 600)
    return card.model_copy(
        update={
            "tone": Tone.CLOSED,
            "buttons": buttons,
            "outcome": told,
            "alternative": line(f"{told}. {card.title}" if told else card.title, ALTERNATIVE_LENGTH),
        }
    )


def outcome_in_words(verdict: Verdict | None, after: State, at: datetime, patience: timedelta | None = None) -> str:
    """What became of the card before `after`. `patience` is how long a card waits for people, where it is known."""
    if verdict is not None:
        return _by_person(verdict, at)
    if isinstance(after, Ended):
        if after.ending is Ending.EXPIRED:
            return f"Expired {amounts.moment(at)}: nobody decided {within(patience)}"
        by = f" by {who(after.by)}" if after.by else ""
        return f"{_ENDINGS[after.ending]}{by}, {amounts.moment(at)}"
    if isinstance(after, Running | ReviewingResult):
        return "Outdated: the runner found the run again"
    # A better analysis leads to checkpoint 1 without a working state before it.
    because = plain(after.because) if isinstance(after, Analysing | ReviewingAnalysis | Planning | Preparing) else ""
    return f"Outdated: {because or 'a newer card follows'}"


def accepted_risks(before: State | None, verdict: Verdict | None) -> str:
    """What the yes to a plan accepted with it, to follow its outcome: "; accepted 2 risks: ..."."""
    if not isinstance(before, ReviewingPlan) or verdict is None or verdict.verb is not Verb.APPROVED:
        return ""
    return f"; accepted {risks_in_words(before.plan.risks)}" if before.plan.risks else ""


def risks_in_words(codes: Sequence[str]) -> str:
    """Risks by what they are called: "2 risks: unaligned groups, unknown scheme"."""
    named = some((code.replace("_", " ") for code in codes), _RISKS, 60)
    return f"{amounts.count(len(codes), 'risk')}: {named}"


def within(patience: timedelta | None) -> str:
    """How long was waited: "within 7 d"."""
    return f"within {amounts.duration(patience.total_seconds())}" if patience else "in time"


def _by_person(verdict: Verdict, at: datetime) -> str:
    by, when = who(verdict.by), amounts.moment(at)
    match verdict.verb:
        case Verb.APPROVED:
            return f"{'Accepted' if verdict.checkpoint is Checkpoint.RESULT else 'Approved'} by {by}, {when}"
        case Verb.CHANGED:
            changed = changes_in_words(verdict.changes)
            return f"Changed by {by}, {when}" + (f": {changed}" if changed else "")
        case Verb.REJECTED:
            return f"Rejected by {by}, {when}"
        case Verb.CANCELLED:
            return f"Cancelled by {by}, {when}"
        case Verb.RETRIED:
            return f"Tried again by {by}, {when}"
        case Verb.REVISED:
            return f"Taken back to the plan by {by}, {when}"


_ENDINGS = {
    Ending.ACCEPTED: "Accepted",
    Ending.REJECTED: "Rejected",
    Ending.CANCELLED: "Cancelled",
    Ending.EXPIRED: "Expired",
}
