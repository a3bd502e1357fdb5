"""Processes of this host, as /proc shows them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

MARK = "PTQ_RUN_MARK"  # in the environment of every process of a run, by which it is found when all else is gone


class Process(NamedTuple):
    """A process of this host. Its name is pid and start ticks (1/100 s since boot): a pid alone may be used again."""

    pid: int
    parent: int
    state: str
    threads: int
    start_ticks: int

    @property
    def alive(self) -> bool:
        """Whether it still runs code. The main thread may be a zombie while other threads go on."""
        return self.state not in "ZXx" or self.threads > 1


def parse_stat(stat: bytes) -> Process:
    """Read /proc/PID/stat, where the name may hold parentheses (proc(5)). Raises ValueError or IndexError."""
    fields = stat[stat.rindex(b")") + 1 :].split()
    pid = int(stat[: stat.index(b"(")])
    return Process(pid, int(fields[1]), fields[0].decode("ascii"), int(fields[17]), int(fields[19]))


def read_process(pid: int) -> Process | None:
    """What the kernel says of a pid now; None when there is no such process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    return None


def living_processes() -> dict[int, Process]:
    """Every living process that this one may see, by pid."""
    found = (read_process(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return {process.pid: process for process in found if process is not None and process.alive}


def resident_bytes(pids: Collection[int]) -> int:
    """Main memory of these processes together: the own pages of each, and once the most that one shares with others."""
    own = shared = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):  # it is gone
            resident, common = map(int, Path(f"/proc/{pid}/statm").read_bytes().split()[1:3])
            own, shared = own + resident - common, max(shared, common)
    return (own + shared) * os.sysconf("SC_PAGE_SIZE")


def proportional_bytes(pids: Collection[int]) -> int:
    """The same exactly: each page counts for one, however many share it. The kernel walks all pages for it.

    Where it does not tell (another user's process, an old kernel), the own pages of the process count.
    """
    return sum(map(_proportional, pids))


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
        return int(next(line for line in lines if line.startswith(b"Pss:")).split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError):
        resident, common = map(int, Path(f"/proc/{pid}/statm").read_bytes().split()[1:3])
        return (resident - common) * os.sysconf("SC_PAGE_SIZE")
    return 0


def descendants(processes: dict[int, Process], roots: Collection[int]) -> set[int]:
    """Pids of all processes below the roots; the roots are not among them."""
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return found.difference(roots)


def carries_mark(pid: int, marks: Collection[str]) -> bool:
    """Whether the process was started with one of these marks in its environment. False where that may not be read."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks if mark}
    with contextlib.suppress(OSError):
        return not wanted.isdisjoint(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    return False


def send_signal(process: Process, number: int) -> bool:
    """Signal exactly this process and never a later one with its pid; whether it was there. Raises PermissionError."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    except OSError:
        handle = -1  # a kernel before 5.3, or a container's filter: after comparing the ticks only an instant is left
    try:
        now = read_process(process.pid)
        if now is None or now.start_ticks != process.start_ticks:
            return False
        if handle < 0:
            os.kill(process.pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        if handle >= 0:
            os.close(handle)
    return True


def boot_id() -> str:
    """The kernel's name for the time since the last boot: pids and ticks of another boot mean nothing."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def identity(pid: int) -> dict[str, Any]:
    """What names a living process on this host for good. Raises OSError where /proc does not show it."""
    process = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    return {"boot_id": boot_id(), "pid": pid, "start_ticks": process.start_ticks}
