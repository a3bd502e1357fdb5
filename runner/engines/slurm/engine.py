"""Hands runs to Slurm. A run's folder lies on a file system that the nodes share, and tells everything as anywhere.

Nothing is ever lost or run twice, whatever Slurm forgets: a job only starts the run's supervisor, which begins a run
once, ever. That makes it safe to hand in a job again of which the controller knows nothing.
"""

from __future__ import annotations

import logging
import math
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from runner.clock import Clock, SystemClock
from runner.engines.engine import (
    NOTHING,
    EndedOrphans,
    Lost,
    Needs,
    NotBegun,
    Observed,
    Pending,
    Running,
    SupervisedFolder,
    Unreadable,
)
from runner.engines.pause import pause
from runner.engines.slurm.cluster import Cluster
from runner.engines.slurm.job import JOB_FILE, Asked, Job, new_token
from runner.errors import Broken
from runner.settings import SlurmSettings

log = logging.getLogger(__name__)

_SCRIPT = "job.sh"
OUTCOME_FILE = "outcome.json"  # of the daemon: nothing more happens to a run that has one
_IN_FLIGHT_SECONDS = 30.0
"""How long a job that was asked for may take to be known to the controller, where the daemon fell while it asked."""
_MISSING_SECONDS = 10.0
"""How long Slurm may know nothing of a job before it counts as forgotten: a node may still be rid of it."""
_TRIES = 3
"""Jobs that Slurm may forget before a person has to look."""
_LONGER_MINUTES = 2
"""What a job gets beyond the run's own limit, so that the supervisor can end the run itself and tell."""


