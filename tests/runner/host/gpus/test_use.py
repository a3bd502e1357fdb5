"""What GPUs hold, as kernel files and the vendors' tools say it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.amd import amd_gpus
from runner.host.gpus.busy import busy, held_by
from runner.host.gpus.identity import identity
from runner.host.gpus.mask import inherited, mask
from runner.host.gpus.use import GpuProcess, GpuUse, uses
from runner.host.nvidia import nvidia_gpus
from runner.host.tools import ToolAnswer
from runner.settings import GpuSettings
from schemas.artifacts.environment import Gpu
from tests.fixtures_folder import fixture
from tests.runner.host.tools_on_path import tools, with_kfd

IDLE = GpuSettings().idle_bytes
GIB = 2**30


def one(gpu: Gpu, root: Path, **answers: str) -> GpuUse:
    return uses([gpu], root, tools(**answers))[0]


@pytest.mark.parametrize("wrapped", [False, True])
def test_amd_smi_of_both_releases(tmp_path: Path, wrapped: bool) -> None:
    entry = {
        "gpu": 0,
        "mem_usage": {"used_vram": {"value": 283, "unit": "MB"}},
        "usage": {"gfx_activity": {"value": 7, "unit": "%"}},
    }
    held = {"process_info": {"pid": 41, "memory_usage": {"vram_mem": {"value": 3 * GIB, "unit": "B"}}}}
    idle = {"process_info": {"pid": 42, "memory_usage": {"vram_mem": {"value": 0, "unit": "B"}}}}
    process = {"gpu": 0, "process_list": [held, idle, {"process_info": "No running processes detected"}]}

    def amd_smi(argv: Sequence[str]) -> ToolAnswer:
        entries = [entry] if argv[1] == "metric" else [process]
        return ToolAnswer(True, json.dumps({"gpu_data": entries} if wrapped else entries))

    gpu = Gpu(index=0, arch="gfx942", bus_address="0000:05:00.0")
    (tmp_path / "sys/class/kfd/kfd").mkdir(parents=True)
    found = uses([gpu], tmp_path, tools(amd_smi=amd_smi))[0]
    assert (found.memory_used_bytes, found.load_percent) == (283 * 2**20, 7)
    assert found.processes == (GpuProcess(41, 3 * GIB),)


def test_recorded_outputs_of_amd_tools(tmp_path: Path) -> None:
    (tmp_path / "sys/class/kfd/kfd").mkdir(parents=True)
    metric = fixture("gpu/amd-smi-metric-rocm7-mi355x.json").read_text()
    nobody = fixture("gpu/amd-smi-process-none.json").read_text()
    nothing = fixture("gpu/amd-smi-process-zero-bytes.json").read_text()
    for processes in (nobody, nothing):

        def amd_smi(argv: Sequence[str], processes: str = processes) -> ToolAnswer:
            return ToolAnswer(True, metric if argv[1] == "metric" else processes)

        gpu = Gpu(index=0, arch="gfx950", bus_address="0000:05:00.0")
        found = uses([gpu], tmp_path, tools(amd_smi=amd_smi))[0]
        assert held_by(found, IDLE) == ""
    spx = fixture("gpu/rocm-smi-mi300x-spx.json").read_text()
    found = one(Gpu(index=0, arch="gfx942", bus_address="0000:01:00.0"), tmp_path, rocm_smi=spx)
    assert (found.memory_used_bytes, found.load_percent) == (301989888, 0)


def test_a_gpu_with_full_memory_is_busy_although_it_does_not_compute(tmp_path: Path) -> None:
    recorded = fixture("gpu/nvidia-smi-h100-busy-by-memory-idle-by-utilisation.csv").read_text()
    gpus = nvidia_gpus(tmp_path, tools(nvidia_smi=recorded)).gpus
    found = one(gpus[0], tmp_path, nvidia_smi="")
    assert busy([found], IDLE) == "71 GiB in use"


def test_nvidia_processes_are_found_by_uuid(tmp_path: Path) -> None:
    def nvidia_smi(argv: Sequence[str]) -> ToolAnswer:
        if "compute-apps" in argv[1]:
            return ToolAnswer(True, "GPU-aa, 77, 1024\nGPU-bb, 78, [N/A]\nGPU-bb, 79, 0\n")
        return ToolAnswer(True, "0, 00000000:01:00.0, 500, 3\n1, 00000000:02:00.0, [N/A], [N/A]\n")

    cards = [Gpu(index=0, bus_address="0000:01:00.0", uuid="GPU-aa"), Gpu(index=1, uuid="GPU-bb")]
    first, second = uses(cards, tmp_path, tools(nvidia_smi=nvidia_smi))
    assert (first.memory_used_bytes, first.load_percent) == (500 * 2**20, 3)
    assert first.processes == (GpuProcess(77, 2**30),)
    assert second.processes == (GpuProcess(78, None),)
    assert held_by(second, IDLE) == "memory in use by process 78"


@given(st.text(max_size=300), st.text(max_size=300))
def test_whatever_the_tools_say_nothing_is_raised(one_text: str, other: str) -> None:
    for gpu in (Gpu(index=0, arch="gfx942"), Gpu(index=0, uuid="GPU-a")):
        uses([gpu], Path("/nonexistent"), tools(amd_smi=one_text, rocm_smi=other, nvidia_smi=one_text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just("N/A"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "gpu",
                    "gpu_data",
                    "mem_usage",
                    "used_vram",
                    "value",
                    "unit",
                    "process_list",
                    "process_info",
                    "pid",
                    "card0",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_json_the_tools_print_nothing_is_raised(document: object) -> None:
    text = json.dumps(document)
    uses([Gpu(index=0, arch="gfx942")], Path("/"), tools(amd_smi=text, rocm_smi=text))


def test_load_alone_counts_only_at_every_look() -> None:
    gpu = Gpu(index=0)
    looks = [GpuUse(gpu, 0, load) for load in (90, 80, 70)]
    assert busy(looks, IDLE) == "it computes at 70 %"
    assert busy([*looks[:2], GpuUse(gpu, 0, 0)], IDLE) == ""
    assert busy([GpuUse(gpu, None, None)], IDLE) == ""


def test_an_inherited_mask_is_read_as_the_drivers_read_it() -> None:
    cards = [Gpu(index=index, uuid=f"GPU-{index}000") for index in range(4)]
    assert inherited(cards, {}) == cards
    assert inherited(cards, {"CUDA_VISIBLE_DEVICES": "2,0"}) == [cards[2], cards[0]]
    assert inherited(cards, {"CUDA_VISIBLE_DEVICES": "GPU-1000"}) == [cards[1]]
    assert inherited(cards, {"CUDA_VISIBLE_DEVICES": "1,9,2"}) == [cards[1]]
    assert inherited(cards, {"CUDA_VISIBLE_DEVICES": ""}) == []
    amd = [gpu.model_copy(update={"arch": "gfx942"}) for gpu in cards]
    both = {"ROCR_VISIBLE_DEVICES": "3,2", "HIP_VISIBLE_DEVICES": "1"}
    assert inherited(amd, both) == [amd[2]]


def test_instances_of_a_card_stand_in_its_place_and_are_told_apart(tmp_path: Path) -> None:
    def nvidia_smi(argv: Sequence[str]) -> ToolAnswer:
        if argv[1] == "-L":
            return ToolAnswer(
                True,
                "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222)\n"
                "  MIG 3g.40gb     Device  0: (UUID: MIG-aaaa)\n"
                "  MIG 3g.40gb     Device  1: (UUID: MIG-bbbb)\n"
                "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-33333333-4444)\n",
            )
        return ToolAnswer(True, fixture("gpu/nvidia-smi-2xh100.csv").read_text())

    found = nvidia_gpus(tmp_path, tools(nvidia_smi=nvidia_smi)).gpus
    assert [(gpu.index, gpu.partition) for gpu in found] == [(0, "MIG 3g.40gb 0"), (0, "MIG 3g.40gb 1"), (1, None)]
    assert len({identity(gpu) for gpu in found}) == 3
    assert mask(found[:1]) == {"CUDA_VISIBLE_DEVICES": "MIG-aaaa", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_partitions_that_share_a_unique_id_are_told_apart(tmp_path: Path) -> None:
    recorded = fixture("gpu/rocm-smi-mi300x-cpx-one-card-eight-partitions.json").read_text()
    found = amd_gpus(tmp_path, tools(rocm_smi=recorded)).gpus
    assert len({identity(gpu) for gpu in found}) == len(found) == 8
    kernel = amd_gpus(with_kfd(tmp_path, fixture("gpu/kfd/nodes")), tools()).gpus
    assert len({identity(gpu) for gpu in kernel}) == len(kernel)
