"""Following a run from the terminal until it has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from runner.service.client import Client
from schemas.runs import Run, RunState

_PAUSE_SECONDS = 0.5


def follow(client: Client, run_id: str, console: Console) -> Run:
    """Show a run's progress until it has ended; a plain line for each change where there is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    pause = threading.Event()
    said = ""
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("waiting", total=100)
        while not (run := client.run(run_id)).state.ended:
            line = _line(run)
            bar.update(task, description=line, completed=run.progress.percent)
            if line != said and not console.is_terminal:
                console.print(f"{run.progress.percent:3.0f} %  {line}")
            said = line
            pause.wait(_PAUSE_SECONDS)
    return run


def log_pieces(client: Client, run_id: str, following: bool) -> Iterator[bytes]:
    """The log piece by piece; with `following` until the run has ended and all of it was given."""
    offset = 0
    pause = threading.Event()
    while True:
        piece, following_offset, complete = client.log(run_id, offset)
        if piece:
            yield piece
        if complete or (not piece and not following):
            return
        if not piece:
            pause.wait(_PAUSE_SECONDS)
        offset = following_offset


def _line(run: Run) -> str:
    if run.state is RunState.QUEUED:
        return f"queued, place {run.position}"
    if run.state is RunState.RUNNING:
        progress = run.progress
        steps = f" {progress.done}/{progress.total}" if progress.done is not None and progress.total else ""
        return progress.phase.replace("_", " ") + steps
    return str(run.state)
