"""A config.json of another model is told before a run fails with it, and no model that loads is suspected."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.intake.config import parse_config
from runner.intake.headers import Tensor
from runner.intake.shapes import contradiction
from tests.published_models import PUBLISHED, modules_of, write_published
from tests.runner.intake import checkpoints
from tests.runner.intake.checkpoints import write_checkpoint
from tests.runner.intake.test_exact import analysed, changed, risk
from tests.tiny_models import MODEL_TYPES, make_tiny_model


def edited(folder: Path, **values: Any) -> Path:
    """The model with another config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, "BF16", shape, 0, "model.safetensors")


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("tied", [False, True])
def test_another_width_than_that_of_the_weights_is_told(tmp_path: Path, model_type: str, tied: bool) -> None:
    folder = make_tiny_model(tmp_path / "m", model_type, tied=tied)
    assert risk(analysed(folder, None), "shapes_differ") is None
    analysis = analysed(edited(folder, hidden_size=256), None)
    found = risk(analysis, "shapes_differ")
    assert found is not None
    assert found.severity == "high"
    assert "model.embed_tokens.weight is 320 x 128 in the weight files" in found.message
    assert "256 wide" in found.message
    assert analysis.compatibility.status == "unsupported"
    assert "model.embed_tokens.weight" in analysis.compatibility.message


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_are_of_their_own_config(tmp_path: Path, name: str) -> None:
    for document in (None, modules_of(name)):
        analysis = analysed(write_published(tmp_path / str(document is None), name), document)
        assert risk(analysis, "shapes_differ") is None
        assert analysis.compatibility.status != "unsupported"


@pytest.mark.parametrize("make", [checkpoints.mixtral_8x7b, checkpoints.gpt2, checkpoints.qwen3_30b_a3b])
def test_other_layouts_of_files_are_no_contradiction(tmp_path: Path, make: Callable[[], Any]) -> None:
    assert risk(analysed(write_checkpoint(tmp_path / "m", *make()), None), "shapes_differ") is None


def of_group(pattern: str, **values: Any) -> Callable[[dict[str, Any]], object]:
    """An edit of one group of the engine's layers."""

    def edit(document: dict[str, Any]) -> None:
        (group,) = (group for group in document["linears"] if group["pattern"] == pattern)
        group.update(values)

    return edit


def test_a_layer_of_another_size_to_the_engine_is_told_with_both_shapes(tmp_path: Path) -> None:
    document = changed("Qwen3-8B", of_group("model.layers.*.mlp.down_proj", in_features=8192))
    analysis = analysed(write_published(tmp_path / "m", "Qwen3-8B"), document)
    found = risk(analysis, "shapes_differ")
    assert found is not None
    assert "model.layers.0.mlp.down_proj.weight is 4096 x 12288 in the weight files" in found.message
    assert "has to be 4096 x 8192" in found.message
    assert analysis.compatibility.status == "unsupported"


def test_one_layer_of_several_sizes_is_compared_by_its_own_number(tmp_path: Path) -> None:
    def one_smaller(document: dict[str, Any]) -> None:
        (group,) = (g for g in document["linears"] if g["pattern"] == "model.layers.*.mlp.down_proj")
        other = copy.deepcopy(group)
        group.update(numbers=["0-34"], count=35)
        other.update(numbers=["35"], count=1, in_features=8192)
        document["linears"].append(other)

    found = risk(
        analysed(write_published(tmp_path / "m", "Qwen3-8B"), changed("Qwen3-8B", one_smaller)), "shapes_differ"
    )
    assert found is not None
    assert "model.layers.35.mlp.down_proj.weight" in found.message


@pytest.mark.parametrize(
    ("pattern", "values"),
    [
        ("lm_head", {"out_features": 151_900}),  # a table of tokens may be padded
        ("model.layers.*.mlp.down_proj", {"in_features": 4096, "out_features": 12_288}),  # transposed while loading
    ],
)
def test_what_loading_may_change_is_no_contradiction(tmp_path: Path, pattern: str, values: dict[str, int]) -> None:
    document = changed("Qwen3-8B", of_group(pattern, **values))
    assert risk(analysed(write_published(tmp_path / "m", "Qwen3-8B"), document), "shapes_differ") is None


@pytest.mark.parametrize(
    "values",
    [
        {"vocab_size": 300},
        {"hidden_size": 256, "quantization_config": {"quant_method": "fp8"}},
        {"hidden_size": 256, "vision_config": {}},
        {"hidden_size": 256, "model_type": "own_family", "auto_map": {"AutoModelForCausalLM": "own.OwnModel"}},
    ],
)
def test_what_is_not_certain_is_not_told(tmp_path: Path, values: dict[str, Any]) -> None:
    folder = edited(make_tiny_model(tmp_path / "m"), **values)
    assert risk(analysed(folder, None), "shapes_differ") is None


def test_narrow_embeddings_are_no_contradiction() -> None:
    config = parse_config({"model_type": "opt", "hidden_size": 1024}, "config.json")
    tensors = [tensor("model.decoder.embed_tokens.weight", 50_272, 512)]
    assert contradiction(tensors, [], config, None) is not None
    for norm in (1024, 768):
        last = tensor("model.decoder.final_layer_norm.weight", norm)
        assert contradiction([*tensors, last], [], config, None) is None
