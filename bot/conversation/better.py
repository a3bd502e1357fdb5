"""A better analysis: the engine's own list of layers, which takes a minute, after the headers, which take none.

Before checkpoint 1 it takes the place of the analysis that is shown. Afterwards it is kept beside what was approved,
and leads back to checkpoint 1 only where targets or exclusions are others. Once the command is approved it comes too
late: that command is bound to what people saw.
"""

from __future__ import annotations

from bot.conversation.answers import analysis_revision, counted
from bot.conversation.commands import BetterAnalysis, NoBetterAnalysis
from bot.conversation.decision import Decision, Ignore, Proceed
from bot.conversation.state import (
    AnalysisRevision,
    ExactList,
    Planning,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    State,
    Trouble,
)
from bot.conversation.targets import difference, lost_patterns
from schemas.artifacts.analysis import ModelAnalysis

_Improvable = ReviewingAnalysis | Planning | ReviewingPlan | Preparing | ReviewingCommand

_EXPECTED = frozenset({"depth_not_offered"})
"""Codes of refusals that tell people nothing: a runner of an older release reads headers only."""

_FOR_GOOD = _EXPECTED | {"modules_need_code", "modules_unknown_family", "artifact_missing", "strange_answer"}
"""Codes that stay: of the model, or of what answers. All else, as a host without memory, may be otherwise later."""


def improvable(state: State) -> AnalysisRevision | None:
    """The analysis that a better one may follow; None where none is wanted, or none any more."""
    found = state.analysis if isinstance(state, _Improvable) else None
    if found is None or found.better == "wanted":
        return found
    return found if found.again_after is not None and state.step > found.again_after else None


def better(state: State, command: BetterAnalysis) -> Decision:
    """The engine's own list of layers came. No yes to an older analysis counts for it."""
    known = improvable(state)
    if known is None or known.digest != command.of:
        return _late(state, command.of)
    if command.document.quantization_targets.method != "modules":
        return Proceed(_without(state, known, "", None))
    assert isinstance(state, _Improvable)
    lost = lost_patterns(state.request, command.before, command.document)
    if isinstance(state, ReviewingAnalysis):
        return Proceed(_reviewed_again(state, command, known, f"{state.because} {lost}".strip(), state.step))
    # Whoever replaced the engine's exclusions may quantize what it would leave alone.
    replaced = state.request.replaces_exclusions
    because = difference(command.before, command.document, all_layers=replaced)
    if because:
        return Proceed(_reviewed_again(state, command, known, f"{because} {lost}".strip(), state.step + 1))
    number, revisions = counted(state, "analysis")
    layers = command.document.quantization_targets.linear_layer_count
    found = ExactList(number=number, linear_layers=layers, risks=_new_risks(command.before, command.document))
    kept = known.model_copy(update={"better": "none", "no_better": "", "again_after": None, "confirmed": found})
    return Proceed(state.model_copy(update={"analysis": kept, "revisions": revisions}))


def no_better(state: State, command: NoBetterAnalysis) -> Decision:
    """There is none: noted, so that it is not asked for again in this step. Nothing waits for it."""
    known = improvable(state)
    if known is None or known.digest != command.of:
        return _late(state, command.of)
    again_after = None if command.trouble.code in _FOR_GOOD else state.step
    return Proceed(_without(state, known, _reason(command.trouble), again_after))


def _reviewed_again(
    state: _Improvable, command: BetterAnalysis, known: AnalysisRevision, because: str, step: int
) -> ReviewingAnalysis:
    """Checkpoint 1 with the better analysis. What was approved by then was another one, so none of it counts."""
    number, revisions = counted(state, "analysis")
    revision = analysis_revision(command.document, command.digest, number, known.proposed_output)
    return ReviewingAnalysis(
        request=state.request,
        requester=state.requester,
        step=step,
        revisions=revisions,
        because=because,
        analysis=revision.model_copy(update={"improves": known.digest}),
    )


def _without(state: State, known: AnalysisRevision, why: str, again_after: int | None) -> State:
    update = {"better": "none", "no_better": why, "again_after": again_after}
    return state.model_copy(update={"analysis": known.model_copy(update=update)})


def _reason(trouble: Trouble) -> str:
    return "" if trouble.code in _EXPECTED else trouble.message


def _new_risks(before: ModelAnalysis, after: ModelAnalysis) -> tuple[str, ...]:
    known = {risk.code for risk in before.risks}
    return tuple(f"{risk.message} {risk.recovery_hint}".strip() for risk in after.risks if risk.code not in known)


def _late(state: State, of: str) -> Ignore:
    return Ignore(f"a better analysis than {of[:12]} is not waited for in {state.kind} {state.step}")
