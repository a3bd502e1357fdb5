"""The accelerator against torch's build, device files, and which GPUs runs may see."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from runner.host.accelerators import hardware
from runner.service.doctor.accelerator import accelerator
from runner.service.doctor.devices import devices
from runner.service.doctor.visibility import visibility
from runner.settings import GpuSettings
from schemas.artifacts.environment import Hardware
from schemas.artifacts.plan import Severity
from tests.runner.host.tools_on_path import kfd_node, tools, write
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.service.doctor.hosts import CUDA, ROCM, facts, found, gpus, host

H100 = "0, NVIDIA H100 80GB HBM3, 81559, 80123, 580.65.06, GPU-1a2b, 00000000:C1:00.0, 9.0\n"


def amd_host(folder: Path, **more: Any) -> Any:
    """A host whose kernel lists an AMD GPU, with its device files."""
    subject = host(folder, facts=facts(torch_build=ROCM), **more)
    kfd_node(subject.root, 1, 90402, 256)
    write(subject.root, "dev/kfd")
    write(subject.root, "dev/dri/renderD128")
    return subject


def test_a_build_for_the_cpu_on_a_host_with_gpus_is_told_with_the_right_index(tmp_path: Path) -> None:
    subject = amd_host(tmp_path)
    write(subject.root, "opt/rocm/.info/version", "6.4.1-83\n")
    looked = hardware(facts().witness, subject.root, tools())
    said = found(accelerator, host(tmp_path, hardware=looked))
    assert said["accelerator"].message.startswith("This host has 1 x")
    assert "torch is built for cpu and cannot use them" in said["accelerator_contradiction"].message
    assert said["accelerator_contradiction"].hint.endswith("https://download.pytorch.org/whl/rocm6.4")


def test_a_build_for_the_other_vendor_is_told(tmp_path: Path) -> None:
    looked = hardware(facts(torch_build=ROCM).witness, tmp_path, tools(nvidia_smi=H100))
    said = found(accelerator, host(tmp_path, facts=facts(torch_build=ROCM), hardware=looked))
    assert "torch is built for rocm" in said["accelerator_contradiction"].message
    assert said["accelerator_contradiction"].hint.endswith("/whl/cuVERSION")


def test_another_major_release_of_rocm_is_told(tmp_path: Path) -> None:
    found_here = gpus(1).model_copy(update={"rocm_version": "6.4.1"})
    said = found(accelerator, host(tmp_path, facts=facts(torch_build=ROCM), hardware=found_here))
    assert said["rocm_differs"].message == "torch is built for ROCm 7.1, and this host has ROCm 6.4.1."
    same = found_here.model_copy(update={"rocm_version": "7.0.2"})
    assert "rocm_differs" not in found(accelerator, host(tmp_path, facts=facts(torch_build=ROCM), hardware=same))


def test_what_is_not_known_is_not_called_a_cpu(tmp_path: Path) -> None:
    unknown = Hardware(accelerator="unknown", evidence=["nvidia-smi did not answer within 15 s"])
    said = found(accelerator, host(tmp_path, hardware=unknown))["accelerator_unknown"]
    assert (said.severity, "nvidia-smi did not answer" in said.message) == (Severity.WARNS, True)
    assert set(found(accelerator, host(tmp_path))) == {"accelerator"}


def test_what_dev_forbids_is_said_once(tmp_path: Path) -> None:
    subject = amd_host(tmp_path)
    (subject.root / "dev/kfd").unlink()
    looked = hardware(facts(torch_build=ROCM).witness, subject.root, tools())
    told = host(tmp_path, facts=facts(torch_build=ROCM), hardware=looked)
    assert looked.contradictions
    assert set(found(accelerator, told)) == {"accelerator"}
    assert set(found(devices, told)) == {"devices_absent"}


def test_devices_that_may_be_opened_are_no_finding(tmp_path: Path) -> None:
    assert found(devices, host(tmp_path)) == {}
    assert found(devices, amd_host(tmp_path)) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another group")
def test_closed_devices_name_group_and_user(tmp_path: Path) -> None:
    subject = amd_host(tmp_path)
    for path, group in (("dev/kfd", 54321), ("dev/dri/renderD128", 44)):
        os.chown(subject.root / path, 0, group)
        (subject.root / path).chmod(0o660)
    open_to_all(subject.root)
    for folder in subject.root.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
    with unprivileged():
        said = found(devices, subject)["devices_closed"]
    assert said.severity is Severity.BLOCKS
    assert "/dev/kfd, /dev/dri/renderD128, so that runs do not see the GPUs" in said.message
    assert f"usermod -aG video,54321 {subject.user};" in said.hint
    container = amd_host(tmp_path, environment={"container": "podman"})
    with unprivileged():
        assert "--group-add 44 --group-add 54321" in found(devices, container)["devices_closed"].hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to nobody's group")
def test_devices_closed_to_their_group_need_an_administrator(tmp_path: Path) -> None:
    subject = amd_host(tmp_path)
    (subject.root / "dev/kfd").chmod(0o600)
    open_to_all(subject.root)
    for folder in subject.root.rglob("*"):
        if folder.is_dir():
            folder.chmod(0o755)
    with unprivileged():
        assert "udev rules" in found(devices, subject)["devices_closed"].hint


@pytest.mark.parametrize(
    ("environment", "hint"), [({"container": "docker"}, "--device /dev/kfd"), ({}, "modprobe amdgpu")]
)
def test_a_container_without_devices_is_told(environment: dict[str, str], hint: str, tmp_path: Path) -> None:
    subject = amd_host(tmp_path, environment=environment)
    shutil.rmtree(subject.root / "dev")
    said = found(devices, subject)["devices_absent"]
    assert (said.severity, hint in said.hint) == (Severity.BLOCKS, True)
    assert ("container (docker)" in said.message) is bool(environment)


def test_processors_in_the_topology_are_no_gpus(tmp_path: Path) -> None:
    subject = host(tmp_path)
    kfd_node(subject.root, 0, 0)
    assert found(devices, subject) == {}


def test_devices_of_nvidia(tmp_path: Path) -> None:
    subject = host(tmp_path, facts=facts(torch_build=CUDA))
    write(subject.root, "proc/driver/nvidia/version", "NVRM")
    said = found(devices, subject)["devices_absent"]
    assert (said.severity, "/dev/nvidiactl" in said.message) == (Severity.BLOCKS, True)
    write(subject.root, "dev/nvidiactl")
    assert "/dev/nvidia-uvm" in found(devices, subject)["devices_absent"].message
    write(subject.root, "dev/nvidia-uvm")
    assert found(devices, subject) == {}
    other = host(tmp_path)  # torch is built for the CPU: runs take it anyway
    (subject.root / "dev/nvidiactl").unlink()
    assert found(devices, other)["devices_absent"].severity is Severity.WARNS


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ({}, set()),
        ({"visible": ["0", "GPU-0000000000000001", "0000:02:00.0"]}, set()),
        ({"visible": ["0", "4"]}, {"gpu_unknown"}),
        ({"visible": ["card0"]}, {"gpu_unknown"}),
        ({"per_run": 4}, set()),
        ({"per_run": 5}, {"too_few_gpus"}),
        ({"visible": ["0", "1"], "per_run": 4}, {"too_few_gpus"}),
        ({"visible": []}, {"too_few_gpus"}),
    ],
)
def test_names_of_gpus(settings: dict[str, Any], codes: set[str], tmp_path: Path) -> None:
    said = found(visibility, host(tmp_path, settings={"gpus": GpuSettings(**settings)}, hardware=gpus(4)))
    assert set(said) == codes
    assert all(finding.severity is Severity.BLOCKS for finding in said.values())
    if "gpu_unknown" in said:
        assert "0 (GPU-0000000000000000), 1 (" in said["gpu_unknown"].hint


def test_a_name_of_a_gpu_on_a_host_without_any(tmp_path: Path) -> None:
    said = found(visibility, host(tmp_path, settings={"gpus": {"visible": ["0"]}}))
    assert "here are: none." in said["gpu_unknown"].hint


@pytest.mark.parametrize(
    ("environment", "codes"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, {"mask_hides_all"}),
        ({"HIP_VISIBLE_DEVICES": "-1"}, {"mask_hides_all"}),
        ({"HIP_VISIBLE_DEVICES": "0, 1"}, {"mask_hides"}),
        ({"HIP_VISIBLE_DEVICES": "0,1,2,3"}, set()),
        ({"CUDA_VISIBLE_DEVICES": "0,-1,2,3"}, {"mask_hides"}),
        ({"ROCR_VISIBLE_DEVICES": "0,1,2,3", "HIP_VISIBLE_DEVICES": "0,1,2,3"}, {"masks_differ"}),
        ({"HSA_OVERRIDE_GFX_VERSION": "9.4.2"}, {"gfx_override"}),
        ({"PATH": "/bin"}, set()),
    ],
)
def test_masks_that_hide_gpus(environment: dict[str, str], codes: set[str], tmp_path: Path) -> None:
    said = found(visibility, host(tmp_path, environment=environment, hardware=gpus(4)))
    assert set(said) == codes
    if "mask_hides" in said and "-1" not in str(environment):
        assert "hides 2 of 4 GPUs" in said["mask_hides"].message
