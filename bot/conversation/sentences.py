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
            return f"{what_failed(state)}."
        case Ended():
            return ended(state)


def sayable(state: State) -> str:
    """What can be said in a state, with an example wherever something can be changed."""
    match state:
        case Analysing():
            return (
                f"You can name another model, revision or runner, say what the plan shall be like {_SUCH}, or cancel."
            )
        case ReviewingAnalysis():
            return (
                "You can say yes, name another model, revision or runner, say what the plan shall be like "
                f"{_SUCH}, or cancel."
            )
        case Planning():
            return f"You can say what shall be different {_SUCH}, or cancel."
        case ReviewingPlan():
            return f"You can say yes, say what shall be different {_SUCH}, or cancel."
        case Preparing():
            return f"You can change the plan or the output folder {_SUCH}, or cancel."
        case ReviewingCommand():
            return f"You can say yes to run it, change the plan or the output folder {_SUCH}, or cancel."
        case Submitting(cancelled_by=None) | Running(cancelled_by=None):
            return "You can cancel it."
        case Submitting() | Running():
            return "It ends as soon as the runner has ended it."
        case ReviewingResult():
            return f"You can accept it, reject it, or say what shall be different in another run {_SUCH}."
        case Failed():
            return f"You can try again, go back to the plan, say what shall be different {_SUCH}, or cancel."
        case Ended():
            return f"You can go back to the plan, say what shall be different {_SUCH}, or start a new request."


EXAMPLES = ("use int4_wo_32", "calibration 256", "output my-folder")
"""Changes as people may say them."""

_SUCH = f"(for example: {', '.join(EXAMPLES)})"


def ended(state: Ended) -> str:
    """How and when a conversation ended."""
    when = moment(state.at)
    if state.ending is Ending.EXPIRED:
        return f"Nobody decided for too long, so this ended on {when}."
    if state.by is None:
        return f"This was {state.ending.value} outside this conversation on {when}."
    what = "this" if state.ending is Ending.CANCELLED else "the result"
    return f"{name(state.by)} {state.ending.value} {what} on {when}."


def what_failed(state: Failed) -> str:
    """What failed, in words and without a full stop. The cause says it better than the step in which it was found."""
    code = state.trouble.code
    if about_output(state):
        return "The output folder cannot be used"
    if code == "disk_full" and state.stage is not Stage.RUN:
        return "There is too little space on the disk"
    return "Not known: what became of this run" if state.unresolved else _FAILED[state.stage]


def about_output(state: Failed) -> bool:
    """Whether a step failed for the folder that the result shall go to: another folder is all that it takes."""
    code = state.trouble.code
    return state.stage is not Stage.RUN and (code.startswith("output_") or code in _OF_THE_OUTPUT)


_OF_THE_OUTPUT = frozenset({"bad_output_name", "no_output_roots"})

_FAILED = {
    Stage.INTAKE: "The model could not be analysed",
    Stage.PLAN: "No plan could be made",
    Stage.MANIFEST: "The exact command could not be prepared",
    Stage.SUBMISSION: "The runner did not take the run",
    Stage.RUN: "The run failed",
}
