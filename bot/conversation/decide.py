"""What a command means in a state: the next state, or why not.

Pure and total: it reads no clock and no database, and every state answers every command.
"""

from __future__ import annotations

from bot.conversation import remote_code, seen
from bot.conversation.answers import answer
from bot.conversation.approvals import approve, reject
from bot.conversation.better import better, no_better
from bot.conversation.changes import change, unknown_runner
from bot.conversation.commands import (
    Analysed,
    Approve,
    BetterAnalysis,
    Cancel,
    Change,
    Command,
    Delayed,
    Expire,
    GiveOrder,
    NoBetterAnalysis,
    Planned,
    Prepared,
    Reject,
    Remark,
    Retry,
    Revise,
    RunMissing,
    RunNews,
    RunSilent,
    StepFailed,
    Submitted,
    TakeOffer,
)
from bot.conversation.decision import Decision, Ignore, Proceed, Refuse
from bot.conversation.endings import cancel, expire
from bot.conversation.going_back import retry, revise
from bot.conversation.news import missing, news, silent
from bot.conversation.offered import take
from bot.conversation.person import Person, Place
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.request import Request
from bot.conversation.sentences import refuse, sayable, standing
from bot.conversation.state import Analysing, State
from bot.conversation.wording import shortened

_UNREAD_CHARACTERS = 80


def begin(request: Request, by: Person, place: Place, policy: Policy) -> Proceed | Refuse:
    """A new conversation, or why there is none. The state's request carries the real name of its runner."""
    facts = Facts(requester=by, place=place, remote_code=remote_code.asked(request.choices))
    if reason := policy.against(by, Right.ASK, facts):
        return refuse("not_allowed", reason)
    runner = request.runner or next(iter(policy.runners), "")
    if runner not in policy.runners:
        return unknown_runner(runner, policy)
    return Proceed(Analysing(request=request.model_copy(update={"runner": runner}), requester=by, step=1))


def decide(state: State, command: Command, policy: Policy) -> Decision:
    """What a command means in a state. Who may give it is asked of the policy, and of nothing else."""
    match command:
        case Cancel() | Retry() | Revise() | TakeOffer() | GiveOrder() if command.step not in (0, state.step):
            return seen.gone(state)
        case Approve():
            return approve(state, command, policy)
        case Change():
            return change(state, command, policy)
        case Reject():
            return reject(state, command, policy)
        case Cancel():
            return cancel(state, command, policy)
        case Retry():
            return retry(state, command, policy)
        case Revise():
            return revise(state, command, policy)
        case TakeOffer():
            return take(state, command, policy)
        case GiveOrder():
            return Ignore("an order is for a runner, and no conversation moves for it")
        case Remark():
            return _remark(state, command)
        case Analysed() | Planned() | Prepared() | Submitted() | StepFailed() | Delayed():
            return answer(state, command)
        case BetterAnalysis():
            return better(state, command)
        case NoBetterAnalysis():
            return no_better(state, command)
        case RunNews():
            return news(state, command)
        case RunSilent():
            return silent(state, command)
        case RunMissing():
            return missing(state, command)
        case Expire():
            return expire(state, command)


def _remark(state: State, command: Remark) -> Refuse | Ignore:
    """Words that decide nothing are answered with where the conversation stands and what can be said."""
    if command.by.is_bot:
        return Ignore("a bot spoke; two bots that answer each other never end")
    if command.is_question and command.answer:
        return refuse("question", command.answer, standing(state))
    if command.is_question:
        return refuse("question", standing(state), sayable(state))
    unread = shortened(command.unread, _UNREAD_CHARACTERS)
    what = f"I did not understand {unread!r} in this" if unread else "This was not understood"
    message = " ".join(part for part in (f"{what}, and nothing was decided.", command.hint, standing(state)) if part)
    return refuse("not_understood", message, sayable(state))
