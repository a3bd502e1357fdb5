"""The local engine with real supervisors: runs outlive their daemon, and what a lost run leaves can be ended."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.engines.engine import CancelledBeforeStart, EndedOrphans, Engine, Exited, Lost, NotBegun, Observed, Running
from runner.engines.local import LocalEngine
from runner.errors import Broken, Conflict
from runner.runs.folder import RunFolder
from runner.runs.processes import Process, read_process
from tests.runner.runs.supervising import (
    PATH,
    WAIT_FOR_EVER,
    Host,
    a_host,
    a_small_disk,
    exit_of,
    fill,
    gone,
    python,
    stopped,
    written,
)
from tests.waiting import until, wait_until

ROOT = Path(__file__).parents[3]
COUNTING = python(
    "for i in range(40):\n    os.write(1, b'line %d\\n' % i); select.select([], [], [], 0.01)\nsys.exit(7)"
)

DAEMON = """
import asyncio, os, signal, sys
from pathlib import Path
from runner.engines.local import LocalEngine
from runner.runs.folder import RunFolder

async def serve():
    state = await LocalEngine().submit(RunFolder(Path(sys.argv[1])), {"PATH": os.environ["PATH"]})
    os.write(1, type(state).__name__.encode() + b"\\n")
    if sys.argv[2] == "stay":
        await asyncio.Event().wait()

