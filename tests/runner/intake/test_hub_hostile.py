"""Whatever stands in for the Hub may answer: the outcome is a model or one sentence, never a traceback."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.host.hub import Hub
from runner.intake import analyse
from runner.intake.models import Models
from runner.settings import ModelSettings, RunnerSettings
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.runner.intake.hub_bench import without_account

COMMIT = "c" * 40
CONFIG = b'{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8}'
HEADER = b'{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
SHARD = len(HEADER).to_bytes(8, "little") + HEADER + b"1234"
NAMES = ["config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json", "tokenizer_config.json"]

Answer = Callable[[httpx.Request], httpx.Response]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
header_names = st.sampled_from(
    [
        *("location", "content-range", "content-encoding", "content-length", "content-type", "transfer-encoding"),
        *("retry-after", "ratelimit", "x-error-code", "x-error-message", "set-cookie", "etag"),
    ]
)
header_values = st.text(st.characters(max_codepoint=255), max_size=30) | st.sampled_from(
    ["http://[", "//x", "http://a:99999/", "bytes 0-7/67", "gzip", "-1", "99999999999999999999", "GatedRepo", "Tue, 1"]
)
headers = st.dictionaries(header_names, header_values, max_size=4)


def reply(status: int, content: bytes, headers: Any = None) -> httpx.Response:
    """An answer whose body comes as from a socket."""

    async def body() -> AsyncIterator[bytes]:
        yield content

    return httpx.Response(status, headers=headers, content=body())


def outcome(answer: Answer, patch: pytest.MonkeyPatch) -> RunnerError | None:
    """Find and analyse a model at such a Hub. What goes wrong has to be a sentence."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        without_account(folder, patch)
        allowed = RunnerSettings(state_dir=folder / "state", models=ModelSettings(hub=True, hub_timeout_seconds=5))
        models = Models(allowed, hub=lambda seconds: Hub(seconds, transport=httpx.MockTransport(answer)))
        problem: RunnerError | None = None
        try:
            location = asyncio.run(models.find("org/tiny"))
            analyse(location, CATALOGUE, FACTS, allowed)
        except RunnerError as error:
            problem = error
        if problem is not None:
            assert problem.message.endswith("."), problem.message
            assert problem.message.isprintable(), ascii(problem.message)
            assert problem.hint.isprintable(), ascii(problem.hint)
        inside = [path for path in folder.rglob("*") if path.is_file()]
        kept = folder / "state" / "cache" / "hub" / f"org--tiny@{COMMIT}"
        assert all(kept in path.parents for path in inside), inside
        return problem


def of_files(files: Any) -> bytes:
    return json.dumps({"sha": COMMIT, "siblings": files}).encode()


def listed(name: Any, size: Any, **more: Any) -> dict[str, Any]:
    return {"rfilename": name, "size": size, **more}


SOUND = [listed("config.json", len(CONFIG)), listed("model.safetensors", len(SHARD)), listed("tokenizer.json", 5)]


def sound(request: httpx.Request) -> httpx.Response:
    """A whole tiny model."""
    path = request.url.path
    if path.startswith("/api/"):
        return reply(200, of_files(SOUND))
    if path.endswith("config.json"):
        return reply(200, CONFIG)
    start, end = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
    part = SHARD[start : end + 1]
    return reply(206, part, {"content-range": f"bytes {start}-{end}/{len(SHARD)}"})


def test_the_sound_model_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return sound(request)

    assert outcome(noted, monkeypatch) is None
    assert len(asked) == 4


loosely = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@loosely
@given(document=anything | st.fixed_dictionaries({"sha": st.just(COMMIT), "siblings": anything}))
def test_any_description_of_a_model(monkeypatch: pytest.MonkeyPatch, document: Any) -> None:
    outcome(lambda _: reply(200, json.dumps(document).encode()), monkeypatch)


@loosely
@given(
    files=st.lists(
        st.builds(
            listed,
            st.text(max_size=20) | st.sampled_from([*NAMES, "../../x.py", "/etc/passwd.json", "a/../b.py", ".x/y.py"]),
            st.integers(-2, 200) | st.just(2**60) | anything,
            lfs=anything | st.fixed_dictionaries({"sha256": anything}),
            blobId=anything,
        ),
        max_size=6,
    ),
    content=st.binary(max_size=100) | st.just(CONFIG) | st.just(SHARD),
)
def test_any_files(monkeypatch: pytest.MonkeyPatch, files: list[Any], content: bytes) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.startswith("/api/"):
            return reply(200, of_files(files))
        if "range" not in request.headers:
            return reply(200, content)
        start, end = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        size = next((file["size"] for file in files if request.url.path.endswith(f"/{file['rfilename']}")), 0)
        return reply(206, content[start : end + 1], {"content-range": f"bytes {start}-{end}/{size}"})

    outcome(answer, monkeypatch)


@loosely
@given(status=st.integers(200, 599), named=headers, body=st.binary(max_size=60), late=st.integers(0, 3))
def test_any_headers(
    monkeypatch: pytest.MonkeyPatch, status: int, named: dict[str, str], body: bytes, late: int
) -> None:
    calls = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal calls
        calls += 1
        if calls <= late:
            return sound(request)
        raw = [(name.encode(), value.encode("latin-1")) for name, value in named.items()]
        return reply(status, body, raw)

    outcome(answer, monkeypatch)


@loosely
@given(
    header=st.binary(max_size=80) | anything.map(lambda value: json.dumps(value).encode()), length=st.integers(0, 120)
)
def test_any_header_of_a_weight_file(monkeypatch: pytest.MonkeyPatch, header: bytes, length: int) -> None:
    content = length.to_bytes(8, "little") + header

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.startswith("/api/"):
            return reply(200, of_files([SOUND[0], listed("model.safetensors", len(content)), SOUND[2]]))
        if "range" not in request.headers:
            return reply(200, CONFIG)
        start, end = map(int, request.headers["range"].removeprefix("bytes=").split("-"))
        return reply(
            206,
            content[start : end + 1],
            {"content-range": f"bytes {start}-{end}/{len(content)}"},
        )

    outcome(answer, monkeypatch)
