"""What each GPU holds now: memory in use, load, and the processes that hold memory on it.

AMD's kernel files are read first, since they cost nothing and cannot hang; the vendors' tools complete what they lack.
Whatever is not said stays None: a tool may write "N/A" anywhere.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.host.evidence import bus_address, text_of, whole_number, words
from runner.host.gpus.identity import identity
from runner.host.tools import ToolRunner
from schemas.artifacts.environment import Gpu

_KFD = "sys/class/kfd/kfd"
_MIB = 2**20


@dataclass(frozen=True)
class GpuProcess:
    """A process that has memory on a GPU. `memory_bytes` is None where only its being there is known."""

    pid: int
    memory_bytes: int | None = None


@dataclass(frozen=True)
class GpuUse:
    """One GPU at one moment. None is what nobody said."""

    gpu: Gpu
    memory_used_bytes: int | None = None
    load_percent: int | None = None
    processes: tuple[GpuProcess, ...] = ()


def uses(gpus: Sequence[Gpu], root: Path, run: ToolRunner) -> list[GpuUse]:
    """What these GPUs hold now, in their order. Takes as long as the tools do; never raises."""
    found = [GpuUse(gpu, gpu.memory_used_bytes) for gpu in gpus]
    amd = [use for use in found if _is_amd(use.gpu, root)]
    if amd:
        told = {identity(use.gpu): use for use in _by_kernel(amd, root)}
        found = [told.get(identity(use.gpu), use) for use in found]
    lacking = [use for use in found if use.memory_used_bytes is None or use.load_percent is None]
    if lacking and (amd or not _has_nvidia(run)):
        found = _completed(found, _by_amd_smi(run) or _by_rocm_smi(run))
    elif lacking:
        found = _with_nvidia(found, run)
    return found


def _is_amd(gpu: Gpu, root: Path) -> bool:
    return (gpu.arch or "").startswith("gfx") and (root / _KFD).exists()


def _has_nvidia(run: ToolRunner) -> bool:
    return run(("nvidia-smi", "--list-gpus")).succeeded


def _by_kernel(found: Sequence[GpuUse], root: Path) -> Iterator[GpuUse]:
    """AMD by sysfs: memory and load of the card's device, processes of KFD."""
    ids = _kfd_ids(root)
    holders = _kfd_processes(root)
    for use in found:
        kfd, minor = ids.get(use.gpu.bus_address or "", (0, -1))
        device = root / f"sys/class/drm/renderD{minor}/device"
        yield replace(
            use,
            memory_used_bytes=_first(whole_number(text_of(device / "mem_info_vram_used")), use.memory_used_bytes),
            load_percent=whole_number(text_of(device / "gpu_busy_percent")),
            processes=tuple(holders.get(kfd, ())),
        )


def _kfd_ids(root: Path) -> dict[str, tuple[int, int]]:
    """KFD's own number and the render minor of each GPU, by bus address."""
    ids: dict[str, tuple[int, int]] = {}
    nodes = root / _KFD / "topology/nodes"
    for node in nodes.iterdir() if nodes.is_dir() else ():
        lines = (line.partition(" ") for line in (text_of(node / "properties") or "").splitlines())
        facts = {name: whole_number(value) or 0 for name, _, value in lines}
        if not facts.get("gfx_target_version"):
            continue
        place, domain = facts.get("location_id", 0), facts.get("domain", 0)
        address = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
        ids[address] = (whole_number(text_of(node / "gpu_id")) or 0, facts.get("drm_render_minor", -1))
    return ids


def _kfd_processes(root: Path) -> dict[int, list[GpuProcess]]:
    """Who holds memory on which GPU, by KFD's number of it."""
    holders: dict[int, list[GpuProcess]] = {}
    folder = root / _KFD / "proc"
    try:
        processes = sorted(entry for entry in folder.iterdir() if entry.name.isdigit())
    except OSError:
        return holders
    for process in processes:
        try:
            files = list(process.glob("vram_*"))
        except OSError:
            continue  # it ended just now
        for file in files:
            number, held = whole_number(file.name.removeprefix("vram_")), whole_number(text_of(file))
            if number is not None and held:
                holders.setdefault(number, []).append(GpuProcess(int(process.name), held))
    return holders


def _by_amd_smi(run: ToolRunner) -> dict[str, GpuUse]:
    """By index, from amd-smi; empty where it says nothing."""
    metrics, processes = run(("amd-smi", "metric", "--json")), run(("amd-smi", "process", "--json"))
    found: dict[str, GpuUse] = {}
    for entry in _entries(metrics.output if metrics.succeeded else ""):
        index = whole_number(entry.get("gpu"))
        if index is None:
            continue
        used = _scaled(_part(_part(entry, "mem_usage"), "used_vram"))
        load = whole_number(_part(_part(entry, "usage"), "gfx_activity").get("value"))
        found[str(index)] = GpuUse(Gpu(index=index), used, load)
    for entry in _entries(processes.output if processes.succeeded else ""):
        index = whole_number(entry.get("gpu"))
        listed = entry.get("process_list")
        if index is None or not isinstance(listed, list):
            continue
        known = found.get(str(index), GpuUse(Gpu(index=index)))
        found[str(index)] = replace(known, processes=tuple(_amd_smi_processes(listed)))
    return found


