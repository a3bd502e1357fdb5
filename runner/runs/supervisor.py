"""The supervisor of one run: it owns the run's process tree and leaves the truth about it on disk.

Started as `python -I -S supervisor.py FOLDER` in a session of its own: what happens to the daemon does not happen to
the run. It needs the standard library only and nothing of this project; the daemon imports from here, not the reverse.

    launch.json   by the daemon, before the start: argv, cwd, log, mark, and grace_seconds, time_limit_seconds,
                  log_limit_bytes, where 0 or none is no limit
    cancel.json   by the daemon: that it exists asks for the end of the run
    lock          locked (flock) as long as the supervisor of this folder lives
    begun.json    before the fork: a run begins once, ever
    child.json    after the fork, before the command is executed: boot id, pid, start ticks; mark and supervisor again
    log           the command's output. It writes the file itself: no pipe that a dead reader could block or shorten
    exit.json     the outcome, as the very last act

Exit status: 0 the outcome is in exit.json; 2 launch.json or the host is not fit; 3 another supervisor holds the lock;
4 the run has begun before; 5 the folder cannot be written, nothing was started; 6 the folder was removed under the run.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

MARK = "PTQ_RUN_MARK"  # in the environment of every process of a run, by which it is found when all else is gone
POLL_SECONDS = 0.2
MEMORY_SECONDS = 2.0  # between two looks at the memory of all processes together
SETTLE_SECONDS = 0.5  # a helper such as a resource tracker sees only now that its parent is gone, and ends by itself
RESERVED = ".exit.json.reserved"
RECORDS = ("begun.json", "child.json", "exit.json")  # each alone tells that the run has begun
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


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


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last: else a new file can be gone after a power cut although its bytes are there."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def write_durably(path: Path, data: bytes) -> None:
    """Put a whole file in place at once, to survive a power cut. Raises OSError; then the old file stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def in_json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, indent=1).encode("ascii") + b"\n"


def wall_time(seconds: float) -> str:
    """Seconds since 1970 as UTC in ISO 8601, with milliseconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def say(sentence: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must not end the run
        os.write(2, f"{wall_time(time.time())} {sentence}\n".encode("utf-8", "replace"))


def call_libc(function: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, function)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def take_lock(path: Path) -> int | None:
    """The locked file, or None when another supervisor holds it.

    A reader takes it *shared* for an instant, which must not make a start fail: while it can be had shared, no
    supervisor has it, and trying again soon succeeds.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    last = time.monotonic() + 5.0
    while time.monotonic() < last:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            break
        fcntl.flock(lock, fcntl.LOCK_UN)
        time.sleep(0.002)
    os.close(lock)
    return None


