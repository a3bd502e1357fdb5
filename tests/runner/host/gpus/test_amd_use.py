"""What AMD GPUs hold, as kernel files and the vendor's tools say it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.amd import amd_gpus, kernel_gpus
from runner.host.gpus.amd_use import amd_uses
from runner.host.gpus.busy import NOT_TOLD, held_by, not_free
from runner.host.gpus.identity import identity
from runner.host.gpus.use import GpuProcess, GpuUse
from runner.host.tools import ToolAnswer
from runner.settings import GpuSettings
from schemas.artifacts.environment import Gpu
from tests.fixtures_folder import fixture
from tests.peers.gpus import BASELINE_BYTES, MEMORY_BYTES, PretendGpus
from tests.runner.host.tools_on_path import fails, tools, with_kfd

IDLE = GpuSettings().idle_bytes
GIB = 2**30
NOWHERE = Path("/nonexistent")
GPU = Gpu(index=0, arch="gfx942", bus_address="0000:05:00.0")


def answering(**answers: object) -> object:
    """An amd-smi that answers metric, list and process; the rest fails."""

    def amd_smi(argv: Sequence[str]) -> ToolAnswer:
        answer = answers.get(argv[1])
        return fails("failed") if answer is None else ToolAnswer(True, json.dumps(answer))

    return tools(amd_smi=amd_smi)


def one(gpu: Gpu, run: object) -> GpuUse:
    return amd_uses([gpu], NOWHERE, run)[0]  # type: ignore[arg-type]


def metric(index: int, mib: int, load: int) -> dict[str, object]:
    return {
        "gpu": index,
        "mem_usage": {"used_vram": {"value": mib, "unit": "MB"}},
        "usage": {"gfx_activity": {"value": load, "unit": "%"}},
    }


def held(pid: int, amount: object) -> dict[str, object]:
    return {"process_info": {"pid": pid, "memory_usage": {"vram_mem": amount}}}


def test_the_kernel_tells_memory_load_and_processes_without_any_tool(tmp_path: Path) -> None:
    pretend = PretendGpus(tmp_path, 3)
    pretend.use(1, 72 * GIB)
    pretend.load(1, 4)
    pretend.process(1, 4242, 71 * GIB)
    pretend.process(2, 15910, 0)
    pretend.process(2, 15911, GIB)

    def no_tool(argv: Sequence[str]) -> ToolAnswer:
        raise AssertionError(f"{argv} was started")

    first, second, third = amd_uses(kernel_gpus(tmp_path), tmp_path, no_tool)
    assert (first.memory_used_bytes, first.load_percent, first.processes) == (BASELINE_BYTES, 0, ())
    assert (second.memory_used_bytes, second.load_percent) == (72 * GIB, 4)
    assert second.processes == (GpuProcess(4242, 71 * GIB),)
    assert third.processes == (GpuProcess(15911, GIB),)
    pretend.forget(4242)
    assert amd_uses(kernel_gpus(tmp_path), tmp_path, no_tool)[1].processes == ()


@pytest.mark.parametrize("wrapped", [False, True])
def test_amd_smi_of_both_releases(wrapped: bool) -> None:
    processes = {
        "gpu": 0,
        "process_list": [
            held(41, {"value": 3 * GIB, "unit": "B"}),
            held(42, {"value": 0, "unit": "B"}),
            held(43, "N/A"),
            {"process_info": "No running processes detected"},
        ],
    }
    answers = {"metric": [metric(0, 283, 7)], "list": [{"gpu": 0, "bdf": "0000:05:00.0"}], "process": [processes]}
    found = one(
        GPU, answering(**({name: {"gpu_data": told} for name, told in answers.items()} if wrapped else answers))
    )
    assert (found.memory_used_bytes, found.load_percent) == (283 * 2**20, 7)
    assert found.processes == (GpuProcess(41, 3 * GIB), GpuProcess(43, None))


def test_what_amd_smi_says_belongs_to_a_bus_address_and_not_to_an_index() -> None:
    run = answering(
        metric=[metric(0, 70_000, 0), metric(1, 283, 0)],
        list=[{"gpu": 0, "bdf": "0000:65:00.0"}, {"gpu": 1, "bdf": "0000:05:00.0"}],
    )
    assert one(GPU, run).memory_used_bytes == 283 * 2**20
    unknown = answering(metric=[metric(0, 283, 0)])
    assert not_free(one(GPU, unknown), IDLE) == NOT_TOLD
    assert one(Gpu(index=0, arch="gfx942"), unknown).memory_used_bytes == 283 * 2**20


def test_recorded_outputs_of_the_vendors_tools() -> None:
    recorded = {
        name: json.loads(fixture("gpu", f"amd-smi-{file}.json").read_text())
        for name, file in (("metric", "metric-rocm7-mi355x"), ("list", "list-mi355x"))
    }
    for file in ("none", "zero-bytes"):
        processes = json.loads(fixture("gpu", f"amd-smi-process-{file}.json").read_text())
        found = one(GPU, answering(**recorded, process=processes))
        assert (found.memory_used_bytes, found.load_percent, found.processes) == (283 * 2**20, 0, ())
        assert not_free(found, IDLE) == ""
    spx = fixture("gpu", "rocm-smi-mi300x-spx.json").read_text()
    found = one(Gpu(index=3, arch="gfx942", bus_address="0000:01:00.0"), tools(rocm_smi=spx))
    assert (found.memory_used_bytes, found.load_percent, found.processes) == (301989888, 0, None)


def test_a_gpu_of_which_nothing_is_told_is_not_free() -> None:
    for run in (tools(), tools(amd_smi=fails("did not answer within 15 s")), tools(amd_smi="N/A", rocm_smi="[]")):
        assert not_free(one(GPU, run), IDLE) == NOT_TOLD


@pytest.mark.parametrize("high_bits", [False, True], ids=["in the function", "in bits 28 to 31"])
def test_partitions_have_names_of_their_own_and_hold_what_their_processes_hold(tmp_path: Path, high_bits: bool) -> None:
    pretend = PretendGpus(tmp_path, 8, parts=4, high_bits=high_bits)
    gpus = kernel_gpus(tmp_path)
    assert [gpu.bus_address for gpu in gpus[:4]] == [f"0000:05:00.{part}" for part in range(4)]
    assert [gpu.partition for gpu in gpus] == [f"CPX {part}" for part in (0, 1, 2, 3)] * 2
    assert len({identity(gpu) for gpu in gpus}) == 8
    assert {gpu.memory_bytes for gpu in gpus} == {MEMORY_BYTES}
    pretend.use(0, 72 * GIB)  # of the whole card
    pretend.process(2, 4242, 71 * GIB)
    uses = amd_uses(gpus, tmp_path, tools())
    assert [not_free(use, IDLE) for use in uses] == ["", "", "71 GiB in use by process 4242", "", "", "", "", ""]
    pretend.use(4, 50 * GIB)  # nobody is known to hold it: no part of that card is free
    assert [bool(held_by(use, IDLE)) for use in amd_uses(gpus, tmp_path, tools())][4:] == [True] * 4


def test_recorded_partitions_are_told_apart(tmp_path: Path) -> None:
    recorded = fixture("gpu", "rocm-smi-mi300x-cpx-one-card-eight-partitions.json").read_text()
    found = amd_gpus(tmp_path, tools(rocm_smi=recorded)).gpus
    assert [gpu.partition for gpu in found] == [f"CPX {part}" for part in range(8)]
    assert len({identity(gpu) for gpu in found}) == 8
    kernel = kernel_gpus(with_kfd(tmp_path, fixture("gpu", "kfd", "nodes")))
    assert [gpu.partition for gpu in kernel] == ["part 0", "part 1", "part 2", "part 3", None]
    assert len({identity(gpu) for gpu in kernel}) == 5


NAMES = ["gpu", "gpu_data", "mem_usage", "used_vram", "value", "unit", "process_list", "process_info", "pid", "bdf"]
CARDS = ["card0", "card\u00b2", "PCI Bus", "GPU use (%)", "memory_usage", "vram_mem", "VRAM Total Used Memory (B)"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["N/A", "MB", "0000:05:00.0", "\u00b2"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*NAMES, *CARDS]), inner, max_size=6),
    max_leaves=24,
)


@given(JSON)
def test_whatever_json_the_tools_print_nothing_is_raised(document: object) -> None:
    text = json.dumps(document)
    for run in (tools(amd_smi=text), tools(rocm_smi=text)):
        found = amd_uses([GPU, Gpu(index=0)], NOWHERE, run)
        assert [use.gpu for use in found] == [GPU, Gpu(index=0)]


@given(st.recursive(st.just("N/A"), lambda inner: st.lists(inner, max_size=2), max_leaves=3), st.data())
def test_not_available_may_stand_anywhere(nothing: object, data: st.DataObject) -> None:
    """Any part of real answers replaced: never raised, and never taken for an idle GPU where memory was in use."""
    answers: dict[str, object] = {
        "metric": {"gpu_data": [metric(0, 72 * 1024, 0)]},
        "list": [{"gpu": 0, "bdf": "0000:05:00.0"}],
        "process": [{"gpu": 0, "process_list": [held(41, {"value": 72 * GIB, "unit": "B"})]}],
    }
    name = data.draw(st.sampled_from(sorted(answers)))
    path = data.draw(st.sampled_from(list(places(answers[name]))))
    found = one(GPU, answering(**{**answers, name: replaced(answers[name], path, nothing)}))
    assert not_free(found, IDLE) != ""


def places(document: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(place for key, value in inside for place in places(value, (*path, key)))]


def replaced(document: object, path: tuple[object, ...], by: object) -> object:
    if not path:
        return by
    if isinstance(document, dict):
        return {key: replaced(value, path[1:], by) if key == path[0] else value for key, value in document.items()}
    assert isinstance(document, list)
    return [replaced(value, path[1:], by) if at == path[0] else value for at, value in enumerate(document)]