class SlurmEngine:
    """Starts supervisors as jobs. It keeps nothing: the next daemon knows as much from the folders and from Slurm."""

    places_here = False

    def __init__(self, settings: SlurmSettings, *, clock: Clock | None = None, cluster: Cluster | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._cluster = cluster or Cluster(settings.look_seconds)
        self._missing: dict[str, float] = {}  # by token, since when by the monotonic clock

    async def submit(
        self,
        folder: SupervisedFolder,
        env: Mapping[str, str],
        *,
        needs: Needs = NOTHING,
        keep_open: Sequence[int] = (),  # noqa: ARG002 - locks of this host's GPUs say nothing elsewhere
    ) -> Observed:
        """Hand the run in, unless it has begun or lies with Slurm already.

        Raises Broken: [not_started] where nothing will run, and [not_begun] where that cannot be said now.
        """
        observed = await self._looked_up(folder, fresh=True)
        if not isinstance(observed, NotBegun):
            return observed
        before = _asked(folder.path)
        forgotten = 0
        if before is not None:
            job = (await self._cluster.jobs()).get(before.token)
            if job is not None and (job.state == "CANCELLED" or (folder.path / before.output).exists()):
                raise _ended_early(job, folder.path / before.output)
            self._missing.pop(before.token, None)
            forgotten = before.forgotten + 1  # or it never came to a node, which says nothing of the run
        if forgotten >= _TRIES:
            hint = "Look at the controller's log; nothing was started, and it is safe to submit the run again."
            raise Broken("not_started", f"Slurm forgot {forgotten} jobs of this run before they began.", hint)
        asked = Asked(token=new_token(), at=time.time(), forgotten=forgotten)
        _write(folder, asked)
        script = folder.path / _SCRIPT
        folder.write(_SCRIPT, _script(folder, asked).encode())
        arguments = [*self._arguments(folder, asked, needs), str(script)]
        number = await self._cluster.submit(arguments, env, folder.path)
        _write(folder, asked.model_copy(update={"number": number}))
        return Pending(f"Slurm job {number}", cancelling=folder.cancel_asked())

    def took(self, folder: SupervisedFolder) -> bool:
        """Whether Slurm was asked to take this run, or it has begun."""
        return folder.has_begun() or (folder.path / JOB_FILE).exists()

    async def state(self, folder: SupervisedFolder) -> Observed:
        """What became of the run: its folder decides, and Slurm says of what has not begun why it waits."""
        return await self._looked_up(folder)

    async def rest(self, folder: SupervisedFolder, seconds: float) -> None:
        """Wait so long, or until the supervisor has ended where it computes on this very host."""
        await pause(folder, seconds)

    async def cancel(self, folder: SupervisedFolder, by: str, reason: str) -> Observed:
        """Ask for the end of a run; cancel.json decides, and Slurm is asked to be quick about it. Raises Broken."""
        observed = folder.observe()
        if isinstance(observed, NotBegun | Running | Lost | Unreadable):
            doubt = folder.ask_cancel(by, reason, self._clock.now().isoformat())
            if doubt:
                log.warning("Run %s: %s", folder.path.name, doubt)
            await self._hurry(folder)
        return await self._looked_up(folder)

    async def end_orphans(
        self,
        folder: SupervisedFolder,
        grace_seconds: float,  # noqa: ARG002 - Slurm's own KillWait counts
    ) -> EndedOrphans:
        """End the job of a lost run; Slurm ends what is left of it on its node."""
        asked = _asked(folder.path)
        doubt = ""
        if asked is not None and asked.number is not None:
            try:
                job = (await self._cluster.jobs(fresh=True)).get(asked.token)
                if job is not None and not job.ended:
                    await self._cluster.cancel(job.number)
            except Broken as error:
                doubt = f"{error.message} What is left of {asked.name} may still hold its GPU: end it with scancel."
        return EndedOrphans(0, (), doubt)

    async def _looked_up(self, folder: SupervisedFolder, *, fresh: bool = False) -> Observed:
        observed = folder.observe()
        if not isinstance(observed, NotBegun | Running | Lost):
            return observed
        asked = _asked(folder.path)
        if asked is None:
            return observed
        if isinstance(observed, Running):
            return Running(observed.cancelling, observed.child, asked.name)
        try:
            job = (await self._cluster.jobs(fresh=fresh)).get(asked.token)
        except Broken as error:
            return _unknown_now(folder, observed, asked, error)
        if job is not None and asked.number is None:
            asked = asked.model_copy(update={"number": job.number})
            _write(folder, asked)
        again = folder.observe()  # it may have begun, or ended, while Slurm was asked
        if type(again) is not type(observed):
            return again if not isinstance(again, Running) else Running(again.cancelling, again.child, asked.name)
        if isinstance(observed, Lost):
            # A lock may not be seen from another host. What Slurm says is at work is not lost.
            return Running(folder.cancel_asked(), observed.child, asked.name) if job and job.at_work else observed
        return self._not_begun(folder, asked, job)

    def _not_begun(self, folder: SupervisedFolder, asked: Asked, job: Job | None) -> Observed:
        if job is not None:
            self._missing.pop(asked.token, None)
            if job.ended:
                return NotBegun()  # without beginning: `submit` tells why
            why = job.why if job.waits else "It is being started."
            return Pending(asked.name, why, folder.cancel_asked())
        if asked.number is None and time.time() - asked.at < _IN_FLIGHT_SECONDS:
            return Pending(asked.name, "Whether Slurm took it is not known yet.", folder.cancel_asked())
        now = time.monotonic()
        if asked.number is not None and now - self._missing.setdefault(asked.token, now) < _MISSING_SECONDS:
            return Pending(asked.name, "Slurm does not know it at the moment.", folder.cancel_asked())
        return NotBegun()

    async def _hurry(self, folder: SupervisedFolder) -> None:
        """A job that waits is taken back; one that runs is signalled, which its supervisor hears at once."""
        try:
            asked = _asked(folder.path)
            if asked is None:
                return
            job = (await self._cluster.jobs(fresh=True)).get(asked.token)
            if job is not None and job.waits:
                await self._cluster.cancel(job.number)
            elif job is not None and job.at_work:
                await self._cluster.cancel(job.number, "--batch", "--signal=TERM")
        except Broken as error:
            log.warning("Run %s ends without Slurm's help: %s", folder.path.name, error.message)

    def _arguments(self, folder: SupervisedFolder, asked: Asked, needs: Needs) -> list[str]:
        wanted = self._settings
        arguments = [
            f"--job-name=ptq {needs.name}"[:200].replace("\n", " ").rstrip(),
            f"--comment={asked.comment}",
            "--no-requeue",
            "--nodes=1",
            "--ntasks=1",
            # All of what sbatch itself is given. Named variables would make Slurm log the user in on the node first.
            "--export=ALL",
            f"--chdir={folder.path}",
            f"--output={str(folder.path / asked.output).replace('%', '%%')}",
        ]
        if needs.gpus:
            arguments.append(f"--gres={wanted.gres}:{needs.gpus}")
        if needs.seconds is not None:
            arguments.append(f"--time={math.ceil(needs.seconds / 60) + _LONGER_MINUTES}")
        for name, value in (
            ("partition", wanted.partition),
            ("account", wanted.account),
            ("qos", wanted.qos),
            ("cpus-per-task", wanted.cpus),
            ("mem", wanted.memory),
        ):
            if value is not None:
                arguments.append(f"--{name}={value}")
        return [*wanted.extra, *arguments]  # of two that contradict each other sbatch takes the latter


def _script(folder: SupervisedFolder, asked: Asked) -> str:
    """What the job runs. One that is not the latest of its run, or comes after the run's end, starts nothing."""
    command = [sys.executable, "-I", "-S", str(folder.supervisor), str(folder.path)]
    record, end = shlex.quote(str(folder.path / JOB_FILE)), shlex.quote(str(folder.path / OUTCOME_FILE))
    return f"#!/bin/sh\ngrep -qs {asked.token} {record} && [ ! -e {end} ] || exit 4\nexec {shlex.join(command)}\n"


def _unknown_now(folder: SupervisedFolder, observed: Observed, asked: Asked, error: Broken) -> Observed:
    """Slurm does not answer: nothing is decided until it does."""
    if isinstance(observed, Lost):
        return Running(folder.cancel_asked(), observed.child, asked.name)
    return Pending(asked.name, error.message, folder.cancel_asked())


def _ended_early(job: Job, output: Path) -> Broken:
    """A job that ended before its supervisor began the run."""
    try:
        lines = output.read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    said = f" It said: {lines[-1][:300]}" if lines else ""
    hint = "Nothing was started. Do the nodes see this folder, and the interpreter that runs this daemon?"
    return Broken("not_started", f"Slurm job {job.number} ended before the run began: {job.why}.{said}", hint)


def _asked(folder: Path) -> Asked | None:
    """What was asked of Slurm; None where nothing was. Raises Broken where that is damaged."""
    try:
        return Asked.model_validate_json((folder / JOB_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise Broken("document_damaged", f"{folder / JOB_FILE} cannot be read: {error}.", "Look at it.") from None


def _write(folder: SupervisedFolder, asked: Asked) -> None:
    folder.write(JOB_FILE, asked.model_dump_json(indent=1).encode() + b"\n")
