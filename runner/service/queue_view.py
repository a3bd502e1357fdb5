"""What a person sees of the queue in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from runner.service.terminal import plain, size
from schemas.api import GpuStanding, Queue
from schemas.runs import Run

_MODES = {
    "open": "The queue is open.",
    "paused": "The queue is paused: runs are taken and none starts.",
    "draining": "The queue drains: no run is taken, and those that wait still run.",
}


def queue_view(queue: Queue) -> RenderableType:
    """How the queue stands, who computes on what, and who waits in which order."""
    who = f" {queue.by}, {queue.at:%Y-%m-%d %H:%M} UTC. {queue.reason}".rstrip() if queue.at else ""
    parts: list[RenderableType] = [Text(plain(_MODES[queue.mode] + who), style="bold")]
    if queue.gpus:
        parts.append(_table(("GPU", "Model", "Memory in use", "Stands"), [_gpu(gpu) for gpu in queue.gpus]))
    if queue.active:
        parts.append(_table(("At work", "State", "Model", "On"), [_active(run) for run in queue.active]))
    if queue.waiting:
        parts.append(_table(("", "Waits", "Model", "Priority", "Why"), [_waiting(run) for run in queue.waiting]))
    else:
        parts.append(Text("No run waits."))
    return Group(*parts)


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _gpu(gpu: GpuStanding) -> tuple[str, ...]:
    stands = f"has {gpu.run}" if gpu.run else gpu.busy or "is free"
    used = f"{size(gpu.memory_used_bytes)} of {size(gpu.memory_bytes)}"
    return gpu.name, gpu.model, used, stands


def _active(run: Run) -> tuple[str, ...]:
    state = f"{run.state} {run.progress.percent:.0f} %" if run.state == "running" else str(run.state)
    return run.id, state, _name(run), ", ".join(run.gpus) or run.job or "the CPU"


def _waiting(run: Run) -> tuple[str, ...]:
    when = f" Its turn may come at {run.expected_start:%H:%M} UTC." if run.expected_start else ""
    return str(run.position), run.id, _name(run), run.priority, f"{run.reason}{when}".strip()


def _name(run: Run) -> str:
    return f"{run.model.rstrip('/').rpartition('/')[2]} {run.scheme}"
