"""What people saw is what runs: documents edited between the steps, and places that are not what they look like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import CalibrationChanges, PlanChoices, QuantPlan
from schemas.digest import digest
from schemas.runs import RunState
from tests.e2e.host import Host, running_host, submission
from tests.peers import interpreter

Edit = Callable[[dict[str, Any]], object]


def analysed(host: Host) -> ModelAnalysis:
    return host.client.intake(IntakeRequest(model=str(host.model))).model_analysis


def planned(host: Host, analysis: ModelAnalysis) -> QuantPlan:
    calibration = CalibrationChanges(dataset="text.txt", num_calib_data=4, seq_len=32)
    choices = PlanChoices(global_scheme="fp8", kv_cache_scheme=None, calibration=calibration, exclude_layers=[])
    return host.client.plan(PlanRequest(model_analysis=analysis, request=choices)).quant_plan


def refusal(action: Callable[[], object]) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        action()
    return refused.value


def edited_plan(plan: QuantPlan, edit: Edit) -> QuantPlan:
    data = plan.model_dump(mode="json")
    edit(data)
    return QuantPlan.model_validate(data)


def edited_analysis(analysis: ModelAnalysis, edit: Edit) -> ModelAnalysis:
    data = analysis.model_dump(mode="json")
    edit(data)
    return ModelAnalysis.model_validate(data)


def rebound(manifest: RunManifest, *, analysis: ModelAnalysis | None = None, plan: QuantPlan | None = None) -> Any:
    """A submission whose every digest fits its edited documents, as a careful forger would make it."""
    data = manifest.model_dump(mode="json")
    inputs = data["inputs"]
    if analysis is not None:
        inputs["model_analysis"] = analysis.model_dump(mode="json")
        inputs["analysis_digest"] = inputs["quant_plan"]["model"]["analysis_digest"] = digest(analysis)
    if plan is not None:
        inputs["quant_plan"] = plan.model_dump(mode="json")
    inputs["plan_digest"] = digest(QuantPlan.model_validate(inputs["quant_plan"]))
    return submission(RunManifest.model_validate(data))


PLAN_EDITS: list[tuple[Edit, str]] = [
    (lambda plan: plan.update(global_scheme="int8"), "global_scheme fp8"),
    (lambda plan: plan["decisions"].pop(0), "no row global_scheme"),
    (lambda plan: plan["estimates"].update(disk_bytes_needed=0), "disk_bytes_needed"),
    (lambda plan: plan["findings"].clear(), "lacks the finding"),
]


def test_a_plan_that_shows_something_else_than_it_runs_is_refused_at_each_step(host: Host) -> None:
    analysis = analysed(host)
    plan = planned(host, analysis)
    assert plan.findings
    output = str(host.outputs / "out")
    good = host.client.manifest(ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=output))
    for edit, words in PLAN_EDITS:
        other = edited_plan(plan, edit)
        request = ManifestRequest(model_analysis=analysis, quant_plan=other, output_dir=output)
        forged = rebound(good.run_manifest, plan=other)
        for error in (
            refusal(lambda request=request: host.client.manifest(request)),  # type: ignore[misc]
            refusal(lambda forged=forged: host.client.submit(forged)),  # type: ignore[misc]
        ):
            assert (error.code, words in error.message) == ("plan_inconsistent", True), error
    assert host.client.runs(None, 10) == []
    assert host.starts() == 0


ANALYSIS_EDITS: list[tuple[Edit, str]] = [
    (lambda analysis: analysis["risks"].append({"severity": "low", "code": "x", "message": "All is well."}), "risks"),
    (lambda analysis: analysis["quantization_targets"]["groups"].clear(), "quantization_targets.groups has 0 entries"),
    (lambda analysis: analysis["model"].update(model_type="qwen3"), "model.model_type is qwen3 and should be llama"),
    (lambda analysis: analysis["size"].update(weight_bytes=1), "size.weight_bytes is 1 and should be"),
]


def test_an_analysis_that_the_model_does_not_bear_out_is_refused_at_each_step(host: Host) -> None:
    analysis = analysed(host)
    plan = planned(host, analysis)
    output = str(host.outputs / "out")
    good = host.client.manifest(ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=output))
    for edit, words in ANALYSIS_EDITS:
        other = edited_analysis(analysis, edit)
        of_other = edited_plan(plan, lambda data, other=other: data["model"].update(analysis_digest=digest(other)))  # type: ignore[misc]
        request = ManifestRequest(model_analysis=other, quant_plan=of_other, output_dir=output)
        for error in (
            refusal(lambda other=other: planned(host, other)),  # type: ignore[misc]
            refusal(lambda request=request: host.client.manifest(request)),  # type: ignore[misc]
        ):
            assert (error.code, words in error.message) == ("analysis_changed", True), error
        forged = rebound(good.run_manifest, analysis=other)
        assert refusal(lambda forged=forged: host.client.submit(forged)).code in {  # type: ignore[misc]
            "analysis_changed",
            "plan_inconsistent",
        }
    # A forged risk changes no plan and no command: only the analysis itself gives it away.
    forged = rebound(good.run_manifest, analysis=edited_analysis(analysis, ANALYSIS_EDITS[0][0]))
    assert refusal(lambda: host.client.submit(forged)).code == "analysis_changed"
    assert host.starts() == 0


def test_a_model_that_changed_is_said_to_have_changed_when_it_is_planned(host: Host) -> None:
    analysis = analysed(host)
    (host.model / "config.json").write_text("{}")
    error = refusal(lambda: planned(host, analysis))
    assert (error.code, "config.json" in error.message) == ("model_changed", True)


@pytest.mark.parametrize("path", ["/a\0b", "\0", " ", "-x", "/a\nb", "/\u202e", "/" + "x" * 300])
def test_paths_in_documents_are_names_before_they_are_looked_up(host: Host, path: str) -> None:
    analysis = analysed(host)
    plan = planned(host, analysis)
    other = edited_analysis(analysis, lambda data: data["model"].update(model_path=path))
    assert refusal(lambda: planned(host, other)).code == "bad_model_name"
    output = str(host.outputs / "out")
    request = ManifestRequest(model_analysis=other, quant_plan=plan, output_dir=output)
    assert refusal(lambda: host.client.manifest(request)).code == "bad_model_name"
    request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=path)
    assert refusal(lambda: host.client.manifest(request)).code == "bad_output_name"
    of_dataset = edited_plan(plan, lambda data: data["calibration"].update(dataset=f"{path}.txt"))
    request = ManifestRequest(model_analysis=analysis, quant_plan=of_dataset, output_dir=output)
    assert refusal(lambda: host.client.manifest(request)).code in {"bad_dataset_name", "plan_inconsistent"}


def test_an_output_behind_a_loop_of_links_is_refused_at_each_step(host: Host) -> None:
    between = host.outputs / "sl"
    between.mkdir()
    manifest = host.manifest("sl/x")
    between.rmdir()
    between.symlink_to("sl")
    looped = str(between / "x")
    intake = IntakeRequest(model=str(host.model), output_dir=looped)
    for action in (
        lambda: host.client.intake(intake),
        lambda: host.manifest("sl/x"),
        lambda: host.submit(manifest),
    ):
        assert refusal(action).code == "output_not_reachable"
    assert host.client.runs(None, 10) == []


def test_an_output_root_that_went_while_the_run_waited_is_not_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "h"
    away = folder / "mounted"
    with running_host(folder, outputs={"roots": [str(folder / "outputs"), str(away)]}) as host:
        away.mkdir()
        go = host.folder / "go"
        interpreter.tell(host.engine, wait_for=str(go))
        first = host.submit(host.manifest("first"), "first").id
        waiting = host.submit(host.manifest(str(away / "second")), "second").id
        host.wait_for(first, RunState.RUNNING)
        away.rename(folder / "unmounted")
        go.touch()
        ended = host.wait_for(waiting, RunState.FAILED)
        assert (ended.code, f"{away} does not exist" in ended.reason) == ("output_root_missing", True), ended.reason
        assert not away.exists()
        assert host.starts() == 1


def test_a_text_that_is_too_short_is_told_before_the_run(host: Host) -> None:
    """The mirror's text is the only data here, and the published 128 samples of 512 tokens are more than it has."""
    asked = PlanChoices(global_scheme="fp8", kv_cache_scheme=None)
    plan = host.client.plan(PlanRequest(model_analysis=analysed(host), request=asked)).quant_plan
    assert "text_too_short" in [finding.code for finding in plan.blocked_by]
