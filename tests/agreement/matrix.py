"""The planner against what really happened: one table over every recorded row.

Each row is planned for a host without a GPU, as it was run, and three things are compared: a row that failed has to be
stopped by the code that explains its error, a row that worked must not be stopped, and what of it had no effect has to
be warned of. Of every row that was exported the predicted size has to be within 1 % as well.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from pydantic import ValidationError

from runner.planning import HostView, make_plan
from runner.planning.decisions import default_exclusions
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, QuantPlan, Severity
from tests.agreement import models, rows
from tests.agreement.rows import Expected, Row
from tests.runner.planning.catalogue import RECORDED, recorded
from tests.runner.planning.hosts import BOTH, CPU, but

NEAR = 0.01
"""How far a predicted size may be off."""

_FIELDS = {
    "layer_config": "layer_quant_config",
    "exclude_layers": "exclude_layers",
    "attention_scheme": "attention_dtype",
    "min_kv_scale": "min_kv_scale",
    "kv_cache_post_rope": "kv_cache_post_rope",
}


@dataclass(frozen=True)
class Judged:
    """A row, what the planner has to say of it and what it says; `problems` are sentences, empty where both agree.

    `size_off` is the error of the predicted size, as a share of the real one.
    """

    row: Row
    expected: Expected
    plan: QuantPlan | None = None
    problems: list[str] = field(default_factory=list)
    size_off: float | None = None

    @property
    def said(self) -> str:
        """In a word what the planner says."""
        if self.plan is None:
            return "not checked"
        if self.plan.blocked_by:
            return "blocked"
        return "warned" if self.plan.risks else "clean"


def judge(path: Path) -> list[Judged]:
    """Every row of a file, judged. Raises ValueError where a row cannot be read, as `rows.read` does."""
    return [_judged(row, path) for row in rows.read(path)]


def _judged(row: Row, path: Path) -> Judged:
    try:
        return judge_row(row)
    except ValidationError as problem:  # an option that no request could have
        first = problem.errors()[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ValueError(f"{path}, line {row.number}, column {_column(first['loc'])}: {what}.") from None


def _column(place: tuple[int | str, ...]) -> str:
    """The column that a field of a request is written in."""
    columns = {"global_scheme": "scheme", "algorithm": "algo", "kv_cache_scheme": "kv"}
    return columns.get(str(place[0]) if place else "", "extra")


def judge_row(row: Row) -> Judged:
    """One row, planned and compared."""
    analysis = _analysis(row.model, row.source_bytes)
    unknown = sorted(set(row.extra) - {*_FIELDS, "algo_from"})
    if analysis is None or unknown:
        why = f"it asks for {', '.join(unknown)}" if unknown else f"the structure of {row.model} is not known here"
        expected = Expected(unknown=why)
        return Judged(row, expected, problems=[f"not checked: {why}"])
    groups = analysis.quantization_targets.groups
    names = rows.written_out((group.pattern, group.numbers) for group in groups)
    expected = rows.expected(row, names, default_exclusions(analysis, recorded()))
    plan = make_plan(analysis, choices(row), recorded(), host(row))
    off = _size_off(row, plan)
    return Judged(row, expected, plan, list(_problems(row, expected, plan, off)), off)


def choices(row: Row) -> PlanChoices:
    """The row as a request."""
    asked: dict[str, Any] = {_FIELDS[name]: value for name, value in row.extra.items() if name in _FIELDS}
    if "algo_from" in row.extra:
        asked["write_algorithm_config"] = True
    return PlanChoices(
        global_scheme=row.scheme,
        algorithm=",".join(row.algorithms) or None,
        kv_cache_scheme=row.kv,
        evaluation_intent="none",
        entry_point="quantize_quark",
        **asked,
    )


def host(row: Row) -> HostView:
    """The host that the rows were run on; a configuration is derived from the family that the row names."""
    configs, family = _configs(), row.extra.get("algo_from")
    if family is not None:
        configs = {name: found for name, found in configs.items() if name == family}
    return but(CPU, entry_points=BOTH, algorithm_configs=configs)


def main(path: Path, out: TextIO | None = None) -> int:
    """Print the table of agreement. 0 where every row agrees, 1 where one does not or cannot be checked, 2 where the
    file cannot be read as such rows."""
    try:
        judged = judge(path)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    for line in table(judged):
        print(line, file=out or sys.stdout)
    return 1 if not judged or any(each.problems for each in judged) else 0


def table(judged: list[Judged]) -> list[str]:
    """The table and every disagreement, as lines."""
    kinds: dict[str, list[Judged]] = {}
    for each in judged:
        kinds.setdefault(each.expected.kind, []).append(each)
    width = max((len(kind) for kind in kinds), default=4)
    lines = [f"{'row kind':{width}}  {'rows':>5} {'blocked':>8} {'warned':>7} {'clean':>6} {'disagree':>9}"]
    ordered = sorted(kinds, key=lambda name: (not name.startswith("works"), name))
    lines += [_line(kind, kinds[kind], width) for kind in ordered]
    lines += [_line("all", judged, width), ""]
    sizes = sorted((each for each in judged if each.size_off is not None), key=lambda each: abs(each.size_off or 0))
    if sizes:
        worst = sizes[-1]
        lines.append(
            f"Predicted sizes: {len(sizes)} exports, {sum(abs(each.size_off or 0) <= NEAR for each in sizes)} within "
            f"{NEAR:.0%}; the worst is {worst.size_off:+.2%} ({worst.row.shown})."
        )
    wrong = [each for each in judged if each.problems]
    lines.append(f"{len(judged) - len(wrong)} of {len(judged)} rows agree.")
    return lines + [f"  {each.row.shown}: {problem}" for each in wrong for problem in each.problems]


def _line(kind: str, judged: Iterable[Judged], width: int) -> str:
    judged = list(judged)
    said = Counter(each.said for each in judged)
    wrong = sum(bool(each.problems) for each in judged)
    counts = f"{len(judged):>5} {said['blocked']:>8} {said['warned']:>7} {said['clean']:>6} {wrong:>9}"
    return f"{kind:{width}}  {counts}"


def _problems(row: Row, expected: Expected, plan: QuantPlan, off: float | None) -> Iterable[str]:
    blocked = [finding.code for finding in plan.blocked_by]
    if expected.unknown:
        yield f"not checked: {expected.unknown}"
        return
    if expected.stopped_by and expected.stopped_by not in blocked:
        yield f"it failed and has to be stopped by {expected.stopped_by}; stopped by {', '.join(blocked) or 'nothing'}"
    if row.worked:
        for finding in plan.blocked_by:
            if finding.code not in expected.may_stop:
                yield f"it worked and is stopped by {finding.code}: {finding.message}"
        said = {finding.code for finding in plan.findings if finding.severity is not Severity.INFORMS}
        for code in sorted((expected.warned_of | expected.may_stop) - said):
            yield f"it has to warn of {code}"
    if off is not None and abs(off) > NEAR:
        yield f"the predicted size is off by {off:+.2%}"
    if row.worked and row.output_bytes and off is None:
        yield "no size is predicted"


def _size_off(row: Row, plan: QuantPlan) -> float | None:
    predicted = plan.estimates.output_bytes
    return predicted / row.output_bytes - 1 if row.worked and row.output_bytes and predicted is not None else None


@cache
def _analysis(name: str, source_bytes: int) -> ModelAnalysis | None:
    return models.analysis_for(name, source_bytes) if source_bytes else None


@cache
def _configs() -> dict[str, dict[str, dict[str, Any]]]:
    """The engine's built-in configurations of algorithms, as recorded with the catalogue."""
    probed = json.loads(RECORDED.with_name("catalogue-probe-0.13.json").read_text(encoding="utf-8"))
    found: dict[str, dict[str, dict[str, Any]]] = probed["algorithm_configs"]
    return found


__all__ = ["Judged", "choices", "host", "judge", "judge_row", "main", "table"]
