"""Processes of this host as the daemon sees them: find what belongs to a run, and end what a lost run left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass

from runner.engines.engine import ProcessName
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
    "boot_id",
    "end_tree",
    "find_marked",
    "find_named",
    "parse_stat",
    "read_process",
    "send_signal",
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


def find_marked(mark: str) -> list[Process]:
    """Every living process that was started with this mark in its environment, as far as this user may look."""
    return [process for pid, process in living_processes().items() if carries_mark(pid, [mark])]


def end_tree(
    marks: Collection[str], child: ProcessName | None, *, grace_seconds: float = 5.0, patience_seconds: float = 5.0
) -> Ended:
    """End everything of a run that has no supervisor any more. Blocks: call it in a thread.

    Its processes are those that carry a mark of the run, the recorded child, and all that descends from these. Each
    gets TERM once; after `grace_seconds` all that is there gets KILL, again and again for at most `patience_seconds`.
    """
    seen: dict[tuple[int, int], Process] = {}
    asked: set[tuple[int, int]] = set()
    kill_at = time.monotonic() + grace_seconds
    while True:
        left = _members(marks, child)
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


def _members(marks: Collection[str], child: ProcessName | None) -> list[Process]:
    processes = living_processes()
    roots = {pid for pid in processes if carries_mark(pid, marks)}
    if child is not None and (named := find_named(child)) is not None and named.pid in processes:
        roots.add(named.pid)
    members = roots | descendants(processes, roots)
    return [processes[pid] for pid in sorted(members - {os.getpid()})]


def _signal(process: Process, number: int) -> None:
    try:
        send_signal(process, number)
    except PermissionError:
        return  # it changed its user; it stays among those that are left, and the caller is told so
