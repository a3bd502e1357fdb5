"""The report on a run: recorded exports as they are, and with one thing wrong."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runner.runs.verification import verify
from schemas.artifacts.plan import Estimates
from tests.runner.runs.exported import (
    NAMES,
    Export,
    analysis_of,
    catalogue,
    detail,
    evidence_of,
    manifest_for,
    manifest_with,
    outcomes,
    plan_of,
)
from tests.runner.runs.spoiled import CASES, KV, Case, as_bf16, drop, told

CATALOGUE = catalogue()


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_export_is_what_its_plan_says(name: str, tmp_path: Path) -> None:
    export = Export.recorded(name)
    folder = export.write(tmp_path / "out")
    report = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export))
    assert [check for check in report.checks if check.outcome != "ok"] == []
    assert report.status == "success"
    assert report.failure is None
    assert not report.next_actions
    assert report.size_bytes == sum(path.stat().st_size for path in folder.iterdir())
    assert sum(count.tensors for count in report.tensors) == len(export.tensors)
    expected = {"quantization_config", "layers", "tensor dtypes", "exclusions", "size", "reload", "perplexity", "files"}
    if Export.recorded(name).plan["kv_cache_scheme"]:
        expected |= {"KV cache configuration", "KV cache scales"}
    if Export.recorded(name).config["tie_word_embeddings"]:
        expected -= {"exclusions"}  # the tied head is not written, so no excluded layer is left to look at
    assert expected <= outcomes(report).keys()


def test_the_summary_has_the_words_of_the_published_report(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    report = verify(manifest_for(export, export.write(tmp_path)), CATALOGUE, evidence_of(export))
    assert report.summary == (
        f"Quantization complete: output {tmp_path}, model size 483.1 kB (original 754.9 kB), "
        "format Hugging Face safetensors, perplexity 7.275 (wikitext, +0.8 % from 7.217)."
    )
    assert report.perplexity is not None
    assert report.perplexity.change == pytest.approx(0.00808, abs=1e-4)
    assert report.perplexity.tokens == 2048


def test_the_report_lists_what_is_in_the_folder(tmp_path: Path) -> None:
    export = Export.recorded("llama-int8")
    folder = export.write(tmp_path)
    (folder / "model.safetensors").chmod(0o600)
    report = verify(manifest_for(export, folder), CATALOGUE, evidence_of(export))
    modes = {file.name: file.mode for file in report.files}
    assert modes["model.safetensors"] == "-rw-------"
    assert modes.keys() == {path.name for path in folder.iterdir()}
    counted = {count.dtype: count.tensors for count in report.tensors}
    assert counted == {"I8": 14 * 3, "F32": 14 * 2, "BF16": 7}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_thing_wrong_is_said(case: Case, tmp_path: Path) -> None:
    recorded = Export.recorded(case.export)
    export = recorded.copy()
    case.change(export)
    folder = export.write(tmp_path / "out")
    case.spoil(folder)
    report = verify(manifest_for(recorded, folder, **case.plan), CATALOGUE, evidence_of(recorded, **case.evidence))
    assert outcomes(report)[case.check] == case.outcome
    assert case.says in detail(report, case.check)
    assert report.status == case.status
    assert report.failure == case.failure
    if case.status == "success":
        assert not report.next_actions
    else:
        assert report.next_actions
        assert any(line.startswith(case.check) for line in report.evidence) or case.check == "exit status"
    if case.status == "partial":
        assert report.summary.startswith("Quantization complete, with doubts (")
        assert report.cause == ""
    json.loads(report.model_dump_json())


def test_provisional_layers_are_held_against_the_log(tmp_path: Path) -> None:
    export = Export.recorded("qwen3_moe-fp8-kv")
    manifest = manifest_for(export, export.write(tmp_path), provisional=True)
    report = verify(manifest, CATALOGUE, evidence_of(export))
    assert report.status == "success"
    assert outcomes(report)["layers"] == "skipped"
    assert "as many as the output has" in detail(report, "log: replaced modules")
    without = verify(manifest, CATALOGUE, evidence_of(export, replacements=None))
    assert without.status == "partial"
    assert "could not count" in detail(without, "log: replaced modules")


def test_provisional_layers_that_stayed_as_they_were_are_doubtful(tmp_path: Path) -> None:
    recorded = Export.recorded("qwen3_moe-fp8-kv")
    export = recorded.copy()
    as_bf16(export)
    manifest = manifest_for(recorded, export.write(tmp_path), provisional=True)
    report = verify(manifest, CATALOGUE, evidence_of(export))
    assert report.status == "partial"
    assert "experts.*.down_proj (BF16) may belong to the planned layers" in detail(report, "tensor dtypes")


@pytest.mark.parametrize(("lost", "outcome"), [(0, "ok"), (1, "failed")])
def test_layers_under_other_names_are_counted(lost: int, outcome: str, tmp_path: Path) -> None:
    export = Export.recorded("llama-ptpc_fp8")
    (file,) = export.weights
    export.weights[file] = {name.replace("model.layers", "model.text.layers"): t for name, t in export.tensors.items()}
    for number in range(lost):
        drop(f"layers.{number}.mlp.up_proj.weight", f"layers.{number}.mlp.up_proj.weight_scale")(export)
    report = verify(manifest_for(export, export.write(tmp_path)), CATALOGUE, evidence_of(export))
    assert outcomes(report)["layers"] == outcome
    assert "names that the analysis does not have" in detail(report, "layers")


def test_a_size_within_five_percent_is_as_predicted(tmp_path: Path) -> None:
    export = Export.recorded("llama-fp8")
    folder = export.write(tmp_path)
    os.truncate(folder / "tokenizer.json", 100_000_000)
    for predicted, outcome in (
        (104_000_000, "ok"),
        (96_500_000, "ok"),
        (107_000_000, "failed"),
        (94_000_000, "failed"),
    ):
        manifest = manifest_for(export, folder, estimates=Estimates(output_bytes=predicted))
        assert outcomes(verify(manifest, CATALOGUE, evidence_of(export)))["size"] == outcome


@pytest.mark.parametrize("export_as", ["gguf", "onnx"])
def test_the_content_of_other_formats_is_not_looked_at(export_as: str, tmp_path: Path) -> None:
    export = Export.recorded("llama-fp8")
    analysis = analysis_of(export)
    plan = plan_of(export, analysis, model_export=export_as)
    manifest = manifest_with(analysis, plan, tmp_path)
    manifest = manifest.model_copy(
        update={"outputs": manifest.outputs.model_copy(update={"expected_files": [f"*.{export_as}"]})}
    )
    absent = verify(manifest, CATALOGUE, evidence_of(export))
    assert absent.status == "failed"
    assert f"*.{export_as} is missing" in detail(absent, "files")
    (tmp_path / f"model.{export_as}").write_bytes(b"GGUF")
    report = verify(manifest, CATALOGUE, evidence_of(export))
    assert report.status == "success"
    assert outcomes(report)["content"] == "skipped"
    assert export_as.upper() in report.summary


def test_a_scheme_that_stores_weights_in_an_unknown_way_is_not_judged(tmp_path: Path) -> None:
    export = Export.recorded("llama-mxfp6_e2m3")
    manifest = manifest_for(export, export.write(tmp_path), global_scheme="mx9")
    report = verify(manifest, CATALOGUE, evidence_of(export))
    assert outcomes(report)["tensor dtypes"] == "skipped"
    assert "How mx9 stores weights is not known here: 14 layers" in detail(report, "tensor dtypes")
    assert report.status == "failed"  # config.json still tells of another scheme


def test_an_unknown_family_has_no_kv_cache_layers_to_look_for(tmp_path: Path) -> None:
    export = Export.recorded(KV)
    manifest = manifest_for(export, export.write(tmp_path))
    without = CATALOGUE.model_copy(update={"templates": {}})
    report = verify(manifest, without, evidence_of(export))
    assert report.status == "partial"
    assert "names no KV cache layers for llama" in detail(report, "KV cache scales")
    template = CATALOGUE.templates["llama"].model_copy(update={"kv_layers": ["*qkv"]})
    other = CATALOGUE.model_copy(update={"templates": {"llama": template}})
    assert "No layer of the output is named like *qkv" in detail(
        verify(manifest, other, evidence_of(export)), "KV cache scales"
    )


def test_a_plan_without_exclusions_logs_no_table_of_them(tmp_path: Path) -> None:
    export = Export.recorded("llama-fp8").copy()
    export.tensors["lm_head.weight"] = ("F8_E4M3", [320, 128])
    export.tensors.update({"lm_head.weight_scale": ("BF16", []), "lm_head.input_scale": ("BF16", [])})
    export.told["exclude"] = export.plan["exclude_layers"] = []
    report = verify(manifest_for(export, export.write(tmp_path)), CATALOGUE, evidence_of(export, exclusions=None))
    assert report.status == "success"
    assert "excludes nothing" in detail(report, "log: exclusions")
    assert "exclusions" not in outcomes(report)


def test_an_analysis_without_layers_leaves_nothing_to_count(tmp_path: Path) -> None:
    export = Export.recorded("llama-ptpc_fp8")
    analysis = analysis_of(export)
    targets = analysis.quantization_targets.model_copy(update={"groups": [], "provisional": True})
    unknown = analysis.model_copy(update={"quantization_targets": targets})
    manifest = manifest_with(unknown, plan_of(export, unknown), export.write(tmp_path))
    report = verify(manifest, CATALOGUE, evidence_of(export))
    assert outcomes(report)["layers"] == "skipped"
    assert outcomes(report)["tensor dtypes"] == "ok"
    assert report.status == "success"


def test_renamed_layers_that_are_provisional_are_not_counted(tmp_path: Path) -> None:
    export = Export.recorded("mixtral-int4_wo_32")
    (file,) = export.weights
    export.weights[file] = {name.replace("model.layers", "model.text.layers"): t for name, t in export.tensors.items()}
    report = verify(manifest_for(export, export.write(tmp_path), provisional=True), CATALOGUE, evidence_of(export))
    assert "under names that the analysis does not have" in detail(report, "layers")
    assert outcomes(report)["layers"] == "skipped"
    assert report.status == "success"


def test_the_configuration_is_judged_without_readable_weights(tmp_path: Path) -> None:
    export = Export.recorded("llama-fp8").copy()
    drop("")(export)
    told("global_quant_config", "weight", "dtype", value="int8")(export)
    report = verify(manifest_for(export, export.write(tmp_path)), CATALOGUE, evidence_of(export))
    assert "The weight files hold no tensors" in detail(report, "files")
    assert "every layer weight dtype is int8 and should be fp8_e4m3 (fp8)" in detail(report, "quantization_config")
