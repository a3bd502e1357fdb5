"""One run of the real engine, from a tiny model to a checkpoint that loads again in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.runner.ptq.scripts import events_of, needs_engine, run_script
from tests.tiny_models import make_tiny_model, tiny_text

pytestmark = [pytest.mark.quark, needs_engine]

PRODUCTS = """
import torch
from runner.ptq.quantize import products_in_float32
torch.manual_seed(0)
inputs, weight, bias = (torch.randn(*shape).bfloat16() for shape in ((64, 256), (128, 256), (128,)))
linear, wide = torch.nn.functional.linear, lambda value: value.float()
exact = linear(wide(inputs), wide(weight), wide(bias)).bfloat16()
with products_in_float32(torch):
    layer = linear(inputs, weight, bias)
    named = linear(input=inputs, weight=weight, bias=bias)
    product = inputs @ weight.T
    single = linear(wide(inputs), wide(weight))
print(torch.equal(layer, exact), torch.allclose(named.float(), exact.float(), rtol=0.02, atol=0.2))
print(torch.equal(product, (wide(inputs) @ wide(weight).T).bfloat16()), layer.dtype, single.dtype)
"""

SAMPLES, WINDOWS, TOKENS = 5, 2, 64
EVALUATION = ["--eval_windows", WINDOWS, "--eval_seq_len", TOKENS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    make_tiny_model(folder / "model")
    tiny_text(folder / "text.txt", words=400)
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    calibration = ["--num_calib_data", SAMPLES, "--seq_len", TOKENS, "--batch_size", 2]
    places = ["--model_dir", folder / "model", "--output_dir", folder / "out", "--dataset", folder / "text.txt"]
    plan = ["--quant_scheme", "fp8", "--kv_cache_dtype", "fp8", "--device", "cpu"]
    return run_script("quantize.py", *places, *plan, *calibration, *EVALUATION)


@pytest.fixture(scope="module")
def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return events_of(done.stdout)


def tensors(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        header: dict[str, Any] = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return header


def test_every_phase_is_told_in_order(
    done: subprocess.CompletedProcess[str], events: list[dict[str, Any]], folder: Path
) -> None:
    assert done.returncode == 0, done.stderr[-3000:]
    assert [event["phase"] for event in events if event["ptq"] == "phase"] == [
        "preparing",
        "loading_model",
        "checking_compatibility",
        "evaluating_original",
        "loading_dataset",
        "replacing_modules",
        "calibrating",
        "freezing",
        "exporting",
        "evaluating",
        "done",
    ]
    last = {event["phase"]: event for event in events if event["ptq"] == "progress"}
    assert {phase: (event["done"], event["total"]) for phase, event in last.items()} == {
        "evaluating_original": (WINDOWS, WINDOWS),
        "calibrating": (3, 3),
        "evaluating": (WINDOWS, WINDOWS),
    }
    assert events[-1] == {"ptq": "done"}
    output = next(event for event in events if event["ptq"] == "output")
    assert output["dir"] == str((folder / "out").resolve())
    assert output["bytes"] == sum(path.stat().st_size for path in (folder / "out").iterdir())


def test_both_perplexities_are_of_the_same_tokens(events: list[dict[str, Any]]) -> None:
    original, quantized = (event for event in events if event["ptq"] == "perplexity")
    assert (original["of"], quantized["of"]) == ("original", "quantized")
    assert original["tokens"] == quantized["tokens"] == WINDOWS * TOKENS
    assert original["dataset"] == quantized["dataset"] == "text.txt"
    assert original["value"] != quantized["value"]
    assert quantized["value"] == pytest.approx(original["value"], rel=0.02)


@pytest.mark.usefixtures("done")
def test_the_checkpoint_holds_what_the_scheme_says(folder: Path) -> None:
    found = tensors(folder / "out" / "model.safetensors")
    layers = [f"model.layers.{index}.{part}" for index in range(2) for part in ("mlp.down_proj", "self_attn.k_proj")]
    for layer in layers:
        assert found[f"{layer}.weight"]["dtype"] == "F8_E4M3"
        assert f"{layer}.weight_scale" in found
        assert f"{layer}.input_scale" in found
        assert (f"{layer}.output_scale" in found) is layer.endswith("k_proj")
    assert found["lm_head.weight"]["dtype"] == found["model.norm.weight"]["dtype"] == "BF16"
    described = json.loads((folder / "out" / "config.json").read_text())["quantization_config"]
    assert described["quant_method"] == "quark"
    assert described["exclude"] == ["lm_head"]


@pytest.mark.usefixtures("done")
def test_the_tokenizer_is_the_model_s_own_to_the_byte(folder: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (folder / "out" / name).read_bytes() == (folder / "model" / name).read_bytes()


@pytest.mark.usefixtures("done")
def test_the_checkpoint_loads_and_runs_in_a_fresh_process(folder: Path) -> None:
    checked = run_script("reload_check.py", "--model_dir", folder / "out", "--device", "cpu")
    assert checked.returncode == 0, checked.stderr[-3000:]
    phase, verdict, end = events_of(checked.stdout)
    assert (phase["phase"], end["ptq"]) == ("reloading", "done")
    assert (verdict["ok"], verdict["logits_finite"], verdict["loader"]) == (True, True, "quark")
    assert (verdict["dtype"], verdict["quantized_modules"]) == ("bfloat16", 14)
    assert verdict["seconds"] > 0


def test_products_on_a_processor_without_bfloat16_are_float32_products_rounded_once() -> None:
    told = subprocess.run([sys.executable, "-c", PRODUCTS], capture_output=True, text=True, timeout=120, check=True)
    assert told.stdout.split() == ["True", "True", "True", "torch.bfloat16", "torch.float32"]
