"""Sharing out GPUs, on a pretend host: real locks, real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.errors import Conflict
from runner.host.gpus.busy import NOT_TOLD
from runner.host.gpus.identity import name_of
from runner.host.gpus.inventory import Inventory, offered
from runner.host.gpus.pool import HeldGpus, HostGpus
from runner.host.gpus.shortage import Shortage
from runner.host.gpus.use import GpuUse
from runner.host.tools import ToolAnswer
from runner.runs.gpus import GpuPool
from runner.settings import GpuSettings
from schemas.artifacts.environment import Gpu
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until


def _no_tools(_: Sequence[str]) -> ToolAnswer:
    return ToolAnswer(found=False, problem="is not on PATH")


def _one_h100(argv: Sequence[str]) -> ToolAnswer:
    if argv[0] != "nvidia-smi":
        return ToolAnswer(found=False, problem="is not on PATH")
    if "compute-apps" in argv[1]:
        return ToolAnswer(True, "")
    if "compute_cap" in argv[1]:
        return ToolAnswer(True, "0, H100, 81559, 81000, 580, GPU-a, 00000000:C1:00.0, 9.0")
    return ToolAnswer(True, "0, GPU-a, 00000000:C1:00.0, 14, 0")


def pool(gpus: PretendGpus, folder: Path, environment: dict[str, str] | None = None, **settings: object) -> HostGpus:
    """A daemon's share of pretend GPUs, whose leases lie in a folder."""
    chosen = GpuSettings.model_validate({"lease_dir": folder / "leases", **settings})
    return HostGpus(chosen, gpus.root, _no_tools, environment or {}, between_looks_seconds=0.0)


def in_protocol(gpus: HostGpus) -> GpuPool:
    """Whether it is what the queue needs is for the type checker to say."""
    return gpus


@dataclass
class Watched(HostGpus):
    """A pool that tells after each look at what GPUs hold of which ones it was."""

    after: Callable[[list[int]], None] = field(kw_only=True)

    async def _uses(self, here: Inventory, gpus: Sequence[Gpu]) -> list[GpuUse]:
        found = await super()._uses(here, gpus)
        self.after([gpu.index for gpu in gpus])
        return found


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
    lease.close()  # a second time does no harm to a descriptor of the same number


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
    with pytest.raises(Conflict, match="names 9, which this host does not have") as unknown:
        asyncio.run(pool(gpus, tmp_path, visible=["9"]).take(1))
    assert f"GPUs that runs may use here: {gpus.name(0)}, " in unknown.value.hint
    with pytest.raises(Conflict, match="names 2, which the mask that this daemon inherited hides"):
        asyncio.run(pool(gpus, tmp_path, {"HIP_VISIBLE_DEVICES": "3,1"}, visible=["2"]).take(1))


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


def test_a_run_on_the_cpu_sees_no_gpu(gpus: PretendGpus, tmp_path: Path) -> None:
    for mine in (pool(gpus, tmp_path), pool(gpus, tmp_path, visible=["9"])):
        lease = taken(asyncio.run(in_protocol(mine).take(0)))  # type: ignore[arg-type]
        assert (lease.gpus, lease.descriptors, lease.mask) == ((), (), {"HIP_VISIBLE_DEVICES": "-1"})
    nothing = HostGpus(GpuSettings(lease_dir=tmp_path / "leases"), tmp_path / "empty", _no_tools, {})
    assert taken(asyncio.run(nothing.take(0))).mask == {}
    with pytest.raises(Conflict, match="needs 1, and runs may use no GPU here"):
        asyncio.run(nothing.take(1))


def test_what_becomes_busy_while_it_is_locked_is_left_alone(gpus: PretendGpus, tmp_path: Path) -> None:
    """Somebody begins to compute between the first look and the lock: the look after the lock finds it."""
    looks = 0

    def changed() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            gpus.process(0, 4242, 72 * 2**30)
            gpus.use(1, 72 * 2**30)

    mine = Watched(pool(gpus, tmp_path).settings, gpus.root, _no_tools, {}, after=lambda _: changed())
    lease = taken(asyncio.run(mine.take(2)))
    assert [gpu.index for gpu in lease.gpus] == [2, 3]
    assert not asyncio.run(pool(gpus, tmp_path).standings())[1].busy.startswith("another")
    lease.close()


def test_load_is_looked_at_three_times_and_only_where_it_is_needed(gpus: PretendGpus, tmp_path: Path) -> None:
    asked: list[list[int]] = []
    mine = Watched(pool(gpus, tmp_path).settings, gpus.root, _no_tools, {}, 0.0, after=asked.append)
    for index in range(3):
        gpus.load(index, 50)
    gpus.use(0, 72 * 2**30)
    lease = taken(asyncio.run(mine.take(1)))
    assert [gpu.index for gpu in lease.gpus] == [3]
    assert asked == [[0, 1, 2, 3], [3]]  # one that does not compute is had at once
    asked.clear()
    assert "it computes at 50 %" in refused(asyncio.run(mine.take(1)))
    assert asked == [[0, 1, 2, 3], [1, 2], [1, 2], [1, 2]]
    lease.close()


