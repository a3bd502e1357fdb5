"""What a GPU is called: for people, for locks and for masks.

A GPU is known by its bus address. Partitions of an AMD card share a unique id and may share the address, and instances
of an NVIDIA card (MIG) share the address too: there the partition belongs to the name.
"""

from __future__ import annotations

import re

from schemas.artifacts.environment import Gpu


def identity(gpu: Gpu) -> str:
    """What names this GPU or partition on this host, whatever its index is to whom."""
    base = gpu.bus_address or gpu.uuid or f"index {gpu.index}"
    return f"{base} {gpu.partition}" if gpu.partition else base


def name_of(gpu: Gpu) -> str:
    """What people and a run's record call it: "3 (0000:c1:00.0)"."""
    return f"{gpu.index} ({identity(gpu)})"


def identity_in(name: str) -> str:
    """The identity in a name that `name_of` made; the name itself where it is another."""
    found = re.fullmatch(r"\d+ \((.+)\)", name)
    return found.group(1) if found else name


def is_named(gpu: Gpu, name: str) -> bool:
    """Whether a setting means this GPU: by index, UUID, bus address or identity."""
    return name in {str(gpu.index), gpu.uuid, gpu.bus_address, identity(gpu), name_of(gpu)}
