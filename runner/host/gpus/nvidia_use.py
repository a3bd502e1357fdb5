"""What NVIDIA GPUs and instances of them (MIG) hold now, by nvidia-smi."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from runner.host.evidence import bus_address, whole_number, words
from runner.host.gpus.instances import Instance, instances
from runner.host.gpus.use import GpuProcess, GpuUse
from runner.host.tools import ToolAnswer, ToolRunner
from schemas.artifacts.environment import Gpu

_MIB = 2**20
_FORMAT = "--format=csv,noheader,nounits"


def nvidia_uses(gpus: Sequence[Gpu], run: ToolRunner) -> list[GpuUse]:
    """What these GPUs hold now, in their order. Takes as long as nvidia-smi does; never raises."""
    cards = list(_cards(run(("nvidia-smi", "--query-gpu=index,uuid,pci.bus_id,memory.used,utilization.gpu", _FORMAT))))
    holders = _holders(run(("nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", _FORMAT)))
    parts = instances(run) if any(gpu.partition for gpu in gpus) else []
    return [_of_instance(gpu, parts) if gpu.partition else _of_card(gpu, cards, holders) for gpu in gpus]


@dataclass(frozen=True)
class _Card:
    index: int
    uuid: str | None
    address: str | None
    used_bytes: int | None
    load_percent: int | None


def _of_card(gpu: Gpu, cards: Sequence[_Card], holders: dict[str, list[GpuProcess]] | None) -> GpuUse:
    card = next((card for card in cards if _is_same(gpu, card)), None)
    if card is None:
        return GpuUse(gpu)  # it is not listed any more: what it holds is not known
    uuid = card.uuid or gpu.uuid
    processes = None if holders is None or uuid is None else tuple(holders.get(uuid, ()))
    return GpuUse(gpu, card.used_bytes, card.load_percent, processes)


def _is_same(gpu: Gpu, card: _Card) -> bool:
    """By what both know of it; an index counts only where nothing better is known."""
    if gpu.uuid and card.uuid:
        return gpu.uuid == card.uuid
    if gpu.bus_address and card.address:
        return gpu.bus_address == card.address
    return gpu.index == card.index


def _of_instance(gpu: Gpu, parts: Sequence[Instance]) -> GpuUse:
    """On an instance of a card, the card's load and memory say nothing of it."""
    found = re.search(r" ([0-9]+)$", gpu.partition or "")
    number = int(found.group(1)) if found else -1
    part = next((one for one in parts if one.number == number and gpu.bus_address == one.address), None)
    return GpuUse(gpu) if part is None else GpuUse(gpu, part.used_bytes, None, part.processes)


def _cards(answer: ToolAnswer) -> Iterator[_Card]:
    for index, uuid, address, used, load in _rows(answer, 5):
        number, mib = whole_number(index), whole_number(used)
        if number is not None:
            memory = None if mib is None else mib * _MIB
            yield _Card(number, words(uuid), bus_address(address), memory, whole_number(load))


def _holders(answer: ToolAnswer) -> dict[str, list[GpuProcess]] | None:
    """Processes by the UUID of their card; None where the tool did not answer."""
    if not answer.succeeded:
        return None
    holders: dict[str, list[GpuProcess]] = {}
    for uuid, pid, held in _rows(answer, 3):
        number, mib = whole_number(pid), whole_number(held)
        if number is not None and mib != 0:
            holders.setdefault(uuid, []).append(GpuProcess(number, None if mib is None else mib * _MIB))
    return holders


def _rows(answer: ToolAnswer, columns: int) -> Iterator[list[str]]:
    try:
        for row in csv.reader(answer.output.splitlines() if answer.succeeded else ()):
            if len(row) == columns:
                yield [value.strip() for value in row]
    except csv.Error:
        return
