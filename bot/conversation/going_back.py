"""Once more, or back to the plan: what a person does after a failure, an end, or a second thought."""

from __future__ import annotations

from bot.conversation.commands import Retry, Revise
from bot.conversation.decision import Decision, Proceed, Verb, Verdict
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import Stop, going_back
from bot.conversation.sentences import not_now, refuse, sayable, standing
from bot.conversation.state import (
    Ended,
    Failed,
    Preparing,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Stage,
    State,
    asked_at,
)

_FROM = {
    Stage.INTAKE: Stop.ANALYSIS,
    Stage.PLAN: Stop.PLAN,
    Stage.MANIFEST: Stop.COMMAND,
    # A run is never repeated by itself: its command is derived anew and needs a new yes.
    Stage.SUBMISSION: Stop.COMMAND,
    Stage.RUN: Stop.COMMAND,
}


def retry(state: State, command: Retry, policy: Policy) -> Decision:
    """The failed step once more."""
    if not isinstance(state, Failed):
        return refuse("not_now", f"Nothing has failed here. {standing(state)}", sayable(state))
    if reason := policy.against(command.by, Right.RETRY, Facts(state.requester)):
        return refuse("not_allowed", reason)
    return Proceed(going_back(state, state.request, _FROM[state.stage]), Verdict(Verb.RETRIED, command.by))


def revise(state: State, command: Revise, policy: Policy) -> Decision:
    """Back to the plan, which asks for every later approval again; to the analysis where that was never approved."""
    match state:
        case ReviewingPlan():
            return refuse("what_instead", f"This is the plan already. {standing(state)}", sayable(state))
        case Preparing() | ReviewingCommand() | ReviewingResult() | Failed() | Ended():
            if reason := policy.against(command.by, Right.REVISE, Facts(state.requester)):
                return refuse("not_allowed", reason)
            checkpoint, digest = asked_at(state) or (None, "")
            verdict = Verdict(Verb.REVISED, command.by, checkpoint, digest)
            return Proceed(going_back(state, state.request, Stop.PLAN), verdict)
        case _:
            return not_now(state)
