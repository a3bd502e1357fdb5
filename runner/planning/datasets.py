"""Calibration data: the names that the engine's loader knows, and text files of the mirror."""

from __future__ import annotations

from runner.host.datasets import REPOSITORIES
from runner.planning.host_view import HostView
from schemas.artifacts.plan import QuantPlan

EVALUATION = "wikitext"
"""What perplexity is measured on when calibration uses a named dataset."""

_VARIANTS = {"pileval_for_awq_benchmark": "pileval", "wikitext_for_gptq_benchmark": "wikitext"}
"""Names under which the engine reads another named dataset in its own way. Source: loader of amd-quark 0.13."""

_PREFERRED = ("pileval", "wikitext", "cnn_dailymail")
"""What stands in for the default where the mirror lacks it, best first."""


def is_file(dataset: str) -> bool:
    """Whether a dataset is a text file of the mirror and not a name."""
    return dataset.endswith((".txt", ".jsonl"))


def named() -> list[str]:
    """The names that the engine's loader knows. Its command line also offers ScienceQA, for which it has no code."""
    return [*REPOSITORIES, *_VARIANTS]


def is_available(dataset: str, host: HostView) -> bool:
    """Whether a run on this host can read the dataset."""
    if is_file(dataset):
        return dataset in host.datasets
    if dataset not in named():
        return False
    return not host.offline or _VARIANTS.get(dataset, dataset) in host.datasets


def can_evaluate(dataset: str, entry_point: str, host: HostView) -> bool:
    """Whether there is text to measure perplexity on.

    Our own script calibrates on the beginning of a text file and evaluates on its end; everything else needs wikitext.
    """
    return (entry_point == "own" and is_file(dataset)) or is_available(EVALUATION, host)


def read_by(plan: QuantPlan) -> list[str]:
    """The datasets that a run of the plan reads: for calibration, and for the measurement where that is another one."""
    name = plan.calibration.dataset
    own_text = plan.entry_point == "own" and is_file(name)
    measured = [] if own_text or plan.evaluation_intent == "none" else [EVALUATION]
    return list(dict.fromkeys([_VARIANTS.get(name, name), *measured]))


def substitute(host: HostView) -> str | None:
    """The best dataset that the mirror holds, or None when it holds none."""
    preferred = next((name for name in _PREFERRED if name in host.datasets), None)
    return preferred or next(iter(sorted(host.datasets)), None)
