"""The daemon: one per state folder, listening on a unix socket or a port. Runs outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette

from runner.clock import Clock, SystemClock
from runner.engines.engine import Engine
from runner.engines.local import LocalEngine
from runner.engines.slurm import SlurmEngine
from runner.errors import Broken, Conflict
from runner.host.gpus.pool import HostGpus
from runner.runs.course import Course
from runner.runs.dispatcher import Dispatcher
from runner.runs.finished import FinishedRuns
from runner.runs.journal import EventStream
from runner.runs.judge import RunJudge
from runner.runs.launching import RunLauncher
from runner.runs.redaction import Redactor, secrets_of
from runner.runs.table import RunTable
from runner.service.app import Api, make_app
from runner.service.state_folder import keep_others_out
from runner.service.tls import server_context
from runner.service.workflow import Workflow
from runner.settings import RunnerSettings

log = logging.getLogger(__name__)

_STOP_SECONDS = 3
_TICK_SECONDS = 1.0


def run_daemon(settings: RunnerSettings, host_root: Path = Path("/")) -> None:
    """Serve until TERM or INT. Raises RunnerError where the daemon cannot start.

    `host_root` is the file system whose kernel files tell of the GPUs.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    tls = server_context(settings.tls) if settings.tls else None
    with _only_one(settings.state_dir), _listening(settings) as listener:
        app, table = compose(settings, host_root)
        _recover(table)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=_STOP_SECONDS,
            ssl_context_factory=(lambda *_: tls) if tls else None,
        )
        log.info("listening on %s, state in %s", settings.listen_url, settings.state_dir)
        _Server(config, table.stream).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Ends the streams of events when it is told to stop: their readers would wait for ever.

    It sleeps between its ticks until it is told to stop: ten ticks a second, which is what the library does, cost more
    than watching a run.
    """

    def __init__(self, config: uvicorn.Config, stream: EventStream) -> None:
        super().__init__(config)
        self._stream = stream
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_to_stop = asyncio.Event()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Called by the signal."""
        self._stream.close()
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._told_to_stop.set)

    async def main_loop(self) -> None:
        """Tick once a second, which the date in answers needs, until told to stop."""
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._told_to_stop.wait(), _TICK_SECONDS)


def compose(settings: RunnerSettings, host_root: Path = Path("/")) -> tuple[Starlette, RunTable]:
    """All parts of the daemon, wired. The table has to be recovered before the first request."""
    clock = SystemClock()
    finished = FinishedRuns()
    workflow = Workflow(settings, clock, finished.newest, host_root)
    tokens = {settings.token} if settings.token else set()
    redactor = Redactor(secrets_of(os.environ) | tokens)
    engine = _engine(settings, clock)
    table = RunTable(settings.state_dir / "runs", workflow, engine, clock, redactor, settings, finished)
    pool = HostGpus(settings.gpus, host_root)
    launcher = RunLauncher(settings, workflow, None if engine.places_here else workflow.mask_variable)
    judge = RunJudge(settings, engine, workflow.catalogue, workflow.hardware, workflow.host_view)
    limits = settings.limits
    course = Course(table, engine, pool, launcher, judge, clock, limits.run_seconds, settings.gpus.settle_seconds)
    dispatcher = Dispatcher(table, engine, pool, course, limits.cpu_runs, settings.slurm.at_once)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(dispatcher.run()), asyncio.create_task(workflow.warm())]
        for task in tasks:
            task.add_done_callback(_tell_of_a_fall)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    api = Api(settings, workflow, table, pool if engine.places_here else None)
    return make_app(api, settings, redactor, lifespan), table


def _engine(settings: RunnerSettings, clock: Clock) -> Engine:
    if settings.engine == "slurm":
        return SlurmEngine(settings.slurm, clock=clock)
    return LocalEngine(clock=clock)


def _recover(table: RunTable) -> None:
    """Know all runs. Before the server starts, which could tell of a failure only by a traceback."""
    try:
        table.recover()
    except OSError as error:
        why = "it is not a folder" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        message = f"The runs in state_dir cannot be read: {error.filename or 'a file'}: {why}."
        raise Broken("bad_state_dir", message, "Move it away, or name another state_dir.") from None


def _tell_of_a_fall(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical(
            "a part of the daemon fell, so it stops; runs go on, and the next daemon adopts them", exc_info=error
        )
        os.kill(os.getpid(), signal.SIGTERM)


@contextlib.contextmanager
def _only_one(state_dir: Path) -> Iterator[None]:
    """Hold the state folder's lock: two daemons would both start its queued runs."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        keep_others_out(state_dir)
        lock = os.open(state_dir / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Broken("bad_state_dir", f"state_dir {state_dir} cannot be used: {error.strerror}.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        hint = "Stop it, or give this one a state_dir of its own."
        raise Conflict("already_running", f"Another daemon works in {state_dir}.", hint) from None
    try:
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def _listening(settings: RunnerSettings) -> Iterator[socket.socket]:
    path = settings.socket_path
    try:
        listener = _unix_socket(path) if path else _tcp_socket(settings.listen_url)
    except OSError as error:
        hint = "Correct `listen`; a unix socket's path has room for about 100 characters."
        if error.errno == errno.EADDRINUSE:
            hint = "Another program listens there: stop it, or correct `listen`."
        message = f"Nothing can listen on {settings.listen_url}: {error.strerror or error}."
        raise Broken("cannot_listen", message, hint) from None
    try:
        yield listener
    finally:
        listener.close()
        if path:
            path.unlink(missing_ok=True)


def _unix_socket(path: Path) -> socket.socket:
    """A socket that only this user may open: whoever opens it is believed about who approved a run."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        old = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(old)
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def _clear(path: Path) -> None:
    """Remove the socket of a daemon that was killed, and nothing else. Raises Conflict for whatever is in the way."""
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_socket():
        hint = "Move it away, or name another place in `listen`."
        raise Conflict("cannot_listen", f"{path} is in the way of the socket: it is something else.", hint)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        # The lock is on the state folder; the socket may be another daemon's.
        if probe.connect_ex(str(path)) not in {errno.ECONNREFUSED, errno.ENOENT}:
            hint = "Stop it, or name another place in `listen`."
            raise Conflict("cannot_listen", f"Another program listens on {path}.", hint)
    path.unlink(missing_ok=True)


def _tcp_socket(url: str) -> socket.socket:
    parts = urlsplit(url)
    family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
    return socket.create_server((parts.hostname or "127.0.0.1", parts.port or 8470), family=family)
