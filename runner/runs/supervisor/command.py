"""The forked child on its way to being the command."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NoReturn

from .launch import Launch
from .memory_group import MemoryGroup
from .processes import MARK

VISIBILITY = (b"ROCR_VISIBLE_DEVICES", b"HIP_VISIBLE_DEVICES", b"CUDA_VISIBLE_DEVICES", b"GPU_DEVICE_ORDINAL")
"""What schedulers set all alike. Two of them at once can leave no device on ROCm."""


def become_command(launch: Launch, lock: int, may_go: int, tell_trouble: int, group: MemoryGroup | None) -> NoReturn:
    """In the forked child: wait until it is recorded, then be the command. Trouble is told in a sentence."""
    what = "No session can be made for the command"
    try:
        os.setsid()
        os.close(lock)  # it tells of the supervisor: a child that hangs here must not hold it in its stead
        if not os.read(may_go, 1):
            os._exit(127)  # the supervisor died, or could not record this process: nothing may run
        with contextlib.suppress(OSError):  # forbidden in some containers: then others may be killed first
            Path("/proc/self/oom_score_adj").write_text("500")
        what = f"The log {launch.log} cannot be opened"
        log = os.open(launch.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        what = f"The working directory {os.fsdecode(launch.cwd)} cannot be entered"
        os.chdir(launch.cwd)
        if group is not None:
            group.enter()
        what = f"The program {os.fsdecode(launch.argv[0])} cannot be started"
        environment = _environment(launch)
        for number in signal.valid_signals():  # else the command inherits that Python ignores SIGPIPE and SIGXFSZ
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.execvpe(launch.argv[0], launch.argv, environment)
    except BaseException as error:  # whatever it was: this process must never go on as a second supervisor
        why = error.strerror if isinstance(error, OSError) else error
        os.write(tell_trouble, f"{what}: {why}."[:1000].encode("utf-8", "replace"))
    finally:
        os._exit(127)


def _environment(launch: Launch) -> dict[bytes, bytes]:
    inherited = inherited_environment()
    kept = {name: value for name, value in inherited.items() if not launch.variables or name in launch.variables}
    if launch.mask_variable:
        shown = [inherited[name] for name in VISIBILITY if name in inherited]
        kept = {name: value for name, value in kept.items() if name not in VISIBILITY}
        if shown:
            kept[launch.mask_variable.encode()] = shown[0]
    return kept | {MARK.encode(): launch.mark}


def inherited_environment() -> dict[bytes, bytes]:
    """The environment as it was handed over. os.environ is not that: in a C locale Python adds LC_CTYPE (PEP 538)."""
    entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    return {name: value for name, found, value in (entry.partition(b"=") for entry in entries) if name and found}
