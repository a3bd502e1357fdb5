"""Which process is meant, and ending what a lost run left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.engines.engine import ProcessName
from runner.runs.folder import new_mark
from runner.runs.processes import (
    MARK,
    Process,
    boot_id,
    end_tree,
    find_marked,
    find_named,
    mark_of,
    parse_stat,
    read_process,
    send_signal,
)
from tests.runner.runs.supervising import gone, python
from tests.waiting import wait_until

AFTER_STATE = b" 1 2 3 0 -1 4194560 92 0 0 0 1 2 3 4 20 0 "


@given(
    pid=st.integers(1, 4_194_304),
    name=st.binary(max_size=64) | st.sampled_from([b") S 1 (", b"a b", b"))))", b"(\n) R 7", b""]),
    state=st.sampled_from("RSDZTtXI"),
    threads=st.integers(0, 10_000),
    ticks=st.integers(0, 2**63),
)
def test_no_process_name_confuses_its_start_ticks(pid: int, name: bytes, state: str, threads: int, ticks: int) -> None:
    stat = b"%d (%b) %b 1 2 3 0 -1 4194560 92 0 0 0 1 2 3 4 20 0 %d 0 %d 9 9 18446744073709551615 1\n"
    text = stat % (pid, name, state.encode(), threads, ticks)
    assert parse_stat(text) == Process(pid, 1, state, threads, ticks)


@given(st.binary(max_size=80))
def test_any_other_text_is_refused(text: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        parse_stat(text.replace(b")", b""))


def test_a_real_process_may_have_any_name(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    code = "open('/proc/self/comm', 'w').write(') Z 1 (x')\nos.write(1, b'.')\nsignal.pause()"
    process = subprocess.Popen(python(code), stdout=subprocess.PIPE)
    ended_at_last.append(process)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"."
    process.stdout.close()
    seen = read_process(process.pid)
    assert seen is not None
    assert (seen.parent, seen.alive) == (os.getpid(), True)


@pytest.mark.parametrize("pidfd", [True, False])
def test_a_reused_pid_is_never_hit(
    pidfd: bool, monkeypatch: pytest.MonkeyPatch, ended_at_last: list[subprocess.Popen[bytes]]
) -> None:
    if not pidfd:  # a kernel before 5.3

        def missing(_pid: int) -> int:
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", missing)
    process = subprocess.Popen(["/bin/sleep", "60"])
    ended_at_last.append(process)
    now = read_process(process.pid)
    assert now is not None
    assert not send_signal(now._replace(start_ticks=now.start_ticks - 1), signal.SIGKILL)
    assert process.poll() is None
    assert send_signal(now, signal.SIGKILL)
    assert process.wait(10) == -9
    assert not send_signal(now, signal.SIGKILL)


def test_a_name_means_one_process_of_one_boot(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(["/bin/sleep", "60"])
    ended_at_last.append(process)
    now = read_process(process.pid)
    assert now is not None
    name = ProcessName(boot_id=boot_id(), pid=now.pid, start_ticks=now.start_ticks)
    found = find_named(name)
    assert found is not None
    assert (found.pid, found.start_ticks, found.parent) == (now.pid, now.start_ticks, now.parent)
    assert find_named(name.model_copy(update={"boot_id": "another"})) is None
    assert find_named(name.model_copy(update={"start_ticks": now.start_ticks + 1})) is None
    process.kill()
    assert process.wait(10) == -9
    assert find_named(name) is None


def test_a_zombie_is_not_alive(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(["/bin/true"])
    ended_at_last.append(process)
    wait_until(lambda: gone(process.pid))
    seen = read_process(process.pid)
    assert seen is not None
    assert (seen.state, seen.alive) == ("Z", False)


@pytest.mark.parametrize("ignores", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"], ids=["hears", "ignores"])
def test_a_marked_tree_is_ended_with_what_lost_the_mark(
    ignores: str, ended_at_last: list[subprocess.Popen[bytes]]
) -> None:
    # The second process sets itself apart: another session, and an environment without the mark.
    bare = f"{ignores}os.write(1, b'%d\\n' % os.getpid()); signal.pause()"
    code = f"""{ignores}
if os.fork() == 0:
    os.setsid()
    os.execve({python("")[0]!r}, {python(bare)!r}, {{}})
os.write(1, b"%d\\n" % os.getpid())
while True:
    signal.pause()