asyncio.run(serve())
"""


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as host:
        yield host


def submit(folder: RunFolder, *, keep_open: tuple[int, ...] = ()) -> Observed:
    return asyncio.run(LocalEngine().submit(folder, PATH, keep_open=keep_open))


def daemon(folder: RunFolder, then: str) -> subprocess.Popen[bytes]:
    """A process of its own group and session that submits the run."""
    words = [sys.executable, "-c", DAEMON, str(folder.path), then]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"Running\n"
    process.stdout.close()
    return process


def test_a_run_outlives_its_daemon(host: Host) -> None:
    folder = host.folder(COUNTING)
    process = daemon(folder, "stay")
    host.ready(folder)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(10) == -9
    assert isinstance(folder.observe(), Running)
    supervisor = written(folder, "begun.json")["pid"]
    assert os.getsid(supervisor) == supervisor
    assert exit_of(folder).exit.exit_code == 7
    assert folder.read("log").splitlines() == [b"line %d" % i for i in range(40)]


def test_a_run_ends_while_nobody_watches(host: Host) -> None:
    folder = host.folder(COUNTING)
    assert daemon(folder, "leave").wait(10) == 0
    supervisor = written(folder, "begun.json")["pid"]
    wait_until(lambda: gone(supervisor), 10)
    state = RunFolder(folder.path).observe()
    assert isinstance(state, Exited)
    assert state.exit.exit_code == 7
    assert len(folder.read("log").splitlines()) == 40


def test_submit_returns_when_the_run_has_begun_and_leaves_no_zombie(host: Host) -> None:
    folder = host.folder(WAIT_FOR_EVER)

    async def go() -> None:
        engine: Engine = LocalEngine()
        assert await engine.state(folder) == NotBegun()
        assert isinstance(await engine.submit(folder, PATH), Running)
        assert folder.has_begun()
        await until(folder.log_path.exists)
        assert isinstance(await engine.cancel(folder, "ana", "enough"), Running)
        state = await until(lambda: _ended(folder))
        assert state == await engine.state(folder)
        assert state.exit.cancelled

    asyncio.run(go())
    supervisor = written(folder, "begun.json")["pid"]
    wait_until(lambda: read_process(supervisor) is None, 10, "the supervisor is reaped")


def test_the_end_of_the_event_loop_does_not_end_the_run(host: Host) -> None:
    folder = host.folder(COUNTING)
    submit(folder)
    assert exit_of(folder).exit.exit_code == 7


def test_thirty_runs_at_once(host: Host) -> None:
    folders = [host.folder(python(f"print('run {i}'); sys.exit({i})")) for i in range(30)]

    async def go() -> list[Observed]:
        engine = LocalEngine()
        return await asyncio.gather(*(engine.submit(folder, PATH) for folder in folders))

    assert all(isinstance(state, Running | Exited) for state in asyncio.run(go()))
    assert [exit_of(folder, 30).exit.exit_code for folder in folders] == list(range(30))
    assert [folder.read("log") for folder in folders] == [b"run %d\n" % i for i in range(30)]


def test_submitting_twice_begins_once(host: Host) -> None:
    folder = host.folder(python("open('ran', 'a').write('x')"))

    async def go() -> list[Observed]:
        return await asyncio.gather(*(LocalEngine().submit(folder, PATH) for _ in range(5)))

    assert all(isinstance(state, Running | Exited) for state in asyncio.run(go()))
    exit_of(folder)
    assert submit(folder) == folder.observe()
    assert (host.root / "ran").read_text() == "x"


def test_what_cannot_be_supervised_is_told(host: Host) -> None:
    folder = host.folder(WAIT_FOR_EVER)
    folder.write("launch.json", b"{}")
    with pytest.raises(Broken, match=r"ended with 2: .*launch\.json cannot be used") as caught:
        submit(folder)
    assert caught.value.hint
    missing = RunFolder(host.root / "nowhere")
    with pytest.raises(Broken, match="nowhere"):
        submit(missing)


def test_a_full_disk_is_told_although_the_supervisor_cannot_say_it(host: Host) -> None:
    folder = host.folder(WAIT_FOR_EVER)
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(Broken, match=r"ended with 5: the run's folder cannot be written"):
            submit(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert folder.observe() == NotBegun()


def test_a_supervisor_that_does_not_begin_is_told(host: Host) -> None:
    folder = host.folder(python("sys.exit(0)"))
    with (folder.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(Broken, match=r"did not begin within 0\.2 s"):
            asyncio.run(LocalEngine(start_seconds=0.2).submit(folder, PATH))
    assert exit_of(folder).exit.exit_code == 0


def test_cancel_is_dated_and_leaves_an_ended_run_alone(host: Host) -> None:
    class Held:
        def now(self) -> datetime:
            return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    ended, waiting = host.folder(python("sys.exit(0)")), host.folder(WAIT_FOR_EVER)
    submit(ended)
    exit_of(ended)
    engine = LocalEngine(clock=Held())
    assert isinstance(asyncio.run(engine.cancel(ended, "ana", "late")), Exited)
    assert not ended.cancel_asked()
    state = asyncio.run(engine.cancel(waiting, "ana", "early"))
    assert isinstance(state, CancelledBeforeStart)
    assert state.cancel is not None
    assert (state.cancel.by, state.cancel.reason, state.cancel.at) == ("ana", "early", Held().now())
    assert isinstance(submit(waiting), CancelledBeforeStart | Running)
    wait_until(lambda: isinstance(waiting.observe(), CancelledBeforeStart), 10)
    assert not waiting.log_path.exists()


ORPHANS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
os.write(1, b"%d\\n" % os.getpid())
while True:
    signal.pause()
"""


def test_a_killed_supervisor_makes_a_lost_run_whose_orphans_can_be_ended(host: Host) -> None:
    folder = host.folder(python(ORPHANS))
    with (host.root / "gpu-0").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        submit(folder, keep_open=(lease.fileno(),))
    pids = [int(line) for line in host.ready(folder, 2)]
    engine = LocalEngine()
    with pytest.raises(Conflict, match="Running"):
        asyncio.run(engine.end_orphans(folder))
    os.kill(written(folder, "begun.json")["pid"], signal.SIGKILL)
    wait_until(lambda: isinstance(folder.observe(), Lost), 10)
    assert not any(gone(pid) for pid in pids)
    assert _leased(host.root / "gpu-0"), "the lease lasts while anything of the run computes"
    began = time.monotonic()
    assert asyncio.run(engine.end_orphans(folder, grace_seconds=0.5)) == EndedOrphans(2)
    assert time.monotonic() - began < 10
    assert all(gone(pid) for pid in pids)
    assert not _leased(host.root / "gpu-0")
    assert asyncio.run(engine.end_orphans(folder)) == EndedOrphans(0)
    assert isinstance(submit(folder), Lost), "a lost run is never begun again"


