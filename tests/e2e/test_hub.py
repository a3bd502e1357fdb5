"""A model by its Hub id through a real daemon: analysed without its weights, downloaded and quantized by the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from schemas.runs import RunState
from tests.e2e.host import SECRET, Host
from tests.peers.hub import HubPeer, Says
from tests.runner.ptq.scripts import needs_engine
from tests.tiny_models import make_tiny_model

CHOICES = PlanChoices(
    global_scheme="fp8",
    kv_cache_scheme=None,
    calibration=CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32),
)


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubPeer]:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with HubPeer(readers={SECRET}).running() as started:
        monkeypatch.setenv("HF_ENDPOINT", started.url)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
        started.add("org/hubbed", make_tiny_model(tmp_path / "upstream", shards=2), gated=True)
        yield started


@pytest.fixture
def hub_host(tmp_path: Path, peer: HubPeer) -> Iterator[Host]:  # noqa: ARG001 - the daemon asks it
    made = Host(tmp_path / "h", models={"roots": [str(tmp_path / "h" / "models")], "hub": True})
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_three_steps_ask_the_hub_once(hub_host: Host, peer: HubPeer) -> None:
    client = hub_host.client
    answer = client.intake(IntakeRequest(model="org/hubbed"))
    analysis, commit = answer.model_analysis, answer.model_analysis.model.revision
    assert answer.workspace_context.model_path == "org/hubbed"
    assert answer.workspace_context.model_source == "huggingface_id"
    assert analysis.model.hub_token == "HF_TOKEN of the runner"
    assert peer.bytes_of("weight") == 0
    peer.forget()
    peer.fail(".", Says(500))
    plan = client.plan(PlanRequest(model_analysis=analysis, request=CHOICES)).quant_plan
    request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=str(hub_host.outputs / "out"))
    manifest = client.manifest(request).run_manifest
    place = manifest.argv.index("--model_dir")
    assert manifest.argv[place + 1] == "org/hubbed"
    assert manifest.argv[manifest.argv.index("--revision") + 1] == commit
    assert (manifest.environment["HF_ENDPOINT"], manifest.secrets) == (peer.url, ["HF_TOKEN"])
    assert "HF_HUB_OFFLINE" not in manifest.environment
    assert {fact.name: fact.mtime_ns for fact in manifest.model_files}["config.json"] == 0
    hub_host.submit(manifest)  # admitted without the network
    assert peer.calls == []
    assert SECRET not in manifest.model_dump_json() + hub_host.daemon_log()


def test_what_the_hub_refuses_is_told_by_the_api(hub_host: Host) -> None:
    with pytest.raises(RunnerError) as caught:
        hub_host.client.intake(IntakeRequest(model="org/nowhere"))
    assert caught.value.code == "hub_model_missing"
    assert SECRET not in str(caught.value) + hub_host.daemon_log()


@pytest.mark.quark
@needs_engine
def test_a_model_by_its_hub_id_is_quantized_for_real(tmp_path: Path, peer: HubPeer) -> None:
    host = Host(tmp_path / "h", Path(sys.executable), models={"roots": [str(tmp_path / "h" / "models")], "hub": True})
    try:
        host.start()
        client = host.client
        analysis = client.intake(IntakeRequest(model="org/hubbed")).model_analysis
        choices = CHOICES.model_copy(update={"evaluation_intent": "none", "entry_point": "own", "device": "cpu"})
        plan = client.plan(PlanRequest(model_analysis=analysis, request=choices)).quant_plan
        assert plan.blocked_by == []
        output = host.outputs / "out"
        request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=str(output))
        run = host.submit(client.manifest(request).run_manifest)
        ended = host.wait_for(run.id, RunState.SUCCEEDED, RunState.FAILED, seconds=400)
        assert ended.state is RunState.SUCCEEDED, (host.run_folder(run.id) / "log").read_text()[-3000:]
        assert peer.bytes_of("weight") > 0
        assert (output / "config.json").exists()
        # What the run downloaded is what the same words mean from now on.
        again = client.intake(IntakeRequest(model="org/hubbed")).model_analysis
        assert (again.model.downloaded, again.model.revision) == (True, analysis.model.revision)
        for path in output.rglob("*"):
            assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    finally:
        host.stop()