def test_a_spike_of_load_keeps_nobody_from_a_gpu(gpus: PretendGpus, tmp_path: Path) -> None:
    looks = 0

    def spikes(_: list[int]) -> None:
        nonlocal looks
        looks += 1
        gpus.load(2, 0 if looks == 2 else 99)

    for index in range(4):
        gpus.load(index, 99)
    mine = Watched(pool(gpus, tmp_path).settings, gpus.root, _no_tools, {}, 0.0, after=spikes)
    told = asyncio.run(mine.take(1))
    assert isinstance(told, Shortage)  # it computes again at all looks after the lock
    gpus.load(2, 99)
    mine.after = lambda _: gpus.load(2, 0)
    lease = taken(asyncio.run(mine.take(1)))
    assert [gpu.index for gpu in lease.gpus] == [2]
    lease.close()


def test_the_event_loop_goes_on_while_tools_are_slow(tmp_path: Path) -> None:
    release = threading.Event()

    def slow(argv: Sequence[str]) -> ToolAnswer:
        release.wait(10)
        return _one_h100(argv)

    async def both() -> tuple[HeldGpus | Shortage, int]:
        mine = HostGpus(GpuSettings(lease_dir=tmp_path / "leases"), tmp_path / "root", slow, {})
        taking = asyncio.create_task(mine.take(1))
        turns = 0
        while not taking.done():
            turns += 1
            await asyncio.sleep(0)
            if turns == 100:
                release.set()
        return taking.result(), turns

    lease, turns = asyncio.run(both())
    assert taken(lease).mask["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert turns >= 100
    taken(lease).close()


def test_a_cancelled_taking_leaves_nothing_locked(gpus: PretendGpus, tmp_path: Path) -> None:
    settings = pool(gpus, tmp_path).settings
    mine = Watched(settings, gpus.root, _no_tools, {}, 600.0, after=lambda _: gpus.load(0, 99))

    async def given_up() -> None:
        taking = asyncio.create_task(mine.take(1))
        other = pool(gpus, tmp_path)
        for _ in range(1000):
            if (await other.standings())[0].busy == "another run has it":
                break
        else:
            raise AssertionError("it was never locked")
        taking.cancel()
        await asyncio.wait([taking])

    asyncio.run(asyncio.wait_for(given_up(), 30))
    assert [one.busy for one in asyncio.run(mine.standings())] == [""] * 4


def test_partitions_of_a_card_are_leased_one_by_one(tmp_path: Path) -> None:
    gpus = PretendGpus(tmp_path / "root", 8, parts=8)
    first, second = pool(gpus, tmp_path), pool(gpus, tmp_path)
    leases = [taken(asyncio.run((first, second)[turn % 2].take(1))) for turn in range(8)]
    assert [lease.mask["HIP_VISIBLE_DEVICES"] for lease in leases] == [str(index) for index in range(8)]
    assert "0 free" in refused(asyncio.run(first.take(1)))
    for lease in leases:
        lease.close()


def test_two_that_cannot_be_told_apart_are_leased_as_one() -> None:
    cards = tuple(Gpu(index=index, uuid=uuid) for index, uuid in enumerate(("GPU-a", "GPU-a", "GPU-b")))
    found = (Inventory("amd", cards), Inventory("nvidia"))
    assert [gpu.index for gpu in offered(found, {}, None).gpus] == [0, 2]
    assert [gpu.index for gpu in offered(found, {}, ["2", "1"]).gpus] == [2, 1]


def test_gpus_of_two_vendors_need_a_setting(gpus: PretendGpus, tmp_path: Path) -> None:
    def host(visible: list[str] | None) -> HostGpus:
        chosen = GpuSettings(lease_dir=tmp_path / "leases", visible=visible)
        return HostGpus(chosen, gpus.root, _one_h100, {}, between_looks_seconds=0.0)

    for unclear in (None, ["0"]):
        with pytest.raises(Conflict, match="AMD and NVIDIA"):
            asyncio.run(host(unclear).take(1))
    lease = taken(asyncio.run(host(["0000:c1:00.0"]).take(1)))
    assert lease.mask["CUDA_VISIBLE_DEVICES"] == "GPU-a"
    assert asyncio.run(host(None).still_held([name_of(lease.gpus[0])])) == ""
    lease.close()


def test_a_gpu_of_which_nothing_is_told_is_given_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "root/proc/driver/nvidia/gpus/0000:c1:00.0").mkdir(parents=True)
    mine = HostGpus(GpuSettings(lease_dir=tmp_path / "leases"), tmp_path / "root", _no_tools, {})
    assert NOT_TOLD in refused(asyncio.run(mine.take(1)))
    assert asyncio.run(mine.standings())[0].busy == NOT_TOLD
    assert asyncio.run(mine.still_held(["0 (0000:c1:00.0)"])) == ""
