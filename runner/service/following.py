"""Following a run from the terminal until it has ended. The run needs neither this terminal nor the daemon."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from runner.errors import RunnerError
from runner.service import terminal
from runner.service.client import ABSENT, Client
from schemas.runs import Run, RunState

Answer = TypeVar("Answer")
Tell = Callable[[str], None]

_PAUSE_SECONDS = 0.5
PATIENCE_SECONDS = 600.0  # longer than a restart of the host, after which the daemon is somebody's task
_INTERRUPTED = 130  # 128 + SIGINT, as shells say it


def follow(client: Client, run_id: str, console: Console, tell: Tell) -> Run:
    """Show a run's progress until it has ended; a plain line for each change where there is no terminal.

    A run of which nothing is known any more is given back as well: nobody can wait for it.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    pause = threading.Event()
    said = ""
    with (
        leaving(run_id, tell),
        Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar,
    ):
        task = bar.add_task("waiting", total=100)
        while not _is_over(run := patiently(lambda: client.run(run_id), tell)):
            line = terminal.plain(_line(run))
            bar.update(task, description=line, completed=run.progress.percent)
            if line != said and not console.is_terminal:
                tell(f"{run.progress.percent:3.0f} %  {line}")
            said = line
            pause.wait(_PAUSE_SECONDS)
    return run


def log_pieces(client: Client, run_id: str, following: bool, tell: Tell) -> Iterator[bytes]:
    """The log piece by piece; with `following` until the run has ended and all of it was given."""
    pause = threading.Event()
    piece, offset, complete = client.log(run_id, 0)  # a runner that was never there is an error at once
    while True:
        if piece:
            yield piece
        if complete or (not piece and not following):
            return
        if not piece:
            pause.wait(_PAUSE_SECONDS)
        ask = partial(client.log, run_id, offset)
        piece, offset, complete = patiently(ask, tell) if following else ask()


def patiently(ask: Callable[[], Answer], tell: Tell, patience: float = PATIENCE_SECONDS) -> Answer:
    """The answer, though the runner be away for a while, which is told once. Raises the last error if it stays away."""
    pause = threading.Event()
    last = None
    while True:
        try:
            return ask()
        except RunnerError as error:
            if error.code not in ABSENT:
                raise
            if last is None:
                last = time.monotonic() + patience
                tell("The runner is not answering; the run goes on; waiting.")
            if time.monotonic() >= last:
                raise
        pause.wait(_PAUSE_SECONDS)


@contextmanager
def leaving(run_id: str, tell: Tell) -> Iterator[None]:
    """Ctrl-C ends the looking, not the run."""
    try:
        yield
    except KeyboardInterrupt:
        tell(f"\nRun {run_id} goes on. Look at it with: ptq-runner show {run_id}")
        raise click.exceptions.Exit(_INTERRUPTED) from None


def _is_over(run: Run) -> bool:
    return run.state.ended or run.state is RunState.UNKNOWN


def _line(run: Run) -> str:
    if run.state is RunState.QUEUED:
        return f"queued, place {run.position}"
    if run.state is RunState.RUNNING:
        progress = run.progress
        steps = f" {progress.done}/{progress.total}" if progress.done is not None and progress.total else ""
        return progress.phase.replace("_", " ") + steps
    return str(run.state)
