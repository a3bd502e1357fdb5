"""Predicted bytes against what exports of amd-quark 0.13 took, and what follows from them for the disk."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.planning import HostView, make_plan
from runner.planning.estimates import DATASET_BYTES
from runner.planning.plan import derived
from schemas.artifacts.analysis import FileFact, ModelAnalysis
from schemas.artifacts.plan import AlgorithmConfig, PlanChoices, QuantPlan
from tests.fixtures_folder import fixture
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import BOTH, CPU, MI300X, but
from tests.runner.planning.models import analysis_of, decoder, llama, matrix_models, qwen3_8b

ATTENTION = [f"self_attn.{name}_proj" for name in "kvqo"]
DENSE = [*ATTENTION, "mlp.up_proj", "mlp.gate_proj", "mlp.down_proj"]


def hessian(modules: list[str]) -> dict[str, Any]:
    """The part of the engine's configuration that says which layers of a decoder layer are worked on."""
    return {"inside_layer_modules": modules, "model_decoder_layers": "model.layers"}


BUILT_IN = {
    "llama": dict.fromkeys(("gptq", "gptaq", "qronos"), hessian(DENSE)),
    "gemma3_text": {"gptq": hessian(DENSE)},
    "mixtral": dict.fromkeys(("gptq", "gptaq", "qronos"), hessian(ATTENTION)),
    "deepseek_v3": dict.fromkeys(
        ("gptq", "gptaq"), hessian([*DENSE[4:], *(f"mlp.experts.*.{name.removeprefix('mlp.')}" for name in DENSE[4:])])
    ),
}
HOST = but(CPU, entry_points=BOTH, algorithm_configs=BUILT_IN)


def plan_of(row: dict[str, str], analysis: ModelAnalysis, host: HostView = HOST) -> QuantPlan:
    """The plan of a recorded row. Algorithms from elsewhere come with the configuration of that family."""
    extra: dict[str, Any] = json.loads(row["extra"]) if row["extra"] else {}
    names = {"layer_config": "layer_quant_config", "attention_scheme": "attention_dtype"}
    family = extra.pop("algo_from", None)
    choices = PlanChoices(
        global_scheme=row["scheme"],
        algorithm=row["algo"].replace("+", ",") or None,
        kv_cache_scheme=row["kv"] or None,
        evaluation_intent="none",
        entry_point="quantize_quark",
        **{names.get(name, name): value for name, value in extra.items()},
    )
    plan = make_plan(analysis, choices, recorded(), host)
    if family is None:
        return plan
    files = [
        AlgorithmConfig(algorithm=name, derived_from=family, content=BUILT_IN[family][name], sha256="0" * 64)
        for name in plan.algorithms
        if name in BUILT_IN[family]
    ]
    known = but(
        host, algorithm_configs={**BUILT_IN, analysis.model.model_type: {f.algorithm: f.content for f in files}}
    )
    return derived(plan, analysis, recorded(), known)


def exported() -> Iterator[dict[str, str]]:
    """Every recorded row that was exported."""
    with fixture("quark", "matrix.csv").open(encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row["output_bytes"])


def test_every_recorded_export_has_its_size_within_one_percent() -> None:
    models, off, seen = matrix_models(), {}, 0
    for row in exported():
        analysis, seen = models[row["model"]], seen + 1
        size = plan_of(row, analysis).estimates.output_bytes
        error = size / int(row["output_bytes"]) - 1 if size else float("nan")
        if not abs(error) < 0.01:
            off[" ".join(row[name] for name in ("model", "scheme", "algo", "kv", "extra"))] = error
    assert seen > 200
    assert off == {}


def test_an_algorithm_that_works_on_attention_leaves_the_scales_of_experts_narrow() -> None:
    """Recorded: mixtral, uint4_wo_32 with qronos, 1,581,464 bytes; every layer with wide scales would be 3 % more."""
    analysis = matrix_models()["mixtral"]
    row = {"scheme": "uint4_wo_32", "algo": "qronos", "kv": "", "extra": ""}
    known = plan_of(row, analysis).estimates.output_bytes
    unknown = plan_of(row, analysis, but(HOST, algorithm_configs={})).estimates.output_bytes
    assert known is not None
    assert unknown is not None
    assert known == pytest.approx(1_581_464, rel=0.005)
    assert unknown > known * 1.03


SMOLLM2 = {"fp8": 166_466_078, "int4_wo_64": 117_529_907, "mxfp6_e2m3": 143_218_217, "nvfp4": 120_039_785}
"""Bytes of SmolLM2-135M-Instruct as amd-quark 0.13 wrote it; `python -m tests.bench.sizes` does it again."""


def smollm2() -> ModelAnalysis:
    """SmolLM2-135M-Instruct: 30 layers, its head tied to the embedding, and the files beside its weights."""
    beside = {"tokenizer.json": 3_523_225, "tokenizer_config.json": 492, "chat_template.jinja": 368}
    beside |= {"config.json": 818, "generation_config.json": 216}
    return analysis_of(
        "llama",
        decoder(hidden=576, intermediate=1536, layers=30, kv=192),
        source_bytes=269_030_016,
        files=[FileFact(name=name, size_bytes=size) for name, size in beside.items()],
        hidden_layers=30,
        hidden_size=576,
        vocab_size=49152,
        tied_embeddings=True,
    )


