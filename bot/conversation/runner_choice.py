"""Which runner a request goes to: the one that is named, one that has a label, or the one that its needs lead to.

Pure, and asked once for a request: what was chosen and why is kept with it, so that nothing moves by itself later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.conversation.request import Changes, Request
from bot.conversation.runner_wants import Want, likes, needs
from bot.conversation.wording import shortened
from bot.conversation.words.vocabulary import key_of
from schemas.api import Capabilities

_MOST_OTHERS = 3
_LONGEST = 300


@dataclass(frozen=True)
class KnownRunner:
    """A runner as far as it is known without asking.

    `offer` is None until it told one. `queued` and `active` count its runs, as it said last; `queued` is None where it
    never did. `away`: it did not answer when it was asked last.
    """

    name: str
    labels: tuple[str, ...] = ()
    offer: Capabilities | None = None
    queued: int | None = None
    active: int = 0
    away: bool = False

    @property
    def busy_with(self) -> int:
        """Runs that wait or compute; 0 where that is not known."""
        return (self.queued or 0) + self.active

    def is_called(self, name: str) -> bool:
        """Whether this is its name; "GPU-1" is "gpu_1"."""
        return key_of(self.name) == key_of(name)

    def has(self, label: str) -> bool:
        """Whether this is one of its labels."""
        return key_of(label) in {key_of(one) for one in self.labels}


@dataclass(frozen=True)
class Choice:
    """A runner, and why it is that one, as it stands behind "since"; no reason where there was nothing to choose."""

    runner: str
    reason: str = ""


@dataclass(frozen=True)
class _Candidate:
    """A runner with what speaks against it. The first of `lacks` and `misses` is told to people."""

    place: int
    runner: KnownRunner
    lacks: tuple[Want, ...]
    misses: tuple[Want | None, ...]
    stays: bool

    @property
    def rank(self) -> tuple[object, ...]:
        """The least is taken. One that cannot is behind all that can, also behind those that are away: these return."""
        return (
            len(self.lacks),
            self.runner.away,
            self.runner.offer is None,
            tuple(miss is not None for miss in self.misses),
            not self.stays,
            self.runner.busy_with,
            self.place,
        )


def choose(request: Request, runners: Sequence[KnownRunner], staying: str = "") -> Choice | None:
    """The runner of a request; None where it names one that there is not.

    `request.runner` is a name, a label, or empty for any; `runners` stand in the order of the settings. `staying` is
    the runner that it has already, which is kept where it is as good by its needs as any other with the label.
    """
    wanted = request.runner
    exact = [one for one in runners if one.name == wanted]
    named = exact or [one for one in runners if wanted and one.is_called(wanted)]
    if len(named) == 1:
        return Choice(named[0].name)
    among = [one for one in runners if one.has(wanted)] if wanted else list(runners)
    if not among or len(runners) == 1:
        return Choice(among[0].name) if among else None
    if len(among) == 1:
        return Choice(among[0].name, f"only {among[0].name} has the label {wanted}")
    ranked = sorted((_candidate(request, one, place, staying) for place, one in enumerate(among)), key=lambda c: c.rank)
    of_label = f"{wanted} is a label of {len(among)} runners, and " if wanted else ""
    return Choice(ranked[0].runner.name, shortened(of_label + _reason(ranked), _LONGEST))


def placed(request: Request, runners: Sequence[KnownRunner]) -> Request:
    """A new request with its runner. One that names a runner that there is not stays as it is, to be refused."""
    choice = choose(request, runners)
    if choice is None:
        return request
    return request.model_copy(update={"runner": choice.runner, "runner_reason": choice.reason})


def placed_changes(changes: Changes, request: Request, runners: Sequence[KnownRunner]) -> Changes:
    """Changes of a request with the name of the runner that they ask for; what asks for none moves nothing."""
    if changes.runner is None:
        return changes
    after = request.changed(changes).model_copy(update={"runner": changes.runner})
    choice = choose(after, runners, staying=request.runner if changes.runner else "")
    if choice is None:
        return changes
    return changes.model_copy(update={"runner": choice.runner, "runner_reason": choice.reason})


def _candidate(request: Request, runner: KnownRunner, place: int, staying: str) -> _Candidate:
    offer = runner.offer
    lacks = tuple(want for want in needs(request) if offer is not None and not want.met(offer))
    wishes = likes(request, runner.labels)
    misses = tuple(None if offer is None or want.met(offer) else want for want in wishes)
    return _Candidate(place, runner, lacks, misses, stays=runner.name == staying)


def _reason(ranked: Sequence[_Candidate]) -> str:
    """Why the first is the first."""
    taken, others = ranked[0], ranked[1:]
    if taken.lacks:
        told = [f"{one.runner.name} {one.lacks[0].lacking}" for one in ranked[: _MOST_OTHERS + 1]]
        return f"no runner offers all that is asked for: {', '.join(told)}"
    if all(one.runner.offer is None and not one.runner.away for one in ranked):
        return "it is the first in the settings, and what the runners offer is not known yet"
    if taken.runner.offer is not None and (shared := _shared(others)) is not None:
        return f"only {taken.runner.name} {shared.having}"
    told = [_against(one, taken) for one in others[:_MOST_OTHERS]]
    more = len(others) - len(told)
    return _listed([*told, f"{more} more come behind it" if more > 1 else "one more comes behind it"] if more else told)


def _shared(others: Iterable[_Candidate]) -> Want | None:
    """What all others lack, where that is one and the same."""
    first = [one.lacks[0] if one.lacks else None for one in others]
    return first[0] if len({want and want.having for want in first}) == 1 else None


def _against(other: _Candidate, taken: _Candidate) -> str:
    """Why it is not another one: the first thing in which that ranks behind."""
    name, runner = other.runner.name, other.runner
    if other.lacks:
        return f"{name} {other.lacks[0].lacking}"
    if runner.away and not taken.runner.away:
        return f"{name} does not answer"
    if runner.offer is None and taken.runner.offer is not None:
        return f"what {name} offers is not known yet"
    for mine, its in zip(other.misses, taken.misses, strict=True):
        if mine is not None and its is None:
            return f"{name} {mine.lacking}"
    if taken.stays:
        return f"it is on {taken.runner.name} already"
    busy, less = runner.busy_with, taken.runner.busy_with
    if busy > less:
        runs = "1 run that waits or computes" if busy == 1 else f"{busy} runs that wait or compute"
        return f"{name} has {runs}, {taken.runner.name} {less or 'none'}"
    return f"{name} stands behind it in the settings"


def _listed(told: list[str]) -> str:
    return " and ".join([", ".join(told[:-1]), told[-1]]) if len(told) > 1 else told[0]