"""
    mark = new_mark("lost")
    process = subprocess.Popen(python(code), env={MARK: mark}, stdout=subprocess.PIPE)
    ended_at_last.append(process)
    assert process.stdout is not None
    pids = {int(process.stdout.readline()), int(process.stdout.readline())}
    process.stdout.close()
    assert [found.pid for found in find_marked(mark)] == [process.pid]
    done = end_tree([mark], None, grace_seconds=0.3)
    assert process.wait(10) == (-9 if ignores else -15)
    assert ({found.pid for found in done.ended}, done.left) == (pids, ())
    assert all(gone(pid) for pid in pids)


def test_no_mark_and_no_child_end_nothing(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(["/bin/sleep", "60"], env={MARK: ""})
    ended_at_last.append(process)
    now = read_process(process.pid)
    assert now is not None
    stranger = ProcessName(boot_id=boot_id(), pid=now.pid, start_ticks=now.start_ticks + 5)
    for marks in ([], [""], [new_mark("run")]):
        assert end_tree(marks, stranger, grace_seconds=0).ended == ()
    assert process.poll() is None


def test_what_cannot_be_ended_in_time_is_told(
    monkeypatch: pytest.MonkeyPatch, ended_at_last: list[subprocess.Popen[bytes]]
) -> None:
    mark = new_mark("run")
    process = subprocess.Popen(["/bin/sleep", "60"], env={MARK: mark})
    ended_at_last.append(process)

    def refused(_process: Process, _number: int) -> bool:
        raise PermissionError

    monkeypatch.setattr("runner.runs.processes.send_signal", refused)
    done = end_tree([mark], None, grace_seconds=0.1, patience_seconds=0.1)
    assert ([left.pid for left in done.left], done.ended) == ([process.pid], ())


def test_what_writes_the_log_is_ended_without_a_mark(
    tmp_path: Path, ended_at_last: list[subprocess.Popen[bytes]]
) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    with log.open("ab") as ours, other.open("ab") as theirs, log.open("rb") as reader:
        writes = subprocess.Popen(["/bin/sleep", "60"], env={}, stdout=ours)
        warns = subprocess.Popen(["/bin/sleep", "60"], env={}, stdout=theirs, stderr=ours)
        reads = subprocess.Popen(["/bin/sleep", "60"], env={}, stdin=reader, stdout=theirs)
    ended_at_last += [writes, warns, reads]
    done = end_tree([], None, log=log, grace_seconds=5)
    assert {process.pid for process in done.ended} == {writes.pid, warns.pid}
    assert done.left == ()
    assert reads.poll() is None


def test_the_session_of_a_living_child_is_ended_with_it(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    # The grandchild loses its parent and its environment, but not the session.
    bare = python("os.write(1, b'%d\\n' % os.getpid()); signal.pause()")
    code = f"""
if os.fork() == 0:
    if os.fork():
        os._exit(0)
    os.execve({bare[0]!r}, {bare!r}, {{}})
os.wait()
signal.pause()
"""
    process = subprocess.Popen(python(code), stdout=subprocess.PIPE, start_new_session=True)
    ended_at_last.append(process)
    assert process.stdout is not None
    grandchild = int(process.stdout.readline())
    process.stdout.close()
    now = read_process(process.pid)
    assert now is not None
    child = ProcessName(boot_id=boot_id(), pid=now.pid, start_ticks=now.start_ticks)
    done = end_tree([], child, grace_seconds=5)
    assert {found.pid for found in done.ended} == {process.pid, grandchild}
    assert gone(grandchild)


def test_the_mark_of_a_process_is_read_from_it(ended_at_last: list[subprocess.Popen[bytes]]) -> None:
    mark = new_mark("run")
    process = subprocess.Popen(["/bin/sleep", "60"], env={MARK: mark})
    ended_at_last.append(process)
    now = read_process(process.pid)
    assert now is not None
    name = ProcessName(boot_id=boot_id(), pid=now.pid, start_ticks=now.start_ticks)
    wait_until(lambda: mark_of(name) == mark, 10, "the program is executed and shows its environment")
    assert mark_of(name.model_copy(update={"start_ticks": now.start_ticks + 1})) == ""
    process.kill()
    process.wait(10)
    assert mark_of(name) == ""


@pytest.fixture
def ended_at_last() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that are killed when the test is over."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
