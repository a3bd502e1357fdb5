"""How a supervisor ends its run: cancel, limits, leftovers, and an outcome that is never lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.engine import Exited, Lost, NotBegun, Running
from runner.errors import Broken
from runner.runs.folder import Launch, RunFolder, new_mark
from runner.runs.processes import MARK
from tests.runner.runs.supervising import (
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
from tests.waiting import wait_until

UNTIL_TOLD = python("os.write(1, b'ready\\n')\nwhile not os.path.exists('go'): select.select([], [], [], 0.01)")
AT = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as host:
        yield host


TREE = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for leaves_session in (False, True):
    if os.fork() == 0:
        if leaves_session:
            os.setsid()
        if os.fork() and leaves_session:
            os._exit(0)         # its child loses its parent and its session: a daemon
        os.fork()
        break
os.write(1, b"%d\\n" % os.getpid())
while True:
    signal.pause()
"""


def test_cancel_ends_a_tree_that_forks_leaves_its_session_and_ignores_term(host: Host) -> None:
    folder = host.run(python(TREE), grace_seconds=0.5)
    pids = [int(line) for line in host.ready(folder, 7)]
    assert len(set(pids)) == 7
    asked = time.monotonic()
    folder.ask_cancel("ana", "wrong model", AT)
    assert folder.observe() == Running(cancelling=True, child=folder.observe().child)  # type: ignore[union-attr]
    told = exit_of(folder).exit
    assert time.monotonic() - asked < 0.5 + 2
    assert all(gone(pid) for pid in pids)
    assert (told.exit_code, told.cancelled, told.ended_by) == (-9, True, "cancel.json")


def test_cancel_lets_a_command_end_by_itself_first(host: Host) -> None:
    code = """
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b"saved\\n"), os._exit(5)))
os.write(1, b"ready\\n")
signal.pause()
"""
    folder = host.run(python(code), grace_seconds=30)
    host.ready(folder)
    folder.ask_cancel("ana", "", AT)
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled) == (5, True)
    assert folder.read("log") == b"ready\nsaved\n"


def test_a_stopped_command_can_be_cancelled(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER, grace_seconds=30)
    host.ready(folder)
    os.kill(written(folder, "child.json")["pid"], signal.SIGSTOP)
    folder.ask_cancel("ana", "", AT)
    assert exit_of(folder).exit.exit_code == -15


