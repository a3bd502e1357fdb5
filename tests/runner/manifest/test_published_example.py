"""The published example, FP8 of Qwen3-8B: the command is the published mapping, and every difference has its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.manifest import make_manifest
from runner.planning import make_plan
from runner.settings import ModelSettings
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import PlanChoices
from tests.runner.manifest.bench import Bench, make_bench
from tests.runner.planning.models import qwen3_8b

COMMIT = "b968826d9c46dd6066d109eabc6255188de91218"

PUBLISHED = [
    *("--quant_scheme", "fp8"),
    *("--kv_cache_dtype", "fp8"),
    *("--num_calib_data", "128"),
    *("--seq_len", "512"),
    *("--model_export", "hf_format"),
    *("--data_type", "auto"),
    *("--device", "cuda"),
]
"""The example's command as it is published, after program, model and output."""


def manifest_of(bench: Bench, analysis: ModelAnalysis, **choices: Any) -> RunManifest:
    """The manifest of an FP8 plan for Qwen3-8B on a runner with MI300X."""
    hub = not analysis.model.downloaded
    settings = bench.context.settings.model_copy(update={"models": ModelSettings(hub=hub)})
    context = bench.but(
        settings=settings, host=replace(bench.context.host, offline=not hub), model_files=analysis.size.files
    )
    plan = make_plan(analysis, PlanChoices(**{"global_scheme": "fp8", **choices}), context.catalogue, context.host)
    return make_manifest(analysis, plan, "/quantized/Qwen3-8B-fp8", context)


def reasons(manifest: RunManifest) -> dict[str, str]:
    """Why the command differs, by flag."""
    assert all(deviation.reason for deviation in manifest.deviations)
    flags = [deviation.flag for deviation in manifest.deviations]
    assert len(flags) == len(set(flags))
    return {deviation.flag: deviation.reason for deviation in manifest.deviations}


def test_a_downloaded_model_gets_the_published_command(gpu_bench: Bench) -> None:
    manifest = manifest_of(gpu_bench, qwen3_8b())
    assert manifest.argv == [
        "/opt/venv/bin/python",
        str(gpu_bench.folder / "programs" / "quantize_quark.py"),
        *("--model_dir", "/models/Qwen3-8B"),
        *("--output_dir", "/quantized/Qwen3-8B-fp8"),
        *PUBLISHED,
        "--no_trust_remote_code",
    ]
    found = reasons(manifest)
    assert list(found) == ["python3", "--exclude_layers", "--no_trust_remote_code"]
    assert "would replace what the engine's template leaves alone" in found["--exclude_layers"]
    assert "trusts it by default" in found["--no_trust_remote_code"]


def test_a_model_of_the_hub_is_pinned_to_its_commit(gpu_bench: Bench) -> None:
    analysis = qwen3_8b(model_path="Qwen/Qwen3-8B", source="huggingface_id", revision=COMMIT, downloaded=False)
    manifest = manifest_of(gpu_bench, analysis)
    assert manifest.argv[2:] == [
        *("--model_dir", "Qwen/Qwen3-8B"),
        *("--output_dir", "/quantized/Qwen3-8B-fp8"),
        *PUBLISHED,
        *("--revision", COMMIT),
        "--no_trust_remote_code",
    ]
    assert "Pins the commit" in reasons(manifest)["--revision"]
    assert manifest.steps[0].command == f"ptq-runner intake Qwen/Qwen3-8B --revision {COMMIT}"


@pytest.mark.parametrize(
    ("choices", "arguments", "flags"),
    [
        ({"evaluation_intent": "none"}, ["--skip_evaluation"], {"--skip_evaluation"}),
        ({"calibration": {"dataset": "wikitext"}}, ["--dataset", "wikitext"], {"--dataset"}),
        ({"calibration": {"batch_size": 4}}, ["--batch_size", "4"], {"--batch_size"}),
        ({"calibration": {"dataset": "pileval", "batch_size": 1}}, [], set()),
        ({"exclude_layers": ["lm_head", "*o_proj"]}, ["--exclude_layers", "lm_head", "*o_proj"], set()),
        ({"layer_quant_config": {"*mlp*": "ptpc_fp8"}}, ["--layer_quant_scheme", "*mlp*", "ptpc_fp8"], set()),
        ({"kv_cache_scheme": None}, [], set()),
        ({"min_kv_scale": 0.001}, ["--min_kv_scale", "0.001"], {"--min_kv_scale"}),
        ({"data_type": "bfloat16"}, ["--data_type", "bfloat16"], {"--data_type"}),
        ({"model_export": "onnx"}, ["--model_export", "onnx"], set()),
    ],
)
def test_what_goes_beyond_the_mapping_has_its_reason(
    gpu_bench: Bench, choices: dict[str, Any], arguments: list[str], flags: set[str]
) -> None:
    manifest = manifest_of(gpu_bench, qwen3_8b(), **choices)
    argv = manifest.argv
    assert not arguments or any(argv[i : i + len(arguments)] == arguments for i in range(len(argv)))
    always = {"python3", "--no_trust_remote_code", "--exclude_layers"} - set(arguments)
    assert set(reasons(manifest)) == always | flags


def test_why_nothing_is_measured_is_said(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, gpu=True)
    host = replace(bench.context.host, datasets=["pileval"])
    found = reasons(manifest_of(replace(bench, context=bench.but(host=host)), qwen3_8b()))
    assert "has no wikitext" in found["--skip_evaluation"]


def test_our_script_in_place_of_the_published_one_is_said(bench: Bench) -> None:
    found = reasons(bench.manifest())
    assert "Without a GPU our own script runs" in found["quantize_quark.py"]
    assert found["--device"].startswith("cpu in place of cuda. ")
    assert {"--eval_windows", "--eval_seq_len", "--dataset", "--batch_size"} <= set(found)


def test_what_quark_cli_lacks_of_the_mapping_is_said(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, gpu=True, hub=True)
    program = tmp_path / "quark-cli"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    here = replace(bench, context=bench.with_host(entry_points={"quark_cli": str(program)}))
    manifest = here.manifest(entry_point="quark_cli")
    assert manifest.argv[:2] == [str(program), "torch-llm-ptq"]
    found = reasons(manifest)
    assert "takes hf_format by itself" in found["--model_export"]
    assert "takes auto by itself" in found["--data_type"]
    assert "Not tried" in found["quantize_quark.py"]
