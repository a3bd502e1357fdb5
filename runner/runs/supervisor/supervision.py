"""One run from its beginning to its outcome."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from .command import become_command
from .disk import DiskWatch
from .durable import in_json, sync_folder, write_durably
from .launch import Launch
from .log_cap import LogCap
from .memory import MemoryWatch
from .memory_group import MemoryGroup
from .processes import Process, carries_mark, descendants, identity, living_processes, parse_stat, send_signal
from .words import duration, say, wall_time

POLL_SECONDS = 1.0  # the end of the command and a cancel are heard at once: by a signal
SETTLE_SECONDS = 0.5  # a helper such as a resource tracker sees only now that its parent is gone, and ends by itself
RESERVED = ".exit.json.reserved"
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LIMITS = ("time_limit", "memory_limit", "disk_reserve")  # a run that reaches one has failed; nobody cancelled it


class Supervision:
    """One run from begun.json to exit.json."""

    def __init__(self, folder: Path, lock: int) -> None:
        """Raises OSError, ValueError, LookupError, TypeError or AttributeError where launch.json is not fit."""
        self.launch = Launch.read(folder)
        self.folder, self.lock, self.cancel = folder, lock, str(folder / "cancel.json")
        self.me = parse_stat(Path("/proc/self/stat").read_bytes())
        self.group_name = f"{folder.name}-{self.me.pid}-{self.me.start_ticks}"
        self.log_cap = LogCap(self.launch.log, self.launch.log_limit_bytes)
        self.disk = DiskWatch((str(folder), *self.launch.watched), self.launch.disk_reserve_bytes)
        self.group: MemoryGroup | None = None  # where the kernel keeps the memory limit
        self.memory = MemoryWatch(self.me.pid, self.launch.memory_limit_bytes)
        self.reserved = self.trouble = -1
        self.child: int | None = None
        self.status: int | None = None  # as wait4 gave it
        self.could_not_start: str | None = None
        self.started, self.began = time.time(), time.monotonic()
        self.asked_by_signal: str | None = None
        self.ended_by: str | None = None  # "cancel.json", the name of a signal, or one of LIMITS
        self.ended_because = ""
        self.stragglers: set[tuple[int, int]] = set()  # pid and start ticks of what outlived the command
        self.max_rss_bytes, self.cpu_seconds = 0, 0.0

    def begin(self) -> None:
        """Say durably that this run has begun; set room aside for its outcome. Raises OSError: nothing runs then."""
        self.reserved = os.open(self.folder / RESERVED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self.reserved, 0, 4096)
        more = {"wall": wall_time(time.time()), "monotonic": time.monotonic(), "host": os.uname().nodename}
        write_durably(self.folder / "begun.json", in_json(identity(self.me.pid) | more))

    def run(self) -> bool:
        """Start the command, watch it, clean up and tell. False when there is no folder any more to tell it in."""
        self.wait(0)
        if not self.has_to_stop():
            self.group = MemoryGroup.make(self.group_name, self.launch.memory_limit_bytes)
            self.start()
            self.watch()
            self.end_everything()
            self.hear_trouble()
            self.blame_disk()
            self.log_cap.cut()
        return self.tell_outcome()

    def start(self) -> None:
        """Fork, record the child, and only then let it execute the command: no unrecorded command ever runs."""
        may_go, let_go = os.pipe2(os.O_CLOEXEC)
        self.trouble, tell_trouble = os.pipe2(os.O_CLOEXEC)
        try:
            pid = os.fork()
        except OSError as error:
            self.could_not_start = f"No process could be made for the command: {error.strerror}."
            return
        if pid == 0:
            os.close(let_go)  # else the child would wait for itself when the supervisor dies here
            become_command(self.launch, self.lock, may_go, tell_trouble, self.group)
        os.close(may_go)
        os.close(tell_trouble)
        self.child = pid
        self.started, self.began = time.time(), time.monotonic()
        try:
            more = {"mark": os.fsdecode(self.launch.mark), "supervisor": identity(self.me.pid)}
            write_durably(self.folder / "child.json", in_json(identity(pid) | more))
            with contextlib.suppress(BrokenPipeError):  # somebody killed it already: wait4 will tell
                os.write(let_go, b"!")
        except OSError as error:
            self.could_not_start = f"child.json cannot be written, so the command was not started: {error.strerror}."
        os.close(let_go)

    def hear_trouble(self) -> None:
        """Why the child could not become the command. Read when it is gone: if it hangs, cancel still works."""
        if self.child is not None and (words := os.read(self.trouble, 4096)):
            self.could_not_start = words.decode("utf-8", "replace")

    def blame_disk(self) -> None:
        """A command may fill a disk between two looks. When it failed then, it may have had no room to say why."""
        failed = self.status not in (None, 0) and self.could_not_start is None
        if failed and self.ended_by is None and (shortage := self.disk.shortage()):
            self.ended_by, self.ended_because = "disk_reserve", shortage

    def watch(self) -> None:
        """Until the command ended by itself, or there is a reason to end it."""
        while self.reap() and self.status is None and not self.has_to_stop():
            self.log_cap.cut()
            self.wait(POLL_SECONDS)

    def wait(self, seconds: float) -> None:
        """Until a child ends or a signal asks for something, at most so long."""
        heard = signal.sigtimedwait(WATCHED, seconds)
        if heard is not None and heard.si_signo in (signal.SIGTERM, signal.SIGINT):  # a terminal's end ends no run
            self.asked_by_signal = signal.Signals(heard.si_signo).name

    def has_to_stop(self) -> bool:
        """Whether somebody asked for the end, or a limit is reached; why is noted then."""
        cancelled = os.path.lexists(self.cancel)  # it raises nothing: a file system that hiccups loses no run
        self.ended_by = "cancel.json" if cancelled else self.asked_by_signal
        if self.ended_by is None and self.child is not None:
            self.ended_by, self.ended_because = self.limit_reached()
        return self.ended_by is not None

    def limit_reached(self) -> tuple[str | None, str]:
        """Which of LIMITS, and the numbers that decided it, in a sentence."""
        limit = self.launch.time_limit_seconds
        if time.monotonic() - self.began > limit:
            return "time_limit", f"It took longer than {duration(limit)}, which is the longest that a run may take."
        if excess := self.memory.excess():
            return "memory_limit", excess
        if shortage := self.disk.shortage():
            return "disk_reserve", shortage
        return None, ""

    def reap(self) -> bool:
        """Take over what ended. Whether children are left, which for a subreaper means: anything of the tree."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            self.max_rss_bytes = max(self.max_rss_bytes, usage.ru_maxrss * 1024)
            self.cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == self.child:
                self.status = status

    def tree(self) -> list[Process]:
        """Every living process of the run: what descends from here, and what carries the mark without doing so.

        As subreaper this process stays an ancestor of all that is forked. The mark finds what another daemon started
        for the run, such as the tasks of an srun on this node. Only processes younger than this one are looked into.
        """
        processes = living_processes()
        below = descendants(processes, [self.me.pid])
        mark, known = [os.fsdecode(self.launch.mark)], below | {self.me.pid}
        others = (p.pid for p in processes.values() if p.pid not in known and p.start_ticks >= self.me.start_ticks)
        return [processes[pid] for pid in below | {pid for pid in others if carries_mark(pid, mark)}]

    def end_everything(self) -> None:
        """Until nothing of the run is left: TERM once to each process; after the grace time KILL, again and again."""
        term_at = time.monotonic() + (SETTLE_SECONDS if self.ended_by is None else 0.0)
        kill_at = term_at + self.launch.grace_seconds
        asked: set[tuple[int, int]] = set()
        while True:
            children_left = self.reap()
            if self.status is not None and not asked:
                self.ended_by = None  # the command was quicker and ended by itself
            now = time.monotonic()
            try:
                left = self.tree()
            except OSError as error:  # the host is short of descriptors or memory for the moment
                say(f"The processes of the run cannot be listed: {error.strerror}.")
                self.wait(1.0)
                continue
            if not left and not children_left:
                return
            for process in left if now >= term_at else ():
                name = process.pid, process.start_ticks
                if self.status is not None:
                    self.stragglers.add(name)
                try:
                    if now >= kill_at:
                        send_signal(process, signal.SIGKILL)
                    elif name not in asked:
                        send_signal(process, signal.SIGTERM)
                        send_signal(process, signal.SIGCONT)  # a stopped process hears TERM only when it goes on
                except OSError as error:
                    if name not in asked:
                        say(f"Process {process.pid} of the run cannot be ended: {error.strerror}.")
                asked.add(name)
            self.log_cap.cut()
            # What even KILL does not end, such as a process in a hung driver, is looked at less often.
            self.wait(0.05 if now < kill_at + 5 else 1.0)

    def outcome(self) -> dict[str, Any]:
        """What exit.json says. exit_code is -N when signal N ended the command; seconds are of the monotonic clock."""
        ran = self.status is not None and self.could_not_start is None
        return {
            "exit_code": os.waitstatus_to_exitcode(self.status) if ran and self.status is not None else None,
            "cancelled": self.ended_by is not None and self.ended_by not in LIMITS,
            "ended_by": self.ended_by,
            "ended_because": self.ended_because if self.ended_by else "",
            "oom_killed": self.group.killed() if self.group else 0,
            "could_not_start": self.could_not_start,
            "started_at": wall_time(self.started) if ran else None,
            "ended_at": wall_time(time.time()),
            "seconds": round(time.monotonic() - self.began, 3) if ran else 0.0,
            "stragglers": len(self.stragglers),
            "max_rss_bytes": self.max_rss_bytes,
            "tree_rss_bytes": self.memory.peak_bytes,
            "cpu_seconds": round(self.cpu_seconds, 3),
        }

    def tell_outcome(self) -> bool:
        """Write exit.json, as often as it takes: until then the lock stays held. False when the folder is gone."""
        data, target, attempts = in_json(self.outcome()), self.folder / "exit.json", 0
        if self.group is not None:
            self.group.remove()
        while True:
            with contextlib.suppress(OSError):
                if attempts == 0:  # its blocks were set aside at the beginning, so that this works on a full disk
                    os.pwrite(self.reserved, data, 0)
                    os.ftruncate(self.reserved, len(data))
                    os.fsync(self.reserved)
                    (self.folder / RESERVED).replace(target)
                    sync_folder(self.folder)
                else:
                    write_durably(target, data)
                return True
            if not os.path.lexists(self.folder):
                return False
            if attempts == 0:
                say("exit.json cannot be written. Trying until it can.")
            attempts += 1
            self.wait(1.0)
