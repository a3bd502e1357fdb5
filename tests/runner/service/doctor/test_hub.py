"""The Hub in the doctor: one bounded request, and what its answer means."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.service.doctor.hub import hub
from tests.peers.raw_http import RawPeer, Reply, answer, hanging, listening, saying
from tests.runner.service.doctor.hosts import found, host

SECRET = "hf_" + "a1" * 17


@contextmanager
def peer(reply: Reply) -> Iterator[RawPeer]:
    """A server in a thread of its own."""
    ready: list[RawPeer] = []
    loop = asyncio.new_event_loop()
    begun, done = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with listening(reply) as served:
            ready.append(served)
            begun.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert begun.wait(10)
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def test_a_runner_without_the_hub_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with peer(saying(answer(b"{}"))) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        assert found(hub, host(tmp_path)) == {}
        assert served.asked == []


CASES: list[tuple[str | None, bytes, str, str]] = [
    (SECRET, answer(b'{"name": "ada"}'), "hub", "knows HF_TOKEN of the runner as ada."),
    (SECRET, answer(b"[1"), "hub", "without saying whose it is."),
    (SECRET, answer(b"{}", 401), "hub_token_refused", "refuses HF_TOKEN of the runner: status 401."),
    (None, answer(b"[]"), "hub", "There is no token"),
    (None, answer(b"{}", 503), "hub_unreachable", "it answered with status 503."),
    (None, answer(b"{}", 429), "hub_unreachable", "it answered with status 429."),
    (None, b"SSH-2.0-OpenSSH\r\n", "hub_unreachable", "cannot be asked"),
    (None, b"", "hub_unreachable", "cannot be asked"),
]


@pytest.mark.parametrize(("token", "said", "code", "words"), CASES)
def test_what_its_answer_means(
    token: str | None, said: bytes, code: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with peer(saying(said)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        told = found(hub, host(tmp_path, settings={"models": {"hub": True}}))
        assert [asked.path for asked in served.asked] == ["/api/whoami-v2" if token else "/api/models?limit=1"]
        assert ("authorization" in served.asked[0].headers) is bool(token)
    assert set(told) == {code}
    assert words in told[code].message
    assert SECRET not in told[code].message + told[code].hint


def test_one_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with peer(hanging) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.url)
        began = time.monotonic()
        told = found(hub, host(tmp_path, settings={"models": {"hub": True, "hub_timeout_seconds": 0.3}}))
    assert "did not answer within 0.3 s" in told["hub_unreachable"].message
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("HF_HUB_OFFLINE", "1", "hub_offline"),
        ("HF_ENDPOINT", "file:///etc", "hub_endpoint_wrong"),
        ("HF_ENDPOINT", "http://127.0.0.1:1", "hub_unreachable"),
        ("HF_TOKEN", "two words", "hub_token_unusable"),
    ],
)
def test_an_environment_that_cannot_work(
    name: str, value: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert set(found(hub, host(tmp_path, settings={"models": {"hub": True}}))) == {code}
