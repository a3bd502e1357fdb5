"""The busy rule: whether a run may have a GPU.

Utilisation alone lies: a server that waits for requests holds the memory at 0 %. So a GPU is busy when its memory is
used beyond what an idle one shows, or a process of somebody else holds memory on it, or it computes at every look.
One of which nothing is known is not free either: a tool that hangs is no proof.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.host.gpus.use import GpuUse

BUSY_PERCENT = 5
LOOKS = 3
"""Looks at the load, all of which have to find the GPU computing: a driver's own work is a spike."""

NOT_TOLD = "neither the kernel nor the vendor's tools tell what it holds"


def held_by(use: GpuUse, idle_bytes: int) -> str:
    """Who or what holds this GPU's memory, as the end of a sentence; empty where nobody is known to."""
    used = use.memory_used_bytes
    if use.processes:
        largest = max(use.processes, key=lambda process: process.memory_bytes or 0)
        others = f" and {len(use.processes) - 1} more" if len(use.processes) > 1 else ""
        return f"{_size(largest.memory_bytes or used)} in use by process {largest.pid}{others}"
    return f"{_size(used)} in use" if used is not None and used > idle_bytes else ""


def not_free(use: GpuUse, idle_bytes: int) -> str:
    """Why no run may have this GPU by a single look, without its load; empty where one may."""
    if use.memory_used_bytes is None and use.processes is None:
        return NOT_TOLD
    return held_by(use, idle_bytes)


def busy(looks: Sequence[GpuUse], idle_bytes: int) -> str:
    """Why no run may have this GPU, as a sentence's end; empty where one may. `looks` are of one GPU, oldest first."""
    if why := not_free(looks[-1], idle_bytes):
        return why
    loads = [look.load_percent for look in looks[-LOOKS:]]
    known = [load for load in loads if load is not None]
    if len(known) >= LOOKS and min(known) > BUSY_PERCENT:
        return f"it computes at {known[-1]} %"
    return ""


def computes(use: GpuUse) -> bool:
    """Whether one look finds it computing: then more looks are needed."""
    return use.load_percent is not None and use.load_percent > BUSY_PERCENT


def _size(amount: int | None) -> str:
    if amount is None:
        return "memory"
    return f"{amount / 2**30:.0f} GiB" if amount >= 10 * 2**30 else f"{amount / 2**30:.1f} GiB"
