"""`python -m tests.bench.sizes [SCHEME ...]`: predicted against real bytes and memory of real runs on a real model.

Quantizes SmolLM2-135M on the CPU with each scheme through the runner's own steps, about two minutes each. The model and
the text are those of the demonstration and are made where they are not there yet.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runner.clock import SystemClock
from runner.host.child import with_programs_of
from runner.runs.surroundings import run_environment
from runner.runs.workdir import make_working_directory
from runner.service.demo_host import TEXT, Prepared, prepare
from runner.service.workflow import Workflow
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import CalibrationChanges, Estimates, PlanChoices

SCHEMES = ("fp8", "int4_wo_64", "mxfp6_e2m3", "nvfp4")
CALIBRATION = CalibrationChanges(dataset=TEXT, num_calib_data=4, seq_len=128)


@dataclass(frozen=True)
class Compared:
    """One run: bytes that were predicted, and what it wrote and held."""

    scheme: str
    predicted: Estimates
    output_bytes: int
    host_memory_bytes: int

    def __str__(self) -> str:
        """A line of the table."""
        size, memory = self.predicted.output_bytes, self.predicted.host_memory_bytes
        if size is None or memory is None:
            return f"{self.scheme:16} nothing was predicted"
        return (
            f"{self.scheme:16} output {self.output_bytes:>12,}, predicted {size:>12,} "
            f"({size / self.output_bytes - 1:+.3%}); memory {self.host_memory_bytes / 1e6:6,.0f} MB, predicted "
            f"{memory / 1e6:6,.0f} MB ({memory / self.host_memory_bytes - 1:+.0%})"
        )


def main(schemes: list[str]) -> None:
    """Print one line for each scheme."""
    with tempfile.TemporaryDirectory() as folder:
        prepared = prepare(Path(folder) / "host", print)
        for scheme in schemes or SCHEMES:
            print(_compare(scheme, prepared), flush=True)


def _compare(scheme: str, prepared: Prepared) -> Compared:
    manifest = asyncio.run(_planned(scheme, prepared))
    output = Path(manifest.outputs.output_dir)
    folder = prepared.folder / scheme
    folder.mkdir()
    work = make_working_directory(folder, prepared.settings.datasets.mirror)
    environment = with_programs_of(manifest.argv[0], run_environment(os.environ, manifest.environment, [], {}))
    with (folder / "log").open("wb") as log:
        run = subprocess.Popen(manifest.argv, cwd=work, env=environment, stdout=log, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    if run.returncode:
        raise SystemExit(f"{scheme} failed:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")
    written = sum(file.stat().st_size for file in output.iterdir())
    return Compared(scheme, manifest.inputs.quant_plan.estimates, written, usage.ru_maxrss * 1024)


async def _planned(scheme: str, prepared: Prepared) -> RunManifest:
    workflow = Workflow(prepared.settings, SystemClock())
    analysis = (await workflow.intake(IntakeRequest(model=str(prepared.model)))).model_analysis
    choices = PlanChoices(
        global_scheme=scheme, calibration=CALIBRATION, evaluation_intent="none", entry_point="own", kv_cache_scheme=None
    )
    plan = (await workflow.plan(PlanRequest(model_analysis=analysis, request=choices))).quant_plan
    output = str(prepared.outputs / scheme)
    request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=output)
    return (await workflow.manifest(request)).run_manifest


if __name__ == "__main__":
    main(sys.argv[1:])
