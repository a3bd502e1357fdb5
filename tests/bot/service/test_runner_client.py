"""The client against a real daemon: the whole way, problems as they are told, and another daemon in its place."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from bot.errors import NotFound, RunnerAway, RunnerError
from bot.service.runner_client import RunnerClient, Runners
from runner import __version__
from schemas.api import Health, IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from schemas.digest import digest
from schemas.runs import RunState
from tests.e2e.host import Host, running_host, submission
from tests.peers import interpreter
from tests.waiting import until, wait_until

TOKEN = "0123456789abcdef"

Result = TypeVar("Result")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with running_host(tmp_path / "h") as started:
        yield started


def asking(url: str, work: Callable[[RunnerClient], Awaitable[Result]], token: str | None = None) -> Result:
    """Do something with a client of its own."""

    async def whole() -> Result:
        client = RunnerClient("gpu1", url, token)
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(whole())


def test_the_whole_way(host: Host) -> None:
    async def way(client: RunnerClient) -> None:
        assert (await client.health()).version == __version__
        assert "fp8" in (await client.capabilities()).catalogue.schemes
        assert (await client.environment()).env_context.hardware.accelerator == "cpu"
        analysis = await client.intake(IntakeRequest(model=str(host.model)))
        assert analysis.digest == digest(analysis.model_analysis)
        calibration = CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32)
        choices = PlanChoices(global_scheme="fp8", kv_cache_scheme=None, calibration=calibration)
        plan = await client.plan(PlanRequest(model_analysis=analysis.model_analysis, request=choices))
        asked = ManifestRequest(
            model_analysis=analysis.model_analysis, quant_plan=plan.quant_plan, output_dir=str(host.outputs / "out")
        )
        manifest = (await client.manifest(asked)).run_manifest
        run = await client.submit(submission(manifest))
        assert (await client.submit(submission(manifest))).id == run.id

        async def ended() -> bool:
            return (await client.run(run.id)).state.ended

        async with aclosing(client.events()) as news:
            async for _ in news:
                if await ended():
                    break
        ending = await client.run(run.id)
        assert ending.state is RunState.SUCCEEDED, ending.reason
        assert ending.report is not None
        piece = await client.log(run.id)
        assert piece.complete
        assert piece.next_offset == piece.size == len(piece.content) > 0
        assert manifest.outputs.output_dir.encode() in await client.file(run.id, "run_manifest.yaml")

    asking(host.settings.listen_url, way)


def test_an_absent_choice_is_not_the_same_as_none_of_it(host: Host) -> None:
    async def reasons(client: RunnerClient) -> list[str]:
        analysis = (await client.intake(IntakeRequest(model=str(host.model)))).model_analysis
        answers = [
            await client.plan(PlanRequest(model_analysis=analysis, request=choices))
            for choices in (PlanChoices(global_scheme="fp8"), PlanChoices(global_scheme="fp8", kv_cache_scheme=None))
        ]
        return [row.reason for plan in answers for row in plan.decisions if row.decision == "kv_cache_scheme"]

    absent, none = asking(host.settings.listen_url, reasons)
    assert absent != none
    assert none == "Requested: none."


PROBLEMS: list[tuple[str, Callable[[RunnerClient], Awaitable[Any]]]] = [
    ("model_missing", lambda client: client.intake(IntakeRequest(model="nothing"))),
    ("outside_roots", lambda client: client.intake(IntakeRequest(model="/etc"))),
    ("no_such_run", lambda client: client.run("run-00")),
    ("no_such_run", lambda client: client.run("..")),
    ("no_such_run", lambda client: client.run("?a=b&c#d e\r\nX: y")),
    ("no_such_run", lambda client: client.cancel("run-00", "ada")),
    ("no_such_run", lambda client: client.log("run-00", 3)),
    ("http", lambda client: client.run("a/b")),
]


def test_problems_come_as_they_are_told(host: Host) -> None:
    async def codes(client: RunnerClient) -> None:
        for code, work in PROBLEMS:
            with pytest.raises(RunnerError) as caught:
                await work(client)
            assert caught.value.code == code
            assert caught.value.message.endswith(".")
            assert "token" not in caught.value.sentence()

    asking(host.settings.listen_url, codes)


def test_cancelling_ends_a_run(host: Host, tmp_path: Path) -> None:
    interpreter.tell(host.engine, wait_for=str(tmp_path / "never"))
    run = host.submit(host.manifest())
    host.wait_for(run.id, RunState.RUNNING)

    async def cancel(client: RunnerClient) -> None:
        for _ in range(2):
            assert (await client.cancel(run.id, "", "not needed")).id == run.id

    asking(host.settings.listen_url, cancel)
    host.wait_for(run.id, RunState.CANCELLED)


@pytest.fixture
def on_tcp(tmp_path: Path) -> Iterator[str]:
    """The url of a daemon that listens on a port and wants TOKEN."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    config = tmp_path / "runner.yaml"
    config.write_text(yaml.safe_dump({"state_dir": str(tmp_path / "state"), "listen": url, "token": TOKEN}))
    command = [sys.executable, "-m", "runner.service", "--config", str(config), "serve"]
    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    yield url
    daemon.terminate()
    daemon.wait(20)


def test_tcp_wants_the_token(on_tcp: str) -> None:
    async def health(client: RunnerClient) -> Health | str:
        try:
            return await client.health()
        except RunnerAway as error:
            return error.code

    wait_until(lambda: asking(on_tcp, health, TOKEN) != "runner_down", 30, "the daemon does not answer")
    assert isinstance(asking(on_tcp, health, TOKEN), Health)
    for token in (None, "", "0123456789abcdeX"):
        with pytest.raises(RunnerError) as caught:
            asking(on_tcp, health, token)
        assert caught.value.code == "wrong_token"
        assert token is None or not token or token not in caught.value.sentence()


def test_another_daemon_is_asked_anew_and_nobody_waits_for_it(host: Host) -> None:
    async def offers(client: RunnerClient) -> None:
        await client.health()
        first = await client.capabilities(fresh=True)
        assert client.known_capabilities is first
        host.kill()
        with pytest.raises(RunnerAway):
            await client.health()
        assert await client.capabilities() is first
        (host.mirror / "more.txt").write_text("more words")
        host.start()
        await client.health()
        assert await client.capabilities() is first
        await until(lambda: client.known_capabilities is not first, 30)
        assert client.known_capabilities is not None
        assert "more.txt" in client.known_capabilities.datasets

    asking(host.settings.listen_url, offers)


def test_runners_are_found_by_name_and_looked_at(host: Host, tmp_path: Path) -> None:
    async def look() -> None:
        clients = [
            RunnerClient("up", host.settings.listen_url),
            RunnerClient("down", f"unix://{tmp_path / 'nothing.sock'}"),
        ]
        runners = Runners(clients)
        assert runners.names == ["up", "down"]
        assert runners.get("") is runners.first is clients[0]
        assert runners.get("down") is clients[1]
        assert runners.known_capabilities() is None
        with pytest.raises(NotFound, match="There is no runner 'other'") as caught:
            runners.get("other")
        assert caught.value.hint == "There is up, down."
        up, down = await runners.look()
        assert up.health is not None
        assert up.health.version == __version__
        assert down.trouble is not None
        assert down.trouble.code == "runner_down"
        await runners.close()

    asyncio.run(look())
