"""Slurm by its command line: sbatch, squeue and scancel, each with a time limit. None of them blocks the event loop."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.engines.slurm.job import FORMAT, Job, read_jobs
from runner.errors import Broken
from runner.host.child import ChildResult, run_child

_SECONDS = 60.0
_UNREACHED = re.compile(
    r"unable to contact|connection refused|connect failure|timed out|communication|socket|authentication|munge"
    r"|temporarily|try again|slurm_load_|not responding",
    re.IGNORECASE,
)


class Cluster:
    """The controller, as far as this daemon has to do with it. However many runs there are, it is asked once a look."""

    def __init__(self, look_seconds: float) -> None:
        self._look_seconds = look_seconds
        self._seen: tuple[float, dict[str, Job]] | None = None
        self._lock = asyncio.Lock()

    async def jobs(self, *, fresh: bool = False) -> dict[str, Job]:
        """This user's jobs by token, those that ended lately included. Raises Broken [slurm_down].

        What was seen less than `look_seconds` ago is still told, unless `fresh` asks for what is so now.
        """
        asked = time.monotonic()
        async with self._lock:
            if self._seen is not None:
                age = asked - self._seen[0]
                if age < (0.0 if fresh else self._look_seconds):
                    return self._seen[1]
            began = time.monotonic()
            answer = await self._call(
                ["squeue", "--noheader", "--states=all", f"--user={os.getuid()}", f"--format={FORMAT}"]
            )
            if answer.status != 0:
                raise _down(answer)
            self._seen = began, read_jobs(answer.output.splitlines())
            return self._seen[1]

    async def submit(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> int:
        """Hand in a job; its number. Raises Broken: [not_begun] where nobody knows whether it was taken, and
        [not_started] where Slurm refused it."""
        try:
            answer = await self._call(["sbatch", "--parsable", *arguments], environment, folder)
        except Broken as error:
            raise Broken("not_begun", error.message, error.hint) from None
        number = answer.output.strip().partition(";")[0]
        if answer.status == 0 and number.isdecimal():
            self._seen = None
            return int(number)
        said = _said(answer)
        if _UNREACHED.search(said):
            raise Broken("not_begun", f"Slurm cannot be asked to take the run: {said}", "Nothing is lost.")
        hint = "Look at `slurm` in runner.yaml and at `ptq-runner doctor`; nothing was started."
        raise Broken("not_started", f"Slurm does not take the run: {said}", hint)

    async def cancel(self, number: int, *arguments: str) -> None:
        """End a job, or signal it. One that has ended already is no error. Raises Broken [slurm_down]."""
        answer = await self._call(["scancel", *arguments, str(number)])
        self._seen = None
        if answer.status != 0 and _UNREACHED.search(_said(answer)):
            raise _down(answer)

    async def _call(
        self, argv: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> ChildResult:
        own = {name: os.environ[name] for name in ("PATH", "SLURM_CONF", "HOME") if name in os.environ}
        # Slurm's own variables, such as SBATCH_REQUEUE, would change what was asked for.
        told = own | dict(environment or {})
        try:
            return await run_child(argv, timeout_seconds=_SECONDS, environment=told, folder=folder or Path("/"))
        except TimeoutError:
            raise Broken("slurm_down", f"{argv[0]} did not answer within {_SECONDS:.0f} s.", _HINT) from None
        except OSError as error:
            raise Broken("slurm_down", f"{argv[0]} cannot be started: {error.strerror}.", _HINT) from None


_HINT = "Look at `ptq-runner doctor` and at the cluster's controller; runs go on without it."


def _said(answer: ChildResult) -> str:
    text = answer.last_line.removeprefix("sbatch: error: ").removeprefix("squeue: error: ").strip()
    return f"{text.rstrip('.') or f'exit status {answer.status}'}."


def _down(answer: ChildResult) -> Broken:
    return Broken("slurm_down", f"Slurm does not answer: {_said(answer)}", _HINT)
