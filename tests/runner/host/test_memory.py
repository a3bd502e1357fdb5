"""Memory of this host as the kernel tells it, below cgroups of both versions, and of the GPUs that runs may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.host.memory import GpuMemory, HostMemory, gpu_memory, host_memory, max_map_count
from runner.settings import GpuSettings
from schemas.artifacts.environment import Accelerator, Gpu, Hardware

GIB = 2**30
MEMINFO = f"MemTotal:       {64 * 2**20} kB\nMemFree:  1 kB\nMemAvailable:   {48 * 2**20} kB\n"


def written(root: Path, files: dict[str, str]) -> Path:
    """A file system root with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V2 = "sys/fs/cgroup/"
V1 = "sys/fs/cgroup/memory/"
HERE = {"proc/meminfo": MEMINFO}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, HostMemory(None, None)),
        ({"proc/meminfo": "MemTotal: many kB\n"}, HostMemory(None, None)),
        (HERE, HostMemory(64 * GIB, 48 * GIB)),
        ({**HERE, "proc/self/cgroup": "0::/\n", f"{V2}memory.max": "max\n"}, HostMemory(64 * GIB, 48 * GIB)),
        (
            {
                **HERE,
                "proc/self/cgroup": "0::/\n",
                f"{V2}memory.max": f"{8 * GIB}",
                f"{V2}memory.current": f"{3 * GIB}",
            },
            HostMemory(8 * GIB, 5 * GIB),
        ),
        (
            {
                **HERE,
                "proc/self/cgroup": "0::/system.slice/ptq.service\n",
                f"{V2}system.slice/memory.max": f"{16 * GIB}",
                f"{V2}system.slice/memory.current": f"{10 * GIB}",
                f"{V2}system.slice/memory.stat": f"anon 1\ninactive_file {4 * GIB}\n",
                f"{V2}system.slice/ptq.service/memory.max": "max",
            },
            HostMemory(16 * GIB, 10 * GIB),
        ),
        (
            {
                **HERE,
                "proc/self/cgroup": "0::/x\n",
                f"{V2}x/memory.max": f"{GIB}",
                f"{V2}x/memory.current": f"{2 * GIB}",
            },
            HostMemory(GIB, 0),
        ),
        (
            {
                **HERE,
                "proc/self/cgroup": "11:cpu:/a\n5:memory:/docker/b\n",
                f"{V1}memory.limit_in_bytes": f"{4 * GIB}",
                f"{V1}memory.usage_in_bytes": f"{GIB}",
            },
            HostMemory(4 * GIB, 3 * GIB),
        ),
        (
            {**HERE, "proc/self/cgroup": "5:memory:/\n", f"{V1}memory.limit_in_bytes": "9223372036854771712"},
            HostMemory(64 * GIB, 48 * GIB),
        ),
        (
            {**HERE, "proc/self/cgroup": "0::/../..\n", f"{V2}memory.max": f"{90 * GIB}"},
            HostMemory(64 * GIB, 48 * GIB),
        ),
    ],
)
def test_memory_is_what_the_kernel_and_the_cgroups_leave(
    tmp_path: Path, files: dict[str, str], expected: HostMemory
) -> None:
    assert host_memory(written(tmp_path, files)) == expected


def test_this_host_has_memory() -> None:
    found = host_memory()
    assert found.total_bytes is not None
    assert found.available_bytes is not None
    assert 0 < found.available_bytes <= found.total_bytes


@pytest.mark.parametrize(("text", "expected"), [("65530\n", 65530), ("", None), ("many", None), ("-1", None)])
def test_the_bound_on_mappings_is_a_number_or_unknown(tmp_path: Path, text: str, expected: int | None) -> None:
    assert max_map_count(written(tmp_path, {"proc/sys/vm/max_map_count": text})) == expected
    assert max_map_count(tmp_path / "nowhere") is None


GPUS = [
    Gpu(
        index=index,
        uuid=f"GPU-{index}",
        bus_address=f"0000:0{index}:00.0",
        memory_bytes=80 * GIB,
        memory_used_bytes=GIB,
    )
    for index in range(4)
]


@pytest.mark.parametrize(
    ("settings", "gpus", "expected"),
    [
        (GpuSettings(), [], GpuMemory()),
        (GpuSettings(per_run=2), [], GpuMemory(per_run=2)),
        (GpuSettings(), GPUS, GpuMemory((80 * GIB,) * 4, (79 * GIB,) * 4, 1)),
        (GpuSettings(per_run=8), GPUS, GpuMemory((80 * GIB,) * 4, (79 * GIB,) * 4, 4)),
        (
            GpuSettings(visible=["3", "GPU-1", "0000:02:00.0"], per_run=2),
            [GPUS[0], GPUS[1], GPUS[2], GPUS[3].model_copy(update={"memory_bytes": 40 * GIB})],
            GpuMemory((40 * GIB, 80 * GIB, 80 * GIB), (39 * GIB, 79 * GIB, 79 * GIB), 2),
        ),
        (GpuSettings(visible=["7"]), GPUS, GpuMemory()),
        (GpuSettings(), [GPUS[0], Gpu(index=1)], GpuMemory()),
        (GpuSettings(), [GPUS[0].model_copy(update={"memory_used_bytes": None})], GpuMemory((80 * GIB,), ())),
        (  # a run gets the second and third: the first is in use
            GpuSettings(per_run=2),
            [GPUS[0].model_copy(update={"memory_used_bytes": 72 * GIB}), GPUS[1], GPUS[2]],
            GpuMemory((80 * GIB,) * 3, (79 * GIB, 79 * GIB, 8 * GIB), 2),
        ),
        (  # parts of a card report its whole memory
            GpuSettings(per_run=2),
            [gpu.model_copy(update={"uuid": "GPU-x", "partition": f"CPX {gpu.index}"}) for gpu in GPUS],
            GpuMemory((20 * GIB,) * 4, (79 * GIB // 4,) * 4, 2),
        ),
        (GpuSettings(), [GPUS[0].model_copy(update={"memory_used_bytes": 90 * GIB})], GpuMemory((80 * GIB,), (0,))),
    ],
)
def test_only_gpus_that_runs_may_use_count(settings: GpuSettings, gpus: list[Gpu], expected: GpuMemory) -> None:
    assert gpu_memory(Hardware(accelerator="unknown", gpus=gpus), settings, {}) == expected


@pytest.mark.parametrize(
    ("accelerator", "environment", "count"),
    [
        ("amd-rocm", {"HIP_VISIBLE_DEVICES": "1,2"}, 2),
        ("amd-rocm", {"ROCR_VISIBLE_DEVICES": ""}, 0),
        ("nvidia-cuda", {"CUDA_VISIBLE_DEVICES": "GPU-1"}, 1),
        ("nvidia-cuda", {"HIP_VISIBLE_DEVICES": "1"}, 4),
        ("unknown", {"CUDA_VISIBLE_DEVICES": "1"}, 4),
    ],
)
def test_only_gpus_of_an_inherited_mask_count(
    accelerator: Accelerator, environment: dict[str, str], count: int
) -> None:
    found = gpu_memory(Hardware(accelerator=accelerator, gpus=GPUS), GpuSettings(), environment)
    assert len(found.total) == count
