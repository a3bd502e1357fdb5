"""What NVIDIA GPUs and their instances hold, as nvidia-smi says it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.gpus.busy import NOT_TOLD, busy, not_free
from runner.host.gpus.identity import identity
from runner.host.gpus.mask import mask
from runner.host.gpus.nvidia_use import nvidia_uses
from runner.host.gpus.use import GpuProcess
from runner.host.nvidia import nvidia_gpus
from runner.host.tools import ToolAnswer, ToolRunner
from runner.settings import GpuSettings
from schemas.artifacts.environment import Gpu
from tests.fixtures_folder import fixture
from tests.runner.host.tools_on_path import fails, tools, write

IDLE = GpuSettings().idle_bytes
GIB = 2**30


def smi(**answers: str | ToolAnswer) -> ToolRunner:
    """An nvidia-smi that answers --query-gpu (gpus), --query-compute-apps (apps), -L (listed) and -q -x (xml)."""
    names = {"--query-gpu": "gpus", "--query-compute-apps": "apps", "-L": "listed", "-q": "xml"}

    def nvidia_smi(argv: Sequence[str]) -> ToolAnswer:
        answer = answers.get(names.get(argv[1].partition("=")[0], ""), fails("failed"))
        return ToolAnswer(True, answer) if isinstance(answer, str) else answer

    return tools(nvidia_smi=nvidia_smi)


CARDS = [
    Gpu(index=0, bus_address="0000:01:00.0", uuid="GPU-aa"),
    Gpu(index=1, bus_address="0000:02:00.0", uuid="GPU-bb"),
]


def test_processes_are_found_by_uuid_and_those_without_memory_are_no_users() -> None:
    run = smi(
        gpus="1, GPU-bb, 00000000:02:00.0, [N/A], [N/A]\n0, GPU-aa, 00000000:01:00.0, 500, 3\n",
        apps="GPU-aa, 77, 1024\nGPU-bb, 78, [N/A]\nGPU-bb, 79, 0\n",
    )
    first, second = nvidia_uses(CARDS, run)
    assert (first.memory_used_bytes, first.load_percent) == (500 * 2**20, 3)
    assert first.processes == (GpuProcess(77, 2**30),)
    assert second.processes == (GpuProcess(78, None),)
    assert not_free(second, IDLE) == "memory in use by process 78"


def test_a_gpu_with_full_memory_is_busy_although_it_does_not_compute(tmp_path: Path) -> None:
    recorded = fixture("gpu", "nvidia-smi-h100-busy-by-memory-idle-by-utilisation.csv").read_text()
    gpu = nvidia_gpus(tmp_path, tools(nvidia_smi=recorded)).gpus[0]
    used = (gpu.memory_used_bytes or 0) // 2**20
    uses = nvidia_uses([gpu], smi(gpus=f"0, GPU-aa, 00000000:C1:00.0, {used}, 4\n", apps=""))
    assert busy(uses, IDLE) == "71 GiB in use"


@pytest.mark.parametrize(
    ("gpus", "apps", "why"),
    [
        (fails("did not answer within 15 s"), fails("did not answer within 15 s"), NOT_TOLD),
        ("", "", NOT_TOLD),  # the card fell off the bus: it is listed no more
        ("0, GPU-aa, 00000000:01:00.0, [N/A], [N/A]\n", fails("failed"), NOT_TOLD),
        ("0, GPU-aa, 00000000:01:00.0, [N/A], [N/A]\n", "", ""),  # memory that is the host's own
        ("0, GPU-aa, 00000000:01:00.0, 14, 0\n", fails("failed"), ""),
    ],
)
def test_only_what_is_told_makes_a_gpu_free(gpus: str | ToolAnswer, apps: str | ToolAnswer, why: str) -> None:
    assert not_free(nvidia_uses(CARDS[:1], smi(gpus=gpus, apps=apps))[0], IDLE) == why


LISTED = """GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222)
  MIG 3g.40gb     Device  0: (UUID: MIG-aaaa)
  MIG 3g.40gb     Device  1: (UUID: MIG-bbbb)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-33333333-4444)
