"""An analysis by modules has exactly the engine's layers, with what only the files tell of them."""

from __future__ import annotations

import copy
import runpy
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.host.model_location import ModelLocation
from runner.intake import analyse
from runner.intake.config import parse_config
from runner.intake.exact import disagreement, exact
from runner.intake.headers import Tensor
from runner.intake.layers import Linears, find_linears
from runner.intake.linear import names_of
from runner.intake.modules import ModuleList
from runner.settings import ModelSettings, RunnerSettings
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis, Risk
from schemas.catalog import Catalogue
from tests.published_models import PUBLISHED, modules_of, write_published
from tests.runner.intake.checkpoints import gpt2, write_checkpoint
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.runner.ptq.scripts import SCRIPTS
from tests.tiny_models import make_tiny_model

PROBE: dict[str, Any] = runpy.run_path(str(SCRIPTS / "module_probe.py"))


def analysed(folder: Path, document: dict[str, Any] | None, catalogue: Catalogue = CATALOGUE) -> ModelAnalysis:
    modules = None if document is None else ModuleList.model_validate(document)
    allowed = RunnerSettings(models=ModelSettings(roots=[folder.parent]))
    return analyse(ModelLocation(folder, "local", folder.name), catalogue, FACTS, allowed, modules)


def risk(analysis: ModelAnalysis, code: str) -> Risk | None:
    found = next((risk for risk in analysis.risks if risk.code == code), None)
    assert found is None or (found.message.endswith(".") and found.recovery_hint.endswith("."))
    return found


