"""`ptq-bot`: the daemon, the demonstration, and what an administrator asks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from bot import __version__
from bot.conversation.state import Checkpoint
from bot.service.program import Program
from bot.settings import BotSettings, load_settings

_FILE = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


class _Configured:
    """The settings, read when a command needs them."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    @property
    def settings(self) -> BotSettings:
        """bot.yaml and the environment."""
        return load_settings(self._file)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", type=_FILE, envvar="PTQ_BOT_CONFIG", help="bot.yaml; variables PTQ_BOT_* win over it.")
@click.version_option(__version__, prog_name="ptq-bot")
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Quantize language models together: a thread for each model, with a yes to every step."""
    ctx.obj = _Configured(config)


@main.command()
@click.pass_obj
def serve(configured: _Configured) -> None:
    """Run the bot in the foreground: the page, and every platform that is configured."""
    from bot.service.serving import serve as run_bot  # the other commands need not load the server

    run_bot(configured.settings)


@main.command()
@click.option(
    "--state", type=_FOLDER, help="Folder for runs, results and the database.", show_default="the user's data folder"
)
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="Port of the page.")
@click.option("--script", is_flag=True, help="Play the requester, print the transcript, and end with the result.")
def demo(state: Path | None, port: int, script: bool) -> None:
    """Quantize a small real model here and now: runner, bot and page on embedded defaults."""
    from bot.service.demo import show

    sys.exit(show(state, port, script=script))


@main.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def check(configured: _Configured, as_json: bool) -> None:
    """Look at configuration, database, runners and platforms, and say what is wrong with each."""
    from bot.service.checking import examine

    findings = examine(configured.settings)
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(finding.line())
    sys.exit(0 if all(finding.fit for finding in findings) else 1)


@main.command()
@click.option("--text", default="", help="Words in the request, the model, the output folder or the thread.")
@click.option("--model", default="")
@click.option("--scheme", default="")
@click.option("--person", default="", help="Who asked: a name or an id.")
@click.option("--state", default="", help="open, running, accepted, rejected, cancelled, failed, …")
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]), help="UTC.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M"]), help="UTC.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def history(configured: _Configured, /, as_json: bool, **filters: object) -> None:
    """List conversations, newest first."""
    from bot.service.listing import history_lines

    for line in history_lines(configured.settings, filters, as_json=as_json):
        click.echo(line)


@main.group()
def db() -> None:
    """Look after the database."""


@db.command()
@click.pass_obj
def upgrade(configured: _Configured) -> None:
    """Bring the database to this release. Stop the bot first, and keep a copy."""
    from bot.store.database import upgrade as upgrade_database

    settings = configured.settings
    if settings.database is None:
        settings.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    click.echo(upgrade_database(settings.database_url))


@main.command()
@click.option("--checkpoint", type=click.Choice([point.value for point in Checkpoint]), help="What is being asked.")
@click.argument("sentence")
def understand(checkpoint: str | None, sentence: str) -> None:
    """Say how a sentence is read at a checkpoint; without one, as a request in a channel."""
    from bot.conversation.words.understand import as_json
    from bot.conversation.words.understand import understand as read

    point = Checkpoint(checkpoint) if checkpoint else None
    click.echo(json.dumps(as_json(read(sentence, point)), ensure_ascii=False))
