"""What is done with runs that exist, as commands: runs, show, logs, cancel, and diagnose for any log."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from runner.service import asking, terminal
from runner.service.arguments import FilePath, RunName, Words
from runner.service.following import leaving, log_pieces
from runner.service.shell import Shell

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_MOST_RUNS = 100_000


@click.command()
@click.option("--state", type=Words(), help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1, _MOST_RUNS), default=20, show_default=True)
@_JSON
@click.pass_obj
def runs(shell: Shell, state: str | None, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    found = shell.client.runs(state, limit)
    if as_json:
        terminal.show_json(shell.out, json.dumps([one.model_dump(mode="json") for one in found], indent=2))
    else:
        shell.show(terminal.runs_view(found) if found else "No runs.")


@click.command()
@click.argument("run_id", metavar="RUN", type=RunName())
@_JSON
@click.pass_obj
def show(shell: Shell, run_id: str, as_json: bool) -> None:
    """Show RUN and its report."""
    found = shell.client.run(run_id)
    if as_json:
        terminal.show_json(shell.out, found)
    else:
        shell.show(terminal.run_view(found))


@click.command()
@click.argument("run_id", metavar="RUN", type=RunName())
@click.option("-f", "--follow", "following", is_flag=True, help="Go on until the run has ended.")
@click.pass_obj
def logs(shell: Shell, run_id: str, following: bool) -> None:
    """Print the log of RUN, without secrets."""
    write = terminal.log_writer(sys.stdout)
    with leaving(run_id, shell.tell) if following else nullcontext():
        for piece in log_pieces(shell.client, run_id, following, shell.tell):
            write(piece)


@click.command()
@click.argument("run_id", metavar="RUN", type=RunName())
@_JSON
@click.pass_obj
def cancel(shell: Shell, run_id: str, as_json: bool) -> None:
    """End RUN for good."""
    ended = shell.client.cancel(run_id, asking.who())
    if as_json:
        terminal.show_json(shell.out, ended)
    else:
        shell.say(f"Run {ended.id} is {ended.state}.")


@click.command()
@click.argument("log", type=FilePath())
@click.option("--exit-code", type=click.IntRange(-255, 65_535), help="Exit status of the command, -N for signal N.")
@_JSON
@click.pass_obj
def diagnose(shell: Shell, log: Path, exit_code: int | None, as_json: bool) -> None:
    """Say why a run failed, from its output in LOG."""
    from runner.runs.diagnosis import diagnose_file

    report = diagnose_file(log, exit_code)
    if as_json:
        terminal.show_json(shell.out, report)
    else:
        shell.show(terminal.diagnosis_view(report))


COMMANDS = (runs, show, logs, cancel, diagnose)
