"""From a command that ended to a report: file modes, the reload check, and the verification."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import runner
from runner.engines.engine import Engine, Exit, Needs
from runner.errors import RunnerError
from runner.host.child import with_programs_of
from runner.planning import HostView
from runner.runs.entry import Entry
from runner.runs.evidence import Evidence, ReloadOutcome
from runner.runs.following import LogFollower
from runner.runs.gpus import Lease
from runner.runs.permissions import set_modes
from runner.runs.placement import read_placement
from runner.runs.reload import reload_model
from runner.runs.submission import Submission
from runner.runs.surroundings import run_environment
from runner.runs.verification import verify
from runner.settings import RunnerSettings
from schemas.artifacts.environment import Hardware
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.report import Check, Measured, ValidationReport
from schemas.catalog import Catalogue
from schemas.runs import RunState

_RELOAD_SCRIPT = Path(runner.__file__).parent / "ptq" / "reload_check.py"


@dataclass
class RunJudge:
    """Looks at what a run left."""

    settings: RunnerSettings
    engine: Engine
    catalogue: Callable[[], Awaitable[Catalogue]]
    hardware: Callable[[], Awaitable[Hardware]]
    host: Callable[[], Awaitable[HostView]] | None = None
    """What plans are made for here; without it, what the failed run's own plan says of the host has to do."""

    async def report(
        self, entry: Entry, submission: Submission, end: Exit, log: LogFollower, lease: Lease | None
    ) -> ValidationReport:
        """The report on a run whose command ended."""
        manifest = submission.run_manifest
        output = Path(manifest.outputs.output_dir)
        # Also what a failed run left: somebody has to be able to look at it and to remove it.
        modes = await asyncio.to_thread(self._set_modes, output)
        reload = await self._reload(entry, submission, lease) if end.exit_code == 0 else None
        evidence = Evidence(
            exit_code=end.exit_code,
            could_not_start=end.could_not_start,
            ended_by=end.ended_by,
            ended_because=end.ended_because,
            oom_killed=end.oom_killed,
            original_perplexity=log.progress.original_perplexity,
            quantized_perplexity=log.progress.perplexity,
            evaluation_dataset=log.evaluation_dataset or _measured_on(manifest),
            evaluated_tokens=log.evaluated_tokens,
            exclusions=log.tables.exclusions,
            replacements=log.tables.replacements,
            reload=reload,
            measured=await self._measured(manifest, end, log),
            last_lines=log.last_lines,
        )
        report = await asyncio.to_thread(verify, manifest, await self.catalogue(), evidence, await self._host())
        return report.model_copy(update={"checks": [*report.checks, *modes]})

    async def _host(self) -> HostView | None:
        """What plans are made for here; None where that cannot be found out, such as after a changed interpreter."""
        try:
            return await self.host() if self.host is not None else None
        except RunnerError:
            return None

    def _set_modes(self, output: Path) -> list[Check]:
        if not output.is_dir():
            return []
        try:
            set_modes(output, self.settings.outputs.mode)
        except (OSError, RunnerError) as error:
            return [Check(name="file modes", outcome="failed", detail=f"They could not be set: {error}")]
        return []

    async def _measured(self, manifest: RunManifest, end: Exit, log: LogFollower) -> Measured | None:
        """What the run took; None where its command never ran."""
        if end.started_at is None:
            return None
        on_gpu = manifest.inputs.quant_plan.device == "cuda"
        return Measured(
            seconds=end.seconds,
            host_memory_bytes=end.peak_memory_bytes,
            gpu_memory_bytes=log.gpu_memory_bytes if on_gpu else None,
            gpu_arch=(await self.hardware()).gpu_arch if on_gpu else None,
        )

    async def _reload(self, entry: Entry, submission: Submission, lease: Lease | None) -> ReloadOutcome:
        manifest = submission.run_manifest
        plan = manifest.inputs.quant_plan
        argv = [manifest.argv[0], str(_RELOAD_SCRIPT)]
        argv += ["--model_dir", manifest.outputs.output_dir, "--device", plan.device]
        mask = read_placement(entry.folder).mask
        environment = run_environment(os.environ, manifest.environment, [], mask)
        environment = with_programs_of(manifest.argv[0], environment)
        limit = self.settings.limits.check_seconds
        return await reload_model(
            self.engine,
            entry.folder,
            argv,
            environment,
            Needs(entry.gpus, limit, f"check of {manifest.outputs.output_dir}"),
            lambda: entry.run.state is RunState.CANCELLING,
            lease.descriptors if lease else (),
        )


def _measured_on(manifest: RunManifest) -> str:
    """What the engine's programs measure on, which they do not say; others say it themselves, or nobody knows."""
    if manifest.entry_point.name not in ("quantize_quark", "quark_cli"):
        return ""
    return manifest.inputs.quant_plan.evaluation_dataset or "wikitext"
