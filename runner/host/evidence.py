"""What was seen of one vendor's GPUs, and careful reading of what drivers and tools write."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.artifacts.environment import Gpu

_LONGEST = 65_536


@dataclass(frozen=True)
class VendorEvidence:
    """One vendor's GPUs on this host.

    `absent` says that they were looked for and shown not to be there. Neither GPUs nor `absent` means that nobody
    knows, as with a driver that lists no GPU or a tool that hangs.
    """

    gpus: tuple[Gpu, ...] = ()
    absent: bool = False
    seen: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()


def text_of(path: Path) -> str | None:
    """The beginning of a small text file; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST).decode("utf-8", "replace")
    except OSError:
        return None


def whole_number(value: object) -> int | None:
    """A count that a tool wrote as a number or a string; None for "N/A", "[Not Supported]" and the like."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float):
        return int(value) if 0 <= value < 1e18 else None
    found = re.fullmatch(r"\s*(\d{1,20})(?:\.\d+)?\s*", value) if isinstance(value, str) else None
    return int(found.group(1)) if found else None


def words(value: object) -> str | None:
    """A name that a tool wrote, without the many ways of saying that there is none."""
    if not isinstance(value, str):
        return None
    text = " ".join(value.split())
    nothing = not text or text.upper().strip("[]") in {
        "N/A",
        "NOT SUPPORTED",
        "UNKNOWN",
        "NONE",
        "ERR!",
        "UNKNOWN ERROR",
    }
    return None if nothing else text[:200]


def bus_address(value: object) -> str | None:
    """A PCI address as Linux writes it: 0000:c1:00.0. nvidia-smi writes eight digits of domain and capitals."""
    found = (
        re.fullmatch(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])", value)
        if (isinstance(value, str))
        else None
    )
    return f"{int(found.group(1) or '0', 16):04x}:{found.group(2).lower()}" if found else None


def part_of(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """An object inside an object of JSON; empty where there is something else, such as "N/A"."""
    part = entry.get(name)
    return part if isinstance(part, dict) else {}


def scaled(amount: dict[str, Any]) -> int | None:
    """Bytes of {value, unit}. amd-smi writes MB and means MiB."""
    number = whole_number(amount.get("value"))
    factor = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}.get(str(amount.get("unit")).upper())
    return None if number is None or factor is None else number * factor


def in_bus_order(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """The same GPUs by index."""
    return tuple(sorted(gpus, key=lambda gpu: gpu.index))
