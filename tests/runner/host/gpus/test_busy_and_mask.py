"""The busy rule, and the variables that show a run its GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.gpus.busy import busy, not_free
from runner.host.gpus.mask import allowed, inherited, mask
from runner.host.gpus.use import GpuProcess, GpuUse
from runner.settings import GpuSettings
from schemas.artifacts.environment import Gpu

IDLE = GpuSettings().idle_bytes
GIB = 2**30
GPU = Gpu(index=0)
CARDS = [Gpu(index=index, uuid=f"GPU-{index}000", bus_address=f"0000:0{index}:00.0") for index in range(4)]


@pytest.mark.parametrize(
    ("looks", "why"),
    [
        ([GpuUse(GPU, 0, 90), GpuUse(GPU, 0, 80), GpuUse(GPU, 0, 70)], "it computes at 70 %"),
        ([GpuUse(GPU, 0, 90), GpuUse(GPU, 0, 80), GpuUse(GPU, 0, 5)], ""),
        ([GpuUse(GPU, 0, 90), GpuUse(GPU, 0, None), GpuUse(GPU, 0, 70)], ""),
        ([GpuUse(GPU, 0, 90)], ""),
        ([GpuUse(GPU, 72 * GIB, 0)], "72 GiB in use"),
        ([GpuUse(GPU, IDLE, 0)], ""),
        ([GpuUse(GPU, IDLE + 1, 0)], "1.3 GiB in use"),
        (
            [GpuUse(GPU, 0, 0, (GpuProcess(4242, 72 * GIB), GpuProcess(7, 1)))],
            "72 GiB in use by process 4242 and 1 more",
        ),
        ([GpuUse(GPU, 2 * GIB, 0, (GpuProcess(7),))], "2.0 GiB in use by process 7"),
    ],
)
def test_the_busy_rule(looks: list[GpuUse], why: str) -> None:
    assert busy(looks, IDLE) == why


@given(st.none() | st.integers(0, 300 * GIB), st.none() | st.integers(0, 100), st.booleans())
def test_only_a_gpu_that_is_known_to_be_empty_is_free(used: int | None, load: int | None, told: bool) -> None:
    use = GpuUse(GPU, used, load, () if told else None)
    assert (not_free(use, IDLE) == "") == ((used is not None or told) and (used or 0) <= IDLE)


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("2,0", [2, 0]),
        ("GPU-1000", [1]),
        ("GPU-1", [1]),
        ("1,9,2", [1]),
        ("1,1,2", [1]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-", []),
        ("\u00b2", []),
        ("9" * 30, []),
        (" 3 , 2 ", [3, 2]),
    ],
)
def test_an_inherited_mask_is_read_as_the_drivers_read_it(value: str, left: list[int]) -> None:
    assert [gpu.index for gpu in inherited(CARDS, "nvidia", {"CUDA_VISIBLE_DEVICES": value})] == left
    assert [gpu.index for gpu in inherited(CARDS, "amd", {"HIP_VISIBLE_DEVICES": value})] == left


@pytest.mark.parametrize(
    ("environment", "left"),
    [
        ({}, [0, 1, 2, 3]),
        ({"ROCR_VISIBLE_DEVICES": "3,2", "HIP_VISIBLE_DEVICES": "1"}, [2]),
        ({"ROCR_VISIBLE_DEVICES": "3,2", "CUDA_VISIBLE_DEVICES": "3,2"}, [3, 2]),  # as Slurm sets them
        ({"CUDA_VISIBLE_DEVICES": "1"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0,3"}, [0, 3]),
    ],
)
def test_masks_of_rocm_take_effect_one_below_the_other(environment: dict[str, str], left: list[int]) -> None:
    assert [gpu.index for gpu in inherited(CARDS, "amd", environment)] == left


def test_masks_of_rocm_mean_nothing_to_cuda() -> None:
    assert inherited(CARDS, "nvidia", {"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": ""}) == CARDS


@given(
    st.text(max_size=30) | st.lists(st.sampled_from(["0", "3", "9", "GPU-2000", "x", ""])).map(",".join), st.booleans()
)
def test_no_mask_shows_more_than_there_is(value: str, amd: bool) -> None:
    names = {"HIP_VISIBLE_DEVICES": value} if amd else {"CUDA_VISIBLE_DEVICES": value}
    left = [gpu.index for gpu in inherited(CARDS, "amd" if amd else "nvidia", names)]
    assert len(set(left)) == len(left) <= 4


def test_there_is_one_mask_and_it_names_what_was_chosen() -> None:
    two = [CARDS[2], CARDS[0]]
    assert mask(two, "nvidia") == {"CUDA_VISIBLE_DEVICES": "GPU-2000,GPU-0000", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert mask(two, "amd") == {"HIP_VISIBLE_DEVICES": "2,0"}
    assert mask(two, "amd", "ROCR_VISIBLE_DEVICES") == {
        "ROCR_VISIBLE_DEVICES": "GPU-2000,GPU-0000",
        "CUDA_VISIBLE_DEVICES": "0,1",
    }
    parts = [gpu.model_copy(update={"uuid": "GPU-1", "partition": f"CPX {gpu.index}"}) for gpu in two]
    assert mask(parts, "amd", "ROCR_VISIBLE_DEVICES") == {"HIP_VISIBLE_DEVICES": "2,0"}
    assert mask(parts[:1], "amd", "ROCR_VISIBLE_DEVICES") == {"HIP_VISIBLE_DEVICES": "2"}


def test_a_setting_names_gpus_in_many_ways_and_a_card_means_all_its_parts() -> None:
    assert allowed(CARDS, ["3", "GPU-1000", "0000:02:00.0", "1"]) == ([CARDS[3], CARDS[1], CARDS[2]], [])
    assert allowed(CARDS, ["0000:0F:00.0", "0"]) == ([CARDS[0]], ["0000:0F:00.0"])
    parts = [Gpu(index=index, uuid="GPU-1", bus_address=f"0000:01:00.{index}") for index in range(3)]
    assert allowed(parts, ["GPU-1"]) == (parts, [])
    assert allowed(parts, ["0000:01:00.2"]) == ([parts[2]], [])
