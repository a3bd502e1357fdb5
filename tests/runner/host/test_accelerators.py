from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host import tools as tools_module
from runner.host.accelerators import TorchWitness, hardware
from runner.host.amd import gfx_name
from runner.host.evidence import bus_address, whole_number, words
from runner.host.tools import ToolAnswer, ToolRunner, run_tool
from tests.fixtures_folder import fixture
from tests.runner.host.tools_on_path import fails, kfd_node, tools, with_kfd, write
from tests.waiting import wait_until

CPU = TorchWitness(tag="cpu")
ROCM = TorchWitness(tag="rocm7.1", hip="7.1")
CUDA = TorchWitness(tag="cu126", cuda="12.6")
H100 = "0, NVIDIA H100 80GB HBM3, 81559, 80123, 580.65.06, GPU-1a2b, 00000000:C1:00.0, 9.0\n"


def test_a_host_without_any_gpu_is_cpu_only_when_torch_agrees(tmp_path: Path) -> None:
    assert hardware(CPU, tmp_path, tools()).accelerator == "cpu"
    assert hardware(TorchWitness(tag="cu126", cuda="12.6", gpu_count=0), tmp_path, tools()).accelerator == "cpu"


@pytest.mark.parametrize(
    ("prepare", "run", "torch"),
    [
        (lambda _: None, tools(), None),
        (lambda _: None, tools(), TorchWitness()),
        (lambda _: None, tools(), CUDA),
        (lambda _: None, tools(), ROCM),
        (lambda _: None, tools(nvidia_smi=fails("did not answer within 15 s")), CPU),
        (lambda _: None, tools(amd_smi=fails("failed with exit status 255")), CPU),
        (lambda _: None, tools(rocm_smi="not json"), CPU),
        (lambda _: None, tools(amd_smi="[" * 100_000), CPU),
        (lambda root: write(root, "dev/kfd"), tools(), CPU),
        (lambda root: write(root, "dev/nvidiactl"), tools(), CPU),
        (lambda root: write(root, "proc/driver/nvidia/version", "NVRM"), tools(), CPU),
        (lambda _: None, tools(), TorchWitness(tag="cpu", gpu_count=2)),
    ],
    ids=[
        "nobody asked torch",
        "no build known",
        "cuda build",
        "rocm build",
        "nvidia-smi hangs",
        "amd-smi fails",
        "rocm-smi babbles",
        "amd-smi nests without end",
        "kfd without nodes",
        "a device of nvidia",
        "a driver without gpus",
        "torch sees gpus",
    ],
)
def test_missing_evidence_is_unknown_and_never_cpu(
    tmp_path: Path, prepare: object, run: ToolRunner, torch: TorchWitness | None
) -> None:
    assert callable(prepare)
    prepare(tmp_path)
    assert hardware(torch, tmp_path, run).accelerator == "unknown"


def test_kfd_names_the_gpus_of_a_partitioned_card_by_bus_address(tmp_path: Path) -> None:
    root = with_kfd(tmp_path, fixture("gpu", "kfd", "nodes"))
    found = hardware(ROCM, root, tools())
    assert (found.accelerator, found.gpu_count, found.gpu_arch) == ("amd-rocm", 5, "gfx942")
    assert [gpu.index for gpu in found.gpus] == [0, 1, 2, 3, 4]
    assert [gpu.bus_address for gpu in found.gpus] == [
        "0000:0a:00.0",
        "0000:0a:00.1",
        "0000:0a:00.2",
        "0000:0a:00.3",
        "0000:80:00.0",
    ]
    assert len({gpu.uuid for gpu in found.gpus}) == 2
    assert found.contradictions == []
    assert found.rocm_version == "7.1"


def test_amd_smi_completes_what_the_kernel_does_not_tell(tmp_path: Path) -> None:
    kfd_node(tmp_path, 0, 0)
    kfd_node(tmp_path, 1, 90402, location=0x0500)
    kfd_node(tmp_path, 2, 90402, location=0x2600)
    write(tmp_path, "dev/kfd")
    write(tmp_path, "opt/rocm/.info/version", "7.0.2-83\n")
    text = fixture("gpu", "amd-smi-static-rocm7-2xmi300x.json").read_text()
    found = hardware(ROCM, tmp_path, tools(amd_smi=text))
    assert found.gpu_model == "AMD Instinct MI300X"
    assert found.gpu_arch == "gfx942"
    assert [gpu.memory_bytes for gpu in found.gpus] == [196592 * 2**20] * 2
    assert found.memory_gb == 206.1
    assert found.rocm_version == "7.0.2"