def changed(name: str, edit: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    document = copy.deepcopy(modules_of(name))
    edit(document)
    return document


def group_of(pattern: str, analysis: ModelAnalysis) -> list[LinearGroup]:
    return [group for group in analysis.quantization_targets.groups if group.pattern == pattern]


@pytest.mark.parametrize(
    ("name", "layers", "quantized", "groups"),
    [
        ("Qwen3-8B", 253, 252, 8),
        ("Mixtral-8x7B", 897, 896, 8),
        ("Qwen3-30B-A3B", 18_673, 18_624, 9),
        ("DeepSeek-V3", 45_033, 44_727, 15),
    ],
)
def test_the_layers_of_published_models(tmp_path: Path, name: str, layers: int, quantized: int, groups: int) -> None:
    analysis = analysed(write_published(tmp_path / "m", name), modules_of(name))
    found = analysis.quantization_targets
    assert (found.method, found.provisional, found.linear_layer_count) == ("modules", False, quantized)
    assert (sum(group.count for group in found.groups), len(found.groups)) == (layers, groups)
    assert all(len(list(names_of(group.pattern, group.numbers))) == group.count for group in found.groups)
    assert {group.dtype for group in found.groups} == {"BF16"}
    assert not any(group.provisional for group in found.groups)
    assert found.norms == modules_of(name)["norms"]
    assert risk(analysis, "provisional_layers") is None
    assert found.has_non_linear_experts is (name != "Qwen3-8B")


@pytest.mark.parametrize("name", ["Qwen3-8B", "Qwen3-30B-A3B", "DeepSeek-V3"])
def test_files_that_name_layers_as_the_engine_does_agree(tmp_path: Path, name: str) -> None:
    folder = write_published(tmp_path / "m", name)
    by_headers, by_modules = analysed(folder, None), analysed(folder, modules_of(name))
    assert risk(by_modules, "modules_differ") is None
    engine = {(g.pattern, tuple(g.numbers)) for g in by_modules.quantization_targets.groups}
    files = {(g.pattern, tuple(g.numbers)) for g in by_headers.quantization_targets.groups}
    assert engine <= files
    assert {pattern.rpartition(".")[2] for pattern, _ in files - engine} <= {"gate"}


def test_other_names_in_the_files_are_told_as_a_low_risk(tmp_path: Path) -> None:
    found = risk(
        analysed(write_published(tmp_path / "m", "Mixtral-8x7B"), modules_of("Mixtral-8x7B")), "modules_differ"
    )
    assert found is not None
    assert found.severity == "low"
    assert "model.layers.*.mlp.experts.*.down_proj" in found.message
    assert "model.layers.*.block_sparse_moe.experts.*.w1" in found.message


def test_another_number_of_layers_is_told(tmp_path: Path) -> None:
    def one_less(document: dict[str, Any]) -> None:
        document["linears"][1] |= {"numbers": ["0-34"], "count": 35}
        document["linear_count"] -= 1

    found = risk(analysed(write_published(tmp_path / "m", "Qwen3-8B"), changed("Qwen3-8B", one_less)), "modules_differ")
    assert found is not None
    assert "the engine has 35 of model.layers.*.mlp.down_proj and the files 36" in found.message


def test_routers_of_a_class_of_their_own_are_never_quantized(tmp_path: Path) -> None:
    analysis = analysed(write_published(tmp_path / "m", "Qwen3-30B-A3B"), modules_of("Qwen3-30B-A3B"))
    (routers,) = group_of("model.layers.*.mlp.gate", analysis)
    assert (routers.count, routers.excluded_by_default, routers.never_quantized) == (48, True, True)
    none_excluded = CATALOGUE.model_copy(
        update={
            "templates": {
                name: template.model_copy(update={"exclude_defaults": []})
                for name, template in CATALOGUE.templates.items()
            }
        }
    )
    analysis = analysed(tmp_path / "m", modules_of("Qwen3-30B-A3B"), none_excluded)
    assert analysis.quantization_targets.linear_layer_count == 18_673 - 48


def test_exclusions_that_name_numbers_divide_groups(tmp_path: Path) -> None:
    template = CATALOGUE.templates["qwen3"].model_copy(update={"exclude_defaults": ["lm_head", "model.layers.7.*"]})
    catalogue = CATALOGUE.model_copy(update={"templates": {"qwen3": template}})
    analysis = analysed(write_published(tmp_path / "m", "Qwen3-8B"), modules_of("Qwen3-8B"), catalogue)
    groups = group_of("model.layers.*.mlp.up_proj", analysis)
    assert [(group.excluded_by_default, group.numbers) for group in groups] == [(False, ["0-6,8-35"]), (True, ["7"])]
    assert analysis.quantization_targets.linear_layer_count == 252 - 7


def test_convolutions_and_experts_that_stay_are_told(tmp_path: Path) -> None:
    def more(document: dict[str, Any]) -> None:
        named = {"numbers": ["0-1"], "count": 2}
        document["convolutions"] = [{"pattern": "vision.*.patch", "class": "Conv2d", "shape": [8, 3, 2, 2], **named}]
        document["kept"] = [{"pattern": "model.*.experts", "class": "OddExperts", "shape": [4, 8, 8], **named}]

    analysis = analysed(write_published(tmp_path / "m", "Qwen3-8B"), changed("Qwen3-8B", more))
    experts, convolutions = risk(analysis, "experts_not_quantized"), risk(analysis, "convolutions_quantized")
    assert experts is not None
    assert convolutions is not None
    assert (experts.severity, convolutions.severity) == ("high", "low")
    assert "OddExperts" in experts.message
    assert "vision.*.patch" in convolutions.message
    excluded = CATALOGUE.templates["qwen3"].model_copy(update={"exclude_defaults": ["lm_head", "vision*"]})
    catalogue = CATALOGUE.model_copy(update={"templates": {"qwen3": excluded}})
    again = analysed(tmp_path / "m", changed("Qwen3-8B", more), catalogue)
    assert risk(again, "convolutions_quantized") is None


def test_a_family_without_a_template_or_without_linear_layers(tmp_path: Path) -> None:
    document = {**modules_of("Qwen3-8B"), "linears": [], "linear_count": 0, "model_type": "gpt2", "prepared": []}
    kept = {"pattern": "transformer.h.*.mlp.c_fc", "numbers": ["0-11"], "count": 12, "shape": [768, 3072]}
    document["kept"] = [{**kept, "class": "Conv1D"}]
    analysis = analysed(write_checkpoint(tmp_path / "m", *gpt2()), document)
    found = analysis.quantization_targets
    assert (analysis.analysis_status, found.method, found.linear_layer_count) == ("partial", "modules", 0)
    transposed = risk(analysis, "no_linear_layers")
    assert transposed is not None
    assert transposed.message.startswith("12 layers")


def test_a_quantized_input_stays_provisional(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", extra_config={"quantization_config": {"quant_method": "fp8"}})
    analysis = analysed(folder, {**modules_of("Qwen3-8B"), "quantized": True})
    assert analysis.quantization_targets.provisional
    assert risk(analysis, "quantized_input") is not None
    assert risk(analysis, "modules_differ") is None


def linears_of(*layers: tuple[str, str]) -> Linears:
    tensors = [Tensor(f"{name}.weight", dtype, (8, 4), 64, "model.safetensors") for name, dtype in layers]
    config = parse_config({"model_type": "llama", "hidden_size": 4, "vocab_size": 100}, "config.json")
    return find_linears(tensors, config, [])


def listed(*names: str) -> ModuleList:
    collected = PROBE["Collected"]()
    for name in names:
        collected.add(name, ("Linear", 4, 8, True))
    groups = [
        {"class": kind, "in_features": inputs, "out_features": outputs, "replaced": replaced, **group}
        for (kind, inputs, outputs, replaced), group in collected.groups()
    ]
    document = {**modules_of("Qwen3-8B"), "linears": groups, "linear_count": len(names)}
    return ModuleList.model_validate(document)


def test_layers_of_another_dtype_stand_apart() -> None:
    layers = [(f"model.layers.{number}.up", "F32" if number == 2 else "BF16") for number in range(4)]
    seen = exact(
        linears_of(*layers),
        listed(*(name for name, _ in layers), "new.0"),
        [],
        main_dtype="F16",
        quantized=False,
    )
    found = {(group.pattern, *group.numbers): group.dtype for group in seen.groups}
    assert found == {
        ("model.layers.*.up", "0-1,3"): "BF16",
        ("model.layers.*.up", "2"): "F32",
        ("new.*", "0"): "F16",
    }


_part = st.one_of(st.sampled_from(["model", "layers", "experts", "up_proj", "x"]), st.integers(0, 5).map(str))
_trees = st.sets(st.lists(_part, min_size=1, max_size=5).map(".".join), min_size=1, max_size=30)


@given(_trees, st.sampled_from([[], ["*up_proj"], ["*.1.*", "model*"]]), st.booleans())
def test_every_tree_is_told_exactly(tree: set[str], exclusions: list[str], mixed: bool) -> None:
    layers = [(name, "F32" if mixed and number % 2 else "BF16") for number, name in enumerate(sorted(tree))]
    seen = exact(linears_of(*layers), listed(*tree), exclusions, main_dtype="BF16", quantized=False)
    names = Counter(name for group in seen.groups for name in names_of(group.pattern, group.numbers))
    assert names == Counter(tree)
    dtypes = {name: group.dtype for group in seen.groups for name in names_of(group.pattern, group.numbers)}
    assert {name: dtypes[name] for name, _ in layers} == dict(layers)
    assert not disagreement(seen.groups, seen.groups)


def test_every_published_model_has_a_configuration_and_a_recorded_list() -> None:
    for name, config in PUBLISHED.items():
        assert modules_of(name)["model_type"] == config["model_type"]
