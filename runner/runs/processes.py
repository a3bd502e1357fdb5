"""Processes of this host as the daemon sees them: find what belongs to a run, and end what a lost run left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from runner.engines.engine import Begun, ProcessName
from runner.runs.supervisor import (
    MARK,
    Process,
    boot_id,
    carries_mark,
    descendants,
    living_processes,
    parse_stat,
    read_process,
    send_signal,
)

__all__ = [
    "MARK",
    "Ended",
    "Process",
    "another_boot",
    "boot_id",
    "end_tree",
    "find_marked",
    "find_named",
    "find_supervisor",
    "mark_of",
    "parse_stat",
    "read_process",
    "send_signal",
    "wake_and_signal",
]

LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Ended:
    """What `end_tree` did: the processes that are gone, and those that even KILL did not end in time."""

    ended: tuple[Process, ...] = ()
    left: tuple[Process, ...] = ()


def find_named(name: ProcessName) -> Process | None:
    """The living process of that name; None when it is gone, or of another boot, or its pid is another's now."""
    process = read_process(name.pid) if name.boot_id == boot_id() else None
    return process if process is not None and process.alive and process.start_ticks == name.start_ticks else None


def another_boot(begun: Begun) -> bool:
    """Whether this host was restarted since that supervisor began here. False where it began on another host."""
    return begun.host == os.uname().nodename and begun.boot_id != boot_id()


def find_marked(mark: str) -> list[Process]:
    """Every living process that was started with this mark in its environment, as far as this user may look."""
    return [process for pid, process in living_processes().items() if carries_mark(pid, [mark])]


def find_supervisor(folder: Path) -> Process | None:
    """The living supervisor of a run's folder, known by its command line: where no record of it can be read."""
    found = [process for pid, process in living_processes().items() if _supervises(pid, folder)]
    # A child that is not yet the command has the same command line. The supervisor was there before it.
    return min(found, key=lambda process: process.start_ticks, default=None)


def mark_of(name: ProcessName) -> str:
    """The mark in the environment of the process of that name; empty when it is gone, or that may not be read."""
    try:
        entries = Path(f"/proc/{name.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    marks = [entry.partition(b"=")[2] for entry in entries if entry.startswith(f"{MARK}=".encode())]
    return os.fsdecode(marks[0]) if marks and find_named(name) is not None else ""


def wake_and_signal(process: Process, number: int) -> bool:
    """Signal exactly this process, and wake it first: a stopped one hears nothing but KILL. Whether it was there.

    Raises PermissionError for a process of somebody else.
    """
    return send_signal(process, signal.SIGCONT) and send_signal(process, number)


def end_tree(
    marks: Collection[str],
    child: ProcessName | None,
    *,
    log: Path | None = None,
    grace_seconds: float = 5.0,
    patience_seconds: float = 5.0,
) -> Ended:
    """End everything of a run that has no supervisor any more. Blocks: call it in a thread. Raises OSError.

    Its processes are those that carry a mark of the run, the recorded child and its session, those whose output is the
    run's log, and all that descends from these. Each gets TERM once; after `grace_seconds` all that is there gets KILL,
    again and again for at most `patience_seconds`.
    """
    seen: dict[tuple[int, int], Process] = {}
    asked: set[tuple[int, int]] = set()
    kill_at = time.monotonic() + grace_seconds
    while True:
        left = _members(marks, child, log)
        now = time.monotonic()
        if not left or now >= kill_at + patience_seconds:
            names = {(process.pid, process.start_ticks) for process in left}
            return Ended(tuple(process for name, process in seen.items() if name not in names), tuple(left))
        for process in left:
            name = process.pid, process.start_ticks
            seen[name] = process
            if now >= kill_at:
                _signal(process, signal.SIGKILL)
            elif name not in asked:
                asked.add(name)
                _signal(process, signal.SIGTERM)
                _signal(process, signal.SIGCONT)  # a stopped process hears TERM only when it goes on
        time.sleep(LOOK_SECONDS)


def _members(marks: Collection[str], child: ProcessName | None, log: Path | None) -> list[Process]:
    processes = living_processes()
    roots = {pid for pid in processes if carries_mark(pid, marks)}
    if child is not None and (named := find_named(child)) is not None and named.pid in processes:
        # Only while the child lives: once it is gone, its number may have become that of somebody else's session.
        roots |= {named.pid} | {pid for pid in processes if _session(pid) == named.pid}
    if log is not None:
        roots |= {pid for pid in processes if _writes_to(pid, str(log.resolve()))}
    members = roots | descendants(processes, roots)
    return [processes[pid] for pid in sorted(members - {os.getpid()})]


def _signal(process: Process, number: int) -> None:
    try:
        send_signal(process, number)
    except PermissionError:
        return  # it changed its user; it stays among those that are left, and the caller is told so


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _writes_to(pid: int, path: str) -> bool:
    """Whether its output or its errors go to this file. The file is not touched: it may lie on a disk that hangs."""
    try:
        outputs = {str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (1, 2)}
    except OSError:
        return False
    return not outputs.isdisjoint((path, f"{path} (deleted)"))


def _supervises(pid: int, folder: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[1:3] == [b"-I", b"-S"] and words[4:] == [os.fsencode(folder), b""]
