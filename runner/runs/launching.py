"""The last step before a run begins: everything is checked once more, and the folder is made ready."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from runner.errors import Broken
from runner.host.child import with_programs_of
from runner.host.kernel_cache import remove_left_locks
from runner.runs.folder import LAUNCH, Launch, RunFolder, new_mark
from runner.runs.submission import Submission
from runner.runs.surroundings import gpu_mask, run_environment
from runner.runs.table import Entry, Gate
from runner.runs.workdir import make_working_directory
from runner.settings import RunnerSettings
from schemas.artifacts.environment import Accelerator


@dataclass
class RunLauncher:
    """Makes a run's folder ready for its supervisor."""

    settings: RunnerSettings
    gate: Gate
    accelerator: Callable[[], Awaitable[Accelerator]]

    async def prepare(self, entry: Entry, submission: Submission) -> dict[str, str]:
        """Check approvals, model, script and versions as they are now; write launch.json; the run's environment.

        Raises RunnerError where anything differs from what was approved.
        """
        await self.gate.admit(submission.run_manifest, submission.approvals)
        manifest = submission.run_manifest
        mask = gpu_mask(self.settings.gpus, await self.accelerator())
        await asyncio.to_thread(self._make_ready, entry.folder, manifest.argv)
        environment = run_environment(os.environ, manifest.environment, manifest.secrets, mask)
        return with_programs_of(manifest.argv[0], environment)

    def _make_ready(self, folder: RunFolder, argv: list[str]) -> None:
        remove_left_locks()  # a compilation that was killed would hold the run up for ever
        try:
            work = make_working_directory(folder.path, self.settings.datasets.mirror)
        except OSError as error:
            hint = "Free disk space, or correct datasets.mirror."
            raise Broken("no_working_directory", f"The working directory cannot be made: {error}.", hint) from error
        if (folder.path / LAUNCH).exists():
            # A daemon that fell here may have started a supervisor that reads this file only now: its mark must stay.
            return
        launch = Launch(
            argv=argv,
            cwd=str(work),
            mark=new_mark(folder.run_id),
            grace_seconds=self.settings.limits.grace_seconds,
            log_limit_bytes=self.settings.limits.log_bytes,
        )
        folder.write(LAUNCH, launch.as_bytes())