def _amd_smi_processes(listed: list[Any]) -> Iterator[GpuProcess]:
    """ "No running processes detected" is a string; a process with 0 bytes is no user of the GPU."""
    for entry in listed:
        info = entry.get("process_info") if isinstance(entry, dict) else None
        pid = whole_number(info.get("pid")) if isinstance(info, dict) else None
        if pid is None or not isinstance(info, dict):
            continue
        held = _scaled(_part(_part(info, "memory_usage"), "vram_mem"))
        if held != 0:
            yield GpuProcess(pid, held)


def _by_rocm_smi(run: ToolRunner) -> dict[str, GpuUse]:
    answer = run(("rocm-smi", "--showuse", "--showmeminfo", "vram", "--json"))
    document = _json(answer.output) if answer.succeeded else None
    found: dict[str, GpuUse] = {}
    for name, card in document.items() if isinstance(document, dict) else ():
        index = str(name).removeprefix("card")
        if not index.isdigit() or not isinstance(card, dict):
            continue
        used, load = whole_number(card.get("VRAM Total Used Memory (B)")), whole_number(card.get("GPU use (%)"))
        found[index] = GpuUse(Gpu(index=int(index[:4])), used, load)
    return found


def _completed(found: Sequence[GpuUse], told: dict[str, GpuUse]) -> list[GpuUse]:
    """What the kernel said, and where it said nothing what a tool says of the same index."""
    completed = []
    for use in found:
        more = told.get(str(use.gpu.index))
        if more is not None:
            use = replace(
                use,
                memory_used_bytes=_first(use.memory_used_bytes, more.memory_used_bytes),
                load_percent=_first(use.load_percent, more.load_percent),
                processes=use.processes or more.processes,
            )
        completed.append(use)
    return completed


def _with_nvidia(found: Sequence[GpuUse], run: ToolRunner) -> list[GpuUse]:
    """NVIDIA by nvidia-smi. On an instance of a card (MIG) the card's load says nothing of it."""
    query = "--query-gpu=index,pci.bus_id,memory.used,utilization.gpu"
    cards = {}
    for row in _rows(run(("nvidia-smi", query, "--format=csv,noheader,nounits")).output, 4):
        used = whole_number(row[2])
        cards[row[0]] = (bus_address(row[1]), None if used is None else used * _MIB, whole_number(row[3]))
    holders: dict[str, list[GpuProcess]] = {}
    query = "--query-compute-apps=gpu_uuid,pid,used_memory"
    for row in _rows(run(("nvidia-smi", query, "--format=csv,noheader,nounits")).output, 3):
        pid, held = whole_number(row[1]), whole_number(row[2])
        if pid is not None and held != 0:
            holders.setdefault(row[0], []).append(GpuProcess(pid, None if held is None else held * _MIB))
    completed = []
    for use in found:
        gpu = use.gpu
        same = next((card for card in cards.values() if card[0] and card[0] == gpu.bus_address), None)
        _, used, load = same or cards.get(str(gpu.index), (None, None, None))
        completed.append(
            replace(
                use,
                memory_used_bytes=use.memory_used_bytes if gpu.partition else _first(used, use.memory_used_bytes),
                load_percent=None if gpu.partition else load,
                processes=tuple(holders.get(gpu.uuid or "", ())),
            )
        )
    return completed


def _rows(output: str, columns: int) -> Iterator[list[str]]:
    try:
        for row in csv.reader(output.splitlines()):
            values = [words(value) or "" for value in row]
            if len(values) == columns:
                yield values
    except csv.Error:
        return


def _entries(output: str) -> Iterator[dict[str, Any]]:
    """A flat list in ROCm 6, under `gpu_data` in ROCm 7."""
    document = _json(output)
    entries = document.get("gpu_data") if isinstance(document, dict) else document
    yield from (entry for entry in (entries if isinstance(entries, list) else ()) if isinstance(entry, dict))


def _json(output: str) -> Any:
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None


def _part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}


def _scaled(amount: dict[str, Any]) -> int | None:
    """Bytes of {value, unit}. amd-smi writes MB and means MiB."""
    number = whole_number(amount.get("value"))
    factor = {"B": 1, "KB": 2**10, "MB": _MIB, "GB": 2**30}.get(str(amount.get("unit")).upper())
    return None if number is None or factor is None else number * factor


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
