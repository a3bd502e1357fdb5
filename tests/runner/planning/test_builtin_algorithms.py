"""An algorithm without a built-in configuration is refused for every family of the engine, and only then."""

from __future__ import annotations

import csv

from runner.planning import make_plan
from schemas.artifacts.plan import PlanChoices
from tests.fixtures_folder import fixture
from tests.runner.planning.catalogue import recorded
from tests.runner.planning.hosts import CPU
from tests.runner.planning.models import analysis_of, decoder


def test_every_family_and_algorithm_as_recorded() -> None:
    with fixture("quark", "builtin_algorithms.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(recorded().templates)
    wrong = []
    for row in rows:
        analysis = analysis_of(row["model_type"], decoder())
        for algorithm in recorded().algorithms:
            choices = PlanChoices(global_scheme="int4_wo_32", algorithm=algorithm)
            plan = make_plan(analysis, choices, recorded(), CPU)
            refused = any(finding.code == "algorithm_not_configured" for finding in plan.blocked_by)
            if refused is (row[algorithm] == "Y"):
                wrong.append((row["model_type"], algorithm))
    assert wrong == []
