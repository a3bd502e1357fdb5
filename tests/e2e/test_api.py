"""The API as others see it: problems instead of tracebacks, limits, secrets, events, and a small daemon."""

from __future__ import annotations

import contextlib
import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from schemas.api import Problem
from schemas.runs import RunState
from tests.e2e.host import SECRET, Host
from tests.peers import interpreter


@pytest.fixture
def http(host: Host) -> Iterator[httpx.Client]:
    """Plain HTTP over the socket."""
    transport = httpx.HTTPTransport(uds=str(host.settings.socket_path))
    with httpx.Client(base_url="http://runner", transport=transport, timeout=60) as client:
        yield client


def _problem(answer: httpx.Response) -> Problem:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate(answer.json())
    assert problem.status == answer.status_code
    assert "Traceback" not in answer.text
    return problem


BAD_BODIES: list[tuple[str, bytes, int, str, str]] = [
    ("/v1/intake", b"{", 400, "bad_json", "not JSON"),
    ("/v1/intake", b"[" * 100_000, 400, "bad_json", "not JSON"),
    ("/v1/intake", b"", 400, "bad_document", "IntakeRequest"),
    ("/v1/intake", b"[]", 400, "bad_document", "IntakeRequest"),
    ("/v1/intake", b'{"model": ""}', 400, "bad_document", "model"),
    ("/v1/intake", b'{"model": 3}', 400, "bad_document", "IntakeRequest.model"),
    ("/v1/intake", b'{"model": "x", "colour": 1}', 400, "bad_document", "colour"),
    ("/v1/intake", b"\xff\xfe{}", 400, "bad_json", "not JSON"),
    ("/v1/plan", b"{}", 422, "missing_document", "step 1, intake"),
    ("/v1/manifest", b'{"output_dir": "/x"}', 422, "missing_document", "step"),
    ("/v1/runs", b'{"key": "k", "approvals": []}', 422, "missing_document", "step 3"),
]


@pytest.mark.parametrize(("path", "body", "status", "code", "word"), BAD_BODIES)
def test_a_bad_body_is_a_problem(http: httpx.Client, path: str, body: bytes, status: int, code: str, word: str) -> None:
    problem = _problem(http.post(path, content=body))
    assert (problem.status, problem.code, word in problem.detail) == (status, code, True), problem


def test_unknown_places_and_methods_are_problems(http: httpx.Client) -> None:
    assert _problem(http.get("/v1/nothing")).status == 404
    assert _problem(http.delete("/v1/runs")).status == 405
    assert _problem(http.get("/v1/runs/run-that-never-was")).code == "no_such_run"
    assert _problem(http.get("/v1/runs/run-x/files/..%2f..%2fetc%2fpasswd")).status == 404
    assert _problem(http.get("/v1/runs?state=dreaming")).code == "bad_query"
    assert _problem(http.get("/v1/runs?limit=-1")).code == "bad_query"


def _endless() -> Iterator[bytes]:
    for _ in range(100):
        yield b"x" * 1_000_000


@pytest.mark.parametrize("content", [b"x" * 100_000_000, _endless()], ids=["declared", "streamed"])
def test_a_body_of_100_mb_is_refused_without_being_held(http: httpx.Client, host: Host, content: Any) -> None:
    assert host.daemon is not None
    before = psutil.Process(host.daemon.pid).memory_info().rss
    with contextlib.suppress(httpx.WriteError, httpx.ReadError):  # the daemon hangs up before all of it was sent
        assert _problem(http.post("/v1/intake", content=content)).code == "request_too_large"
    assert psutil.Process(host.daemon.pid).memory_info().rss - before < 30_000_000
    assert http.get("/v1/health").status_code == 200


def test_another_version_of_the_api_is_refused(http: httpx.Client) -> None:
    problem = _problem(http.get("/v1/health", headers={"PTQ-API-Version": "2"}))
    assert problem.code == "api_version"
    assert "version 2" in problem.detail


def test_only_this_user_may_open_the_socket(host: Host) -> None:
    path = host.settings.socket_path
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(host.state.stat().st_mode) & 0o077 == 0


def test_the_description_names_every_endpoint(http: httpx.Client) -> None:
    description = http.get("/openapi.json").json()
    promised = {
        "/v1/health", "/v1/environment", "/v1/capabilities", "/v1/intake", "/v1/plan", "/v1/manifest", "/v1/runs",
        "/v1/runs/{id}", "/v1/runs/{id}/log", "/v1/runs/{id}/files/{name}", "/v1/runs/{id}/cancel", "/v1/events",
        "/v1/queue", "/v1/runs/{id}/priority", "/metrics",
    }  # fmt: skip
    assert set(description["paths"]) == promised
    assert "RunManifest" in description["components"]["schemas"]
    assert "ptq_runner_uptime_seconds" in http.get("/metrics").text


def test_the_environment_and_the_offer_are_told(host: Host) -> None:
    told = host.client.environment()
    assert told.quark_install_result.quark_version == "0.13"
    assert told.pytorch_install_result.accelerator_tag == "cpu"
    offer = host.client.capabilities()
    assert "fp8" in offer.catalogue.schemes
    assert offer.datasets == ["text.txt"]


