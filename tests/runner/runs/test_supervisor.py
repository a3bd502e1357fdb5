"""The supervisor as a real process: what it records, what it leaves behind, and what cannot be done to it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.engine import CancelledBeforeStart, Exited, Lost, NotBegun, Running
from runner.errors import Conflict
from runner.runs.folder import Launch, lock_is_held
from runner.runs.processes import MARK, boot_id, read_process
from tests.runner.runs.supervising import WAIT_FOR_EVER, Host, a_host, exit_of, gone, python, written
from tests.waiting import wait_until

AT = "2026-01-01T00:00:00+00:00"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as host:
        yield host


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    ],
)
def test_the_exit_status_is_the_commands_own(host: Host, code: str, expected: int) -> None:
    folder = host.run(python(code))
    told = exit_of(folder).exit
    assert (told.exit_code, told.cancelled, told.could_not_start, told.stragglers) == (expected, False, None, 0)
    assert told.started_at is not None
    assert told.started_at <= told.ended_at
    assert 0 < told.seconds < 10
    assert told.max_rss_bytes > 1 << 20
    assert told.cpu_seconds > 0
    assert host.started[0].wait() == 0


HOLDS_MEMORY = """
import time
held = bytearray(30 << 20)
held[::4096] = b"x" * len(held[::4096])
ends = time.monotonic() + 5
while time.monotonic() < ends:
    select.select([], [], [], 0.1)
"""
FOUR_OF_THEM = python("pids = [os.fork(), os.fork()]\n" + HOLDS_MEMORY + "if pids[0]: os.wait()\nif pids[1]: os.wait()")


def test_memory_is_told_of_the_largest_process_and_of_all_together(host: Host) -> None:
    """Two forks make four processes of 30 MiB each."""
    told = exit_of(host.run(FOUR_OF_THEM)).exit
    assert 30 << 20 < told.max_rss_bytes < 60 << 20
    assert 120 << 20 < told.tree_rss_bytes < 240 << 20
    assert told.peak_memory_bytes == told.tree_rss_bytes


def test_an_outcome_of_an_older_supervisor_is_read(host: Host) -> None:
    folder = host.folder(python("sys.exit(0)"))
    host.start(folder)
    told = exit_of(folder).exit
    older = {name: value for name, value in written(folder, "exit.json").items() if name != "tree_rss_bytes"}
    folder.write("exit.json", json.dumps(older).encode())
    again = exit_of(folder).exit
    assert again.tree_rss_bytes == 0
    assert again.peak_memory_bytes == told.max_rss_bytes


def test_who_is_running_is_recorded(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    begun, child = written(folder, "begun.json"), written(folder, "child.json")
    supervisor, command = read_process(begun["pid"]), read_process(child["pid"])
    assert supervisor is not None
    assert command is not None
    assert (begun["pid"], begun["start_ticks"]) == (host.started[0].pid, supervisor.start_ticks)
    assert child["start_ticks"] == command.start_ticks
    assert command.parent == supervisor.pid
    assert begun["boot_id"] == child["boot_id"] == boot_id()
    assert os.getsid(child["pid"]) == child["pid"]


def test_a_second_start_is_refused_and_touches_nothing(host: Host) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)

    def facts() -> dict[str, tuple[int, int, int]]:
        kept = (path for path in folder.path.iterdir() if path.name != "supervisor.log")
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size) for path in kept}

    before = facts()
    assert host.start(folder).wait(10) == 3
    assert facts() == before
    host.started[0].terminate()
    exit_of(folder)
    before = facts()
    assert host.start(folder).wait(10) == 4
    assert facts() == before


def test_readers_of_the_lock_never_make_a_start_fail(host: Host) -> None:
    folders = [host.folder(python("sys.exit(0)")) for _ in range(5)]
    for folder in folders:
        (folder.path / "lock").touch()
    stop = threading.Event()

    def probe() -> None:
        while not stop.is_set():
            for folder in folders:
                lock_is_held(folder.path / "lock")

    readers = [threading.Thread(target=probe) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        statuses = [host.start(folder).wait(20) for folder in folders]
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert statuses == [0] * 5
    assert all(exit_of(folder).exit.exit_code == 0 for folder in folders)


def test_a_start_waits_while_the_lock_is_only_read(host: Host) -> None:
    folder = host.folder(python("sys.exit(0)"))
    with (folder.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        supervisor = host.start(folder)
        wait_until(lambda: supervisor.pid in _with_open(folder.path / "lock"), 10, "it has opened the lock")
        assert folder.observe() == NotBegun()
    assert supervisor.wait(10) == 0


def test_words_arrive_unchanged(host: Host) -> None:
    words = [
        "a b",
        "'",
        '"',
        "`id`",
        "$HOME",
        "new\nline",
        "-x",
        "--leading=dash",
        "",
        "*",
        "ünïcödé",
        "\\",
        ";",
        "&& x",
    ]
    folder = host.run(python("import json; print(json.dumps(sys.argv[1:]))", *words))
    assert exit_of(folder).exit.exit_code == 0
    assert json.loads(folder.read("log")) == words


def test_the_command_starts_clean(host: Host) -> None:
    code = """
