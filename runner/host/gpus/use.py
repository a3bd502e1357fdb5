"""What each GPU holds now: memory in use, load, and the processes that hold memory on it.

AMD's kernel files are read first, since they cost nothing and cannot hang; the vendors' tools complete what they lack.
Whatever is not said stays None: a tool may write "N/A" anywhere, or not answer at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from schemas.artifacts.environment import Gpu

Vendor = Literal["amd", "nvidia"]


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
    processes: tuple[GpuProcess, ...] | None = None


def first(*values: int | None) -> int | None:
    """The first that somebody said."""
    return next((value for value in values if value is not None), None)
