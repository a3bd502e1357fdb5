"""Where a conversation stands, for the page: in a few words, as five steps, and what can be said there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from bot.cards.card import Tone
from bot.conversation.reached import reached
from bot.conversation.state import (
    Checkpoint,
    Ended,
    Ending,
    Failed,
    ReviewingPlan,
    Running,
    Stage,
    State,
    Submitting,
)
from schemas.runs import RunState

# Where a conversation stands, in a few words, and how that feels. The keys are the kinds of states and of endings.
STANDING: dict[str, tuple[str, Tone]] = {
    "analysing": ("Reading the model", Tone.WORKING),
    "reviewing_analysis": ("Is the analysis right?", Tone.WAITING),
    "planning": ("Making the plan", Tone.WORKING),
    "reviewing_plan": ("Confirm or change the plan", Tone.WAITING),
    "preparing": ("Preparing the command", Tone.WORKING),
    "reviewing_command": ("Run this exact command?", Tone.WAITING),
    "submitting": ("Handing the command over", Tone.WORKING),
    "running": ("Running", Tone.WORKING),
    "reviewing_result": ("Accept the result?", Tone.WAITING),
    "failed": ("Failed: what next?", Tone.BAD),
    "ended": ("Ended", Tone.CLOSED),
    "accepted": ("Accepted", Tone.GOOD),
    "rejected": ("Rejected", Tone.CLOSED),
    "cancelled": ("Cancelled", Tone.CLOSED),
    "expired": ("Expired", Tone.CLOSED),
}
WAITING = frozenset({"reviewing_analysis", "reviewing_plan", "reviewing_command", "reviewing_result", "failed"})
BUSY = frozenset({"analysing", "planning", "preparing", "submitting", "running"})

# What a person may write into the reply, for example. Each of these counts in its state.
_SAYS: dict[str, tuple[str, ...]] = {
    "analysing": ("cancel",),
    "reviewing_analysis": ("looks good", "use int4_wo_32", "cancel"),
    "planning": ("cancel",),
    "reviewing_plan": ("ok", "use int4_wo_32", "calibration 256"),
    "preparing": ("cancel",),
    "reviewing_command": ("yes, run it", "output my-folder", "cancel"),
    "submitting": ("cancel",),
    "running": ("cancel",),
    "reviewing_result": ("accept", "reject"),
    "failed": ("try again", "back to the plan", "use int4_wo_32"),
    "ended": ("back to the plan",),
}
BEING_CANCELLED = "Being cancelled"

_STEPS = (
    ("Analysis", {"analysing", "reviewing_analysis"}),
    ("Plan", {"planning", "reviewing_plan"}),
    ("Command", {"preparing", "reviewing_command"}),
    ("Run", {"submitting", "running"}),
    ("Result", {"reviewing_result"}),
)
_RUN, _RESULT = 3, 4
_STEP_OF_STAGE = {"intake": 0, "plan": 1, "manifest": 2, "submission": _RUN, "run": _RUN}


@dataclass(frozen=True)
class Standing:
    """A state in words, and how it feels."""

    kind: str
    label: str
    tone: Tone


@dataclass(frozen=True)
class Step:
    """One of the five steps of a conversation. `state` is done, current, failed, stopped or ahead.

    `said` is that in words: the step at which a conversation ended says how.
    """

    name: str
    state: str
    said: str


def standing_of(kind: str) -> Standing:
    """A kind of state, or an ending, in words. One that this page does not know is shown as it is called."""
    label, tone = STANDING.get(kind, (kind.replace("_", " ").capitalize(), Tone.CLOSED))
    return Standing(kind, label, tone)


def standing(state: State) -> Standing:
    """Where a conversation stands, in words."""
    if isinstance(state, Submitting | Running) and state.cancelled_by is not None:
        return Standing(state.kind, BEING_CANCELLED, Tone.WORKING)
    return standing_of(state.ending if state.kind == "ended" else state.kind)


def sayable(state: State) -> tuple[str, ...]:
    """What counts when it is written as a reply, for example; empty where no words count any more."""
    match state:
        case Submitting() | Running() if state.cancelled_by is not None:
            return ()
        case ReviewingPlan() if state.plan.blocked_by:
            return tuple(words for words in _SAYS[state.kind] if words != "ok")  # nobody can approve a blocked plan
        case Failed(stage=Stage.INTAKE):
            return ("try again", "cancel")  # there is no plan to go back to, and none is at fault
        case _:
            return _SAYS[state.kind]


def steps(state: State) -> tuple[Step, ...]:
    """The five steps, and how far the conversation is or came."""
    said = ""
    match state:
        case Failed():
            place, mark = _STEP_OF_STAGE[state.stage], "failed"
        case Ended(ending=Ending.ACCEPTED):
            place, mark = len(_STEPS), "done"
        case Ended():
            place, mark = _stopped_at(state)
            said = f"failed, then {state.ending}" if mark == "failed" else str(state.ending)
        case _:
            place, mark = next(at for at, (_, kinds) in enumerate(_STEPS) if state.kind in kinds), "current"
    marks = ["done"] * place + [mark] + ["ahead"] * len(_STEPS)
    return tuple(
        Step(name, marks[at], said if said and at == place else marks[at]) for at, (name, _) in enumerate(_STEPS)
    )


def _stopped_at(state: Ended) -> tuple[int, str]:
    """The step at which it ended, and how that step stood: what was approved, or has run, before it is done."""
    if state.run is not None:
        if state.run.state is RunState.SUCCEEDED:
            return _RESULT, "stopped"
        return _RUN, "failed" if state.run.state in {RunState.FAILED, RunState.LOST} else "stopped"
    have = reached(state)
    asked = ((Checkpoint.ANALYSIS, have.analysis), (Checkpoint.PLAN, have.plan), (Checkpoint.COMMAND, have.manifest))
    approved = (bool(have.approved(checkpoint, revision)) for checkpoint, revision in asked)
    return sum(takewhile(bool, approved)), "stopped"