def test_a_secret_never_leaves_the_host(host: Host, http: httpx.Client) -> None:
    interpreter.tell(host.engine)
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.SUCCEEDED)
    on_disk = (host.run_folder(run) / "log").read_bytes()
    log = http.get(f"/v1/runs/{run}/log").content
    assert len(log) == len(on_disk)
    pieces = [http.get(f"/v1/runs/{run}/log?offset={offset}").content for offset in range(0, len(log), 7)]
    for answer in [log, *pieces, http.get(f"/v1/runs/{run}").content]:
        assert SECRET.encode() not in answer
    # Offline, the run itself does not get the token either: it is not among the manifest's secrets.
    assert b"token: none" in on_disk


def test_the_documents_of_a_run_can_be_fetched(host: Host, http: httpx.Client) -> None:
    interpreter.tell(host.engine)
    manifest = host.manifest()
    run = host.submit(manifest).id
    host.wait_for(run, RunState.SUCCEEDED)
    for name in (
        "model_analysis.json",
        "quant_plan.json",
        "run_manifest.json",
        "validation_report.json",
        "config.json",
    ):
        assert json.loads(http.get(f"/v1/runs/{run}/files/{name}").content), name
    assert b"quantize.py" in http.get(f"/v1/runs/{run}/files/run_manifest.yaml").content
    report = json.loads(http.get(f"/v1/runs/{run}/files/validation_report.json").content)
    assert report["perplexity"]["original"] == 10.0
    assert report["status"] == "success", report
    assert {check["outcome"] for check in report["checks"]} <= {"ok", "skipped"}
    assert stat.S_IMODE((host.outputs / "out" / "model.safetensors").stat().st_mode) == 0o640


@pytest.mark.parametrize("spoil", ["not_quantized"])
def test_an_output_that_is_not_what_was_planned_fails(host: Host, spoil: str) -> None:
    interpreter.tell(host.engine, spoil=spoil)
    run = host.submit(host.manifest()).id
    ended = host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED)
    assert (ended.state, ended.code) == (RunState.FAILED, "verification_failed"), ended.reason


def _read_events(http: httpx.Client, enough: int, after: str | None = None) -> list[tuple[str, str, dict[str, Any]]]:
    headers = {"Last-Event-ID": after} if after else {}
    events: list[tuple[str, str, dict[str, Any]]] = []
    fields: dict[str, str] = {}
    with http.stream("GET", "/v1/events", headers=headers) as answer:
        for line in answer.iter_lines():
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                events.append((fields["id"], fields["event"], json.loads(fields["data"])))
                fields = {}
                if len(events) >= enough:
                    return events
    return events


def test_events_can_be_resumed_without_a_gap(host: Host, http: httpx.Client) -> None:
    place = f"{_epoch(http)}.0"
    interpreter.tell(host.engine)
    run = host.submit(host.manifest("two"), "two")
    host.wait_for(run.id, RunState.SUCCEEDED)
    last = host.client.run(run.id).last_event
    every = _read_events(http, last, place)
    assert [event[2]["number"] for event in every] == list(range(1, last + 1))
    again = _read_events(http, last - 2, every[1][0])
    assert again == every[2:]


def _epoch(http: httpx.Client) -> str:
    """The stream's epoch: a place that is not known is answered with where the stream is now."""
    (place, kind, _), *_ = _read_events(http, 1, "nonsense.7")
    assert kind == "reset"
    return place.partition(".")[0]


def test_the_daemon_stops_quickly_and_quietly_while_events_are_read(host: Host, http: httpx.Client) -> None:
    assert host.daemon is not None
    before = len(host.daemon_log())
    with http.stream("GET", "/v1/events") as answer:
        lines = answer.iter_lines()
        assert next(lines).startswith(":")
        host.daemon.terminate()
        assert [line for line in lines if line] == []
    assert host.daemon.wait(2) == -signal.SIGTERM  # the server hands the signal on once it has cleaned up
    assert "Traceback" not in host.daemon_log()[before:]


def test_a_reader_from_before_a_restart_is_told_to_ask_again(host: Host, http: httpx.Client) -> None:
    place = f"{_epoch(http)}.0"
    host.kill()
    host.start()
    transport = httpx.HTTPTransport(uds=str(host.settings.socket_path))
    with httpx.Client(base_url="http://runner", transport=transport) as fresh:
        assert [event[1] for event in _read_events(fresh, 1, place)] == ["reset"]


def test_the_daemon_is_small_and_knows_no_torch(host: Host) -> None:
    interpreter.tell(host.engine)
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.SUCCEEDED)
    assert host.daemon is not None
    daemon = psutil.Process(host.daemon.pid)
    heavy = ("torch", "transformers", "quark", "numpy", "pandas", "datasets")
    loaded = {Path(mapped.path) for mapped in daemon.memory_maps()}
    assert not [path for path in loaded if any(f"/site-packages/{name}/" in str(path) for name in heavy)]
    assert daemon.memory_info().rss < 90_000_000


def test_a_second_daemon_for_the_same_state_is_refused(host: Host) -> None:
    second = _ptq_runner(host, "serve")
    assert second.returncode == 1
    assert "Another daemon works in" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_runner_that_is_down_is_said_to_be_down(host: Host) -> None:
    host.kill()
    asked = _ptq_runner(host, "runs")
    assert asked.returncode == 1
    assert "No runner listens on" in asked.stderr
    assert "ptq-runner serve" in asked.stderr


def _ptq_runner(host: Host, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner.service", "--config", str(host.config), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
