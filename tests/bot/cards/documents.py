"""Real documents: plans as the planner makes them, reports as the verification and the diagnosis make them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from runner.planning import make_plan
from runner.runs.verification import verify
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.artifacts.report import ValidationReport
from schemas.runs import Phase, Progress, Run, RunState
from tests.bot.conversation.samples import NOON, run
from tests.runner.planning.catalogue import with_gpu_torch
from tests.runner.planning.hosts import MI300X
from tests.runner.planning.models import qwen3_8b
from tests.runner.runs.exported import Export, catalogue, evidence_of, manifest_for


def plan_for(**choices: Any) -> QuantPlan:
    """A plan for Qwen3-8B on a host with MI300X."""
    return make_plan(qwen3_8b(), PlanChoices(**choices), with_gpu_torch(), MI300X)


def verified(folder: Path, name: str = "llama-fp8-kv") -> tuple[QuantPlan, ValidationReport]:
    """A recorded export of the real engine: its plan, and the report on it."""
    export = Export.recorded(name)
    out = export.write(folder / "out")
    manifest = manifest_for(export, out)
    return manifest.inputs.quant_plan, verify(manifest, catalogue(), evidence_of(export))


def ended_run(state: RunState, report: ValidationReport | None = None, **changes: Any) -> Run:
    """A run that ended after 200 seconds."""
    end = {"state": state, "report": report, "ended_at": NOON + timedelta(seconds=200), "last_event": 9}
    return run(**{**end, "progress": Progress(phase=Phase.EXPORTING, percent=79.0), **changes})
