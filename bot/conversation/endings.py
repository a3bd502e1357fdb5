"""Stopping all of it, and what nobody decides for too long."""

from __future__ import annotations

from datetime import datetime

from bot.conversation.commands import Cancel, Expire
from bot.conversation.decision import Decision, Ignore, Proceed, Verb, Verdict
from bot.conversation.person import Person
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import reached
from bot.conversation.sentences import refuse, sayable, standing
from bot.conversation.state import (
    Ended,
    Ending,
    Failed,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Running,
    State,
    Submitting,
    asked_at,
)


def cancel(state: State, command: Cancel, policy: Policy) -> Decision:
    """Stop all of it. What was handed to a runner ends when the runner says so, and not before."""
    match state:
        case Ended(ending=Ending.CANCELLED):
            return refuse("already_decided", standing(state))
        case Ended():
            return refuse("not_now", f"There is nothing to cancel. {standing(state)}", sayable(state))
        case ReviewingResult():
            return refuse(
                "not_now", "The run has ended, so there is nothing to cancel.", "Accept or reject its result."
            )
        case Submitting() | Running() if state.cancelled_by is not None:
            return refuse("already_decided", standing(state), sayable(state))
    if reason := policy.against(command.by, Right.CANCEL, Facts(state.requester)):
        return refuse("not_allowed", reason)
    checkpoint, digest = asked_at(state) or (None, "")
    verdict = Verdict(Verb.CANCELLED, command.by, checkpoint, digest)
    match state:
        case Submitting():
            told = "The run is being handed over just now; it is cancelled as soon as the runner has answered."
            return Proceed(state.model_copy(update={"cancelled_by": command.by}), verdict, told)
        case Running():
            told = "The runner is asked to end the run."
            return Proceed(state.model_copy(update={"cancelled_by": command.by}), verdict, told)
        case _:
            return Proceed(ended(state, Ending.CANCELLED, command.at, command.by), verdict)


def expire(state: State, command: Expire) -> Decision:
    """End what nobody decided for too long. A result waits as long as it has to: hours of work lie in it."""
    if (state.step, state.kind) != (command.step, command.kind):
        return Ignore(f"it went on since: {state.kind} {state.step}, not {command.kind} {command.step}")
    match state:
        case Failed() if state.unresolved:
            return Ignore("its run may still compute: when it is found, it is taken up again")
        case ReviewingAnalysis() | ReviewingPlan() | ReviewingCommand() | Failed():
            return Proceed(ended(state, Ending.EXPIRED, command.at, None))
        case _:
            return Ignore(f"{state.kind} does not expire")


def ended(state: State, ending: Ending, at: datetime, by: Person | None) -> Ended:
    """The end of a conversation, with all that it had reached."""
    have = reached(state)
    return Ended(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=state.revisions,
        ending=ending,
        by=by,
        at=at,
        analysis=have.analysis,
        approvals=have.approvals,
        plan=have.plan,
        manifest=have.manifest,
        run=have.run,
    )
