"""Memory that a run may use: of this host, and of its GPUs; and the kernel's bound on memory mappings."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.host.evidence import text_of
from runner.host.gpus.mask import allowed, inherited
from runner.host.gpus.use import Vendor
from runner.settings import GpuSettings
from schemas.artifacts.environment import Accelerator, Hardware

_VENDORS: dict[Accelerator, Vendor] = {"amd-rocm": "amd", "nvidia-cuda": "nvidia"}
_UNLIMITED = 1 << 60  # cgroup v1 says "no limit" by a number near the largest one


@dataclass(frozen=True)
class HostMemory:
    """Bytes; None where the kernel does not say. Under a cgroup's limit both are what that leaves."""

    total_bytes: int | None
    available_bytes: int | None


def host_memory(root: Path = Path("/")) -> HostMemory:
    """Main memory now: of the host, or of the tightest cgroup around this process. Runs are started below it.

    `root` is the file system that is looked at; tests put their own in place. Source: proc(5), cgroup v1 and v2.
    """
    meminfo = text_of(root / "proc/meminfo") or ""
    total, available = _kilobytes(meminfo, "MemTotal"), _kilobytes(meminfo, "MemAvailable")
    for limit, used in _cgroups(root):
        total = limit if total is None else min(total, limit)
        left = max(limit - used, 0)
        available = left if available is None else min(available, left)
    return HostMemory(total, available)


@dataclass(frozen=True)
class GpuMemory:
    """Bytes of each GPU that runs may use, those first that a run would get now, and how many of them one run gets.

    `total` and `free` are empty where they are not known of every one.
    """

    total: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    per_run: int = 1


def gpu_memory(found: Hardware, settings: GpuSettings, environment: Mapping[str, str] = os.environ) -> GpuMemory:
    """The memory of the GPUs that the settings and an inherited mask leave to runs, as they are shared out.

    Those whose memory is in use stand last, since a run gets others before them. Partitions of a card (CPX) each report
    the whole card's memory and share it: each counts for its part.
    """
    vendor = _VENDORS.get(found.accelerator)
    left = inherited(found.gpus, vendor, environment) if vendor else found.gpus
    gpus, unknown = allowed(left, settings.visible)
    if unknown or not gpus:
        return GpuMemory(per_run=settings.per_run)
    gpus = sorted(gpus, key=lambda gpu: (gpu.memory_used_bytes or 0) > settings.idle_bytes)
    parts = Counter(gpu.uuid for gpu in found.gpus)  # an instance of NVIDIA's has a UUID and memory of its own
    total, free = [], []
    for gpu in gpus:
        shared_by = parts[gpu.uuid] if gpu.uuid and gpu.partition else 1
        if gpu.memory_bytes:
            total.append(gpu.memory_bytes // shared_by)
        if gpu.memory_bytes and gpu.memory_used_bytes is not None:
            free.append(max(gpu.memory_bytes - gpu.memory_used_bytes, 0) // shared_by)
    known, told = len(total) == len(gpus), len(free) == len(gpus)
    per_run = min(settings.per_run, len(gpus))
    return GpuMemory(tuple(total) if known else (), tuple(free) if told else (), per_run)


def max_map_count(root: Path = Path("/")) -> int | None:
    """vm.max_map_count: how many memory mappings one process may have; None where the kernel does not say."""
    return _number(root / "proc/sys/vm/max_map_count")


def _cgroups(root: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of each cgroup around this process that has a limit; use without what is given back at once."""
    for line in (text_of(root / "proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            top, names = root / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        # In a container the path may be the host's, and its beginning not be there: the top is the container's own.
        for depth in range(len(parts) + 1):
            folder = top.joinpath(*parts[:depth])
            limit, used = _number(folder / names[0]), _number(folder / names[1])
            if limit is not None and limit < _UNLIMITED:
                found = re.search(rf"^{names[2]} (\d+)$", text_of(folder / "memory.stat") or "", re.MULTILINE)
                yield limit, max((used or 0) - (int(found.group(1)) if found else 0), 0)


def _kilobytes(meminfo: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB$", meminfo, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else None


def _number(path: Path) -> int | None:
    text = (text_of(path) or "").strip()
    return int(text) if text.isascii() and text.isdigit() else None
