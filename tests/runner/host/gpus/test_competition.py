"""Daemons that compete for the GPUs of one host: real processes, killed at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.peers.gpus import PretendGpus
from tests.runner.host.gpus.test_pool import pool, taken

_TAKER = """
import asyncio, os, sys
from pathlib import Path
from tests.peers.gpus import PretendGpus
from tests.runner.host.gpus.test_pool import pool
from runner.host.gpus.pool import HeldGpus

root, leases, marks = map(Path, sys.argv[1:4])
count, wanted = map(int, sys.argv[4:])

class Same(PretendGpus):
    def __init__(self, root): self.root = root

async def main():
    mine = pool(Same(root), leases)
    won = 0
    while won < wanted:
        lease = await mine.take(count)
        if not isinstance(lease, HeldGpus):
            await asyncio.sleep(0.001)
            continue
        for gpu in lease.gpus:
            (marks / str(gpu.index)).open("x").close()   # fails where another one has it
        await asyncio.sleep(0.002)
        for gpu in lease.gpus:
            (marks / str(gpu.index)).unlink()
        lease.close()
        won += 1
        print(won, flush=True)

asyncio.run(main())
"""


def started(gpus: PretendGpus, folder: Path, count: int, wanted: int) -> subprocess.Popen[str]:
    marks = folder / "marks"
    marks.mkdir(exist_ok=True)
    words = [str(gpus.root), str(folder), str(marks), str(count), str(wanted)]
    return subprocess.Popen(
        [sys.executable, "-c", _TAKER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_two_daemons_never_hold_the_same_of_eight_gpus(tmp_path: Path) -> None:
    gpus = PretendGpus(tmp_path / "root", 8)
    takers = [started(gpus, tmp_path, count, 40) for count in (3, 5, 2)]
    ends = [(taker.communicate(timeout=120)[1], taker.returncode) for taker in takers]
    assert [status for _, status in ends] == [0, 0, 0], ends


def test_a_daemon_that_is_killed_at_any_moment_leaves_nothing_locked(tmp_path: Path) -> None:
    gpus = PretendGpus(tmp_path / "root", 4)
    chance = random.Random(7)
    for _ in range(6):
        taker = started(gpus, tmp_path, 3, 10**6)
        assert taker.stdout is not None
        for _ in range(chance.randint(1, 20)):
            taker.stdout.readline()
        os.kill(taker.pid, signal.SIGKILL)
        taker.communicate()
        for mark in (tmp_path / "marks").iterdir():
            mark.unlink()
        taken(asyncio.run(pool(gpus, tmp_path).take(4))).close()
