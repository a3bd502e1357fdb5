"""What AMD GPUs hold now: by the kernel's files, then amd-smi of ROCm 6 or 7, then rocm-smi.

The tools number GPUs by bus address and the kernel by its nodes: what a tool says belongs to a bus address, never to an
index, unless the inventory knows no addresses either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.host.amd import device_folder, kfd_address, kfd_nodes
from runner.host.evidence import bus_address, part_of, scaled, text_of, whole_number
from runner.host.gpus.use import GpuProcess, GpuUse, first
from runner.host.tools import ToolAnswer, ToolRunner
from schemas.artifacts.environment import Gpu

_KFD = "sys/class/kfd/kfd"


def amd_uses(gpus: Sequence[Gpu], root: Path, run: ToolRunner) -> list[GpuUse]:
    """What these GPUs hold now, in their order. Takes as long as the tools do, where they are needed; never raises."""
    found = _by_kernel(gpus, root)
    if all(_is_told(use) for use in found):
        return found
    told = _by_amd_smi(run) or _by_rocm_smi(run)
    return [_completed(use, told) for use in found]


def _is_told(use: GpuUse) -> bool:
    """Whether the kernel said all that there is. The load of a partition is told by nobody."""
    load = use.load_percent is not None or use.gpu.partition is not None
    return use.memory_used_bytes is not None and use.processes is not None and load


@dataclass(frozen=True)
class _Node:
    """A GPU as KFD numbers it, and what its card's files say."""

    number: int
    unique: int
    used_bytes: int | None
    load_percent: int | None


def _by_kernel(gpus: Sequence[Gpu], root: Path) -> list[GpuUse]:
    nodes = dict(_nodes(root))
    holders = _holders(root)
    return [_looked_at(gpu, nodes, holders) for gpu in gpus]


def _looked_at(gpu: Gpu, nodes: dict[str, _Node], holders: dict[int, list[GpuProcess]] | None) -> GpuUse:
    node = nodes.get(gpu.bus_address or "")
    if node is None:
        return GpuUse(gpu)
    processes = None if holders is None else tuple(holders.get(node.number, ()))
    if gpu.partition is None:
        return GpuUse(gpu, node.used_bytes, node.load_percent, processes)
    # The files tell of the whole card: what its other parts' processes hold is no use of this one.
    parts = [other for other in nodes.values() if other.unique == node.unique]
    used = first(*(part.used_bytes for part in parts))
    if used is not None and holders is not None:
        others = (holder for part in parts if part != node for holder in holders.get(part.number, ()))
        used = max(used - sum(holder.memory_bytes or 0 for holder in others), 0)
    return GpuUse(gpu, used, None, processes)


def _nodes(root: Path) -> Iterator[tuple[str, _Node]]:
    try:
        for number, properties in kfd_nodes(root):
            if not properties or not properties.get("gfx_target_version"):
                continue
            device = device_folder(root, properties)
            yield (
                kfd_address(properties),
                _Node(
                    number=whole_number(text_of(root / _KFD / f"topology/nodes/{number}/gpu_id")) or 0,
                    unique=properties.get("unique_id", 0),
                    used_bytes=whole_number(text_of(device / "mem_info_vram_used")),
                    load_percent=whole_number(text_of(device / "gpu_busy_percent")),
                ),
            )
    except OSError:
        return


def _holders(root: Path) -> dict[int, list[GpuProcess]] | None:
    """Who holds memory on which GPU, by KFD's number of it; None where the kernel does not tell."""
    holders: dict[int, list[GpuProcess]] = {}
    try:
        processes = [entry for entry in (root / _KFD / "proc").iterdir() if re.fullmatch(r"[0-9]{1,10}", entry.name)]
    except OSError:
        return None
    for process in sorted(processes):
        try:
            files = list(process.glob("vram_*"))
        except OSError:
            continue  # it ended just now
        for file in files:
            number, held = whole_number(file.name.removeprefix("vram_")), whole_number(text_of(file))
            if number is not None and held:  # a process with 0 bytes is no user of the GPU
                holders.setdefault(number, []).append(GpuProcess(int(process.name), held))
    return holders


@dataclass(frozen=True)
class _Told:
    """What a tool said of one GPU."""

    index: int
    address: str | None
    used_bytes: int | None = None
    load_percent: int | None = None
    processes: tuple[GpuProcess, ...] | None = None


def _completed(use: GpuUse, told: Sequence[_Told]) -> GpuUse:
    gpu = use.gpu
    if gpu.bus_address:
        same = next((one for one in told if one.address == gpu.bus_address), None)
    else:
        same = next((one for one in told if one.index == gpu.index), None)
    if same is None:
        return use
    return replace(
        use,
        memory_used_bytes=first(use.memory_used_bytes, same.used_bytes),
        load_percent=None if gpu.partition else first(use.load_percent, same.load_percent),
        processes=same.processes if use.processes is None else use.processes,
    )


def _by_amd_smi(run: ToolRunner) -> list[_Told]:
    """Empty where it is not there or says nothing of memory."""
    metric = run(("amd-smi", "metric", "--json"))
    if not metric.succeeded:
        return []
    addresses = {index: bus_address(entry.get("bdf")) for index, entry in _entries(run(("amd-smi", "list", "--json")))}
    processes = dict(_entries(run(("amd-smi", "process", "--json"))))
    return [
        _Told(
            index,
            addresses.get(index),
            scaled(part_of(part_of(entry, "mem_usage"), "used_vram")),
            whole_number(part_of(part_of(entry, "usage"), "gfx_activity").get("value")),
            _amd_smi_processes(processes.get(index, {}).get("process_list")),
        )
        for index, entry in _entries(metric)
    ]


def _amd_smi_processes(listed: object) -> tuple[GpuProcess, ...] | None:
    """ "No running processes detected" is a string in place of a process."""
    if not isinstance(listed, list):
        return None
    found = []
    for entry in listed:
        info = part_of(entry, "process_info") if isinstance(entry, dict) else {}
        pid = whole_number(info.get("pid"))
        held = scaled(part_of(part_of(info, "memory_usage"), "vram_mem"))
        if pid is not None and held != 0:
            found.append(GpuProcess(pid, held))
    return tuple(found)


def _by_rocm_smi(run: ToolRunner) -> list[_Told]:
    document = _json(run(("rocm-smi", "--showbus", "--showuse", "--showmeminfo", "vram", "--json")))
    cards = document.items() if isinstance(document, dict) else ()
    numbered = ((re.fullmatch(r"card([0-9]{1,4})", str(name)), card) for name, card in cards)
    return [
        _Told(
            int(found.group(1)),
            bus_address(card.get("PCI Bus")),
            whole_number(card.get("VRAM Total Used Memory (B)")),
            whole_number(card.get("GPU use (%)")),
        )
        for found, card in numbered
        if found and isinstance(card, dict)
    ]


def _entries(answer: ToolAnswer) -> Iterator[tuple[int, dict[str, Any]]]:
    """The GPUs of an answer by index: a flat list in ROCm 6, under `gpu_data` in ROCm 7."""
    document = _json(answer)
    entries = document.get("gpu_data") if isinstance(document, dict) else document
    for entry in entries if isinstance(entries, list) else ():
        index = whole_number(entry.get("gpu")) if isinstance(entry, dict) else None
        if index is not None:
            yield index, entry


def _json(answer: ToolAnswer) -> Any:
    try:
        return json.loads(answer.output) if answer.succeeded else None
    except (ValueError, RecursionError):
        return None
