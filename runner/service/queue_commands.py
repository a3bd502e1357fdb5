"""What waits and in which order, as commands: queue and priority."""

from __future__ import annotations

import click

from runner.service import asking, terminal
from runner.service.arguments import RunName, Words
from runner.service.queue_view import queue_view
from runner.service.shell import Shell
from schemas.api import PriorityRequest, QueueMode, QueueRequest
from schemas.runs import QueuePriority

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_MODES: dict[str, QueueMode] = {"open": "open", "pause": "paused", "drain": "draining"}


@click.command()
@click.argument("order", required=False, type=click.Choice([*_MODES]))
@click.option("--reason", type=Words(1000, empty=True), default="", help="Why, for those whose runs wait.")
@_JSON
@click.pass_obj
def queue(shell: Shell, order: str | None, reason: str, as_json: bool) -> None:
    """Show what waits and what computes; with ORDER, change it first.

    pause: runs are taken and none starts. drain: no run is taken, and those that wait still run. open: as usual.
    """
    if order is None:
        standing = shell.client.queue()
    else:
        standing = shell.client.set_queue(QueueRequest(mode=_MODES[order], by=asking.who(), reason=reason))
    if as_json:
        terminal.show_json(shell.out, standing)
    else:
        shell.show(queue_view(standing))


@click.command()
@click.argument("run_id", metavar="RUN", type=RunName())
@click.argument("place", type=click.Choice(["high", "normal", "low"]))
@_JSON
@click.pass_obj
def priority(shell: Shell, run_id: str, place: QueuePriority, as_json: bool) -> None:
    """Give RUN, which waits, a place before or behind the others."""
    run = shell.client.set_priority(run_id, PriorityRequest(priority=place, by=asking.who()))
    if as_json:
        terminal.show_json(shell.out, run)
    else:
        shell.say(f"Run {run.id} has priority {run.priority} and is number {run.position} in the queue.")


COMMANDS = (queue, priority)