@pytest.mark.parametrize("scheme", SMOLLM2)
def test_a_real_model_has_its_size_within_half_a_percent(scheme: str) -> None:
    plan = make_plan(smollm2(), PlanChoices(global_scheme=scheme, kv_cache_scheme=None), recorded(), CPU)
    assert plan.estimates.output_bytes == pytest.approx(SMOLLM2[scheme], rel=0.005)


def test_weights_that_are_loaded_as_float32_stay_so_where_they_are_not_quantized() -> None:
    analysis = qwen3_8b()
    linear = sum(group.count * group.in_features * group.out_features for group in _quantized(analysis))
    narrow, wide = (_size(analysis, data_type=data_type) for data_type in ("bfloat16", "float32"))
    assert wide - narrow == pytest.approx(2 * (analysis.size.parameters - linear), rel=0.001)


@pytest.mark.parametrize("export", ["onnx", "gguf"])
def test_sizes_of_other_formats_are_not_known(export: str) -> None:
    estimates = _plan(qwen3_8b(), MI300X, model_export=export).estimates
    assert (estimates.output_bytes, estimates.disk_bytes_needed) == (None, None)


def test_quantized_attention_and_keys_and_values_add_their_scales() -> None:
    """Recorded for a tiny qwen3 of two layers: 1,350,744 bytes alone, +432 with attention, +440 more with the cache."""
    alone, attention = _size(llama()), _size(llama(), attention_dtype="fp8")
    both = _size(llama(), attention_dtype="fp8", kv_cache_scheme="fp8")
    assert attention - alone == pytest.approx(432, abs=20)
    assert both - attention == pytest.approx(440, abs=20)


HUB = {"model_path": "Qwen/Qwen3-8B", "source": "huggingface_id", "revision": "a" * 40, "downloaded": False}


def test_what_is_still_on_the_hub_is_fetched_without_weights_of_other_formats() -> None:
    names = {"model.safetensors": 16_381_470_720, "config.json": 728, "pytorch_model.bin": 16_381_500_000}
    files = [FileFact(name=name, size_bytes=size) for name, size in names.items()]
    estimates = _plan(qwen3_8b(files=files, **HUB), but(MI300X, offline=False)).estimates
    assert estimates.download_bytes == 16_381_470_720 + 728
    assert _plan(qwen3_8b(files=files), MI300X).estimates.download_bytes == 0


@pytest.mark.parametrize(
    ("host", "intent", "expected"),
    [
        (but(MI300X, offline=True, datasets=[]), "smoke", 0),
        (but(MI300X, offline=False, datasets=["pileval", "wikitext"]), "smoke", 0),
        (but(MI300X, offline=False, datasets=["wikitext"]), "smoke", DATASET_BYTES["pileval"]),
        (but(MI300X, offline=False, datasets=["pileval"]), "smoke", DATASET_BYTES["wikitext"]),
        (but(MI300X, offline=False, datasets=["pileval"]), "none", 0),
    ],
    ids=["hub off", "mirrored", "calibration", "evaluation", "no evaluation"],
)
def test_datasets_that_the_mirror_lacks_are_fetched(host: HostView, intent: str, expected: int) -> None:
    choices = {"evaluation_intent": intent, "calibration": {"dataset": "pileval"}}
    assert _plan(qwen3_8b(), host, **choices).estimates.dataset_bytes == expected


def test_the_disk_holds_output_download_and_datasets() -> None:
    found = _plan(
        qwen3_8b(**HUB), but(MI300X, offline=False, datasets=[]), calibration={"dataset": "pileval"}
    ).estimates
    assert found.output_bytes is not None
    assert found.download_bytes == 16_381_470_720
    assert found.dataset_bytes == DATASET_BYTES["pileval"] + DATASET_BYTES["wikitext"]
    together = found.output_bytes * 1.05 + found.download_bytes + found.dataset_bytes
    assert found.disk_bytes_needed == pytest.approx(together, abs=1)


@settings(deadline=None)
@given(
    scheme=st.sampled_from(sorted(recorded().schemes)),
    layers=st.integers(1, 60),
    hidden=st.sampled_from([96, 100, 128, 576, 4096]),
)
def test_more_layers_never_take_fewer_bytes(scheme: str, layers: int, hidden: int) -> None:
    few, more = (
        _size(
            analysis_of("llama", decoder(hidden, 2 * hidden, layers=count, kv=64), source_bytes=_bytes(hidden, count)),
            global_scheme=scheme,
        )
        for count in (layers, layers + 1)
    )
    assert 0 < few < more


def _bytes(hidden: int, layers: int) -> int:
    return 2 * (1000 * hidden + layers * (2 * hidden * hidden + 2 * 64 * hidden + 6 * hidden * hidden))


def _plan(analysis: ModelAnalysis, host: HostView, **choices: Any) -> QuantPlan:
    asked = {"global_scheme": "fp8", "kv_cache_scheme": None, **choices}
    return make_plan(analysis, PlanChoices(**asked), with_gpu_torch(), host)


def _size(analysis: ModelAnalysis, **choices: Any) -> int:
    size = _plan(analysis, MI300X, **choices).estimates.output_bytes
    assert size is not None
    return size


def _quantized(analysis: ModelAnalysis) -> list[Any]:
    return [group for group in analysis.quantization_targets.groups if not group.excluded_by_default]
