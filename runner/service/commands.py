"""`ptq-runner`: the daemon, and the four steps of the workflow for one person at a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from runner import __version__
from runner.errors import RunnerError
from runner.service import queue_commands, run_commands, terminal, workflow_commands
from runner.service.arguments import FilePath, Words
from runner.service.program import Program
from runner.service.shell import Shell

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", type=FilePath(), envvar="PTQ_RUNNER_CONFIG", help="runner.yaml; variables PTQ_RUNNER_* win over it."
)
@click.version_option(__version__, prog_name="ptq-runner")
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Quantize language models with AMD Quark: analysis, plan, exact command, verified run."""
    ctx.obj = Shell(config)
    ctx.call_on_close(ctx.obj.close)


@main.command()
@click.pass_obj
def serve(shell: Shell) -> None:
    """Run the daemon in the foreground."""
    from runner.service.daemon import run_daemon  # the other commands need not load the server

    run_daemon(shell.settings)


@main.command()
@click.option(
    "--state", type=FilePath(), help="Folder for model, runs and results.", show_default="the user's data folder"
)
@click.option("--scheme", type=Words(), default="fp8", show_default=True, help="Quantization scheme.")
@click.option("--prepare", is_flag=True, help="Only make what it needs, and print where that is as JSON.")
@click.pass_obj
def demo(shell: Shell, state: Path | None, scheme: str, prepare: bool) -> None:
    """Quantize a small real model here and now, with you at every checkpoint."""
    from runner.service import demo, demo_host  # nobody else needs them

    folder = state or demo_host.default_state()
    if prepare:
        click.echo(json.dumps(demo_host.prepare(folder, shell.tell).as_json()))
    else:
        demo.play(shell, folder, scheme)


@main.command()
@_JSON
@click.pass_obj
def doctor(shell: Shell, as_json: bool) -> None:
    """Say what is missing, wrong or risky on this host, each with its fix.

    The exit status is 0 where runs can work here and 1 where something blocks them.
    """
    from runner.service import doctor as examination  # the daemon's parts, without a daemon

    try:
        found = examination.examine(shell.settings)
    except RunnerError as problem:  # of the settings
        found = examination.examine_settings(problem)
    if as_json:
        terminal.show_json(shell.out, found.as_json())
    else:
        shell.show(examination.view(found))
    sys.exit(found.exit_code)


for command in (*workflow_commands.COMMANDS, *run_commands.COMMANDS, *queue_commands.COMMANDS):
    main.add_command(command)
