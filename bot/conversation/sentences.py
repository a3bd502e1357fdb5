"""Where a conversation stands and what can be said there, in plain words."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.conversation.decision import Refuse
from bot.conversation.person import Person
from bot.conversation.state import (
    Analysing,
    Ended,
    Ending,
    Failed,
    Planning,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Running,
    Stage,
    State,
    Submitting,
    Trouble,
)


def refuse(code: str, message: str, hint: str = "") -> Refuse:
    """A refusal in one sentence, with what to do next."""
    return Refuse(Trouble(code=code, message=message, hint=hint))


def not_now(state: State) -> Refuse:
    """The refusal of what means nothing in this state: where it stands, and what can be said."""
    return refuse("not_now", standing(state), sayable(state))


def name(person: Person | None) -> str:
    """A person in a sentence."""
    return (person.name or person.id) if person else "Nobody"


def moment(at: datetime) -> str:
    """A time of day in a sentence, in UTC."""
    return f"{at.astimezone(UTC) if at.tzinfo else at:%Y-%m-%d %H:%M} UTC"


def standing(state: State) -> str:
    """Where a conversation stands."""
    match state:
        case Analysing():
            return "The model is being analysed; the analysis comes as the next card."
        case ReviewingAnalysis():
            return f"Analysis {state.analysis.number} waits for a yes."
        case Planning():
            return "The plan is being made; it comes as the next card."
        case ReviewingPlan():
            return f"Plan {state.plan.number} waits for a yes."
        case Preparing():
            return "The exact command is being derived; it comes as the next card."
        case ReviewingCommand():
            return f"Command {state.manifest.number} waits for a yes."
        case Submitting(cancelled_by=None):
            return "The approved command is being handed to the runner."
        case Submitting():
            return f"{name(state.cancelled_by)} cancelled this while it was being handed to the runner."
        case Running(cancelled_by=None):
            return "The run was handed over and has not ended yet."
        case Running():
            return f"{name(state.cancelled_by)} cancelled the run; it has not ended yet."
        case ReviewingResult():
            return "The run has ended, and its result waits for a decision."
        case Failed():
            return _FAILED[state.stage]
        case Ended():
            return ended(state)


def sayable(state: State) -> str:
    """What can be said in a state."""
    match state:
        case Analysing():
            return "You can name another model, revision or runner, or cancel."
        case ReviewingAnalysis():
            return (
                "You can say yes, name another model, revision or runner, say what the plan shall be like, or cancel."
            )
        case Planning():
            return "You can say what shall be different, or cancel."
        case ReviewingPlan():
            return "You can say yes, say what shall be different (such as: use int4_wo_128), or cancel."
        case Preparing():
            return "You can change the plan or the output folder, or cancel."
        case ReviewingCommand():
            return "You can say yes to run it, change the plan or the output folder, or cancel."
        case Submitting(cancelled_by=None) | Running(cancelled_by=None):
            return "You can cancel it."
        case Submitting() | Running():
            return "It ends as soon as the runner has ended it."
        case ReviewingResult():
            return "You can accept it, reject it, or say what shall be different in another run."
        case Failed():
            return "You can try again, go back to the plan, say what shall be different, or cancel."
        case Ended():
            return "You can go back to the plan, say what shall be different, or start a new request."


def ended(state: Ended) -> str:
    """How and when a conversation ended."""
    when = moment(state.at)
    if state.ending is Ending.EXPIRED:
        return f"Nobody decided for too long, so this ended on {when}."
    if state.by is None:
        return f"This was {state.ending.value} outside this conversation on {when}."
    what = "this" if state.ending is Ending.CANCELLED else "the result"
    return f"{name(state.by)} {state.ending.value} {what} on {when}."


_FAILED = {
    Stage.INTAKE: "The model could not be analysed.",
    Stage.PLAN: "No plan could be made.",
    Stage.MANIFEST: "No command could be derived from the plan.",
    Stage.SUBMISSION: "The runner did not take the run.",
    Stage.RUN: "The run failed.",
}
