"""The program: `python -I -S runner/runs/supervisor FOLDER`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

if not __package__:  # started by its path: it finds itself, behind the standard library and never in its place
    _here = Path(__file__).absolute().parent
    sys.path[:] = [*(path for path in sys.path if Path(path).absolute() != _here), str(_here.parent)]
    __package__ = _here.name

from .durable import RECORDS, take_lock
from .supervision import WATCHED, Supervision
from .words import call_libc, say


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
        say(f"This run cannot be supervised (python -I -S supervisor FOLDER): {error}")
        sys.exit(2)
