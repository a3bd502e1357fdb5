"""What a person saw, against what stands now. A yes counts for exactly the document that was shown, for no other."""

from __future__ import annotations

from bot.conversation.decision import Refuse
from bot.conversation.reached import reached
from bot.conversation.sentences import ended, moment, not_now, refuse, sayable, standing
from bot.conversation.state import (
    Analysing,
    Checkpoint,
    Ended,
    Ending,
    Planning,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    State,
    asked_at,
)

LEAST_DIGITS = 12
"""Hexadecimal digits of a digest that name a document. Fewer could be guessed, and name nothing."""

_NEWEST = "Look at the newest card."


def means(said: str, digest: str) -> bool:
    """Whether `said` is the digest, or its first 12 digits or more."""
    return len(said) >= LEAST_DIGITS and digest.startswith(said)


def stands(state: State, said: str) -> bool:
    """Whether `said` names what is asked about now; where nothing is asked, any artifact that still stands."""
    asked = asked_at(state)
    if asked is not None:
        return means(said, asked[1])
    have = reached(state)
    standing_now = (have.analysis, have.plan, have.manifest)
    return any(revision is not None and means(said, revision.digest) for revision in standing_now)


def against(state: State, checkpoint: Checkpoint | None, said: str, step: int = 0) -> Refuse | None:
    """Why a decision about what was seen does not count in this state, or None where it counts.

    `checkpoint` is None where the person named none: it is the one that asks. `step` is that of the card whose button
    was clicked, 0 for words: the same document can be asked about twice, such as the command of a run that failed. In
    order: it was decided already, nothing is asked, the card had not been shown, the card is outdated.
    """
    if checkpoint is not None and (decided := _already_decided(state, checkpoint, said)):
        return decided
    asked = asked_at(state)
    if asked is None:
        return outdated(state) if said and isinstance(state, Analysing | Planning | Preparing) else not_now(state)
    if not said:
        return refuse("not_seen", "The card had not been shown yet when you said that.", _NEWEST)
    if isinstance(state, ReviewingAnalysis) and means(said, state.analysis.improves):
        return refuse("outdated", "The exact list of layers arrived since, in a new analysis.", _NEWEST)
    if checkpoint not in (None, asked[0]) or not means(said, asked[1]):
        return outdated(state)
    return gone(state) if step not in (0, state.step) else None


def gone(state: State) -> Refuse:
    """The refusal of a button whose card showed another step: what stands now."""
    return refuse("outdated", f"That button is on an older card, so nothing was done. {standing(state)}", _NEWEST)


def outdated(state: State) -> Refuse:
    """The refusal of what was said about an older card: what stands now."""
    match state:
        case ReviewingAnalysis():
            message = f"The analysis was changed since (analysis {state.analysis.number} stands now)."
        case ReviewingPlan():
            message = f"The plan was changed since (plan {state.plan.number} stands now)."
        case ReviewingCommand():
            message = f"The command was changed since (command {state.manifest.number} stands now)."
        case ReviewingResult():
            message = "That card is outdated: the run has ended, and its result waits for a decision."
        case _:
            return refuse("outdated", f"That card is outdated. {standing(state)}", sayable(state))
    return refuse("outdated", message, _NEWEST)


def _already_decided(state: State, checkpoint: Checkpoint, said: str) -> Refuse | None:
    """What a second click on a decided card is told. It is no error: who decided, and when."""
    if isinstance(state, Ended) and checkpoint is Checkpoint.RESULT:
        decided = state.ending in (Ending.ACCEPTED, Ending.REJECTED)
        if decided and state.manifest is not None and means(said, state.manifest.digest):
            return refuse("already_decided", ended(state))
        return None
    for approval in reached(state).approvals:
        if approval.checkpoint == checkpoint.value and means(said, approval.digest):
            who = approval.by.rsplit(" (", 1)[0] or approval.by
            return refuse("already_decided", f"{who} approved this {approval.checkpoint} on {moment(approval.at)}.")
    return None
