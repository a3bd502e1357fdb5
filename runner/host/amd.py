"""AMD GPUs: what the kernel's KFD topology lists, completed by amd-smi or rocm-smi where they are installed.

KFD is asked first, since the tools are slow, change their JSON between releases (a flat list in ROCm 6, `gpu_data` in
ROCm 7) and may say "N/A" anywhere. A GPU is known by its bus address, whose last digit tells the partitions of one card
apart: they share a unique id, and each reports the memory of the whole card.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.host.evidence import (
    VendorEvidence,
    bus_address,
    in_bus_order,
    part_of,
    scaled,
    text_of,
    whole_number,
    words,
)
from runner.host.tools import ToolRunner
from schemas.artifacts.environment import Gpu

_TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"


def kernel_gpus(root: Path) -> tuple[Gpu, ...]:
    """The AMD GPUs that the kernel lists, in the order in which HIP numbers them. Starts no tool; never raises."""
    return tuple(_kfd(root)[0])


def amd_gpus(root: Path, run: ToolRunner) -> VendorEvidence:
    """Look for AMD GPUs below a file system root ("/") and with the vendor's tools."""
    nodes, hidden, seen = _kfd(root)
    device = root / "dev/kfd"
    seen = [*seen, f"/dev/kfd is {'there' if device.exists() else 'not there'}"]
    told, from_tools, sure = _tools(run)
    seen += from_tools
    contradictions: list[str] = []
    if nodes and not device.exists():
        contradictions.append(
            f"The kernel lists {_count(nodes)}, but /dev/kfd is not there: this container was not given the devices."
        )
    elif nodes and not os.access(device, os.R_OK | os.W_OK, effective_ids=True):
        contradictions.append(f"The kernel lists {_count(nodes)}, but this user may not open /dev/kfd (group render).")
    gpus = [_completed(gpu, told) for gpu in nodes] if nodes else told
    absent = not gpus and not hidden and not device.exists() and sure
    return VendorEvidence(in_bus_order(gpus), absent, tuple(seen), tuple(contradictions))


def rocm_version(root: Path) -> str | None:
    """The installed ROCm, such as 6.4.1; None where it is not installed in the usual place."""
    found = re.match(r"\d+(\.\d+)+", (text_of(root / "opt/rocm/.info/version") or "").strip())
    return found.group(0) if found else None


def kfd_nodes(root: Path) -> Iterator[tuple[int, dict[str, int] | None]]:
    """Number and properties of each KFD node, by number; None for those that this process may not read.

    Raises OSError where there is no topology.
    """
    folder = root / _TOPOLOGY
    for number in sorted(int(name) for name in os.listdir(folder) if re.fullmatch(r"[0-9]{1,6}", name)):  # noqa: PTH208
        text = text_of(folder / str(number) / "properties")
        yield number, None if text is None else dict(_properties(text))


def kfd_address(properties: dict[str, int]) -> str:
    """The bus address of a KFD node, with the partition's number as its last digit, as the vendor's tools write it.

    Kernels put that number there themselves, or into bits 28 to 31 of location_id. Source: amdkfd, kfd_topology.
    """
    location, domain = properties.get("location_id", 0), properties.get("domain", 0)
    part = location >> 28 & 7 or location & 7
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{part}"


def device_folder(root: Path, properties: dict[str, int]) -> Path:
    """The folder of a KFD node's graphics device, with its memory and load."""
    return root / f"sys/class/drm/renderD{properties.get('drm_render_minor', 0)}/device"


def gfx_name(version: int) -> str:
    """The architecture of a KFD `gfx_target_version`: 90402 is gfx942, 90010 gfx90a, 110000 gfx1100."""
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def _kfd(root: Path) -> tuple[list[Gpu], int, list[str]]:
    """The GPUs in the order in which HIP numbers them, how many nodes may not be read, and what was seen."""
    gpus: list[Gpu] = []
    total = hidden = 0
    try:
        for _, properties in kfd_nodes(root):
            total += 1
            if properties is None:
                hidden += 1  # a container may see nodes of GPUs that it was not given, and not read them
            elif properties.get("gfx_target_version", 0) > 0:
                gpus.append(_gpu(len(gpus), properties, root))
    except OSError:
        return [], 0, ["no KFD topology in /sys"]
    unread = f", {hidden} may not be read" if hidden else ""
    return _partitioned(gpus), hidden, [f"KFD lists {_count(gpus)} in {total} nodes{unread}"]


