"""The engine of a single host: each run is a supervisor that this process starts, independent from then on."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from runner.clock import Clock, SystemClock
from runner.engines.engine import (
    NOTHING,
    EndedOrphans,
    Needs,
    NotBegun,
    Observed,
    Running,
    SupervisedFolder,
    Unreadable,
)
from runner.engines.pause import pause
from runner.errors import Broken

log = logging.getLogger(__name__)

START_SECONDS = 30.0
LOOK_SECONDS = 0.005

# What the supervisor's exit status says where it could say nothing else: on a full disk its own words are lost too.
_REFUSALS = {
    2: "launch.json or this host is not fit.",
    3: "another supervisor holds the lock.",
    5: "the run's folder cannot be written; is its disk full?",
}


class LocalEngine:
    """Starts supervisors on this host. It keeps nothing: the next daemon knows as much from the folders."""

    places_here = True

    def __init__(self, *, clock: Clock | None = None, start_seconds: float = START_SECONDS) -> None:
        """`clock` dates cancellations; `start_seconds` is how long `submit` waits for a supervisor to begin."""
        self._clock = clock or SystemClock()
        self._start_seconds = start_seconds

    async def submit(
        self,
        folder: SupervisedFolder,
        env: Mapping[str, str],
        *,
        needs: Needs = NOTHING,  # noqa: ARG002 - who shares out this host's GPUs has done so already
        keep_open: Sequence[int] = (),
    ) -> Observed:
        """Start the supervisor and return when the run has begun, or when the supervisor ended.

        Asking twice is safe, also from two daemons: of two supervisors one gets the lock, and what it records stops
        every later one. Raises Broken when nothing was started.
        """
        if folder.has_begun():
            return folder.observe()
        # Not in a thread: the descriptors to keep open must not be closed by a cancelled caller meanwhile.
        process = _start(folder, env, keep_open)
        last = time.monotonic() + self._start_seconds
        while not folder.has_records():  # the lock alone does not count: its holder may yet find launch.json unfit
            if process.returncode is not None:
                if folder.has_begun():  # another supervisor has it
                    break
                said = _last_words(folder) or _REFUSALS.get(process.returncode, "it said nothing.")
                hint = "Nothing was started; it is safe to submit the run again."
                raise Broken("not_started", f"The supervisor ended with {process.returncode}: {said}", hint)
            if time.monotonic() > last:
                hint = "It may still begin: look at the run again before submitting it again."
                raise Broken("not_begun", f"The supervisor did not begin within {self._start_seconds:g} s.", hint)
            await asyncio.sleep(LOOK_SECONDS)
        return folder.observe()

    def took(self, folder: SupervisedFolder) -> bool:
        """Whether this run has begun."""
        return folder.has_begun()

    async def state(self, folder: SupervisedFolder) -> Observed:
        """What became of the run."""
        return folder.observe()

    async def rest(self, folder: SupervisedFolder, seconds: float) -> None:
        """Wait so long, or until the supervisor of this run has ended."""
        await pause(folder, seconds)

    async def cancel(self, folder: SupervisedFolder, by: str, reason: str) -> Observed:
        """Ask for the end of a run that has not ended; what the folder says then.

        Asking again asks the supervisor again, which also wakes one that somebody stopped. Where cancel.json cannot be
        written the supervisor is asked by signal alone, and the log says so. Raises Broken when neither can be done.
        """
        if isinstance(folder.observe(), NotBegun | Running | Unreadable):
            doubt = folder.ask_cancel(by, reason, self._clock.now().isoformat())
            if doubt:
                log.warning("Run %s: %s", folder.path.name, doubt)
        return folder.observe()

    async def end_orphans(self, folder: SupervisedFolder, grace_seconds: float = 5.0) -> EndedOrphans:
        """End what a lost run left on this host, as far as that can be done. Raises Conflict when it is not lost."""
        return await asyncio.to_thread(folder.end_orphans, grace_seconds)


def _start(folder: SupervisedFolder, env: Mapping[str, str], keep_open: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start the supervisor in a session of its own: no signal to the daemon, its group or its terminal reaches it.

    It stays a child of this process, to know why it ended, and a small thread waits for it, so that it does not stay a
    zombie. asyncio's own subprocesses do not fit: closing the event loop kills them. When this process dies the
    supervisor becomes a child of init.
    """
    try:
        with (folder.path / "supervisor.log").open("ab") as words:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(folder.supervisor), str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=dict(env),
                cwd=folder.path,
                start_new_session=True,
                close_fds=True,
                pass_fds=tuple(keep_open),
            )
    except OSError as error:
        hint = "Look at free memory, processes and disk space of the host."
        raise Broken("not_started", f"No supervisor can be started for {folder.path.name}: {error}.", hint) from error
    threading.Thread(target=process.wait, name=f"reap {process.pid}", daemon=True).start()
    return process


def _last_words(folder: SupervisedFolder) -> str:
    """The last line that the supervisor said; empty when it said nothing."""
    lines = (folder.path / "supervisor.log").read_text("utf-8", "replace").splitlines()
    return lines[-1] if lines else ""
