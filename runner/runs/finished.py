"""Finished runs, as far as they tell how long the next one will take."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

from runner.planning import PastRun
from runner.planning.history import kind
from runner.runs.outcome import Outcome
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import Estimates, QuantPlan
from schemas.runs import RunState

_OF_ONE_KIND = 20
_KINDS = 50


class FinishedRuns:
    """The last runs of each kind that succeeded. Neither its memory nor what a plan costs grows with the history."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[Hashable, deque[PastRun]] = OrderedDict()

    def add(self, run: PastRun) -> None:
        """Note a run that succeeded, later than all that were noted before."""
        name = kind(run.plan, run.gpu_arch)
        self._kinds.setdefault(name, deque(maxlen=_OF_ONE_KIND)).appendleft(run)
        self._kinds.move_to_end(name)
        if len(self._kinds) > _KINDS:
            self._kinds.popitem(last=False)

    def newest(self) -> tuple[PastRun, ...]:
        """All that are kept: of each kind the newest first."""
        return tuple(run for runs in self._kinds.values() for run in runs)


def past_run(manifest: RunManifest, outcome: Outcome) -> PastRun | None:
    """What an ended run tells of the next one; None where it did not succeed, or nobody measured it."""
    measured = outcome.report.measured if outcome.report else None
    if outcome.state is not RunState.SUCCEEDED or measured is None or measured.seconds is None:
        return None
    return PastRun(
        plan=_choices_of(manifest),
        parameters=manifest.inputs.model_analysis.size.parameters,
        seconds=measured.seconds,
        gpu_arch=measured.gpu_arch,
    )


def _choices_of(manifest: RunManifest) -> QuantPlan:
    """The plan without its reasons and findings, which are most of its size and tell nothing of the time."""
    nothing: dict[str, list[object]] = {
        "decisions": [],
        "layer_matches": [],
        "algorithm_configs": [],
        "findings": [],
        "risks": [],
    }
    return manifest.inputs.quant_plan.model_copy(update={**nothing, "estimates": Estimates()})
