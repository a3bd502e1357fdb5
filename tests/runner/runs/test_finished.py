"""Finished runs are remembered by kind, and no more of them than tell something."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from runner.planning import PastRun
from runner.runs.finished import FinishedRuns, past_run
from runner.runs.outcome import Outcome
from schemas.artifacts.plan import Decision, Finding, Severity
from schemas.artifacts.report import Measured
from schemas.runs import RunState
from tests import samples

AT = datetime(2026, 1, 1, tzinfo=UTC)
MEASURED = Measured(seconds=612.5, host_memory_bytes=10**9, gpu_memory_bytes=10**10, gpu_arch="gfx942")


def outcome(state: RunState = RunState.SUCCEEDED, measured: Measured | None = MEASURED) -> Outcome:
    """How a run ended."""
    return Outcome.model_validate(
        {"state": state, "at": AT, "report": samples.report().model_copy(update={"measured": measured})}
    )


def past(seconds: float, **changes: Any) -> PastRun:
    """A finished run of some plan."""
    return PastRun(samples.plan(**changes), 8_000_000_000, seconds, "gfx942")


def test_a_run_that_succeeded_tells_its_time_and_what_it_ran_on() -> None:
    manifest = samples.manifest()
    found = past_run(manifest, outcome())
    assert found is not None
    assert (found.seconds, found.gpu_arch) == (612.5, "gfx942")
    assert found.parameters == manifest.inputs.model_analysis.size.parameters
    assert found.plan.global_scheme == manifest.inputs.quant_plan.global_scheme


@pytest.mark.parametrize(
    "ended",
    [
        outcome(RunState.FAILED),
        outcome(RunState.CANCELLED),
        outcome(RunState.LOST),
        outcome(measured=None),
        outcome(measured=Measured()),
        Outcome(state=RunState.SUCCEEDED, at=AT),
    ],
)
def test_a_run_that_did_not_succeed_or_was_not_measured_tells_nothing(ended: Outcome) -> None:
    assert past_run(samples.manifest(), ended) is None


def test_reasons_and_findings_of_the_plan_are_not_kept() -> None:
    row = Decision(decision="global_scheme", value="fp8", reason="Requested.", source="request")
    finding = Finding(severity=Severity.WARNS, code="odd", message="It is odd.")
    plan = samples.plan(decisions=[row], findings=[finding], risks=["odd"])
    inputs = samples.manifest().inputs.model_copy(update={"quant_plan": plan})
    found = past_run(samples.manifest(inputs=inputs), outcome())
    assert found is not None
    assert (found.plan.decisions, found.plan.findings, found.plan.risks) == ([], [], [])


def test_the_last_runs_of_a_kind_are_kept_newest_first() -> None:
    finished = FinishedRuns()
    for seconds in range(100):
        finished.add(past(float(seconds)))
    assert [run.seconds for run in finished.newest()] == [float(seconds) for seconds in range(99, 79, -1)]


def test_kinds_that_nobody_runs_any_more_are_forgotten() -> None:
    finished = FinishedRuns()
    for number in range(60):
        finished.add(past(float(number), global_scheme=f"scheme_{number}"))
        finished.add(past(1000.0))
    kept = finished.newest()
    assert {run.plan.global_scheme for run in kept} == {"fp8", *(f"scheme_{number}" for number in range(11, 60))}
    assert sum(run.plan.global_scheme == "fp8" for run in kept) == 20


def test_nothing_has_finished_yet() -> None:
    assert FinishedRuns().newest() == ()