def _properties(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        number = whole_number(value)
        if number is not None:
            yield name, number


def _gpu(index: int, properties: dict[str, int], root: Path) -> Gpu:
    unique = properties.get("unique_id", 0)
    card = device_folder(root, properties)
    mode = words(text_of(card / "current_compute_partition"))
    return Gpu(
        index=index,
        bus_address=kfd_address(properties),
        uuid=f"GPU-{unique:016x}" if unique else None,
        model=words(text_of(card / "product_name")),
        arch=gfx_name(properties["gfx_target_version"]),
        memory_bytes=whole_number(text_of(card / "mem_info_vram_total")) or properties.get("local_mem_size") or None,
        memory_used_bytes=whole_number(text_of(card / "mem_info_vram_used")),
        partition=mode,
    )


def _partitioned(gpus: list[Gpu]) -> list[Gpu]:
    """The same, where those that share a unique id are named as parts of a card.

    Only the first part has the card's own files: memory, model and the kind of partition count for all of them.
    """
    cards: dict[str | None, list[Gpu]] = {}
    for gpu in gpus:
        cards.setdefault(gpu.uuid, []).append(gpu)
    return [_part_of(gpu, cards[gpu.uuid]) for gpu in gpus]


def _part_of(gpu: Gpu, card: list[Gpu]) -> Gpu:
    if gpu.uuid is None or len(card) == 1:
        return gpu.model_copy(update={"partition": None})
    told = {
        name: next((value for part in card if (value := getattr(part, name)) is not None), None)
        for name in ("model", "memory_bytes", "memory_used_bytes", "partition")
    }
    return gpu.model_copy(update={**told, "partition": _part_name(told["partition"], gpu.bus_address)})


def _part_name(mode: object, address: str | None) -> str:
    return f"{mode or 'part'} {(address or '?')[-1]}"


def _tools(run: ToolRunner) -> tuple[list[Gpu], list[str], bool]:
    """GPUs by the first tool that answers, what was seen, and whether no tool left a doubt."""
    seen: list[str] = []
    sure = True
    for argv, read in ((("amd-smi", "static", "--json"), _amd_smi), (_ROCM_SMI, _rocm_smi)):
        answer = run(argv)
        if not answer.found:
            seen.append(f"{argv[0]} is not on PATH")
            continue
        if answer.problem:
            seen.append(f"{argv[0]} {answer.problem}")
            sure = False
            continue
        try:
            gpus = read(json.loads(answer.output))
        except (ValueError, RecursionError):
            seen.append(f"{argv[0]} answered with something that is not JSON")
            sure = False
            continue
        seen.append(f"{argv[0]} lists {_count(gpus)}")
        if gpus:
            return gpus, seen, True
    return [], seen, sure


_ROCM_SMI = ("rocm-smi", "--showproductname", "--showuniqueid", "--showbus", "--showmeminfo", "vram", "--json")


def _amd_smi(document: Any) -> list[Gpu]:
    entries = document.get("gpu_data") if isinstance(document, dict) else document
    gpus: list[Gpu] = []
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        asic, bus, vram = (part_of(entry, name) for name in ("asic", "bus", "vram"))
        index = whole_number(entry.get("gpu"))
        gpus.append(
            Gpu(
                index=len(gpus) if index is None else index,
                bus_address=bus_address(bus.get("bdf")),
                model=words(asic.get("market_name")),
                arch=_arch(asic.get("target_graphics_version")),
                memory_bytes=scaled(part_of(vram, "size")) or None,
                partition=_partition(part_of(entry, "partition").get("compute_partition"), bus.get("bdf")),
            )
        )
    return gpus


def _rocm_smi(document: Any) -> list[Gpu]:
    cards = document.items() if isinstance(document, dict) else ()
    numbered = ((re.fullmatch(r"card(\d{1,4})", str(name)), card) for name, card in cards)
    return [
        Gpu(
            index=int(found.group(1)),
            bus_address=bus_address(card.get("PCI Bus")),
            model=words(card.get("Card Series")),
            arch=_arch(card.get("GFX Version")),
            memory_bytes=whole_number(card.get("VRAM Total Memory (B)")) or None,
            memory_used_bytes=whole_number(card.get("VRAM Total Used Memory (B)")),
            partition=_partition(card.get("Compute Partition"), card.get("PCI Bus")),
        )
        for found, card in numbered
        if found and isinstance(card, dict)
    ]


def _partition(mode: object, address: object) -> str | None:
    """The name of a part of a card; None where the card is whole (SPX)."""
    text = words(mode)
    return _part_name(text, bus_address(address)) if text and text.upper() != "SPX" else None


def _completed(gpu: Gpu, told: list[Gpu]) -> Gpu:
    """A GPU of the kernel with what a tool adds about the same bus address."""
    same = next((other for other in told if other.bus_address == gpu.bus_address), None)
    if same is None:
        return gpu
    return gpu.model_copy(
        update={
            "model": gpu.model or same.model,
            "memory_bytes": gpu.memory_bytes or same.memory_bytes,
            "memory_used_bytes": same.memory_used_bytes if gpu.memory_used_bytes is None else gpu.memory_used_bytes,
        }
    )


def _arch(value: object) -> str | None:
    text = words(value)
    return text if text and re.fullmatch(r"gfx[0-9a-f]{3,5}", text) else None


def _count(gpus: list[Gpu]) -> str:
    return f"{len(gpus)} AMD GPU{'' if len(gpus) == 1 else 's'}"
