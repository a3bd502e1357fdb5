"""What a GPU is called: for people, for locks and for masks.

A GPU is known by its bus address, whose last digit tells partitions of an AMD card apart: they share a unique id.
Instances of an NVIDIA card (MIG) share the address, and every container that is given some of them numbers them anew:
they are known by their own UUID, which all daemons of a host see alike.
"""

from __future__ import annotations

import re

from schemas.artifacts.environment import Gpu


def identity(gpu: Gpu) -> str:
    """What names this GPU or part of one on this host, whatever its index is to whom."""
    if gpu.uuid and gpu.uuid.startswith("MIG-"):
        return gpu.uuid
    return gpu.bus_address or gpu.uuid or f"index {gpu.index}"


def name_of(gpu: Gpu) -> str:
    """What people and a run's record call it: "3 (0000:c1:00.0)"."""
    return f"{gpu.index} ({identity(gpu)})"


def identity_in(name: str) -> str:
    """The identity in a name that `name_of` made; the name itself where it is another."""
    found = re.fullmatch(r"[0-9]+ \((.+)\)", name)
    return found.group(1) if found else name


def is_named(gpu: Gpu, name: str) -> bool:
    """Whether a setting means this GPU: by index, UUID or bus address; a card's name means all parts of it."""
    return name.strip().lower() in {
        called.lower() for called in (str(gpu.index), gpu.uuid, gpu.bus_address, identity(gpu), name_of(gpu)) if called
    }
