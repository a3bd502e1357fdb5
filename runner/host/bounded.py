"""Become another program that ends with whoever started it, and after a time at the latest.

    python -I -S bounded.py PARENT_PID SECONDS REPORT_FD PROGRAM [ARGUMENT ...]

A parent that is killed cannot end its children, so the kernel has to: it kills this process when its parent dies, and
sends it an alarm when the time is over. Both outlast the exec, and nothing has to run between fork and exec of the
parent. Where PROGRAM cannot be started, the number of the error is written to REPORT_FD, which PROGRAM never has.
Imports nothing of this project.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # Source: linux/prctl.h


def main(arguments: list[str]) -> int:
    """Start the program in place of this one; returns only where that fails."""
    parent, seconds, report, program = int(arguments[0]), int(arguments[1]), int(arguments[2]), arguments[3:]
    os.set_inheritable(report, False)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 1  # it died before it could be watched
    signal.alarm(seconds)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(report, str(error.errno).encode())
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