@pytest.mark.parametrize(
    ("file", "count", "arch"),
    [("amd-smi-static-rocm6-8xmi300x.json", 8, "gfx942"), ("amd-smi-static-rocm7-2xmi300x.json", 2, None)],
)
def test_both_shapes_of_amd_smi_are_read_without_kfd(tmp_path: Path, file: str, count: int, arch: str | None) -> None:
    found = hardware(None, tmp_path, tools(amd_smi=fixture("gpu", file).read_text()))
    assert (found.accelerator, found.gpu_count, found.gpu_arch) == ("amd-rocm", count, arch)
    assert found.gpus[0].bus_address == "0000:05:00.0"


@pytest.mark.parametrize(
    ("file", "count", "arch", "memory"),
    [
        ("rocm-smi-mi300x-spx.json", 1, "gfx942", 206141652992),
        ("rocm-smi-mi300x-cpx-one-card-eight-partitions.json", 8, "gfx942", 206141652992),
        ("rocm-smi-rx7900xt.json", 1, "gfx1100", 21458059264),
    ],
)
def test_rocm_smi_is_asked_where_amd_smi_is_missing(
    tmp_path: Path, file: str, count: int, arch: str, memory: int
) -> None:
    found = hardware(ROCM, tmp_path, tools(rocm_smi=fixture("gpu", file).read_text()))
    assert (found.accelerator, found.gpu_count, found.gpu_arch) == ("amd-rocm", count, arch)
    assert {gpu.memory_bytes for gpu in found.gpus} == {memory}
    addresses = [gpu.bus_address for gpu in found.gpus if gpu.bus_address]
    assert len(set(addresses)) == len(addresses)


def test_the_recorded_nvidia_smi_of_older_drivers(tmp_path: Path) -> None:
    text = fixture("gpu", "nvidia-smi-2xh100.csv").read_text()

    def old_driver(argv: object) -> ToolAnswer:
        known = "compute_cap" not in str(argv)
        return ToolAnswer(True, text) if known else fails('failed: Field "compute_cap" is not a valid field to query.')

    found = hardware(CUDA, tmp_path, tools(nvidia_smi=old_driver))
    assert (found.accelerator, found.gpu_count, found.gpu_model) == ("nvidia-cuda", 2, "NVIDIA H100 80GB HBM3")
    assert found.memory_gb == 85.5
    assert found.gpus[0].memory_used_bytes == (81559 - 80123) * 2**20
    assert any("driver 580.65.06" in line for line in found.evidence)


def test_nvidia_smi_tells_architecture_and_address(tmp_path: Path) -> None:
    gpu = hardware(CUDA, tmp_path, tools(nvidia_smi=H100)).gpus[0]
    assert (gpu.arch, gpu.bus_address, gpu.uuid) == ("sm_90", "0000:c1:00.0", "GPU-1a2b")


def test_values_that_are_not_available_are_left_out(tmp_path: Path) -> None:
    line = "0, NVIDIA GB10, [N/A], [N/A], 580.1, [Unknown Error], [N/A], [Not Supported]\n"
    gpu = hardware(CUDA, tmp_path, tools(nvidia_smi=line)).gpus[0]
    assert (gpu.model, gpu.memory_bytes, gpu.arch, gpu.bus_address, gpu.uuid) == ("NVIDIA GB10", None, None, None, None)


def test_the_drivers_files_are_a_witness_without_nvidia_smi(tmp_path: Path) -> None:
    write(
        tmp_path,
        "proc/driver/nvidia/gpus/0000:c1:00.0/information",
        "Model: \t\t NVIDIA H100\nIRQ: 42\nGPU UUID: \t GPU-1a2b\nBus Location: \t 0000:c1:00.0\n",
    )
    found = hardware(CUDA, tmp_path, tools())
    assert (found.accelerator, found.gpu_count, found.gpu_model) == ("nvidia-cuda", 1, "NVIDIA H100")
    assert found.contradictions == []
    empty = hardware(CUDA, tmp_path, tools(nvidia_smi=""))
    assert "nvidia-smi reports none" in empty.contradictions[0]


@pytest.mark.parametrize(
    ("torch", "accelerator", "says"),
    [
        (ROCM, "nvidia-cuda", "NVIDIA GPUs, but torch is built for rocm"),
        (CPU, "nvidia-cuda", "NVIDIA GPUs, but torch is built for cpu"),
        (CUDA, "nvidia-cuda", None),
        (None, "nvidia-cuda", None),
        (TorchWitness(), "nvidia-cuda", None),
    ],
)
def test_a_torch_for_something_else_is_a_contradiction(
    tmp_path: Path, torch: TorchWitness | None, accelerator: str, says: str | None
) -> None:
    found = hardware(torch, tmp_path, tools(nvidia_smi=H100))
    assert found.accelerator == accelerator
    assert [says in line for line in found.contradictions if says] == ([True] if says else [])
    assert bool(found.contradictions) == bool(says)