import json
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
os.write(1, json.dumps({
    "descriptors": sorted(os.listdir("/proc/self/fd"))[:-1], "stdin": os.readlink("/proc/self/fd/0"),
    "log": os.readlink("/proc/self/fd/1"), "same": os.readlink("/proc/self/fd/1") == os.readlink("/proc/self/fd/2"),
    "append": bool(__import__("fcntl").fcntl(1, 3) & os.O_APPEND),
    "blocked": status["SigBlk"], "oom": open("/proc/self/oom_score_adj").read().strip(), "cwd": os.getcwd(),
    "session": os.getsid(0) == os.getpid(), "env": open("/proc/self/environ").read().split(chr(0))[:-1],
}).encode())
"""
    # A C locale: there Python itself would add LC_CTYPE to the environment.
    folder = host.run(python(code), env={"SECRET": "s3cr3t", "EMPTY": ""})
    assert exit_of(folder).exit.exit_code == 0
    seen = json.loads(folder.read("log"))
    launch = folder.read_as("launch.json", Launch)
    assert launch is not None
    assert seen == {
        "descriptors": ["0", "1", "2"],
        "stdin": "/dev/null",
        "log": str(folder.log_path),
        "same": True,
        "append": True,
        "blocked": "0" * 16,
        "oom": "500",
        "cwd": str(host.root),
        "session": True,
        "env": ["SECRET=s3cr3t", "EMPTY=", f"{MARK}={launch.mark}"],
    }
    others = [path for path in folder.path.iterdir() if path.name != "log"]
    assert not [path for path in others if b"s3cr3t" in path.read_bytes()]


def test_no_signal_stays_ignored(host: Host) -> None:
    ignoring = python("for n in (1, 2, 15, 17): signal.signal(n, signal.SIG_IGN)\nos.execv(sys.argv[1], sys.argv[1:])")
    folder = host.folder(["/bin/grep", "SigIgn", "/proc/self/status"])
    host.start(folder, before=ignoring)
    assert exit_of(folder).exit.exit_code == 0  # it would be unknown if SIGCHLD were still ignored
    name, mask = folder.read("log").split()
    # Signals 32 and 33 belong to the C library: whoever started the tests may ignore them, and nobody can change it.
    assert (name, int(mask, 16) & ~(0b11 << 31)) == (b"SigIgn:", 0)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ({"argv": ["/nowhere/quantize"]}, ["/nowhere/quantize", "No such file"]),
        ({"argv": ["no-such-program-anywhere"]}, ["no-such-program-anywhere", "No such file"]),
        ({"argv": ["/etc/passwd"]}, ["/etc/passwd", "Permission denied"]),
        ({"argv": ["/bin/true", "x" * (1 << 20)]}, ["/bin/true", "Argument list too long"]),
        ({"argv": ["/bin/true", "a\0b"]}, ["/bin/true", "null byte"]),
        ({"argv": ["/bin/true"], "cwd": "/nowhere"}, ["working directory /nowhere", "No such file"]),
        ({"argv": ["/bin/true"], "log": "no/folder"}, ["log", "No such file"]),
    ],
)
def test_what_cannot_start_is_told_in_a_sentence(host: Host, launch: dict[str, str], words: list[str]) -> None:
    folder = host.run(**launch)  # type: ignore[arg-type]
    told = exit_of(folder).exit
    assert (told.exit_code, told.started_at, told.cancelled) == (None, None, False)
    assert told.could_not_start is not None
    assert all(word in told.could_not_start for word in words)
    assert told.could_not_start.endswith(".")
    assert b"Traceback" not in folder.read("supervisor.log")


def test_a_child_that_cannot_be_recorded_never_becomes_the_command(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    recording = 'write_durably(self.folder / "child.json"'
    script = host.changed_script(recording, f'(self.folder / "child.json").mkdir(); {recording}')
    host.start(folder, script=script)
    told = exit_of(folder).exit
    assert "child.json" in (told.could_not_start or "")
    assert told.exit_code is None
    assert not (host.root / "ran").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"argv": []}', '{"argv": "ls", "cwd": "/", "log": "log", "mark": "m"}', "\xff"]
)
def test_an_unfit_launch_is_refused_without_a_trace(host: Host, text: str) -> None:
    folder = host.folder(["/bin/true"])
    (folder.path / "launch.json").write_bytes(text.encode("latin-1"))
    assert host.start(folder).wait(10) == 2
    assert folder.observe() == NotBegun()
    said = folder.read("supervisor.log")
    assert b"launch.json cannot be used" in said
    assert b"Traceback" not in said


def test_cancelled_before_the_start_nothing_runs(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    folder.ask_cancel("ana", "changed my mind", AT)
    assert host.start(folder).wait(10) == 0
    state = folder.observe()
    assert isinstance(state, CancelledBeforeStart)
    assert state.cancel is not None
    assert (state.cancel.by, state.cancel.reason) == ("ana", "changed my mind")
    told = written(folder, "exit.json")
    assert (told["exit_code"], told["cancelled"], told["started_at"]) == (None, True, None)
    assert not (folder.path / "child.json").exists()
    assert not (host.root / "ran").exists()
    assert host.start(folder).wait(10) == 4


def test_a_child_whose_supervisor_dies_before_recording_it_never_runs(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    recording = 'write_durably(self.folder / "child.json"'
    script = host.changed_script(recording, f"os.kill(os.getpid(), signal.SIGKILL); {recording}")
    assert host.start(folder, script=script).wait(10) == -9
    # A child that was only just forked still has the lock.
    wait_until(lambda: isinstance(folder.observe(), Lost), 10, "the child gives up")
    state = folder.observe()
    assert isinstance(state, Lost)
    assert state.child is None
    assert not (host.root / "ran").exists()


ALL = ["begun.json", "child.json", "exit.json"]


@pytest.mark.parametrize("kept", ALL)
def test_any_record_that_is_left_stops_a_second_run(host: Host, kept: str) -> None:
    folder = host.run(python("open('ran', 'a').write('x')"))
    exit_of(folder)
    host.started[0].wait(10)
    for name in {"lock", *ALL} - {kept}:
        (folder.path / name).unlink()
    assert folder.has_begun()
    assert isinstance(folder.observe(), Exited if kept == "exit.json" else Lost)
    assert host.start(folder).wait(10) == 4
    assert (host.root / "ran").read_text() == "x"


@pytest.mark.parametrize(
    "missing",
    [
        ["lock"],
        ["begun.json"],
        ["child.json"],
        ["begun.json", "child.json"],
        ["lock", "begun.json"],
        ["lock", "child.json"],
    ],
    ids=" ".join,
)
def test_a_live_run_is_known_by_any_trace_of_it(host: Host, missing: list[str]) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    for name in missing:
        (folder.path / name).unlink()
    for _ in range(2):  # also with the lock file that the refused one made anew
        assert folder.has_begun()
        assert isinstance(folder.observe(), Running)
        with pytest.raises(Conflict):
            folder.end_orphans(0)
        assert host.start(folder).wait(10) in (3, 4)
    assert folder.ask_cancel("ana", "", AT) == ""
    assert exit_of(folder).exit.cancelled
    assert folder.read("log") == b"ready\n"


@pytest.mark.parametrize("damaged", [["begun.json"], ["begun.json", "child.json"]], ids=" ".join)
def test_damaged_records_do_not_hide_a_live_run(host: Host, damaged: list[str]) -> None:
    folder = host.run(WAIT_FOR_EVER)
    host.ready(folder)
    child = written(folder, "child.json")["pid"]
    for name in damaged:
        (folder.path / name).write_bytes(b"{")
    (folder.path / "lock").unlink()
    assert isinstance(folder.observe(), Running)
    os.kill(host.started[0].pid, signal.SIGKILL)
    host.started[0].wait()
    assert isinstance(folder.observe(), Lost)
    assert folder.end_orphans(0).ended == 1
    assert gone(child)


FULL_DISK = python(
    "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); os.execv(sys.argv[1], sys.argv[1:])"
)


def test_where_begun_cannot_be_written_nothing_starts(host: Host) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    assert host.start(folder, before=FULL_DISK).wait(10) == 5
    assert folder.observe() == NotBegun()
    assert not (host.root / "ran").exists()
    assert host.start(folder).wait(10) == 0, "once there is room the run can start"
    assert (host.root / "ran").exists()


@pytest.mark.parametrize("end", ["killed", "refused"])
def test_a_start_that_failed_leaves_a_cancelled_run_cancelled(host: Host, end: str) -> None:
    folder = host.folder(python("open('ran', 'w')"))
    folder.ask_cancel("ana", "changed my mind", AT)
    if end == "killed":
        script = host.changed_script("        supervision.begin()", "        os.kill(os.getpid(), signal.SIGKILL)")
        assert host.start(folder, script=script).wait(10) == -9
    else:
        assert host.start(folder, before=FULL_DISK).wait(10) == 5
    state = folder.observe()
    assert isinstance(state, CancelledBeforeStart)
    assert state.cancel is not None
    assert state.cancel.by == "ana"
    assert not (host.root / "ran").exists()


def _with_open(path: Path) -> list[int]:
    """Pids of the processes that have this file open."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if link.samefile(path):
                found.append(int(link.parts[2]))
    return found
