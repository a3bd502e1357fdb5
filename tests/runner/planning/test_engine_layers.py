"""Which layer gets which scheme, by the engine's own code, against what a plan says of it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.planning import layers, projections
from schemas.artifacts.plan import QuantPlan
from tests.runner.planning.catalogue import recorded
from tests.runner.planning.models import Shape, analysis_of
from tests.runner.planning.test_layers import plan_with
from tests.runner.ptq.scripts import needs_engine

pytestmark = [pytest.mark.quark, needs_engine]

_ENGINE = """
import json, sys
from torch import nn
from quark.torch import LLMTemplate
from quark.torch.quantization.model_transformation import setup_config_per_layer, setup_kv_cache_config

names, cases = json.load(open(sys.argv[1]))
modules = {name: nn.Linear(64, 64) for name in names}
modules["model.embed_tokens"] = nn.Embedding(8, 64)
told = []
for case in cases:
    config = LLMTemplate.get("llama").get_config(scheme="fp8", **case)
    found = {}
    setup_config_per_layer(config, modules, found)
    setup_kv_cache_config(config, modules, found)
    row = {}
    for name, layer in found.items():
        output = layer.output_tensors is not None
        row[name] = [layer.weight.dtype.name if layer.weight is not None else None, output]
    told.append(row)
json.dump(told, open(sys.argv[2], "w"))
"""
_STORED = {"fp8": "fp8_e4m3", "int4_wo_32": "int4", "int8": "int8", None: None}

_LEAVES = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.down_proj")
NAMES = [f"model.layers.{number}.{leaf}" for number in (0, 1, 10) for leaf in _LEAVES] + ["lm_head"]
ANALYSIS = analysis_of("llama", [Shape(name, 1, 64, 64) for name in NAMES], hidden_layers=11)

_OVERRIDES: list[dict[str, str]] = [
    {},
    {"*layers.0.*": "int4_wo_32"},
    {"*self_attn*": "int4_wo_32", "*layers.1.*": "int8"},
    {"model.layers.1.self_attn.k_proj": "int4_wo_32", "*q_proj": "int8"},
    {"*.1*.self_attn.[qk]_proj": "int4_wo_32"},
    {"*layers.?.self_attn.v_proj": "int8", "*mlp*": "int4_wo_32"},
    {"*": "int8", "*k_proj": "int4_wo_32"},
    {"*K_proj": "int8"},
]
_EXCLUSIONS = [
    ["lm_head"],
    ["lm_head", "*k_proj"],
    ["lm_head", "*self_attn*"],
    ["model.layers.0.self_attn.v_proj"],
    ["*layers.[!0]*"],
    ["down_proj"],
]
_EXTRAS: list[dict[str, str]] = [
    {},
    {"kv_cache_scheme": "fp8"},
    {"attention_scheme": "fp8"},
    {"kv_cache_scheme": "fp8", "attention_scheme": "fp8"},
]
CASES = list(itertools.product(_OVERRIDES, _EXCLUSIONS, _EXTRAS))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, tuple[str | None, bool]]]:
    """For every case, what the engine does to each module: the dtype of its weight, and whether outputs have scales."""
    folder: Path = tmp_path_factory.mktemp("layers")
    asked, told = folder / "asked.json", folder / "told.json"
    cases = [
        {"layer_config": dict(layers.in_order(overrides)), "exclude_layers": exclude, **extra}
        for overrides, exclude, extra in CASES
    ]
    asked.write_text(json.dumps([NAMES, cases]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _ENGINE, str(asked), str(told)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(told.read_text(encoding="utf-8"))
    return [{name: (dtype, output) for name, (dtype, output) in case.items()} for case in found]


def test_every_layer_gets_what_the_plan_says(engine: list[dict[str, tuple[str | None, bool]]]) -> None:
    wrong = []
    for (overrides, exclude, extra), told in zip(CASES, engine, strict=True):
        plan = plan_with(
            exclude,
            overrides,
            kv_cache_scheme=extra.get("kv_cache_scheme"),
            attention_dtype=extra.get("attention_scheme"),
        )
        said = _said(plan)
        real = {name: told.get(name, (None, False))[0] for name in NAMES}
        wrong += [
            (overrides, exclude, extra, name, said[name], real[name]) for name in NAMES if said[name] != real[name]
        ]
    assert len(engine) > 150
    assert wrong == []


def test_attention_is_quantized_where_the_plan_says(engine: list[dict[str, tuple[str | None, bool]]]) -> None:
    wrong = []
    for (overrides, exclude, extra), told in zip(CASES, engine, strict=True):
        if "attention_scheme" not in extra:
            continue
        plan = plan_with(exclude, overrides, kv_cache_scheme=extra.get("kv_cache_scheme"), attention_dtype="fp8")
        (found,) = projections.of_attention(plan, ANALYSIS, ["*q_proj"], ["*k_proj", "*v_proj"])
        reached = sum(told.get(name, (None, False))[1] for name in NAMES if name.endswith("q_proj"))
        if found.layers - found.without != reached:
            wrong.append((overrides, exclude, extra, found, reached))
    assert wrong == []


def test_the_embedding_is_reached_by_overrides_alone(engine: list[dict[str, tuple[str | None, bool]]]) -> None:
    for (overrides, _, _), told in zip(CASES, engine, strict=True):
        assert ("model.embed_tokens" in told) == ("*" in overrides)


def _said(plan: QuantPlan) -> dict[str, str | None]:
    """The stored dtype of every layer by what the planner says, with what a KV cache or attention does to it."""
    said = {target.group.pattern: target.scheme for target in layers.targets(plan, ANALYSIS)}
    template = recorded().templates["llama"]
    if plan.kv_cache_scheme:
        for found in projections.of_kv_cache(plan, ANALYSIS, template.kv_layers):
            leaf = found.pattern.strip("*")
            said |= {name: found.gets for name in NAMES if name.endswith(leaf)}
    if plan.attention_dtype:
        named = {*plan.exclude_layers, *plan.layer_quant_config} - {*template.q_layers}
        for found in projections.of_attention(plan, ANALYSIS, template.q_layers, template.kv_layers):
            leaf = found.pattern.strip("*")
            free = [name for name in NAMES if name.endswith(leaf) and not _is_named(name, named)]
            said |= dict.fromkeys(free, found.gets)
    return {name: _STORED[scheme] for name, scheme in said.items()}


def _is_named(name: str, patterns: set[str]) -> bool:
    found = analysis_of("llama", [Shape(name, 1, 64, 64)])
    return any(layers.hits(pattern, found) for pattern in patterns)