@pytest.mark.parametrize(
    ("damaged", "known"), [(["launch.json"], True), (["child.json"], True), (["launch.json", "child.json"], False)]
)
def test_orphans_are_ended_although_records_are_damaged(host: Host, damaged: list[str], known: bool) -> None:
    folder = host.run(python(ORPHANS))
    pids = [int(line) for line in host.ready(folder, 2)]
    host.started[0].kill()
    host.started[0].wait()
    for name in damaged:
        (folder.path / name).write_bytes(b"{")
    done = asyncio.run(LocalEngine().end_orphans(folder, grace_seconds=0.2))
    assert (done.ended, done.left, not done.doubt) == (2, (), known)
    assert all(gone(pid) for pid in pids)


def test_the_mark_is_read_from_a_living_child_when_no_file_tells_it(host: Host) -> None:
    folder = host.run(python(ORPHANS))
    pids = [int(line) for line in host.ready(folder, 2)]
    host.started[0].kill()
    host.started[0].wait()
    (folder.path / "launch.json").unlink()
    record = written(folder, "child.json")
    folder.write("child.json", json.dumps({name: record[name] for name in ("boot_id", "pid", "start_ticks")}).encode())
    folder.log_path.unlink()
    assert asyncio.run(LocalEngine().end_orphans(folder, grace_seconds=0.2)) == EndedOrphans(2)
    assert all(gone(pid) for pid in pids)


def test_what_outlives_kill_is_told_and_blocks_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    child = written(folder, "child.json")["pid"]
    host.started[0].kill()
    host.started[0].wait()

    def refused(_process: Process, _number: int) -> bool:
        raise PermissionError

    monkeypatch.setattr("runner.runs.processes.send_signal", refused)
    done = asyncio.run(LocalEngine().end_orphans(folder, grace_seconds=0))
    assert (done.ended, done.left) == (0, (child,))
    assert f"Processes {child} cannot be ended and may hold its GPU" in done.doubt


def test_a_run_without_begun_is_not_submitted_again(host: Host) -> None:
    folder = host.folder(python("open('ran', 'a').write('x'); open('ready', 'w'); signal.pause()"))
    submit(folder)
    wait_until((host.root / "ready").exists)
    (folder.path / "begun.json").unlink()
    assert isinstance(submit(folder), Running)
    (folder.path / "child.json").unlink()
    assert isinstance(submit(folder), Running), "the lock alone is enough"
    asyncio.run(LocalEngine().cancel(folder, "ana", ""))
    exit_of(folder)
    assert isinstance(submit(folder), Exited)
    assert (host.root / "ran").read_text() == "x"


def test_cancel_reaches_a_supervisor_that_somebody_stopped(host: Host) -> None:
    folder = host.folder(WAIT_FOR_EVER)
    submit(folder)
    host.ready(folder)
    supervisor = written(folder, "begun.json")["pid"]
    os.kill(supervisor, signal.SIGSTOP)
    wait_until(lambda: stopped(supervisor))
    state = asyncio.run(LocalEngine().cancel(folder, "ana", "enough"))
    assert isinstance(state, Running | Exited)
    told = exit_of(folder).exit
    assert (told.cancelled, told.ended_by) == (True, "cancel.json")


def test_cancel_on_a_full_disk_ends_the_run_and_says_what_is_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with a_small_disk(tmp_path / "disk") as disk, a_host(disk) as host:
        folder = host.folder(WAIT_FOR_EVER)
        submit(folder)
        host.ready(folder)
        fill(disk)
        assert isinstance(asyncio.run(LocalEngine().cancel(folder, "ana", "enough")), Running | Exited)
        assert exit_of(folder).exit.ended_by == "SIGTERM"
    assert "cancel.json of run run-0 cannot be written" in caplog.text


def _ended(folder: RunFolder) -> Exited | None:
    state = folder.observe()
    return state if isinstance(state, Exited) else None


def _leased(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
