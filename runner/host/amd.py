"""AMD GPUs: what the kernel's KFD topology lists, completed by amd-smi or rocm-smi where they are installed.

KFD is asked first, since the tools are slow, change their JSON between releases (a flat list in ROCm 6, `gpu_data` in
ROCm 7) and may say "N/A" anywhere. A GPU is known by its bus address: partitions of one card share a unique id.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.host.evidence import VendorEvidence, bus_address, in_bus_order, text_of, whole_number, words
from runner.host.tools import ToolRunner
from schemas.artifacts.environment import Gpu

_MIB = 2**20
_TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"


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


def gfx_name(version: int) -> str:
    """The architecture of a KFD `gfx_target_version`: 90402 is gfx942, 90010 gfx90a, 110000 gfx1100."""
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def _kfd(root: Path) -> tuple[list[Gpu], int, list[str]]:
    """The GPUs in the order in which HIP numbers them, how many nodes may not be read, and what was seen."""
    folder = root / _TOPOLOGY
    try:
        numbers = sorted(int(name) for name in os.listdir(folder) if name.isdigit())  # noqa: PTH208 - names, no paths
    except OSError:
        return [], 0, ["no KFD topology in /sys"]
    gpus: list[Gpu] = []
    hidden = 0
    for number in numbers:
        text = text_of(folder / str(number) / "properties")
        if text is None:
            hidden += 1  # a container may see nodes of GPUs that it was not given, and not read them
            continue
        properties = dict(_properties(text))
        if properties.get("gfx_target_version", 0) > 0:
            gpus.append(_gpu(len(gpus), properties, root))
    unread = f", {hidden} may not be read" if hidden else ""
    return gpus, hidden, [f"KFD lists {_count(gpus)} in {len(numbers)} nodes{unread}"]


def _properties(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        number = whole_number(value)
        if number is not None:
            yield name, number


def _gpu(index: int, properties: dict[str, int], root: Path) -> Gpu:
    location, domain = properties.get("location_id", 0), properties.get("domain", 0)
    unique = properties.get("unique_id", 0)
    card = root / f"sys/class/drm/renderD{properties.get('drm_render_minor', 0)}/device"
    return Gpu(
        index=index,
        bus_address=f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}",
        uuid=f"GPU-{unique:016x}" if unique else None,
        model=words(text_of(card / "product_name")),
        arch=gfx_name(properties["gfx_target_version"]),
        memory_bytes=whole_number(text_of(card / "mem_info_vram_total")) or properties.get("local_mem_size") or None,
        memory_used_bytes=whole_number(text_of(card / "mem_info_vram_used")),
    )


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
        asic, bus, vram = (_part(entry, name) for name in ("asic", "bus", "vram"))
        index = whole_number(entry.get("gpu"))
        gpus.append(
            Gpu(
                index=len(gpus) if index is None else index,
                bus_address=bus_address(bus.get("bdf")),
                model=words(asic.get("market_name")),
                arch=_arch(asic.get("target_graphics_version")),
                memory_bytes=_scaled(_part(vram, "size")),
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
        )
        for found, card in numbered
        if found and isinstance(card, dict)
    ]


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


def _part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}


def _arch(value: object) -> str | None:
    text = words(value)
    return text if text and re.fullmatch(r"gfx[0-9a-f]{3,5}", text) else None


def _scaled(amount: dict[str, Any]) -> int | None:
    """Bytes of {value, unit}. amd-smi writes MB and means MiB."""
    number = whole_number(amount.get("value"))
    factor = {"B": 1, "KB": 2**10, "MB": _MIB, "GB": 2**30}.get(str(amount.get("unit")).upper())
    return number * factor if number and factor else None


def _count(gpus: list[Gpu]) -> str:
    return f"{len(gpus)} AMD GPU{'' if len(gpus) == 1 else 's'}"
