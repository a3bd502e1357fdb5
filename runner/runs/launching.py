"""The last step before a run begins: everything is checked once more, and the folder is made ready."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runner.errors import Broken
from runner.host.child import with_programs_of
from runner.host.kernel_cache import remove_left_locks
from runner.runs.entry import Entry
from runner.runs.folder import LAUNCH, Launch, RunFolder, new_mark
from runner.runs.placement import Placement
from runner.runs.submission import Submission
from runner.runs.surroundings import run_environment
from runner.runs.table import Gate
from runner.runs.workdir import make_working_directory
from runner.settings import RunnerSettings
from schemas.artifacts.manifest import RunManifest


@dataclass
class RunLauncher:
    """Makes a run's folder ready for its supervisor."""

    settings: RunnerSettings
    gate: Gate
    mask_variable: Callable[[], Awaitable[str]] | None = None
    """Which variable shows a run its GPUs where a scheduler sets several; None where the mask is ours."""

    async def prepare(self, entry: Entry, submission: Submission, placement: Placement) -> dict[str, str]:
        """Check approvals, model, script and versions as they are now; write launch.json; the run's environment.

        Raises RunnerError where anything differs from what was approved.
        """
        await self.gate.admit(submission.run_manifest, submission.approvals)
        manifest = submission.run_manifest
        environment = run_environment(os.environ, manifest.environment, manifest.secrets, placement.mask)
        environment = with_programs_of(manifest.argv[0], environment)
        kept = await self.mask_variable() if self.mask_variable else ""
        await asyncio.to_thread(self._make_ready, entry.folder, manifest, kept, sorted(environment) if kept else [])
        return environment

    def _make_ready(self, folder: RunFolder, manifest: RunManifest, mask_variable: str, variables: list[str]) -> None:
        remove_left_locks()  # a compilation that was killed would hold the run up for ever
        try:
            work = make_working_directory(folder.path, self.settings.datasets.mirror)
        except OSError as error:
            hint = "Free disk space, or correct datasets.mirror."
            raise Broken("no_working_directory", f"The working directory cannot be made: {error}.", hint) from error
        if (folder.path / LAUNCH).exists():
            # A daemon that fell here may have started a supervisor that reads this file only now: its mark must stay.
            return
        limits = self.settings.limits
        launch = Launch(
            argv=manifest.argv,
            cwd=str(work),
            mark=new_mark(folder.run_id),
            grace_seconds=limits.grace_seconds,
            time_limit_seconds=limits.run_seconds,
            log_limit_bytes=limits.log_bytes,
            watched=[manifest.outputs.output_dir],
            disk_reserve_bytes=limits.disk_reserve_bytes,
            memory_limit_bytes=limits.run_memory_bytes,
            mask_variable=mask_variable,
            variables=variables,
        )
        folder.write(LAUNCH, launch.as_bytes())