class Supervision:
    """One run from begun.json to exit.json."""

    def __init__(self, folder: Path, lock: int) -> None:
        launch = json.loads((folder / "launch.json").read_bytes())
        self.folder, self.lock = folder, lock
        self.argv = [os.fsencode(word) for word in launch["argv"]]
        if not isinstance(launch["argv"], list) or not self.argv:
            raise ValueError("argv must be a list of words that begins with the program")
        self.cwd, self.mark = os.fsencode(launch["cwd"]), os.fsencode(launch["mark"])
        self.log = folder / launch["log"]
        self.grace_seconds = float(launch.get("grace_seconds", 10.0))
        self.time_limit_seconds = float(launch.get("time_limit_seconds") or "inf")
        self.log_limit_bytes = float(launch.get("log_limit_bytes") or "inf")
        self.me = parse_stat(Path("/proc/self/stat").read_bytes())
        self.reserved = self.trouble = -1
        self.child: int | None = None
        self.status: int | None = None  # as wait4 gave it
        self.could_not_start: str | None = None
        self.started, self.began = time.time(), time.monotonic()
        self.asked_by_signal: str | None = None
        self.ended_by: str | None = None  # "cancel.json", the name of a signal, or "time_limit"
        self.stragglers: set[tuple[int, int]] = set()  # pid and start ticks of what outlived the command
        self.max_rss_bytes, self.tree_rss_bytes, self.memory_at, self.cpu_seconds = 0, 0, 0.0, 0.0

    def begin(self) -> None:
        """Say durably that this run has begun; set room aside for its outcome. Raises OSError: nothing runs then."""
        self.reserved = os.open(self.folder / RESERVED, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(self.reserved, 0, 4096)
        times = {"wall": wall_time(time.time()), "monotonic": time.monotonic()}
        write_durably(self.folder / "begun.json", in_json(identity(self.me.pid) | times))

    def run(self) -> bool:
        """Start the command, watch it, clean up and tell. False when there is no folder any more to tell it in."""
        self.wait(0)
        self.ended_by = self.reason_to_stop()
        if self.ended_by is None:
            self.start()
            self.watch()
            self.end_everything()
            self.hear_trouble()
            self.cut_log()
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
            self.become_command(may_go, tell_trouble)
        os.close(may_go)
        os.close(tell_trouble)
        self.child = pid
        self.started, self.began = time.time(), time.monotonic()
        try:
            more = {"mark": os.fsdecode(self.mark), "supervisor": identity(self.me.pid)}
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

    def become_command(self, may_go: int, tell_trouble: int) -> NoReturn:
        """In the forked child: wait until it is recorded, then be the command. Trouble is told in a sentence."""
        what = "No session can be made for the command"
        try:
            os.setsid()
            os.close(self.lock)  # it tells of the supervisor: a child that hangs here must not hold it in its stead
            if not os.read(may_go, 1):
                os._exit(127)  # the supervisor died, or could not record this process: nothing may run
            with contextlib.suppress(OSError):  # forbidden in some containers: then others may be killed first
                Path("/proc/self/oom_score_adj").write_text("500")
            what = f"The log {self.log} cannot be opened"
            log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
            what = f"The working directory {os.fsdecode(self.cwd)} cannot be entered"
            os.chdir(self.cwd)
            what = f"The program {os.fsdecode(self.argv[0])} cannot be started"
            environment = inherited_environment() | {MARK.encode(): self.mark}
            for number in signal.valid_signals():  # else the command inherits that Python ignores SIGPIPE and SIGXFSZ
                if signal.getsignal(number) is signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.execvpe(self.argv[0], self.argv, environment)
        except BaseException as error:  # whatever it was: this process must never go on as a second supervisor
            why = error.strerror if isinstance(error, OSError) else error
            os.write(tell_trouble, f"{what}: {why}."[:1000].encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def watch(self) -> None:
        """Until the command ended by itself, or there is a reason to end it."""
        while self.reap() and self.status is None and self.ended_by is None:
            self.cut_log()
            self.look_at_memory()
            self.wait(POLL_SECONDS)
            self.ended_by = self.reason_to_stop()

    def look_at_memory(self) -> None:
        """Note what the processes of the run hold together: at its end the kernel tells only what the largest held."""
        if (began := time.monotonic()) >= self.memory_at:
            with contextlib.suppress(OSError):  # the host is short of descriptors for the moment
                below = descendants(living_processes(), [self.me.pid])
                self.tree_rss_bytes = max(self.tree_rss_bytes, resident_bytes(below))
            self.memory_at = began + max(MEMORY_SECONDS, 20 * (time.monotonic() - began))  # where many processes run

    def wait(self, seconds: float) -> None:
        """Until a child ends or a signal asks for something, at most so long."""
        heard = signal.sigtimedwait(WATCHED, seconds)
        if heard is not None and heard.si_signo in (signal.SIGTERM, signal.SIGINT):  # a terminal's end ends no run
            self.asked_by_signal = signal.Signals(heard.si_signo).name

    def reason_to_stop(self) -> str | None:
        with contextlib.suppress(OSError):  # a network file system that hiccups is no reason to lose the run
            if (self.folder / "cancel.json").exists():
                return "cancel.json"
        late = time.monotonic() - self.began > self.time_limit_seconds
        return self.asked_by_signal or ("time_limit" if late else None)

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
        others = (p for p in processes.values() if p.pid not in below and p.start_ticks >= self.me.start_ticks)
        marked = {p.pid for p in others if p.pid != self.me.pid and carries_mark(p.pid, [os.fsdecode(self.mark)])}
        return [processes[pid] for pid in below | marked]

    def end_everything(self) -> None:
        """Until nothing of the run is left: TERM once to each process; after the grace time KILL, again and again."""
        term_at = time.monotonic() + (SETTLE_SECONDS if self.ended_by is None else 0.0)
        kill_at = term_at + self.grace_seconds
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
            self.cut_log()
            # What even KILL does not end, such as a process in a hung driver, is looked at less often.
            self.wait(0.05 if now < kill_at + 5 else 1.0)

    def cut_log(self) -> None:
        """Keep the log under its limit: the blocks of its middle go back to the disk and read as NUL bytes then."""
        try:
            facts, limit = self.log.stat(), self.log_limit_bytes
            if facts.st_blocks * 512 <= limit:
                return
            block = max(facts.st_blksize, 4096)
            start = int(limit // 4 // block + 1) * block
            length = int(facts.st_size - limit // 2 - start) // block * block
            if length > 0:
                with self.log.open("r+b") as log:  # 1: the length stays, 2: punch a hole
                    call_libc("fallocate", log.fileno(), 1 | 2, ctypes.c_int64(start), ctypes.c_int64(length))
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self.log_limit_bytes = float("inf")
                say(f"The log cannot be kept under its limit on this file system: {error.strerror}.")

    def outcome(self) -> dict[str, Any]:
        """What exit.json says. exit_code is -N when signal N ended the command; seconds are of the monotonic clock."""
        ran = self.status is not None and self.could_not_start is None
        return {
            "exit_code": os.waitstatus_to_exitcode(self.status) if ran and self.status is not None else None,
            "cancelled": self.ended_by not in (None, "time_limit"),
            "ended_by": self.ended_by,
            "could_not_start": self.could_not_start,
            "started_at": wall_time(self.started) if ran else None,
            "ended_at": wall_time(time.time()),
            "seconds": round(time.monotonic() - self.began, 3) if ran else 0.0,
            "stragglers": len(self.stragglers),
            "max_rss_bytes": self.max_rss_bytes,
            "tree_rss_bytes": self.tree_rss_bytes,
            "cpu_seconds": round(self.cpu_seconds, 3),
        }

    def tell_outcome(self) -> bool:
        """Write exit.json, as often as it takes: until then the lock stays held. False when the folder is gone."""
        data, target, attempts = in_json(self.outcome()), self.folder / "exit.json", 0
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


def inherited_environment() -> dict[bytes, bytes]:
    """The environment as it was handed over. os.environ is not that: in a C locale Python adds LC_CTYPE (PEP 538)."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    return {name: value for name, found, value in (entry.partition(b"=") for entry in entries) if name and found}


def supervise(folder: Path) -> int:
    """Supervise the run of this folder to its end; the exit status of the program. Raises OSError."""
    lock = take_lock(folder / "lock")  # not inherited by the command; the kernel frees it whatever ends this process
    if lock is None:
        say("Another supervisor holds the lock of this folder.")
        return 3
    if any(os.path.lexists(folder / name) for name in RECORDS):
        say("This run has begun before, and a run begins once.")
        return 4
    try:
        supervision = Supervision(folder, lock)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        say(f"launch.json cannot be used: {error!r}")
        return 2
    for number in WATCHED:  # an inherited "ignore" would drop TERM, and for SIGCHLD would lose the exit status
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    call_libc("prctl", 36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans of the run become children of this process
    try:
        supervision.begin()
    except OSError as error:
        say(f"The folder cannot be written, and nothing was started: {error.strerror}.")
        return 5
    return 0 if supervision.run() else 6


if __name__ == "__main__":
    try:
        (named,) = sys.argv[1:]
        sys.exit(supervise(Path(named).absolute()))
    except (OSError, ValueError) as error:
        say(f"This run cannot be supervised (python -I -S supervisor.py FOLDER): {error}")
        sys.exit(2)
