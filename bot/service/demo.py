"""The demonstration: a runner of its own, the bot, and a person at the page, or a scripted one at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bot.conversation.state import Ended, Ending, State
from bot.errors import BadSetting, BotError, RunnerAway, RunnerForeign
from bot.platforms.script.adapter import ScriptPlatform
from bot.service.daemon import run, until_told, wired
from bot.service.http_server import listening
from bot.service.pause import pause
from bot.service.player import Player
from bot.service.runner_client import RunnerClient
from bot.service.serving import page_of
from bot.settings import BotSettings, RunnerAddress, WebSettings

_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 1.0


def show(state: Path | None, port: int, *, script: bool) -> int:
    """Run the demonstration; the program's exit status. Raises BotError where a part cannot start."""
    began = time.monotonic()
    prepared = _prepare(state)
    folder = Path(prepared["state"]) / "bot"
    request = f"quantize {prepared['model_name']} to fp8"
    settings = BotSettings(
        state_dir=folder,
        runners=[RunnerAddress(name="demo", url=f"unix://{prepared['socket']}")],
        web=WebSettings(port=port),
    )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = folder.parent / "bot.log"
    logging.basicConfig(filename=log, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with _runner(Path(prepared["config"]), folder.parent / "runner.log") as process:
        if not script:
            asyncio.run(_page(settings, request, process))
            return 0
        ended = asyncio.run(_script(settings, request, process))
        caches = "cold" if prepared["made"] else "warm"
        click.echo(f"\nTook {_minutes(time.monotonic() - began)} with {caches} caches.")
        return _judged(ended)


def _judged(state: State) -> int:
    accepted = (
        isinstance(state, Ended)
        and state.ending is Ending.ACCEPTED
        and state.run is not None
        and state.run.report is not None
        and state.run.report.status == "success"
    )
    click.echo("A verified result was accepted." if accepted else "No verified result was accepted.")
    return 0 if accepted else 1


async def _page(settings: BotSettings, request: str, process: subprocess.Popen[bytes]) -> None:
    async with wired(settings) as bot:
        with listening(settings.web.host, settings.web.port) as listener:
            page = page_of(bot, listener)
            click.echo(
                f"\nOpen  http://{settings.web.host}:{page.port}/\n"
                f"and type  {request}\n\nCtrl-C ends the demonstration; what was run and said is kept."
            )
            await until_told(run(bot, [page.platform], [page.serve(), _alive(process)]))


async def _script(settings: BotSettings, request: str, process: subprocess.Popen[bytes]) -> State:
    async with wired(settings) as bot:
        client = bot.runners.first
        await _answers(client, process)
        platform = ScriptPlatform(settings.state_dir / "script.jsonl", click.echo)
        player = Player(bot.core, bot.store, bot.clock, click.echo, secrets.token_hex(4))
        working = asyncio.create_task(run(bot, [platform], [_alive(process)]))
        playing = asyncio.create_task(_played(player, request))
        try:
            await asyncio.wait({working, playing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            return await playing
        finally:
            for task in (working, playing):
                task.cancel()
            await asyncio.gather(working, playing, return_exceptions=True)


async def _played(player: Player, request: str) -> State:
    return await player.see_through(await player.ask(request))


def _prepare(state: Path | None) -> dict[str, Any]:
    """Have the runner's program make the model, the text and the settings; what it says of them."""
    command = [_program("ptq-runner"), "demo", "--prepare", *(["--state", str(state)] if state else [])]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise BotError("not_prepared", "The demonstration could not be prepared; the line above says why.")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _program(name: str) -> str:
    """A program of this installation, beside the interpreter that runs this one."""
    program = Path(sys.executable).parent / name
    if not program.exists():
        raise BadSetting("no_program", f"{program} is not installed.", "Install the whole project: make demo.")
    return str(program)


@contextlib.contextmanager
def _runner(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A runner of the demonstration's own. It ends with it; a run that it started goes on."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            [_program("ptq-runner"), "--config", str(config), "serve"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            # Ctrl-C at the terminal is for the bot, which then ends the runner in order.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _answers(client: RunnerClient, process: subprocess.Popen[bytes]) -> None:
    last = time.monotonic() + _START_SECONDS
    while True:
        try:
            await client.health()
        except (RunnerAway, RunnerForeign) as error:
            if process.poll() is not None or time.monotonic() > last:
                raise error from None
            await pause(0.1)
        else:
            return


async def _alive(process: subprocess.Popen[bytes]) -> None:
    """Comes to an end only when the runner does."""
    while (status := process.poll()) is None:
        await pause(_LOOK_SECONDS)
    raise BotError("runner_ended", f"The demonstration's runner ended with status {status}.", "Its log says why.")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
