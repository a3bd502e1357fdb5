"""Whether a plan says the same everywhere: people read its table and its findings, and what runs are its fields."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from runner.planning.decisions import OPTIONAL
from runner.planning.estimates import READINGS
from schemas.artifacts.plan import Estimates, Finding, QuantPlan

_INFORMATIONAL = frozenset({"hardware"})
"""Rows that say what was asked and have no field."""

_OPTIONAL = frozenset(OPTIONAL) - _INFORMATIONAL
"""Rows that only stand there when somebody asked; without a row the field has to be at its default."""

_LONGEST = 80  # characters of one value in a sentence


def contradiction(plan: QuantPlan) -> str | None:
    """One sentence about the first row of the decision table that does not say its field, or about a value that no plan
    of a runner has; None when there is none.

    Every field of the table has one row. Reasons are not compared: only whoever made the plan knows what was asked.
    """
    if not plan.requires_confirmation:
        return "The plan says that it needs no confirmation, and every plan needs one."
    if impossible := _impossible(plan.estimates):
        return impossible
    fields = _fields(plan)
    counts = Counter(row.decision for row in plan.decisions)
    for name, count in counts.items():
        if name not in fields and name not in _INFORMATIONAL:
            return f"The plan's decision table has a row {_shown(name)}, which is no decision of a plan."
        if count > 1:
            return f"The plan's decision table has {count} rows {name}."
    for row in plan.decisions:
        if row.decision in fields and not _same(row.value, fields[row.decision]):
            return (
                f"The plan's decision table says {row.decision} {_shown(row.value)}, "
                f"and the plan itself {_shown(fields[row.decision])}."
            )
    for name, value in fields.items():
        if name not in counts and not (name in _OPTIONAL and _same(value, QuantPlan.model_fields[name].default)):
            return f"The plan's decision table has no row {name}, and the plan says {_shown(value)}."
    return None


def outdated(plan: QuantPlan, now: QuantPlan) -> str | None:
    """One sentence about the first derived value or finding of a plan that is not that of `now`, or None.

    `now` is the same plan with all that follows from its decisions made again.
    """
    if plan.exclude_layers_changed != now.exclude_layers_changed:
        kept = "are not" if now.exclude_layers_changed else "are"
        return (
            f"The plan's exclude_layers_changed is {_shown(plan.exclude_layers_changed)}, "
            f"and its exclusions {kept} the engine's own."
        )
    for name in ("layer_matches", "algorithm_configs", "risks"):
        if getattr(plan, name) != getattr(now, name):
            return f"The plan's {name} are not those that follow from its decisions here now."
    said, expected = plan.estimates.model_dump(), now.estimates.model_dump()
    for name, value in expected.items():
        if not _same(said[name], value):
            return f"The plan's estimate {name} is {_shown(said[name])}, and this runner computes {_shown(value)}."
    missing = _first_beyond(now.findings, plan.findings)
    if missing is not None:
        return f"The plan lacks the finding {missing.code} as it is now: {missing.message}"
    extra = _first_beyond(plan.findings, now.findings)
    if extra is not None:
        return f"The plan has a finding {_shown(extra.code)} that this runner does not make."
    if plan.findings != now.findings:
        return "The plan's findings stand in another order than this runner's: the gravest come first."
    return None


def _impossible(estimates: Estimates) -> str | None:
    """One sentence about the first reading that no moment can give, or None: readings are taken from the plan."""
    for name in READINGS:
        value = getattr(estimates, name)
        if value is not None and not 0 <= value < math.inf:
            return f"The plan's estimate {name} is {_shown(value)}, which nothing can be."
    least, most, runs = estimates.seconds_least, estimates.seconds_most, estimates.runs_of_this_kind
    if (least is None, most is None) != (not runs, not runs):
        return f"The plan tells times of {runs} finished runs: {_shown(least)} to {_shown(most)} seconds."
    if least is not None and most is not None and least > most:
        return f"The plan's quickest run took {_shown(least)} seconds, and its slowest one {_shown(most)}."
    return None


def _fields(plan: QuantPlan) -> dict[str, Any]:
    """What the plan's fields say, by the name of their row in the decision table."""
    calibration = plan.calibration
    return {
        "global_scheme": plan.global_scheme,
        "kv_cache_scheme": plan.kv_cache_scheme,
        "exclude_layers": plan.exclude_layers,
        "layer_quant_config": plan.layer_quant_config,
        "algorithm": plan.algorithm,
        "calibration_dataset": calibration.dataset,
        "num_calib_data": calibration.num_calib_data,
        "seq_len": calibration.seq_len,
        "batch_size": calibration.batch_size,
        "evaluation_intent": plan.evaluation_intent,
        "model_export": plan.model_export,
        "device": plan.device,
        "entry_point": plan.entry_point,
        "trust_remote_code": plan.trust_remote_code,
        **{name: getattr(plan, name) for name in _OPTIONAL},
    }


def _first_beyond(findings: list[Finding], others: list[Finding]) -> Finding | None:
    """The first finding that stands more often in one list than in another."""
    left = list(others)
    for finding in findings:
        if finding not in left:
            return finding
        left.remove(finding)
    return None


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON values: true is not 1, while 1 and 1.0 are one number."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _shown(value: Any) -> str:
    """A value in a sentence. Plans come from anywhere: characters that do not show are written as escapes."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) and value.isprintable() and value.strip() else ascii(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