def test_two_vendors_leave_it_open(tmp_path: Path) -> None:
    kfd_node(tmp_path, 1, 110000)
    write(tmp_path, "dev/kfd")
    found = hardware(ROCM, tmp_path, tools(nvidia_smi=H100))
    assert found.accelerator == "unknown"
    assert "AMD and NVIDIA" in found.contradictions[0]
    assert [gpu.index for gpu in found.gpus] == [0, 1]


def test_gpus_that_a_container_was_not_given(tmp_path: Path) -> None:
    kfd_node(tmp_path, 1, 90402)
    found = hardware(ROCM, tmp_path, tools())
    assert found.accelerator == "amd-rocm"
    assert "/dev/kfd is not there" in found.contradictions[0]


def test_nodes_that_cannot_be_read_are_no_proof(tmp_path: Path) -> None:
    (tmp_path / "sys/class/kfd/kfd/topology/nodes/1/properties").mkdir(parents=True)
    assert hardware(CPU, tmp_path, tools()).accelerator == "unknown"


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (90402, "gfx942"),
        (90500, "gfx950"),
        (90010, "gfx90a"),
        (90008, "gfx908"),
        (100300, "gfx1030"),
        (110501, "gfx1151"),
    ],
)
def test_the_kernels_number_of_an_architecture(number: int, name: str) -> None:
    assert gfx_name(number) == name


@pytest.mark.parametrize(
    ("value", "expected"),
    [("5", 5), (5, 5), ("5.7", 5), (5.7, 5), ("N/A", None), (None, None), (True, None), (-1, None), ("9" * 30, None)],
)
def test_counts(value: object, expected: int | None) -> None:
    assert whole_number(value) == expected


@pytest.mark.parametrize("value", ["N/A", "[N/A]", "", " ", "[Not Supported]", "unknown", None, 5, "[Unknown Error]"])
def test_no_name_has_many_spellings(value: object) -> None:
    assert words(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("00000000:C1:00.0", "0000:c1:00.0"),
        ("0000:05:00.0", "0000:05:00.0"),
        ("c1:00.0", "0000:c1:00.0"),
        ("N/A", None),
    ],
)
def test_bus_addresses_as_linux_writes_them(value: str, expected: str | None) -> None:
    assert bus_address(value) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["N/A", "gfx942", "0x1", ""]) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["gpu", "gpu_data", "asic", "bus", "vram", "size", "value", "unit", "bdf", "card0", "GFX Version"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_whatever_the_tools_answer_nothing_is_raised(document: object) -> None:
    text = json.dumps(document)
    nowhere = Path("/nonexistent")
    found = hardware(CPU, nowhere, tools(amd_smi=text, rocm_smi=text, nvidia_smi=text))
    assert found.accelerator in {"cpu", "amd-rocm", "nvidia-cuda", "unknown"}


@given(st.text(st.characters(codec="utf-8")))
def test_whatever_nvidia_smi_writes_nothing_is_raised(text: str) -> None:
    found = hardware(CPU, Path("/nonexistent"), tools(nvidia_smi=text))
    assert found.gpu_count == len(found.gpus)


def script(folder: Path, name: str, body: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)


def test_a_real_tool_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script(tmp_path, "nvidia-smi", f"cat <<'END'\n{H100}END")
    assert hardware(CUDA, tmp_path / "root").accelerator == "nvidia-cuda"


def test_what_a_failing_tool_said_is_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script(tmp_path, "nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not reach the driver.'; exit 9")
    found = hardware(CPU, tmp_path / "root")
    assert found.accelerator == "unknown"
    assert any("exit status 9: NVIDIA-SMI has failed" in line for line in found.evidence)


def test_a_tool_that_hangs_is_killed_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(tools_module, "TOOL_SECONDS", 3.0)
    script(tmp_path, "amd-smi", f"sleep 300 & echo $! > {tmp_path}/child; wait")
    began = time.monotonic()
    answer = run_tool(["amd-smi", "static", "--json"])
    assert time.monotonic() - began < 60
    assert answer.found
    assert "did not answer" in answer.problem
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2])


def test_a_file_that_cannot_be_started_is_no_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "amd-smi").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "amd-smi").chmod(0o755)
    assert "cannot be started" in run_tool(["amd-smi"]).problem
    assert not run_tool(["rocm-smi"]).found
