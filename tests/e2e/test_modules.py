"""The list of modules through a real daemon: asked for, planned on, lost, and refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import RunnerError
from schemas.api import IntakeAnswer, IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices
from tests.e2e.host import Host, running_host
from tests.peers import interpreter
from tests.published_models import write_published
from tests.tiny_models import make_tiny_model


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    with running_host(tmp_path_factory.mktemp("modules") / "host") as running:
        yield running


def intake(host: Host, model: Path, depth: str = "modules") -> IntakeAnswer:
    return host.client.intake(IntakeRequest.model_validate({"model": str(model), "depth": depth}))


def test_the_layers_are_the_engines_own(host: Host) -> None:
    by_headers = intake(host, host.model, "headers").model_analysis.quantization_targets
    answer = intake(host, host.model)
    found = answer.model_analysis.quantization_targets
    assert (found.method, found.provisional, found.linear_layer_count) == ("modules", False, 14)
    assert [group.numbers for group in found.groups if group.pattern != "lm_head"] == [["0-1"]] * 7
    assert {group.pattern for group in found.groups} == {group.pattern for group in by_headers.groups}
    assert not any(group.provisional for group in found.groups)


def test_a_plan_and_a_command_rest_on_it_also_when_the_list_is_gone(host: Host) -> None:
    model = make_tiny_model(host.models / "mixtral", model_type="mixtral")
    analysis = intake(host, model).model_analysis
    assert "modules_differ" in {risk.code for risk in analysis.risks}
    calibration = CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32)
    request = PlanRequest(
        model_analysis=analysis, request=PlanChoices(global_scheme="fp8", kv_cache_scheme=None, calibration=calibration)
    )
    plan = host.client.plan(request).quant_plan
    assert not plan.blocked_by
    asked = interpreter.module_lists(host.engine)
    for kept in (host.state / "cache").glob("modules-*"):
        kept.unlink()
    host.kill()
    host.start()
    again = host.client.plan(request).quant_plan
    assert (again.decisions, again.layer_matches) == (plan.decisions, plan.layer_matches)
    assert interpreter.module_lists(host.engine) == asked + 1
    made = host.client.manifest(
        ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=str(host.outputs / "mixtral"))
    )
    assert made.run_manifest.inputs.model_analysis == analysis


def test_an_analysis_with_other_layers_is_refused(host: Host) -> None:
    data = intake(host, host.model).model_analysis.model_dump(mode="json")
    data["quantization_targets"]["groups"][0]["numbers"] = ["0-7"]
    with pytest.raises(RunnerError) as refused:
        host.client.plan(PlanRequest.model_validate({"model_analysis": data}))
    assert refused.value.code == "analysis_changed"
    assert "groups[0].numbers" in refused.value.message


def test_deepseek_v3_is_a_small_document(host: Host) -> None:
    answer = intake(host, write_published(host.models / "deepseek", "DeepSeek-V3", shards=3))
    found = answer.model_analysis.quantization_targets
    assert (found.linear_layer_count, sum(group.count for group in found.groups)) == (44_727, 45_033)
    assert len(found.model_dump_json()) < 10_000


def test_a_model_that_needs_its_own_code_is_refused_with_what_to_do(host: Host) -> None:
    model = make_tiny_model(
        host.models / "own",
        extra_config={"model_type": "own_family", "auto_map": {"AutoModelForCausalLM": "own.OwnModel"}},
    )
    assert intake(host, model, "headers").model_analysis.model.trust_remote_code
    with pytest.raises(RunnerError) as refused:
        intake(host, model)
    assert refused.value.code == "modules_need_code"
    assert "trust_remote_code" in refused.value.hint


def test_a_model_that_the_engine_cannot_make_keeps_its_headers(host: Host) -> None:
    model = make_tiny_model(host.models / "broken", hidden=64)
    interpreter.tell(host.engine, modules_fail="The model type llama cannot be made from config.json: no.")
    try:
        with pytest.raises(RunnerError) as refused:
            intake(host, model)
    finally:
        interpreter.tell(host.engine)
    assert refused.value.code == "modules_not_built"
    assert "cannot be made from config.json: no." in refused.value.message
    assert intake(host, model, "headers").model_analysis.quantization_targets.method == "headers"


def test_a_changed_configuration_is_another_list(host: Host) -> None:
    model = make_tiny_model(host.models / "changing", layers=2)
    before = intake(host, model).model_analysis
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    with pytest.raises(RunnerError) as refused:
        host.client.plan(PlanRequest(model_analysis=before))
    assert refused.value.code == "model_changed"
    after = intake(host, model).model_analysis
    assert after.quantization_targets.linear_layer_count == 7
