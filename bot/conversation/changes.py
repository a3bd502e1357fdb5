"""Something shall be otherwise: what of it is touched, and where the conversation goes on."""

from __future__ import annotations

from bot.conversation import remote_code, seen
from bot.conversation.commands import Change
from bot.conversation.decision import Decision, Proceed, Refuse, Verb, Verdict
from bot.conversation.policy import Facts, Policy, Right
from bot.conversation.reached import Stop, going_back, reached
from bot.conversation.request import Changes, Exclusions, Request, priority_decides
from bot.conversation.sentences import refuse, standing
from bot.conversation.state import (
    Analysing,
    Ended,
    Planning,
    ReviewingAnalysis,
    ReviewingPlan,
    Running,
    State,
    Submitting,
    asked_at,
)
from bot.conversation.wording import changes_in_words, shortened, some

_SAID_CHARACTERS = 300
_LAYERS = 5
_LOST = 40  # patterns that nothing excludes any more: each of them is named, as far as anybody reads


def change(state: State, command: Change, policy: Policy) -> Decision:
    """The request with the changes in it, at the earliest step that they touch; later approvals are void.

    What touches only a step that was not reached yet is kept for it, and the conversation stays where it is.
    """
    changes = command.changes
    facts = Facts(state.requester, remote_code=remote_code.asked(changes.choices))
    if reason := policy.against(command.by, Right.CHANGE, facts):
        return refuse("not_allowed", reason)
    if isinstance(state, Submitting | Running):
        if state.cancelled_by is not None:
            return refuse("not_now", standing(state), "Say what shall be different once it has ended.")
        return refuse("not_now", "The run was handed over and cannot be changed.", "Cancel it first.")
    if command.digest and not seen.stands(state, command.digest):
        return seen.outdated(state)
    if refusal := _against_runner(changes, policy):
        return refusal
    request = changed(state.request, changes, policy)
    if refusal := _against_drop(state, changes) or _against_adding(state, changes):
        return refusal
    if request == state.request:
        return refuse(
            "nothing_changed", "That is how it stands already; nothing was changed.", "Say what shall differ."
        )
    return _proceed(state, command, request)


def changed(request: Request, changes: Changes, policy: Policy) -> Request:
    """A request with changes in it. No runner named means the first that is configured.

    Trust in a model's own code is trust in what was read: another model or revision ends it, unless it is given anew.
    """
    if changes.model == request.model and changes.revision is None:
        changes = changes.model_copy(update={"model": None})  # the same model keeps its revision
    if changes.runner == "":
        changes = changes.model_copy(update={"runner": policy.runners[0]})
    after = request.changed(changes)
    same_code = (after.model, after.revision) == (request.model, request.revision)
    if same_code or remote_code.FIELD in changes.choices:
        return after
    choices = {name: value for name, value in after.choices.items() if name != remote_code.FIELD}
    return after.model_copy(update={"choices": choices})


def touched(before: Request, after: Request) -> Stop:
    """The earliest step that two different requests do not share."""
    if _of_the_analysis(before) != _of_the_analysis(after):
        return Stop.ANALYSIS
    same_plan = (before.choices, before.exclusions) == (after.choices, after.exclusions)
    return Stop.COMMAND if same_plan else Stop.PLAN


def _of_the_analysis(request: Request) -> tuple[object, ...]:
    return request.model, request.revision, request.runner, remote_code.asked(request.choices)


def _against_runner(changes: Changes, policy: Policy) -> Refuse | None:
    if changes.runner is None or changes.runner in policy.runners or (not changes.runner and policy.runners):
        return None
    return unknown_runner(changes.runner, policy)


def unknown_runner(named: str, policy: Policy) -> Refuse:
    """The refusal of a runner that is not configured; it names those that are."""
    if not policy.runners:
        return refuse("no_runner", "No runner is configured.", "Name one under runners in bot.yaml.")
    known = f"Known: {', '.join(policy.runners)}."
    return refuse("unknown_runner", f"There is no runner called {named[:80]!r}.", known)


