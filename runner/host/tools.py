"""Run the vendors' tools so that none of them can hold us up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

TOOL_SECONDS = 15.0
_LONGEST_OUTPUT = 8 * 2**20
_AFTER_KILL_SECONDS = 1.0


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool said: its output when it succeeded, else what went wrong. `found` is whether it is on PATH."""

    found: bool
    output: str = ""
    problem: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the tool is there and said something with exit status 0."""
        return self.found and not self.problem


ToolRunner = Callable[[Sequence[str]], ToolAnswer]


def run_tool(argv: Sequence[str]) -> ToolAnswer:
    """Run a tool with a time limit of TOOL_SECONDS. Never raises.

    The whole process group is killed when the time is over. A tool that hangs in a driver cannot be killed at all and
    is left behind: that is better than to hang with it.
    """
    path = shutil.which(argv[0])
    if path is None:
        return ToolAnswer(found=False, problem="is not on PATH")
    try:
        process = subprocess.Popen(
            [path, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        return ToolAnswer(found=True, problem=f"cannot be started: {error.strerror}")
    try:
        output, errors = process.communicate(timeout=TOOL_SECONDS)
    except subprocess.TimeoutExpired:
        _kill(process)
        return ToolAnswer(found=True, problem=f"did not answer within {TOOL_SECONDS:.0f} s")
    text = output[:_LONGEST_OUTPUT].decode("utf-8", "replace")
    if process.returncode:
        said = (errors.decode("utf-8", "replace").strip() or text.strip()).partition("\n")[0][:200]
        return ToolAnswer(found=True, problem=f"failed with exit status {process.returncode}: {said}")
    return ToolAnswer(found=True, output=text)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=_AFTER_KILL_SECONDS)
