"""NVIDIA GPUs: what nvidia-smi and the driver's files in /proc say."""

from __future__ import annotations

import os
import re
from pathlib import Path

from runner.host.evidence import VendorEvidence, bus_address, in_bus_order, text_of, whole_number, words
from runner.host.gpus.instances import Instance, instances
from runner.host.tools import ToolRunner
from schemas.artifacts.environment import Gpu

_MIB = 2**20
_FIELDS = ("index", "name", "memory.total", "memory.free", "driver_version")
# Older drivers refuse a field that they do not know, and then the whole question.
_MORE_FIELDS = (*_FIELDS, "uuid", "pci.bus_id", "compute_cap")


def nvidia_gpus(root: Path, run: ToolRunner) -> VendorEvidence:
    """Look for NVIDIA GPUs below a file system root ("/") and with nvidia-smi."""
    listed, driver, seen = _proc(root)
    told, from_tool, sure = _nvidia_smi(run)
    gpus = _with_instances(_addressed(told, listed) if told else listed, run)
    contradictions: list[str] = []
    if listed and told == []:
        contradictions.append(f"The driver lists {_count(listed)}, but nvidia-smi reports none that can be used.")
    device = (root / "dev/nvidiactl").exists()
    if device:
        seen.append("/dev/nvidiactl is there")
    return VendorEvidence(
        in_bus_order(gpus), not gpus and not driver and not device and sure, (*seen, *from_tool), tuple(contradictions)
    )


def _proc(root: Path) -> tuple[list[Gpu], bool, list[str]]:
    """The GPUs that the driver lists, whether there is a driver, and what was seen."""
    folder = root / "proc/driver/nvidia"
    if not folder.exists():
        return [], False, ["no NVIDIA driver in /proc"]
    try:
        names = sorted(os.listdir(folder / "gpus"))  # noqa: PTH208 - names, no paths
    except OSError:
        names = []
    gpus = [_listed(index, name, text_of(folder / "gpus" / name / "information")) for index, name in enumerate(names)]
    return gpus, True, [f"the NVIDIA driver lists {_count(gpus)}"]


def _listed(index: int, name: str, information: str | None) -> Gpu:
    lines = (line.partition(":") for line in (information or "").splitlines())
    facts = {key.strip(): value.strip() for key, _, value in lines}
    return Gpu(
        index=index,
        bus_address=bus_address(name) or bus_address(facts.get("Bus Location")),
        uuid=words(facts.get("GPU UUID")),
        model=words(facts.get("Model")),
    )


def _nvidia_smi(run: ToolRunner) -> tuple[list[Gpu] | None, list[str], bool]:
    """The GPUs by the tool (None where it said nothing), what was seen, and whether the tool leaves no doubt."""
    problem = ""
    for fields in (_MORE_FIELDS, _FIELDS):
        answer = run(("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"))
        if not answer.found:
            return None, ["nvidia-smi is not on PATH"], True
        if answer.succeeded:
            gpus = [gpu for line in answer.output.splitlines() if (gpu := _row(line, fields))]
            driver = _driver(answer.output)
            return gpus, [f"nvidia-smi lists {_count(gpus)}{driver}"], True
        problem = answer.problem
        if "did not answer" in problem:
            break  # asking a driver that hangs once more costs as long again
    return None, [f"nvidia-smi {problem}"], False


_CARD = re.compile(r"GPU ([0-9]{1,4}): .*\(UUID: (GPU-[\w-]+)\)")
_INSTANCE = re.compile(r"\s+MIG (\S+)\s+Device\s+([0-9]{1,4}): \(UUID: (MIG-[\w/-]+)\)")


def _addressed(told: list[Gpu], listed: list[Gpu]) -> list[Gpu]:
    """What an older nvidia-smi leaves out, from the driver's list: both go by bus address.

    Else the same GPU would have one name for a daemon whose question was answered whole, and another for the next.
    """
    if len(told) != len(listed) or all(gpu.bus_address for gpu in told):
        return told
    return [
        gpu.model_copy(update={"bus_address": other.bus_address, "uuid": gpu.uuid or other.uuid})
        for gpu, other in zip(told, listed, strict=True)
    ]


def _with_instances(gpus: list[Gpu], run: ToolRunner) -> list[Gpu]:
    """A card that is cut into instances (MIG) is not to be had as a whole: its instances stand in its place."""
    if not gpus:
        return []
    instances_of: dict[int, list[Gpu]] = {}
    card: Gpu | None = None
    for line in run(("nvidia-smi", "-L")).output.splitlines():
        if found := _CARD.match(line):
            card = next((gpu for gpu in gpus if gpu.index == int(found[1]) or gpu.uuid == found[2]), None)
        elif card is not None and (found := _INSTANCE.match(line)):
            part = {"uuid": found[3], "partition": f"MIG {found[1]} {found[2]}"}
            instances_of.setdefault(card.index, []).append(card.model_copy(update=part))
    if not instances_of:
        return gpus
    told = {(one.address, one.number): one for one in instances(run)}
    return [_measured(part, told) for gpu in gpus for part in instances_of.get(gpu.index, [gpu])]


def _measured(gpu: Gpu, told: dict[tuple[str | None, int], Instance]) -> Gpu:
    """An instance with its own memory in place of its card's; a whole card as it is."""
    if gpu.partition is None:
        return gpu
    mine = told.get((gpu.bus_address, int(gpu.partition.rpartition(" ")[2])))
    memory = (None, None) if mine is None else (mine.memory_bytes, mine.used_bytes)
    return gpu.model_copy(update={"memory_bytes": memory[0], "memory_used_bytes": memory[1]})


def _row(line: str, fields: tuple[str, ...]) -> Gpu | None:
    values = [value.strip() for value in line.split(",")]
    facts = dict(zip(fields, values, strict=False))
    index = whole_number(facts.get("index"))
    if index is None or len(values) < len(_FIELDS):
        return None
    total, free = whole_number(facts["memory.total"]), whole_number(facts["memory.free"])
    capability = re.fullmatch(r"(\d+)\.(\d)", facts.get("compute_cap", ""))
    return Gpu(
        index=index,
        bus_address=bus_address(facts.get("pci.bus_id")),
        uuid=words(facts.get("uuid")),
        model=words(facts["name"]),
        arch=f"sm_{capability.group(1)}{capability.group(2)}" if capability else None,
        memory_bytes=total * _MIB if total else None,
        memory_used_bytes=(total - free) * _MIB if total and free is not None and free <= total else None,
    )


def _driver(output: str) -> str:
    first = output.partition("\n")[0].split(",")
    version = words(first[4]) if len(first) > 4 else None
    return f", driver {version}" if version else ""


def _count(gpus: list[Gpu]) -> str:
    return f"{len(gpus)} NVIDIA GPU{'' if len(gpus) == 1 else 's'}"
