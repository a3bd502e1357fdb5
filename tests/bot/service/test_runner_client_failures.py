"""What is no runner, or a broken one, is one sentence with a code, in bounded time and memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bot.errors import BadSetting, BotError, RunnerAway, RunnerError, RunnerForeign
from bot.service.pause import pause
from bot.service.runner_client import RunnerClient, Timeouts
from tests import samples
from tests.bot.service.asking import HEALTH, PATIENT, TOKEN, checked, client_of, failing, failing_with, raised_with
from tests.peers.raw_http import Asked, Reply, answer, hanging, listening, saying, telling
from tests.waiting import until


def _nothing(_: Path) -> None:
    pass


def _dead(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


def _file(path: Path) -> None:
    path.write_text("x")


@pytest.mark.parametrize("make", [_nothing, _dead, _file])
def test_nothing_listens_on_the_socket(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "runner.sock"
    make(path)
    error = failing(f"unix://{path}")
    assert (type(error), error.code) == (RunnerAway, "runner_down")
    assert error.message == "The runner gpu1 cannot be reached: nothing listens there."
    assert str(path) in error.hint


def test_a_socket_that_others_own_is_said_to_be_closed(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        path = f"{tmp_path}/{'x' * 200}"  # root may open everything: another reason stands in
        reason = "AF_UNIX path too long"
    else:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0)
        path, reason = f"{closed}/runner.sock", "Permission denied"
    error = failing(f"unix://{path}")
    assert (error.code, reason in error.message) == ("runner_down", True)


def test_nothing_listens_on_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = failing(f"http://127.0.0.1:{port}")
    assert (type(error), error.code) == (RunnerAway, "runner_down")


def test_a_host_that_nobody_knows() -> None:
    error = failing("http://no-such-host.invalid:1", timeouts=PATIENT)
    assert (type(error), error.code) == (RunnerAway, "runner_down")
    assert "name of its host is not known" in error.message


def test_a_socket_whose_queue_is_full_is_slow_and_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runner.sock"
    with socket.socket(socket.AF_UNIX) as full:
        full.bind(str(path))
        full.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for one in waiting:
            one.setblocking(False)
            with suppress(BlockingIOError):
                one.connect(str(path))
        began = time.process_time()
        error = failing(f"unix://{path}", timeouts=Timeouts(connect=1, health=1))
        spent = time.process_time() - began
        for one in waiting:
            one.close()
    assert (type(error), error.code) == (RunnerAway, "runner_slow")
    assert spent < 0.5


async def _dripping(__: Asked, writer: asyncio.StreamWriter) -> None:
    """Each byte comes before anybody loses patience with it, and the answer never ends."""
    writer.write(answer(b"", Content_Length="100000"))
    for _ in range(100_000):
        writer.write(b" ")
        await writer.drain()
        await pause(0.01)


@pytest.mark.parametrize("reply", [hanging, _dripping, saying(b"HTTP/1.1 200 OK\r\n")], ids=["silent", "drips", "half"])
def test_no_answer_in_time(reply: Reply) -> None:
    async def then_hang(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await reply(asked, writer)
        await hanging(asked, writer)

    began = time.monotonic()
    error = failing_with(then_hang)
    assert (type(error), error.code) == (RunnerAway, "runner_slow")
    assert "within 0.3 s" in error.message
    assert time.monotonic() - began < 5


BROKEN = {
    "no answer": saying(),
    "another protocol that hangs up": saying(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "half a head": saying(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a body": saying(answer(b"{}", Content_Length="200")),
    "500": saying(answer(b"<h1>oops</h1>", 500, "text/html")),
    "502": saying(answer(b"", 502, "")),
    "503 and bad problem": saying(answer(b"{}", 503, "application/problem+json")),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_a_connection_that_breaks(reply: Reply) -> None:
    error = failing_with(reply)
    assert (type(error), error.code) == (RunnerAway, "runner_broken")


_GOOD = HEALTH.model_dump(mode="json")

STRANGE = {
    "no http": saying(b"220 mail.example ESMTP\r\n\r\n"),
    "http 2 garbage": saying(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" * 10),
    "a page": saying(answer(b"<html></html>", 200, "text/html")),
    "no kind": saying(answer(b"{}", 200, "")),
    "nothing": saying(answer(b"", 204)),
    "not json": saying(answer(b"{")),
    "not utf-8": saying(answer(b'"\xff"')),
    "nan": saying(answer(json.dumps({**_GOOD, "queued": float("nan")}).encode())),
    "deep": saying(answer(b"[" * 200_000)),
    "null": telling(None),
    "a list": telling([]),
    "another document": telling(samples.analysis()),
    "one field more": telling({**_GOOD, "colour": "red"}),
    "a wrong type": telling({**_GOOD, "queued": "many"}),
    "not a time": telling({**_GOOD, "started_at": "yesterday"}),
    "packed": saying(answer(gzip.compress(json.dumps(_GOOD).encode()), Content_Encoding="gzip")),
    "moved": saying(answer(b"", 302, Location="http://127.0.0.1:1/")),
    "404": saying(answer(b"not found", 404, "text/plain")),
    "a problem that is a page": saying(answer(b"{}", 404, "application/problem+json")),
}


@pytest.mark.parametrize("reply", STRANGE.values(), ids=STRANGE.keys())
def test_nonsense_is_no_runner(reply: Reply) -> None:
    error = failing_with(reply, timeouts=PATIENT)
    assert (type(error), error.code) == (RunnerForeign, "strange_answer")


OTHER_VERSIONS = {
    "the same shape": telling({**_GOOD, "api_version": 2, "version": "9.0"}),
    "another shape": telling({"api_version": 2, "version": "9.0", "name": "x"}),
    "refused": telling(
        {"type": "about:blank", "title": "Conflict", "status": 409, "code": "api_version", "hint": "Same release.",
         "detail": "The caller speaks version 1 of the API, this runner speaks 2."},
        409, "application/problem+json",
    ),
}  # fmt: skip


@pytest.mark.parametrize("reply", OTHER_VERSIONS.values(), ids=OTHER_VERSIONS.keys())
def test_a_runner_of_another_version_is_told_apart(reply: Reply) -> None:
    error = failing_with(reply)
    assert (type(error), error.code) == (RunnerForeign, "api_version")
    assert "2" in error.message


def test_a_problem_is_passed_on_and_cut_where_it_is_endless() -> None:
    problem = {"type": "about:blank", "title": "x", "status": 503, "code": "probe_timeout", "detail": "It took long.",
               "hint": "Wait."}  # fmt: skip
    error = failing_with(telling(problem, 503, "application/problem+json"))
    assert (type(error), error.code, error.message, error.hint) == (
        RunnerError,
        "probe_timeout",
        "It took long.",
        "Wait.",
    )
    endless = {**problem, "detail": "a" * 100_000, "hint": "b" * 100_000, "code": "c" * 1000}
    cut = raised_with(telling(endless, 503, "application/problem+json"), timeouts=PATIENT)
    assert (len(cut.code), len(cut.message), len(cut.hint)) == (100, 2000, 2000)
    huge = telling({**problem, "detail": "a" * (2 << 20)}, 503, "application/problem+json")
    assert raised_with(huge, timeouts=PATIENT).code == "strange_answer"


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "text/html"), (401, "application/problem+json"), (403, "text/html")]
)
def test_a_wrong_token_is_said_to_be_one(status: int, kind: str) -> None:
    error = failing_with(saying(answer(b"{}", status, kind)))
    assert (type(error), error.code) == (RunnerError, "wrong_token")
    assert "bot.yaml" in error.hint


def test_a_peer_that_does_not_speak_tls() -> None:
    async def whole() -> BotError:
        async with (
            listening(saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"), reads=False) as peer,
            client_of(peer.url.replace("http:", "https:"), PATIENT) as client,
        ):
            with pytest.raises(BotError) as caught:
                await client.health()
        return caught.value

    error = checked(asyncio.run(whole()))
    assert (type(error), error.code) == (RunnerForeign, "bad_certificate")


async def _endless(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    while True:
        writer.write(chunk)
        await writer.drain()


async def _endless_head(_: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Header: " + b"x" * 10_000 + b"\r\n")
        await writer.drain()


@pytest.mark.parametrize("reply", [_endless, _endless_head])
def test_gigabytes_are_not_read(reply: Reply) -> None:
    sent = 0

    class Counting:
        def __init__(self, writer: asyncio.StreamWriter) -> None:
            self._writer = writer

        def write(self, data: bytes) -> None:
            nonlocal sent
            sent += len(data)
            self._writer.write(data)

        async def drain(self) -> None:
            await self._writer.drain()

    async def counted(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await reply(asked, Counting(writer))  # type: ignore[arg-type]

    error = failing_with(counted, timeouts=PATIENT)
    assert (type(error), error.code) == (RunnerForeign, "strange_answer")
    assert sent < 32 << 20


def test_a_caller_that_leaves_closes_its_connection() -> None:
    async def whole() -> None:
        async with listening(_dripping) as peer, client_of(peer.url, PATIENT) as client:
            asking = asyncio.create_task(client.health())
            await until(lambda: peer.open == 1)
            asking.cancel()
            await asyncio.wait({asking})
            await until(lambda: peer.open == 0)
            assert asking.cancelled()

    asyncio.run(whole())


@pytest.mark.parametrize("url", ["", "gpu1", "ftp://gpu1", "unix://relative", "http://[::1", "http://h:99999999"])
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    async def whole() -> None:
        RunnerClient("gpu1", url)

    with pytest.raises(BadSetting):
        asyncio.run(whole())


def test_the_token_is_never_shown() -> None:
    async def whole() -> str:
        async with client_of("http://127.0.0.1:1") as client:
            return repr(client) + repr(client.__dict__)

    assert TOKEN not in asyncio.run(whole())


def test_that_it_is_away_is_remembered_until_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "runner.sock"

    async def whole() -> list[str]:
        told = []
        async with client_of(f"unix://{path}", PATIENT) as client:
            told.append(client.known_trouble.code if client.known_trouble else "")
            with pytest.raises(RunnerAway):
                await client.health()
            told.append(client.known_trouble.code if client.known_trouble else "")
            async with listening(telling(HEALTH), path):
                await client.health()
                told.append(client.known_trouble.code if client.known_trouble else "")
            async with listening(telling(HEALTH.model_copy(update={"api_version": 99})), tmp_path / "other"):
                path.unlink(missing_ok=True)
                (tmp_path / "other").rename(path)
                with pytest.raises(BotError):
                    await client.health()
                told.append(client.known_trouble.code if client.known_trouble else "")
        return told

    never, away, there, other = asyncio.run(whole())
    assert (never, away, there) == ("", "runner_down", "")
    assert other
