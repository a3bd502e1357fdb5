"""Instances of NVIDIA cards (MIG): what nvidia-smi tells of each. No table of its CSV has them, only its XML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from runner.host.evidence import bus_address
from runner.host.gpus.use import GpuProcess
from runner.host.tools import ToolRunner

_UNITS = {"MiB": 2**20, "KiB": 2**10, "GiB": 2**30, "B": 1}


@dataclass(frozen=True)
class Instance:
    """One instance: the bus address of its card and its number there, as `nvidia-smi -L` counts."""

    address: str | None
    number: int
    memory_bytes: int | None
    used_bytes: int | None
    processes: tuple[GpuProcess, ...]


def instances(run: ToolRunner) -> list[Instance]:
    """All instances of all cards; empty where nothing tells of any. Never raises."""
    answer = run(("nvidia-smi", "-q", "-x"))
    if not answer.succeeded:
        return []
    try:
        document = ElementTree.fromstring(answer.output)
    except (ElementTree.ParseError, ValueError):
        return []
    return [instance for card in document.iter("gpu") for instance in _of_card(card)]


def _of_card(card: ElementTree.Element) -> Iterator[Instance]:
    address = bus_address(card.get("id"))
    holders = [(_place(process), _process(process)) for process in card.iterfind("processes/process_info")]
    for device in card.iterfind("mig_devices/mig_device"):
        number = _count(device.findtext("index"))
        if number is None:
            continue
        mine = tuple(holder for place, holder in holders if holder and place == _place(device))
        memory = device.find("fb_memory_usage")
        total, used = (None if memory is None else _bytes(memory.findtext(name)) for name in ("total", "used"))
        yield Instance(address, number, total or None, used, mine)


def _place(element: ElementTree.Element) -> tuple[str, ...]:
    return tuple((element.findtext(name) or "").strip() for name in ("gpu_instance_id", "compute_instance_id"))


def _process(element: ElementTree.Element) -> GpuProcess | None:
    pid, held = _count(element.findtext("pid")), _bytes(element.findtext("used_memory"))
    return None if pid is None or held == 0 else GpuProcess(pid, held)


def _bytes(text: str | None) -> int | None:
    amount, _, unit = (text or "").strip().partition(" ")
    number, factor = _count(amount), _UNITS.get(unit)
    return None if number is None or factor is None else number * factor


def _count(text: str | None) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
