"""What a plan wants of each layer, and what schemes look like in a file."""

from __future__ import annotations

import csv
import json
from collections import Counter

import pytest

from runner.planning import schemes
from runner.planning.layers import targets
from runner.runs.intended import Intended, packed_dtype, packed_sizes, static_input
from schemas.artifacts.analysis import LinearGroup
from schemas.catalog import TensorSpec
from tests import samples
from tests.fixtures_folder import fixture
from tests.runner.runs.exported import Export, analysis_of, catalogue, plan_of

CATALOGUE = catalogue()


def test_every_recorded_export_has_the_dtype_that_its_scheme_implies() -> None:
    """The engine's own exports of all schemes on several families: dtype, size and scales of q_proj."""
    seen: Counter[str] = Counter()
    for row in csv.DictReader(fixture("quark", "matrix.csv").read_text().splitlines()):
        tensors = json.loads(row["example_q_proj_tensors"] or "{}")
        scheme = CATALOGUE.schemes[row["scheme"]]
        spec = schemes.stored(scheme)
        if row["result(ok/error class)"] != "ok" or row["model"].startswith("deepseek") or not tensors or spec is None:
            continue
        dtype, (rows, columns) = tensors["weight"]
        width = int(row["model"].rpartition("_h")[2]) if "_h" in row["model"] else 128
        outputs = 96 if width == 96 else 128
        size = rows * columns * {"I32": 4}.get(dtype, 1)
        assert dtype == packed_dtype(spec), row
        assert size in packed_sizes(spec, outputs, width), row
        assert any(name.startswith("weight_scale") for name in tensors), row
        assert any(name.startswith("input_scale") for name in tensors) == static_input(scheme), row
        seen[scheme.name] += 1
    unexported = {"mx6", "mx9", "bfp16"}
    assert seen.keys() == CATALOGUE.schemes.keys() - unexported


@pytest.mark.parametrize(
    ("dtype", "packed"),
    [
        ("int2", "I32"),
        ("uint4", "I32"),
        ("int8", "I8"),
        ("uint8", "U8"),
        ("fp8_e4m3", "F8_E4M3"),
        ("fp8_e5m2", "F8_E5M2"),
        ("fp6_e3m2", "U8"),
        ("fp4", "U8"),
        ("mx6", None),
        ("fp4x", None),
        ("bfp16", None),
        ("int16", None),
        ("what", None),
    ],
)
def test_packed_dtypes(dtype: str, packed: str | None) -> None:
    assert packed_dtype(TensorSpec(dtype=dtype)) == packed


def test_a_dtype_without_a_number_has_no_size() -> None:
    assert packed_sizes(TensorSpec(dtype="what"), 4, 4) == set()


@pytest.mark.parametrize(
    ("name", "changes", "scheme"),
    [
        ("model.layers.0.mlp.up_proj", {}, "fp8"),
        ("lm_head", {}, None),
        ("lm_head", {"exclude_layers": [], "exclude_layers_changed": True}, "fp8"),
        ("model.layers.1.mlp.up_proj", {"exclude_layers": ["*layers.1.*"], "exclude_layers_changed": True}, None),
        ("model.layers.0.mlp.up_proj", {"exclude_layers": ["*layers.1.*"], "exclude_layers_changed": True}, "fp8"),
        ("model.layers.0.mlp.up_proj", {"exclude_layers": ["up_proj"], "exclude_layers_changed": True}, "fp8"),
        ("model.layers.0.mlp.up_proj", {"layer_quant_config": {"*up_proj": "int8"}}, "int8"),
        ("model.layers.0.mlp.up_proj", {"layer_quant_config": {"*mlp*": "int8", "*.0.mlp.up_proj": "mxfp4"}}, "mxfp4"),
        ("model.layers.1.mlp.up_proj", {"layer_quant_config": {"*mlp*": "int8", "*.0.mlp.up_proj": "mxfp4"}}, "int8"),
        ("lm_head", {"layer_quant_config": {"lm_head": "int8"}}, None),
    ],
)
def test_the_scheme_of_a_layer(name: str, changes: dict[str, object], scheme: str | None) -> None:
    export = Export.recorded("llama-fp8")
    analysis = analysis_of(export)
    plan = plan_of(export, analysis, **changes)
    assert Intended(plan, analysis, CATALOGUE).scheme_name(name) == scheme


def test_layers_by_name_and_planned_targets_agree() -> None:
    """Planning counts by group and verification asks by name: both have to mean the same."""
    export = Export.recorded("qwen3_moe-fp8-kv")
    analysis = analysis_of(export)
    overrides = {"*.1.*experts*": "int8", "*o_proj": "mxfp4", "*.0.self_attn.o_proj": "int4_wo_32"}
    for changes in (
        {},
        {"layer_quant_config": overrides},
        {"exclude_layers": ["*layers.0.*"], "exclude_layers_changed": True},
    ):
        plan = plan_of(export, analysis, **changes)
        intended = Intended(plan, analysis, CATALOGUE)
        planned: Counter[str | None] = Counter()
        for target in targets(plan, analysis):
            planned[target.scheme] += target.count
        names = {name.removesuffix(".weight") for name in export.tensors if name.endswith(".weight")}
        asked = Counter(intended.scheme_name(name) for name in names if intended.groups_of(name))
        assert asked == planned


def test_a_group_excluded_by_default_is_left_alone_under_any_name() -> None:
    """Intake may know a layer by its name in the files, which the engine's own patterns do not match."""
    group = LinearGroup(
        pattern="head.*", count=2, in_features=8, out_features=8, dtype="BF16", excluded_by_default=True
    )
    targets_of = samples.analysis().quantization_targets.model_copy(update={"groups": [group]})
    analysis = samples.analysis(quantization_targets=targets_of)
    assert Intended(samples.plan(), analysis, CATALOGUE).scheme_name("head.1") is None
    changed = samples.plan(exclude_layers_changed=True)
    assert Intended(changed, analysis, CATALOGUE).scheme_name("head.1") == "fp8"


def test_other_modalities_make_every_group_uncertain() -> None:
    found = samples.analysis()
    certain = Intended(samples.plan(), found, CATALOGUE)
    assert not any(map(certain.is_provisional, certain.groups))
    targets_of = found.quantization_targets.model_copy(update={"provisional": True})
    doubtful = Intended(samples.plan(), samples.analysis(quantization_targets=targets_of), CATALOGUE)
    assert all(map(doubtful.is_provisional, doubtful.groups))
