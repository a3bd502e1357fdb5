"""Bot and runner over TLS: a real daemon with a certificate, asked by the bot's own client."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from bot.errors import RunnerError, RunnerForeign
from bot.service.runner_client import RunnerClient
from schemas.runs import RunState
from tests.e2e.host import running_host
from tests.peers.certificates import authority, needs_openssl

pytestmark = needs_openssl
TOKEN = "a-token-of-sixteen-letters"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_the_bot_asks_a_runner_over_tls_and_reads_a_whole_run(tmp_path: Path) -> None:
    ours, theirs = authority(tmp_path / "ca"), authority(tmp_path / "other")
    url = f"https://127.0.0.1:{free_port()}"
    tls = ours.sign("runner").settings
    with running_host(tmp_path / "h", listen=url, token=TOKEN, tls=tls) as host:
        run = host.submit(host.manifest()).id
        assert host.wait_for(run, RunState.SUCCEEDED).state is RunState.SUCCEEDED

        async def ask(token: str, ca: Path) -> str:
            client = RunnerClient("gpu1", url, token, ca=ca)
            try:
                return (await client.run(run)).state
            finally:
                await client.close()

        assert asyncio.run(ask(TOKEN, ours.pair.certificate)) == RunState.SUCCEEDED
        with pytest.raises(RunnerForeign, match="an authority that this bot does not trust"):
            asyncio.run(ask(TOKEN, theirs.pair.certificate))
        with pytest.raises(RunnerError, match="its token is wrong"):
            asyncio.run(ask("another-token-of-some-length", ours.pair.certificate))
