"""Yes and no at a checkpoint."""

from __future__ import annotations

from bot.conversation import seen
from bot.conversation.commands import Approve, Reject
from bot.conversation.decision import Decision, Proceed, Refuse, Verb, Verdict
from bot.conversation.endings import ended
from bot.conversation.person import Person
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import Stop, going_back
from bot.conversation.sentences import not_now, refuse, sayable
from bot.conversation.state import (
    Checkpoint,
    Ending,
    Planning,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    State,
    Submitting,
    asked_at,
)
from schemas.api import Approval, ApprovedCheckpoint
from schemas.digest import digest

_BY_CHARACTERS = 200
_WHERE_CHARACTERS = 500


def approve(state: State, command: Approve, policy: Policy) -> Decision:
    """A yes. It counts for exactly the document that the person saw, and only from who may give it."""
    if refusal := seen.against(state, command.checkpoint, command.digest, command.step):
        return refusal
    if reason := policy.against(command.by, Right(command.checkpoint.value), _facts(state)):
        return refuse("not_allowed", reason)
    match state:
        case ReviewingAnalysis():
            return _approved(state, command, _planning(state, _approval(command, "analysis", state.analysis.digest)))
        case ReviewingPlan() if state.plan.blocked_by:
            return _blocked(state)
        case ReviewingPlan():
            approval = _approval(command, "plan", state.plan.digest)
            with_it = state.model_copy(update={"approvals": (*state.approvals, approval)})
            return _approved(state, command, going_back(with_it, state.request, Stop.COMMAND))
        case ReviewingCommand():
            return _approved(state, command, _submitting(state, _approval(command, "command", state.manifest.digest)))
        case ReviewingResult():
            return _approved(state, command, ended(state, Ending.ACCEPTED, command.at, command.by))
        case _:
            return not_now(state)


def reject(state: State, command: Reject, policy: Policy) -> Decision:
    """A no. It rejects a result; at the other checkpoints it decides nothing, since nobody knows yet what instead."""
    if refusal := seen.against(state, command.checkpoint, command.digest, command.step):
        return refusal
    if not isinstance(state, ReviewingResult):
        return refuse("what_instead", "What shall be different? Nothing was decided.", sayable(state))
    if reason := policy.against(command.by, Right.RESULT, Facts(state.requester)):
        return refuse("not_allowed", reason)
    verdict = Verdict(Verb.REJECTED, command.by, Checkpoint.RESULT, state.manifest.digest)
    return Proceed(ended(state, Ending.REJECTED, command.at, command.by), verdict)


def who_may_run(state: State, policy: Policy) -> str:
    """The sentence of who may approve the command that a state asks about; empty where its requester alone may, as
    with all that is asked, and where no command is asked about."""
    return policy.who_may(Right.COMMAND, _facts(state)) if isinstance(state, ReviewingCommand) else ""


def signed(person: Person) -> str:
    """A person as approvals name them: "Ada (slack:U1)". A long name is cut; the id stays whole as far as it fits."""
    suffix = f" ({person.id})"
    room = _BY_CHARACTERS - len(suffix)
    if not person.name or room < 1:
        return person.id[:_BY_CHARACTERS]
    return f"{person.name[:room]}{suffix}"


def _facts(state: State) -> Facts:
    """What the right to say yes depends on."""
    return Facts(state.requester, remote_code=isinstance(state, ReviewingCommand) and state.plan.remote_code)


def _approval(command: Approve, checkpoint: ApprovedCheckpoint, whole_digest: str) -> Approval:
    return Approval(
        checkpoint=checkpoint,
        digest=whole_digest,
        by=signed(command.by),
        at=command.at,
        where=command.where[:_WHERE_CHARACTERS],
    )


def _approved(state: State, command: Approve, following: State) -> Proceed:
    asked = asked_at(state)
    return Proceed(following, Verdict(Verb.APPROVED, command.by, command.checkpoint, asked[1] if asked else ""))


def _planning(state: ReviewingAnalysis, approval: Approval) -> Planning:
    return Planning(
        request=state.request,
        requester=state.requester,
        step=state.step + 1,
        revisions=state.revisions,
        analysis=state.analysis,
        approvals=(approval,),
    )


def _submitting(state: ReviewingCommand, approval: Approval) -> Submitting:
    step = state.step + 1
    # Two conversations may have got the same command. Who approved it, where and when tells them apart, and stays the
    # same however often it is handed over.
    key = f"{state.manifest.digest}-{step}-{digest(approval)[:16]}"
    return Submitting(
        request=state.request,
        requester=state.requester,
        step=step,
        revisions=state.revisions,
        analysis=state.analysis,
        approvals=(*state.approvals, approval),
        plan=state.plan,
        manifest=state.manifest,
        key=key,
    )


def _blocked(state: ReviewingPlan) -> Refuse:
    first, rest = state.plan.blocked_by[0], len(state.plan.blocked_by) - 1
    more = f" ({rest} more {'reason stands' if rest == 1 else 'reasons stand'} on the card.)" if rest else ""
    return refuse("plan_blocked", f"This plan cannot run: {first}{more}", "Say what shall be different.")