def test_a_request_alone_ends_a_run(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    folder.write("cancel.json", b"{}")
    assert exit_of(folder).exit.ended_by == "cancel.json"


def test_a_stopped_supervisor_can_be_cancelled(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    host.started[0].send_signal(signal.SIGSTOP)
    wait_until(lambda: stopped(host.started[0].pid))
    assert isinstance(folder.observe(), Running)
    assert folder.ask_cancel("ana", "", AT) == ""
    told = exit_of(folder).exit
    assert (told.exit_code, told.ended_by) == (-15, "cancel.json")


def test_a_supervisor_that_is_stopped_after_the_request_is_woken_by_the_next(host: Host) -> None:
    folder = host.run(python("signal.signal(15, signal.SIG_IGN); os.write(1, b'ready\\n'); signal.pause()"))
    host.ready(folder)
    host.started[0].send_signal(signal.SIGSTOP)
    wait_until(lambda: stopped(host.started[0].pid))
    folder.write("cancel.json", b'{"by": "ana", "at": "%s"}' % AT.encode())
    assert folder.ask_cancel("ben", "", AT) == ""
    assert exit_of(folder).exit.cancelled
    assert written(folder, "cancel.json")["by"] == "ana"


STOPPED_EARLY = 'what = f"The log {launch.log} cannot be opened"', "os.kill(os.getpid(), signal.SIGSTOP); what = ''"


def test_a_child_that_is_stopped_before_it_is_the_command_can_be_cancelled(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    host.start(folder, script=host.changed_script(*STOPPED_EARLY))
    wait_until((folder.path / "child.json").exists)
    wait_until(lambda: stopped(written(folder, "child.json")["pid"]))
    folder.ask_cancel("ana", "", AT)
    told = exit_of(folder).exit
    assert (told.cancelled, told.exit_code) == (True, -15)
    assert not (host.root / "ran").exists()


def test_a_child_that_is_stopped_before_it_is_the_command_does_not_make_a_lost_run_live(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    host.start(folder, script=host.changed_script(*STOPPED_EARLY))
    wait_until((folder.path / "child.json").exists)
    child = written(folder, "child.json")["pid"]
    wait_until(lambda: stopped(child))
    host.started[0].kill()
    host.started[0].wait()
    assert isinstance(folder.observe(), Lost)
    assert folder.end_orphans(5).ended == 1
    assert gone(child)
    assert not (host.root / "ran").exists()


def test_a_full_disk_stops_neither_a_cancel_nor_its_outcome(tmp_path: Path) -> None:
    with a_small_disk(tmp_path / "disk") as disk, a_host(disk) as host:
        folder = host.run(python("os.write(1, b'ready\\n')\nsignal.pause()"))
        host.ready(folder)
        fill(disk)
        said = folder.ask_cancel("ana", "", AT)
        assert "cancel.json of run run-0 cannot be written" in said
        assert "by a signal instead" in said
        told = exit_of(folder).exit
        assert (told.exit_code, told.cancelled, told.ended_by) == (-15, True, "SIGTERM")
        assert host.started[0].wait(10) == 0
        waiting = RunFolder(folder.path.with_name("run-1"))
        waiting.path.mkdir()
        with pytest.raises(Broken, match=r"cancel\.json of run run-1 cannot be written"):
            waiting.ask_cancel("ana", "", AT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_cancels(host: Host, number: signal.Signals) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    host.started[0].send_signal(number)
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled, told.ended_by) == (-15, True, number.name)


def test_a_terminal_that_closes_does_not_end_a_run(host: Host) -> None:
    folder = host.run(UNTIL_TOLD)
    host.ready(folder)
    host.started[0].send_signal(signal.SIGHUP)
    wait_until(lambda: _pending(host.started[0].pid) == 0, 10, "the signal was taken")
    (host.root / "go").touch()
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled) == (0, False)


def test_the_time_limit_ends_a_run(host: Host) -> None:
    told = exit_of(host.run(WAIT_FOR_EVER, time_limit_seconds=0.3)).exit
    assert (told.exit_code, told.cancelled, told.timed_out) == (-15, False, True)
    assert told.seconds > 0.3


def test_what_outlives_the_command_is_ended_and_counted(host: Host) -> None:
    code = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.write(1, b"%d\\n" % os.getpid())
    while True:
        signal.pause()
os.wait4(-1, os.WNOHANG)
while os.fstat(1).st_size == 0:
    select.select([], [], [], 0.01)
os._exit(4)
"""
    folder = host.run(python(code))
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled, told.stragglers) == (4, False, 1)
    assert gone(int(folder.read("log")))


def test_a_helper_that_ends_right_after_the_command_is_left_alone(host: Host) -> None:
    code = """
down, up = os.pipe()
if os.fork() == 0:
    os.close(up)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(os.write(1, b"killed\\n")))
    os.write(1, b"ready\\n")
    os.read(down, 1)
    select.select([], [], [], 0.02)
    os.write(1, b"cleaned up\\n")
    os._exit(0)
while os.fstat(1).st_size == 0:
    select.select([], [], [], 0.01)
"""
    folder = host.run(python(code), grace_seconds=10)
    told = exit_of(folder).exit
    assert (told.exit_code, told.stragglers) == (0, 0)
    assert folder.read("log") == b"ready\ncleaned up\n"


def test_what_another_daemon_started_for_the_run_is_ended_too(host: Host) -> None:
    folder = host.run(UNTIL_TOLD)
    host.ready(folder)
    launch = folder.read_as("launch.json", Launch)
    assert launch is not None
    stranger = subprocess.Popen(["/bin/sleep", "60"], env={MARK: launch.mark})
    neighbour = subprocess.Popen(["/bin/sleep", "60"], env={MARK: new_mark("another")})
    try:
        (host.root / "go").touch()
        assert stranger.wait(10) == -15
        assert exit_of(folder).exit.stragglers == 1
        assert neighbour.poll() is None
    finally:
        for process in (stranger, neighbour):
            process.kill()
            process.wait()


def test_a_killed_supervisor_leaves_a_lost_run(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    host.started[0].kill()
    host.started[0].wait()
    state = folder.observe()
    assert isinstance(state, Lost)
    assert state.begun is not None
    assert state.begun.pid == host.started[0].pid
    assert state.child is not None
    assert not gone(state.child.pid)
    assert host.start(folder).wait(10) == 4


def test_an_outcome_that_cannot_be_written_is_not_lost(host: Host) -> None:
    folder = host.run(UNTIL_TOLD)
    host.ready(folder)
    in_the_way = folder.path / "exit.json"
    in_the_way.mkdir()
    (host.root / "go").touch()
    wait_until(lambda: b"exit.json cannot be written" in folder.read("supervisor.log"), 10)
    assert gone(written(folder, "child.json")["pid"])
    assert isinstance(folder.observe(), Running), "the lock stays held while the outcome is not on disk"
    in_the_way.rmdir()
    assert exit_of(folder).exit.exit_code == 0


def test_a_removed_folder_does_not_keep_a_supervisor(host: Host) -> None:
    folder = host.run(UNTIL_TOLD)
    host.ready(folder)
    folder.path.rename(host.root / "moved away")
    (host.root / "go").touch()
    assert host.started[0].wait(10) == 6


def test_a_log_over_its_limit_keeps_head_tail_and_every_offset(host: Host) -> None:
    lines, limit = 60_000, 256 * 1024
    code = f"for i in range({lines}): sys.stdout.write('line %09d of a long log, as it is\\n' % i)"
    folder = host.run(python(code), log_limit_bytes=limit)
    assert exit_of(folder).exit.exit_code == 0
    data, line = folder.read("log"), len("line 000000000 of a long log, as it is\n")
    assert len(data) == lines * line
    assert folder.log_path.stat().st_blocks * 512 <= limit
    kept = [data[i * line : (i + 1) * line] == b"line %09d of a long log, as it is\n" % i for i in range(lines)]
    assert all(kept[: limit // 4 // line])
    assert all(kept[-(limit // 2 // line) :])
    assert not any(b"\0" in data[i * line : (i + 1) * line] for i in range(lines) if kept[i])


def test_the_log_is_whole(host: Host) -> None:
    code = "for i in range(20000): os.write(1 + i % 2, b'%d\\n' % i)"
    folder = host.run(python(code))
    exit_of(folder)
    assert folder.read("log").split() == [b"%d" % i for i in range(20000)]


def test_an_observer_never_sees_a_healthy_run_lost(host: Host) -> None:
    for _ in range(4):
        folder = host.folder(python("select.select([], [], [], 0.02)"))
        host.start(folder)
        seen: list[type] = []
        while not seen or seen[-1] is not Exited:
            state = type(folder.observe())
            if not seen or seen[-1] is not state:
                seen.append(state)
        assert seen in ([NotBegun, Running, Exited], [Running, Exited], [NotBegun, Exited])


def _pending(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    pending = [line.split()[1] for line in status.splitlines() if line.startswith(("ShdPnd", "SigPnd"))]
    return sum(int(mask, 16) for mask in pending)