def _against_drop(state: State, changes: Changes) -> Refuse | None:
    """Layers cannot be taken out of a list that does not name them. Without an analysis the list is not known yet."""
    analysis, same = reached(state).analysis, changes.model in (None, state.request.model)
    if analysis is None or not changes.exclusions.drop or "exclude_layers" in changes.choices or not same:
        return None
    stands = state.request.choices_on(analysis.exclude_defaults).exclude_layers
    excluded = analysis.exclude_defaults if stands is None else stands
    lost = [one for one in changes.exclusions.drop if len(Exclusions(drop=(one,)).of(excluded)) == len(set(excluded))]
    if not lost:
        return None
    what = f"{some(lost, _LAYERS)} {'is' if len(lost) == 1 else 'are'} not named among the excluded layers"
    listed = f"Excluded are: {some(excluded, _LAYERS)}." if excluded else "No layers are excluded."
    return refuse("not_excluded", f"{what}, so nothing was changed. {listed}", "Name one of them as it stands there.")


def _against_adding(state: State, changes: Changes) -> Refuse | None:
    """A priority chooses the algorithm by itself: beside which one another shall stand is not known here."""
    choices = {**state.request.choices, **changes.choices}
    if not changes.with_algorithms or not priority_decides(choices):
        return None
    told = "The priority chose the algorithm, so it is not clear beside which one another shall stand."
    return refuse("algorithm_chosen", told, "Name all of them, in their order, as in: use smoothquant and awq.")


def _proceed(state: State, command: Change, request: Request) -> Proceed:
    first = touched(state.request, request)
    said = shortened(changes_in_words(command.changes), _SAID_CHARACTERS)
    replaced = _replaced(state, command.changes, request)
    if _only_later(state, first, request):
        # Nothing that was shown is touched: the card stays open, so the record names no checkpoint that was decided.
        kept = state.model_copy(update={"request": request})
        told = f"Noted for the {'plan' if first is Stop.PLAN else 'command'}: {said}.{replaced}"
        return Proceed(kept, Verdict(Verb.CHANGED, command.by, changes=command.changes), told)
    # Whoever takes up an ended conversation sees the plan again, whatever was changed.
    following = going_back(state, request, min(first, Stop.PLAN) if isinstance(state, Ended) else first)
    checkpoint, digest = asked_at(state) or (None, "")
    verdict = Verdict(Verb.CHANGED, command.by, checkpoint, digest, command.changes)
    return Proceed(following, verdict, f"{_AGAIN[following.kind]}, with {said}.{replaced}")


def _replaced(state: State, changes: Changes, after: Request) -> str:
    """What people rarely know when they name layers to exclude: theirs count instead of what was excluded until then.

    All that is lost is named, what people asked for first.
    """
    if "exclude_layers" not in changes.choices:
        return ""
    before, analysis = state.request, reached(state).analysis
    known = analysis is not None and changes.model in (None, before.model)
    defaults = list(analysis.exclude_defaults) if analysis is not None and known else []
    excluded = after.choices_on(defaults).exclude_layers
    stated = before.plan_choices.exclude_layers
    named = [*before.exclusions.add] if stated is None else stated
    left = [*defaults] if excluded is None else excluded
    own = [one for one in named if one not in left]
    if excluded is None:
        return f" No longer excluded: {some(own, _LOST)}." if own else ""
    applied = before.exclusions.of(defaults) if stated is None else []
    lost = [one for one in applied if one not in left and one not in own]
    told = [some(own, _LOST)] if own else []
    if lost or (stated is None and not known):
        told.append(f"the engine's defaults {some(lost, _LOST)}".strip())
    return f" This replaces {' and '.join(told)}; the plan will say what that means." if told else ""


_AGAIN = {
    "analysing": "The model is analysed again",
    "planning": "A new plan is made",
    "preparing": "A new command is derived",
}


def _only_later(state: State, first: Stop, request: Request) -> bool:
    """Whether a change touches only steps that the conversation has not come to."""
    match state:
        case Analysing():
            # The runner examines the output folder while it analyses: another one has to be asked anew.
            return first > Stop.ANALYSIS and request.output_dir == state.request.output_dir
        case ReviewingAnalysis():
            return first > Stop.ANALYSIS
        case Planning() | ReviewingPlan():
            return first > Stop.PLAN
        case _:
            return False
