"""A child process that can neither block the event loop nor outstay its time."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from math import ceil
from pathlib import Path

_LONGEST_OUTPUT = 8 * 2**20
_LONGEST_ERRORS = 64 * 2**10
_AFTER_KILL_SECONDS = 2.0
_LONGER_SECONDS = 5  # that a child has for itself: it is ended from here while this process lives
_BOUNDED = Path(__file__).with_name("bounded.py")
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|API_KEY", re.IGNORECASE)


@dataclass(frozen=True)
class ChildResult:
    """How a child ended: its exit status (-N for signal N), the head of stdout and the tail of stderr."""

    status: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        """The last line that it wrote to stderr: Python's error message."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return "".join(character for character in lines[-1] if character.isprintable())[:300] if lines else ""


def probe_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a probe: ours without secrets, asking no Hub and importing nothing from where it stands."""
    kept = {name: value for name, value in environment.items() if not _SECRET.search(name)}
    return {**kept, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}


def with_programs_of(interpreter: str | os.PathLike[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with the interpreter's own folder at the end of PATH.

    torch looks for ninja on PATH alone when Quark's kernels are compiled; pip puts it beside the interpreter.
    """
    own = os.path.dirname(interpreter)  # noqa: PTH120 - a path from a manifest, looked at as text
    path = environment.get("PATH", os.defpath)
    return {**environment, "PATH": path if not own or own in path.split(":") else f"{path}:{own}"}


async def run_child(
    argv: Sequence[str], *, timeout_seconds: float, environment: Mapping[str, str], folder: Path
) -> ChildResult:
    """Run a program to its end. Raises OSError when it cannot be started and TimeoutError when it takes too long.

    The child leads a process group of its own, of which nothing is left afterwards, whether it ended, took too long or
    the caller was cancelled. Where this process is killed, the kernel ends the child.
    """
    # Pipes of our own: asyncio's would let `wait` wait for a grandchild that holds them open.
    async with (
        _pipe(_head) as (output_end, output),
        _pipe(_tail) as (errors_end, errors),
        _pipe(_head) as (report_end, report),
    ):
        try:
            bounds = [str(os.getpid()), str(ceil(timeout_seconds) + _LONGER_SECONDS), str(report_end)]
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(_BOUNDED), *bounds, *argv),
                pass_fds=(report_end,),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output_end,
                stderr=errors_end,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        finally:
            os.close(output_end)
            os.close(errors_end)
            os.close(report_end)
        try:
            async with asyncio.timeout(timeout_seconds):
                status = await process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(TimeoutError):
                async with asyncio.timeout(_AFTER_KILL_SECONDS):
                    await process.wait()
        read, _ = await asyncio.wait((output, errors, report), timeout=_AFTER_KILL_SECONDS)
        if report in read and (number := report.result()):
            raise OSError(int(number), os.strerror(int(number)), argv[0])
        texts = [part.result().decode("utf-8", "replace") if part in read else "" for part in (output, errors)]
    return ChildResult(status, *texts)


@asynccontextmanager
async def _pipe(
    read: Callable[[asyncio.StreamReader], Coroutine[None, None, bytes]],
) -> AsyncIterator[tuple[int, asyncio.Task[bytes]]]:
    """The writing end of a pipe, for a child, and the task that reads the other end. The caller closes the former."""
    reading, writing = os.pipe()
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(reading, "rb", 0)
    )
    task = asyncio.ensure_future(read(stream))
    try:
        yield writing, task
    finally:
        task.cancel()
        transport.close()


async def _head(stream: asyncio.StreamReader) -> bytes:
    """The first bytes of a stream; the rest is read too, since a full pipe would stop the child."""
    kept = bytearray()
    while piece := await stream.read(2**16):
        kept += piece[: max(0, _LONGEST_OUTPUT - len(kept))]
    return bytes(kept)


async def _tail(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while piece := await stream.read(2**16):
        kept += piece
        del kept[: max(0, len(kept) - _LONGEST_ERRORS)]
    return bytes(kept)
