"""Who may do what. There is one function that says so, and its reason is a sentence that names who may."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bot.conversation.person import Person, Place

_SHOWN = 5  # people or channels named in one sentence


class Right(StrEnum):
    """What a person wants to do. The four checkpoints have the names that they have in `Checkpoint`."""

    ASK = "ask"
    ANALYSIS = "analysis"
    PLAN = "plan"
    COMMAND = "command"
    RESULT = "result"
    CHANGE = "change"
    CANCEL = "cancel"
    RETRY = "retry"
    REVISE = "revise"
    QUEUE = "queue"
    URGE = "urge"
    YIELD = "yield"


@dataclass(frozen=True)
class Facts:
    """What a right depends on, beside the person.

    `requester` is whose conversation it is; for ASK, whoever asks. `place` is where it was asked; only ASK looks at it.
    `remote_code` is True where the model's own code would run: a request or a change asks for it, a command does it.
    """

    requester: Person
    place: Place | None = None
    remote_code: bool = False


@dataclass(frozen=True)
class Policy:
    """The rules of an installation. People are ids such as "slack:U1".

    The requester decides about a conversation. As soon as `approvers` has members, only they approve commands. Only
    who stands in `remote_code` may ask for a model's own code and approve a command that runs it; while it is
    empty, nobody may. `approvers` and `admins` may cancel anything and give runs their place in the queue; `admins`
    alone pause, drain and open the queues of runners. `channels` holds, by platform, the ids of the channels in
    which requests are taken: a platform without an entry allows all of its channels, an empty entry none. `runners`
    are the names of the configured runners; the first is taken where nobody names one.
    """

    approvers: tuple[str, ...] = ()
    remote_code: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runners: tuple[str, ...] = ()

    def against(self, person: Person, right: Right, facts: Facts) -> str | None:
        """Why a person may not do something, in a sentence that names who may; None where they may."""
        if person.is_bot:
            return "Only people ask and decide here; a bot may not."
        if right is Right.ASK and (reason := self._against_place(facts.place)):
            return reason
        allowed = self._allowed(right, facts)
        if allowed is None or person.id in allowed:
            return None
        return self._only(allowed, right, facts)

    def who_may(self, right: Right, facts: Facts) -> str:
        """The sentence of who may, as `against` says it; empty where everybody may, or the requester alone."""
        allowed = self._allowed(right, facts)
        return "" if allowed is None or allowed == [facts.requester.id] else self._only(allowed, right, facts)

    def contradictions(self) -> list[str]:
        """What these rules promise to somebody and yet allow to nobody, a sentence with what to do for each."""
        anybody = Facts(Person(id="anybody", name=""), remote_code=True)
        if not self.approvers or not self.remote_code or self._allowed(Right.COMMAND, anybody):
            return []
        return [
            f"{_listed(list(self.remote_code))} may ask for code that a model brings along, but nobody may approve a "
            "command that runs it: the approvers of remote code and the approvers of commands "
            f"({_listed(list(self.approvers))}) share nobody. Name somebody in both."
        ]

    def _only(self, allowed: list[str], right: Right, facts: Facts) -> str:
        runs_code = facts.remote_code and right in _RUNS_CODE
        because = ", because code that the model brings along would run" if runs_code else ""
        who = _listed([_named(one, facts.requester) for one in allowed])
        if not who:
            return f"Nobody may {_ACTS[right]}{because}, and nobody is named for that in this bot's settings."
        return f"Only {who} may {_ACTS[right]}{because}."

    def _allowed(self, right: Right, facts: Facts) -> list[str] | None:
        """The ids of all who may, in the order in which a sentence names them; None where everybody may."""
        allowed: Collection[str]
        match right:
            case Right.ASK if not facts.remote_code:
                return None  # anybody in the channel
            case Right.ASK:
                allowed = self.remote_code
            case Right.COMMAND:
                allowed = self.approvers or (facts.requester.id,)
            case Right.QUEUE:
                allowed = self.admins
            case Right.URGE:
                # Who lets a run go before others decides for those others too.
                allowed = dict.fromkeys((*self.approvers, *self.admins)) or (facts.requester.id,)
            case Right.CANCEL | Right.YIELD:
                allowed = dict.fromkeys((facts.requester.id, *self.approvers, *self.admins))
            case _:
                allowed = (facts.requester.id,)
        if facts.remote_code and right in _RUNS_CODE:
            allowed = [one for one in allowed if one in self.remote_code]
        return list(allowed)

    def _against_place(self, place: Place | None) -> str | None:
        if place is None:
            return "Where this was asked is not known, so it cannot be told who may ask there."
        listed = self.channels.get(place.platform)
        if listed is None or place.channel in listed:
            return None
        if not listed:
            return f"No requests are taken on {place.platform}: no channel is named in this bot's settings."
        return f"No requests are taken in this channel. Ask in {_listed(list(listed), 'or')}."


_RUNS_CODE = frozenset({Right.ASK, Right.CHANGE, Right.COMMAND})
"""Where remote code counts: at asking for it, first or later, and at the command that would run it."""

_ACTS = {
    Right.ASK: "ask for this",
    Right.ANALYSIS: "decide about this analysis",
    Right.PLAN: "decide about this plan",
    Right.COMMAND: "approve this command",
    Right.RESULT: "accept or reject this result",
    Right.CHANGE: "change this request",
    Right.CANCEL: "cancel this",
    Right.RETRY: "try this again",
    Right.REVISE: "take this back to the plan",
    Right.QUEUE: "pause, drain or open a runner's queue",
    Right.URGE: "let this run go before others",
    Right.YIELD: "change the place of this run",
}


def _named(person: str, requester: Person) -> str:
    return f"{requester.name} ({person})" if person == requester.id and requester.name else person


def _listed(names: list[str], last: str = "and") -> str:
    """ "a, b and c", shortened where there are many."""
    shown = names[:_SHOWN]
    if len(names) > _SHOWN:
        return f"{', '.join(shown)} {last} {len(names) - _SHOWN} more"
    return f" {last} ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
