"""Sharing out GPUs, on a pretend host: real locks, real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.errors import Broken, Conflict
from runner.host.gpus.pool import HeldGpus, HostGpus
from runner.host.gpus.shortage import Shortage
from runner.host.tools import ToolAnswer
from runner.settings import GpuSettings
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until


def _no_tools(_: Sequence[str]) -> ToolAnswer:
    return ToolAnswer(found=False, problem="is not on PATH")


def pool(gpus: PretendGpus, folder: Path, environment: dict[str, str] | None = None, **settings: object) -> HostGpus:
    chosen = GpuSettings.model_validate({"lease_dir": folder / "leases", **settings})
    return HostGpus(chosen, gpus.root, _no_tools, environment or {}, between_looks_seconds=0.0)


@pytest.fixture
def gpus(tmp_path: Path) -> PretendGpus:
    return PretendGpus(tmp_path / "root", 4)


def taken(found: HeldGpus | Shortage) -> HeldGpus:
    assert isinstance(found, HeldGpus), found
    return found


def refused(found: HeldGpus | Shortage) -> str:
    assert isinstance(found, Shortage), found
    return found.sentence


def test_a_run_gets_the_first_free_gpu_and_its_mask(gpus: PretendGpus, tmp_path: Path) -> None:
    lease = taken(asyncio.run(pool(gpus, tmp_path).take(1)))
    assert [gpu.index for gpu in lease.gpus] == [0]
    assert lease.mask == {"HIP_VISIBLE_DEVICES": "0"}
    lease.close()


def test_two_daemons_never_share_one_and_a_closed_lease_is_free_again(gpus: PretendGpus, tmp_path: Path) -> None:
    one, other = pool(gpus, tmp_path), pool(gpus, tmp_path)
    first = taken(asyncio.run(one.take(3)))
    second = taken(asyncio.run(other.take(1)))
    assert [gpu.index for gpu in second.gpus] == [3]
    assert "It waits for 1 GPU; 0 free" in refused(asyncio.run(other.take(1)))
    first.close()
    assert len(taken(asyncio.run(other.take(3))).gpus) == 3
    second.close()


@pytest.mark.parametrize(
    ("index", "why"), [(0, "72 GiB in use by process 4242"), (1, "12 GiB in use"), (2, "it computes at 99 %")]
)
def test_a_busy_gpu_is_left_alone_with_its_reason(gpus: PretendGpus, tmp_path: Path, index: int, why: str) -> None:
    gpus.process(0, 4242, 72 * 2**30)
    gpus.use(1, 12 * 2**30)
    gpus.load(2, 99)
    lease = taken(asyncio.run(pool(gpus, tmp_path).take(1)))
    assert [gpu.index for gpu in lease.gpus] == [3]
    told = asyncio.run(pool(gpus, tmp_path).take(4))
    assert isinstance(told, Shortage)
    assert f"GPU {gpus.name(index)}: {why}" in told.busy
    lease.close()


def test_a_process_without_memory_is_no_user_of_the_gpu(gpus: PretendGpus, tmp_path: Path) -> None:
    gpus.process(0, 15910, 0)
    lease = taken(asyncio.run(pool(gpus, tmp_path).take(1)))
    assert [gpu.index for gpu in lease.gpus] == [0]
    lease.close()


def test_nothing_stays_locked_after_a_shortage(gpus: PretendGpus, tmp_path: Path) -> None:
    gpus.use(2, 50 * 2**30)
    for _ in range(3):
        assert "It waits for 4 GPUs; 3 free" in refused(asyncio.run(pool(gpus, tmp_path).take(4)))
    taken(asyncio.run(pool(gpus, tmp_path).take(3))).close()


def test_only_gpus_of_the_setting_and_of_an_inherited_mask_are_offered(gpus: PretendGpus, tmp_path: Path) -> None:
    named = pool(gpus, tmp_path, visible=["2", "0000:05:00.0"])
    lease = taken(asyncio.run(named.take(2)))
    assert lease.mask == {"HIP_VISIBLE_DEVICES": "2,0"}
    lease.close()
    inside = pool(gpus, tmp_path, {"HIP_VISIBLE_DEVICES": "3,1"})
    lease = taken(asyncio.run(inside.take(2)))
    assert lease.mask == {"HIP_VISIBLE_DEVICES": "3,1"}
    lease.close()
    with pytest.raises(Conflict, match="needs 3"):
        asyncio.run(inside.take(3))
    with pytest.raises(Conflict, match="names 9"):
        asyncio.run(pool(gpus, tmp_path, visible=["9"]).take(1))


def test_rocr_masks_take_uuids_and_show_the_published_script_all_of_them(gpus: PretendGpus, tmp_path: Path) -> None:
    lease = taken(asyncio.run(pool(gpus, tmp_path, mask="ROCR_VISIBLE_DEVICES").take(2)))
    assert lease.mask == {
        "ROCR_VISIBLE_DEVICES": "GPU-000000001a2b0000,GPU-000000001a2b0001",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    lease.close()


def test_the_same_gpus_are_had_again_only_when_their_run_is_gone(gpus: PretendGpus, tmp_path: Path) -> None:
    names = [gpus.name(1), gpus.name(3)]
    gpus.use(1, 90 * 2**30)
    mine = pool(gpus, tmp_path)
    lease = taken(asyncio.run(mine.take_again(names)))
    assert [gpu.index for gpu in lease.gpus] == [1, 3]
    assert "another run has it" in refused(asyncio.run(pool(gpus, tmp_path).take_again(names[:1])))
    assert "90 GiB in use" in asyncio.run(mine.still_held(names))
    gpus.use(1, 0)
    assert asyncio.run(mine.still_held(names)) == ""
    lease.close()
    with pytest.raises(Conflict, match="not there any more"):
        asyncio.run(mine.take_again(["7 (0000:ff:00.0)"]))


def test_the_lease_lasts_as_long_as_a_process_of_the_run_lives(gpus: PretendGpus, tmp_path: Path) -> None:
    mine = pool(gpus, tmp_path)
    lease = taken(asyncio.run(mine.take(1)))
    code = "import subprocess, sys; subprocess.Popen(['sleep', '60'], close_fds=False); print('x', flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], pass_fds=lease.descriptors, stdout=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout is not None
        run.stdout.read(1)
        group = run.pid
        run.wait()  # the run's first process is gone, its child lives
        lease.close()
        assert asyncio.run(mine.standings())[0].busy == "another run has it"
        os.killpg(group, 9)
    wait_until(lambda: not asyncio.run(mine.standings())[0].busy, 10, "the lease outlives its run")


def test_a_planted_link_is_not_followed(gpus: PretendGpus, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_text("mine")
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases" / "0000_05_00.0.lock").symlink_to(treasure)
    with pytest.raises(Broken, match="Who has which GPU cannot be told"):
        asyncio.run(pool(gpus, tmp_path).take(1))
    assert treasure.read_text() == "mine"


def test_a_pipe_in_a_lock_s_place_holds_nobody_up(gpus: PretendGpus, tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir()
    os.mkfifo(tmp_path / "leases" / "0000_05_00.0.lock")
    with pytest.raises(Broken):
        asyncio.run(pool(gpus, tmp_path).take(1))


_TAKER = """
import asyncio, sys
from pathlib import Path
from tests.peers.gpus import PretendGpus
from tests.runner.host.gpus.test_pool import pool
from runner.host.gpus.pool import HeldGpus

root, leases, marks, me = map(Path, sys.argv[1:])

class Same(PretendGpus):
    def __init__(self, root): self.root = root

async def main():
    mine = pool(Same(root), leases)
    won = 0
    while won < 25:
        lease = await mine.take(2)
        if not isinstance(lease, HeldGpus):
            await asyncio.sleep(0.001)
            continue
        made = [marks / str(gpu.index) for gpu in lease.gpus]
        for mark in made:
            mark.open("x").close()   # fails where another one has it
        await asyncio.sleep(0.002)
        for mark in made:
            mark.unlink()
        lease.close()
        won += 1

asyncio.run(main())
"""


def test_processes_that_compete_never_hold_the_same_gpu(gpus: PretendGpus, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    words = [str(gpus.root), str(tmp_path), str(marks)]
    takers = [
        subprocess.Popen([sys.executable, "-c", _TAKER, *words, str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    ends = [(taker.communicate(timeout=120)[1], taker.returncode) for taker in takers]
    assert [status for _, status in ends] == [0, 0, 0], ends
