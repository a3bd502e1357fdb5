"""Stores in a test's folder, and the other processes that get in their way."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from bot.clock import Clock
from bot.store.store import Store
from tests.bot.store.samples import HeldClock
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
_LIMIT_BYTES = 4096


def url(path: Path) -> str:
    """The database URL of a file."""
    return f"sqlite:///{path}"


@asynccontextmanager
async def opened(path: Path, clock: Clock | None = None, busy_seconds: float = 5.0) -> AsyncIterator[Store]:
    """The store of this file, closed at the end."""
    store = await Store.open(url(path), clock or HeldClock(), busy_seconds=busy_seconds)
    try:
        yield store
    finally:
        await store.close()


@contextmanager
def other_process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Another Python process that runs this code until its input ends. It is ready when it has said so."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


LOCKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("ready", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
print("done", flush=True)
sys.stdin.readline()
"""

WORKING = """
import asyncio, sys
from bot.clock import SystemClock
from bot.store.store import Store

async def work():
    await Store.open(sys.argv[1], SystemClock())
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

asyncio.run(work())
"""


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[Path, Callable[[], None], Callable[[], None]]]:
    """A folder, and two functions: let its disk be full, and free it again.

    A small file system of its own where one may be mounted; elsewhere the kernel's limit for files stands in for it.
    """
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True).returncode:
        with limited_files() as (fill, free):
            yield folder, fill, free
        return
    try:
        yield folder, lambda: _fill(folder / "filler"), (folder / "filler").unlink
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@contextmanager
def limited_files() -> Iterator[tuple[Callable[[], None], Callable[[], None]]]:
    """Let no file of this process grow, and lift that again: the kernel's own stand-in for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def lift() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (_LIMIT_BYTES, hard)), lift
    finally:
        lift()


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            try:
                while filler.write(b"\0" * size):
                    os.fsync(filler.fileno())
            except OSError:
                continue


def ended(process: subprocess.Popen[str]) -> None:
    """Wait until the process is gone."""
    wait_until(lambda: process.poll() is not None, message="the other process still runs")
