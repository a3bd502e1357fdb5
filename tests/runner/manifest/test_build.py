"""The manifest: complete, derived, and refused where it could not run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from runner.errors import BadRequest, Changed, DigestMismatch, Refused
from runner.manifest import make_manifest
from runner.planning import make_plan
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import Finding, PlanChoices, QuantPlan, Severity
from schemas.digest import digest
from schemas.documents import read_document
from tests.runner.manifest.bench import MADE_BY, Bench, make_bench
from tests.runner.planning.catalogue import recorded


def test_a_manifest_carries_all_that_the_run_is_bound_to(bench: Bench) -> None:
    plan = bench.plan()
    manifest = bench.manifest(plan)
    assert manifest.made_by == MADE_BY
    assert (manifest.inputs.model_analysis, manifest.inputs.quant_plan) == (bench.analysis, plan)
    assert (manifest.inputs.analysis_digest, manifest.inputs.plan_digest) == (digest(bench.analysis), digest(plan))
    assert manifest.versions == recorded().versions
    assert manifest.model_files == bench.context.model_files
    assert manifest.outputs.output_dir == bench.output
    assert manifest.blocked_by == []
    assert [checkpoint.id for checkpoint in manifest.checkpoints] == ["analysis", "plan", "command", "result"]


def test_a_manifest_is_a_valid_document_and_the_same_each_time(bench: Bench) -> None:
    manifest = bench.manifest()
    assert read_document(RunManifest, manifest.model_dump(mode="json")) == manifest
    assert digest(bench.manifest()) == digest(manifest)


def test_steps_have_commands_and_the_run_has_its_argument_list(bench: Bench) -> None:
    manifest = bench.manifest()
    assert [step.kind for step in manifest.steps] == ["analyze", "plan", "generate", "run", "validate"]
    assert all(step.command for step in manifest.steps)
    run = manifest.steps[3]
    assert run.argv == manifest.argv
    assert run.command == manifest.command == shlex.join(manifest.argv)


def test_every_path_is_absolute(gpu_bench: Bench) -> None:
    argv = gpu_bench.manifest().argv
    for name in ("--model_dir", "--output_dir"):
        assert Path(argv[argv.index(name) + 1]).is_absolute()
    assert Path(argv[0]).is_absolute()
    assert Path(argv[1]).is_absolute()


@pytest.mark.parametrize(
    ("gpu", "choices", "expected"),
    [
        (
            False,
            {},
            ["config.json", "model*.safetensors", "tokenizer_config.json", "tokenizer.json", "generation_config.json"],
        ),
        (True, {"model_export": "onnx"}, ["*.onnx", "quark_profile.yaml"]),
        (True, {"global_scheme": "uint4_wo_32", "model_export": "gguf"}, ["*.gguf", "quark_profile.yaml"]),
    ],
)
def test_expected_files(tmp_path: Path, gpu: bool, choices: dict[str, Any], expected: list[str]) -> None:
    assert make_bench(tmp_path, gpu=gpu).manifest(**choices).outputs.expected_files == expected


@pytest.mark.parametrize(
    ("gpu", "hub", "present", "absent", "secrets"),
    [
        (False, False, {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}, {"QUARK_PROFILING"}, []),
        (True, True, {"QUARK_PROFILING": "1"}, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}, ["HF_TOKEN"]),
    ],
)
def test_fixed_variables_and_names_of_secrets(
    tmp_path: Path, gpu: bool, hub: bool, present: dict[str, str], absent: set[str], secrets: list[str]
) -> None:
    manifest = make_bench(tmp_path, gpu=gpu, hub=hub).manifest()
    assert present.items() <= manifest.environment.items()
    assert absent.isdisjoint(manifest.environment)
    assert manifest.secrets == secrets


def test_a_blocked_plan_gets_no_manifest(bench: Bench) -> None:
    plan = bench.plan(global_scheme="mx6", algorithm="autoround")
    with pytest.raises(Refused) as refusal:
        bench.manifest(plan)
    assert refusal.value.code == "plan_blocked"
    assert "mx6" in refusal.value.message
    assert "autoround_fails" in refusal.value.message


def test_findings_of_the_document_are_not_believed(bench: Bench) -> None:
    hidden = bench.plan(global_scheme="mx6").model_copy(update={"findings": []})
    with pytest.raises(Refused, match="mx6"):
        bench.manifest(hidden)
    scare = Finding(severity=Severity.BLOCKS, code="made_up", message="Do not.")
    error = inconsistency(bench, bench.plan().model_copy(update={"findings": [scare]}))
    assert "made_up" in error.message


def test_a_warning_that_was_taken_out_is_missed(bench: Bench) -> None:
    plan = bench.plan(exclude_layers=[], kv_cache_scheme="fp8")
    assert plan.findings
    assert plan.blocked_by == []
    assert plan.findings[0].code in inconsistency(bench, plan.model_copy(update={"findings": []})).message


def test_what_the_table_says_is_what_runs(bench: Bench) -> None:
    error = inconsistency(bench, bench.plan().model_copy(update={"global_scheme": "int4_wo_32"}))
    assert error.message == "The plan's decision table says global_scheme fp8, and the plan itself int4_wo_32."


def test_an_edit_of_field_and_row_alike_is_a_plan(bench: Bench) -> None:
    plan, other = bench.plan(), bench.plan(calibration={"num_calib_data": 7})
    rows = [row.model_copy(update={"value": 7}) if row.decision == "num_calib_data" else row for row in plan.decisions]
    calibration = plan.calibration.model_copy(update={"num_calib_data": 7})
    edited = plan.model_copy(update={"calibration": calibration, "decisions": rows})
    assert bench.manifest(edited).argv == bench.manifest(other).argv


def test_free_space_is_a_reading_of_its_moment(bench: Bench) -> None:
    """A disk that was full where nobody sends the result does not stop it from going elsewhere."""
    for free in (None, 10, 10**12):
        context = bench.with_host(disk_free_bytes=free)
        plan = make_plan(bench.analysis, PlanChoices(global_scheme="fp8"), context.catalogue, context.host)
        assert make_manifest(bench.analysis, plan, bench.output, bench.with_host(disk_free_bytes=10**11))


def inconsistency(bench: Bench, plan: QuantPlan) -> Refused:
    with pytest.raises(Refused) as refusal:
        bench.manifest(plan)
    assert (refusal.value.code, refusal.value.hint) == ("plan_inconsistent", "Plan again.")
    return refusal.value


def test_estimates_of_the_document_are_not_believed(bench: Bench) -> None:
    plan = bench.plan()
    small = plan.model_copy(update={"estimates": plan.estimates.model_copy(update={"disk_bytes_needed": 1})})
    with pytest.raises(Refused, match="free disk"):
        make_manifest(bench.analysis, small, bench.output, bench.with_host(disk_free_bytes=1000))
    for name in ("disk_bytes_needed", "output_bytes", "source_bytes"):
        changed = plan.estimates.model_copy(update={name: 0})
        assert f"estimate {name} is 0" in inconsistency(bench, plan.model_copy(update={"estimates": changed})).message


def test_the_entry_point_that_the_runner_chooses_is_judged(bench: Bench) -> None:
    """A plan that leaves the choice open cannot get past the rules of the entry point."""
    plan = bench.open_plan(algorithm="awq,awq", entry_point="quantize_quark")
    with pytest.raises(Refused, match="awq stands 2 times"):
        bench.manifest(plan)


def test_a_plan_of_another_analysis_is_refused(bench: Bench) -> None:
    plan = bench.plan()
    other = bench.analysis.model_copy(update={"analysis_status": "partial"})
    with pytest.raises(DigestMismatch) as refusal:
        make_manifest(other, plan, bench.output, bench.context)
    assert refusal.value.code == "analysis_mismatch"


def test_a_plan_that_names_another_model_is_refused(bench: Bench) -> None:
    plan = bench.plan()
    other = plan.model_copy(update={"model": plan.model.model_copy(update={"model_path": "/models/other"})})
    with pytest.raises(BadRequest) as refusal:
        bench.manifest(other)
    assert refusal.value.code == "plan_inconsistent"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda model: (model / "config.json").write_text("{}", encoding="utf-8"), "config.json has"),
        (lambda model: (model / "tokenizer.json").unlink(), "tokenizer.json is gone"),
        (lambda model: (model / "model-2.safetensors").write_bytes(b"x" * 100), "model-2.safetensors is new"),
    ],
)
def test_a_model_that_changed_since_its_analysis_is_refused(bench: Bench, change: Any, words: str) -> None:
    plan = bench.plan()
    change(bench.model)
    with pytest.raises(Changed) as refusal:
        make_manifest(bench.analysis, plan, bench.output, bench.now())
    assert refusal.value.code == "model_changed"
    assert words in refusal.value.message


def test_trust_needs_the_plan_and_the_runner(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, remote_code=True)
    assert "--trust_remote_code" in bench.manifest(trust_remote_code=True).argv
    assert "--no_trust_remote_code" in bench.manifest().argv
    plan = make_plan(
        bench.analysis,
        PlanChoices(global_scheme="fp8", trust_remote_code=True),
        bench.context.catalogue,
        bench.context.host,
    )
    with pytest.raises(Refused, match="does not run code"):
        make_manifest(bench.analysis, plan, bench.output, bench.with_host(remote_code=False))