"""
XML = """<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>
<gpu id="00000000:C1:00.0"><mig_devices>
<mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>40448 MiB</total><used>37 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>N/A</total><used>N/A</used></fb_memory_usage></mig_device></mig_devices>
<processes><process_info><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id><pid>4242</pid>
<used_memory>30720 MiB</used_memory></process_info></processes></gpu>
<gpu id="00000000:C2:00.0"><mig_devices>None</mig_devices></gpu></nvidia_smi_log>"""
ROWS = "\n".join(
    f"{index}, NVIDIA H100 80GB HBM3, 81559, 80123, 580.65, GPU-{uuid}, 00000000:C{index + 1}:00.0, 9.0"
    for index, uuid in enumerate(("11111111-2222", "33333333-4444"))
)


def test_instances_of_a_card_stand_in_its_place_and_are_told_apart(tmp_path: Path) -> None:
    found = nvidia_gpus(tmp_path, smi(gpus=ROWS, listed=LISTED, xml=XML)).gpus
    assert [(gpu.index, gpu.partition) for gpu in found] == [(0, "MIG 3g.40gb 0"), (0, "MIG 3g.40gb 1"), (1, None)]
    assert [gpu.memory_bytes for gpu in found] == [40448 * 2**20, None, 81559 * 2**20]
    assert [identity(gpu) for gpu in found] == ["MIG-aaaa", "MIG-bbbb", "0000:c2:00.0"]
    assert mask(found[:1], "nvidia") == {"CUDA_VISIBLE_DEVICES": "MIG-aaaa", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def test_a_full_instance_is_busy_and_its_neighbour_is_not(tmp_path: Path) -> None:
    gpus = nvidia_gpus(tmp_path, smi(gpus=ROWS, listed=LISTED, xml=XML)).gpus
    cards = "0, GPU-11111111-2222, 00000000:C1:00.0, 31000, 99\n1, GPU-33333333-4444, 00000000:C2:00.0, 14, 0\n"
    uses = nvidia_uses(gpus, smi(gpus=cards, apps="GPU-11111111-2222, 4242, 30720\n", xml=XML))
    assert [not_free(use, IDLE) for use in uses] == ["", "30 GiB in use by process 4242", ""]
    blind = nvidia_uses(gpus, smi(gpus=cards, apps="", xml="<nvidia_smi_log>"))
    assert [not_free(use, IDLE) for use in blind] == [NOT_TOLD, NOT_TOLD, ""]


def test_an_older_tool_does_not_change_what_a_gpu_is_called(tmp_path: Path) -> None:
    for bus in ("0000:c1:00.0", "0000:c2:00.0"):
        write(tmp_path, f"proc/driver/nvidia/gpus/{bus}/information", f"GPU UUID: GPU-of-{bus}\n")
    whole = nvidia_gpus(tmp_path, smi(gpus=ROWS)).gpus
    recorded = fixture("gpu", "nvidia-smi-2xh100.csv").read_text()

    def old_driver(argv: Sequence[str]) -> ToolAnswer:
        return fails("failed") if "pci.bus_id" in str(argv) else ToolAnswer(True, recorded)

    older = nvidia_gpus(tmp_path, tools(nvidia_smi=old_driver)).gpus
    assert [identity(gpu) for gpu in older] == [identity(gpu) for gpu in whole] == ["0000:c1:00.0", "0000:c2:00.0"]


PIECES = st.sampled_from(
    ["0", "1", "GPU-aa", "00000000:01:00.0", "[N/A]", "500", ",", "\n", '"', "MIG 3g Device 0: (UUID: MIG-a)", "\u00b2"]
)


@given(st.lists(PIECES, max_size=12).map(" ".join) | st.text(max_size=80))
def test_whatever_nvidia_smi_says_nothing_is_raised(text: str) -> None:
    parts = [CARDS[0].model_copy(update={"partition": "MIG 3g.40gb 0", "uuid": "MIG-a"}), *CARDS]
    for run in (tools(nvidia_smi=text), smi(gpus=text), smi(apps=text), smi(xml=f"<a><gpu>{text}</gpu></a>")):
        assert [use.gpu for use in nvidia_uses(parts, run)] == parts
        nvidia_gpus(Path("/nonexistent"), run)


@given(st.sampled_from(["N/A", "", "[Insufficient Permissions]", "-1", "9" * 40, "\u00b2"]), st.data())
def test_not_available_may_stand_anywhere_in_the_xml(nothing: str, data: st.DataObject) -> None:
    words = ["0", "1", "2", "40448 MiB", "37 MiB", "4242", "30720 MiB", "00000000:C1:00.0"]
    word = data.draw(st.sampled_from([f">{word}<" for word in words if f">{word}<" in XML]))
    part = CARDS[0].model_copy(update={"partition": "MIG 3g.40gb 1", "uuid": "MIG-b", "bus_address": "0000:c1:00.0"})
    nvidia_uses([part], smi(gpus="", apps="", xml=XML.replace(word, f">{nothing}<")))
