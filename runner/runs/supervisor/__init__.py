"""The supervisor of one run: it owns the run's process tree and leaves the truth about it on disk.

Started as `python -I -S runner/runs/supervisor FOLDER` (this folder is the program) in a session of its own: what
happens to the daemon does not happen to the run. It needs the standard library only and nothing else of this project,
and has imported all of itself before the run begins, so that an upgrade of its files does not reach a run. The daemon
imports from here, not the reverse.

    launch.json   by the daemon, before the start; `launch.py` says what stands in it
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

from .durable import RECORDS, sync_folder, write_durably
from .processes import (
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
    "RECORDS",
    "Process",
    "boot_id",
    "carries_mark",
    "descendants",
    "living_processes",
    "parse_stat",
    "read_process",
    "send_signal",
    "sync_folder",
    "write_durably",
]
