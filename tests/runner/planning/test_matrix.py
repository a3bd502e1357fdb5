"""The planner against what really happened: every recorded combination of model, scheme, algorithm and options."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from runner.planning import make_plan
from schemas.artifacts.plan import PlanChoices, QuantPlan
from tests.fixtures_folder import fixture
from tests.runner.planning.catalogue import recorded
from tests.runner.planning.hosts import BOTH, CPU, but
from tests.runner.planning.models import matrix_models

# An algorithm's configuration from elsewhere and a scheme for attention have no field in a plan.
_NO_FIELD = ("algo_from", "attention_scheme")


def _choices(row: dict[str, str]) -> PlanChoices | None:
    extra: dict[str, Any] = json.loads(row["extra"]) if row["extra"] else {}
    if any(name in extra for name in _NO_FIELD):
        return None
    renamed = {"layer_config": "layer_quant_config", "exclude_layers": "exclude_layers"}
    return PlanChoices(
        global_scheme=row["scheme"],
        algorithm=row["algo"].replace("+", ",") or None,
        kv_cache_scheme=row["kv"] or None,
        evaluation_intent="none",
        entry_point="quantize_quark",
        **{renamed[name]: value for name, value in extra.items()},
    )


@pytest.fixture(scope="module")
def planned() -> list[tuple[dict[str, str], QuantPlan]]:
    """Every recorded row that a plan can say, with its plan."""
    host, models = but(CPU, entry_points=BOTH), matrix_models()
    with fixture("quark", "matrix.csv").open(encoding="utf-8", newline="") as file:
        rows = [(row, _choices(row)) for row in csv.DictReader(file)]
    assert len(rows) > 300
    return [(row, make_plan(models[row["model"]], wanted, recorded(), host)) for row, wanted in rows if wanted]


def _worked(row: dict[str, str]) -> bool:
    return row["result(ok/error class)"] == "ok"


def _shown(row: dict[str, str]) -> str:
    return " ".join(row[name] for name in ("model", "scheme", "algo", "kv", "extra"))


def test_what_failed_is_blocked(planned: list[tuple[dict[str, str], QuantPlan]]) -> None:
    assert [_shown(row) for row, plan in planned if not _worked(row) and not plan.blocked_by] == []


def test_what_worked_is_not_blocked(planned: list[tuple[dict[str, str], QuantPlan]]) -> None:
    wrongly = {_shown(row): plan.blocked_by for row, plan in planned if _worked(row) and plan.blocked_by}
    assert wrongly == {}


def test_sizes_are_those_of_the_exports(planned: list[tuple[dict[str, str], QuantPlan]]) -> None:
    off: dict[str, float] = {}
    for row, plan in planned:
        estimated = plan.estimates.output_bytes
        if not _worked(row) or estimated is None:
            continue
        error = estimated / int(row["output_bytes"]) - 1
        # Mixtral's built-in configurations name only attention, so that the experts keep their narrow scales.
        partly = row["model"] == "mixtral" and row["algo"] in ("gptq", "gptaq", "qronos")
        if not -0.01 < error < (0.035 if partly else 0.01):
            off[_shown(row)] = error
    assert off == {}
