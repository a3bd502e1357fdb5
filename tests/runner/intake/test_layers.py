from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.intake.config import parse_config
from runner.intake.headers import Tensor, read_headers
from runner.intake.layers import Linears, find_linears
from runner.intake.linear import Linear, group_linears, matcher, pattern_of
from schemas.artifacts.analysis import LinearGroup
from tests.runner.intake.checkpoints import (
    attention,
    config,
    decoder,
    deepseek_v3,
    gpt2,
    mixtral_8x7b,
    mlp,
    qwen3_8b,
    qwen3_30b_a3b,
)
from tests.runner.intake.engine import CATALOGUE
from tests.tiny_models import MODEL_TYPES, make_tiny_model


def found(
    shapes: Mapping[str, tuple[int, ...]], document: dict[str, Any], exclusions: list[str] | None = None
) -> Linears:
    tensors = [Tensor(name, "BF16", shape, 2, "model.safetensors") for name, shape in shapes.items()]
    template = CATALOGUE.templates.get(document["model_type"])
    defaults = template.exclude_defaults if template else []
    parsed = parse_config(document, Path("config.json"))
    return find_linears(tensors, parsed, defaults if exclusions is None else exclusions)


def total(linears: Linears) -> int:
    return sum(group.count for group in linears.groups)


def group(linears: Linears, pattern: str) -> LinearGroup:
    (only,) = [group for group in linears.groups if group.pattern == pattern]
    return only


def test_qwen3_8b_has_252_layers_and_a_head_that_is_left_out() -> None:
    linears = found(*qwen3_8b())
    assert linears.quantized_by_default == 252
    assert total(linears) == 253
    head = group(linears, "lm_head")
    assert (head.excluded_by_default, head.in_features, head.out_features) == (True, 4096, 151936)
    down = group(linears, "model.layers.*.mlp.down_proj")
    assert (down.count, down.in_features, down.out_features, down.dtype) == (36, 12288, 4096, "BF16")
    assert not linears.provisional
    assert not linears.has_experts
    assert not linears.tied


def test_mixtral_has_896_layers_with_every_expert_apart() -> None:
    linears = found(*mixtral_8x7b())
    assert linears.quantized_by_default == 896
    assert linears.has_experts
    assert linears.provisional, "the modules have other names than the file"
    assert not linears.fused_experts
    assert group(linears, "model.layers.*.block_sparse_moe.experts.*.w1").count == 256
    assert group(linears, "model.layers.*.block_sparse_moe.gate").excluded_by_default


@pytest.mark.parametrize("fused", [False, True])
def test_qwen3_30b_a3b_has_18624_layers_fused_or_not(fused: bool) -> None:
    linears = found(*qwen3_30b_a3b(fused=fused))
    assert linears.quantized_by_default == 18_624
    assert total(linears) == 18_673
    assert (linears.fused_experts, linears.provisional) == (fused, True)
    for name, inputs, outputs in (("gate_proj", 2048, 768), ("up_proj", 2048, 768), ("down_proj", 768, 2048)):
        expert = group(linears, f"model.layers.*.mlp.experts.*.{name}")
        assert (expert.count, expert.in_features, expert.out_features) == (48 * 128, inputs, outputs)


def test_deepseek_v3_has_44727_layers_without_its_predictor() -> None:
    shapes, document = deepseek_v3()
    linears = found(shapes, document)
    assert linears.quantized_by_default == 44_727
    predictor = [shape for name, shape in shapes.items() if name.startswith("model.layers.61.")]
    assert linears.unused_bytes == 2 * len(predictor)
    assert linears.unused_elements > 10**10
    assert linears.missing_layers == ()


def test_an_exclusion_may_name_one_layer() -> None:
    shapes = decoder(64, 100)
    for index in range(62):
        shapes |= dict(attention(f"model.layers.{index}", 64, 64, 64))
    document = config("llama", 62, 64, 100)
    linears = found(shapes, document, ["lm_head", "model.layers.61.*"])
    assert linears.quantized_by_default == 61 * 4
    halves = [group for group in linears.groups if group.pattern == "model.layers.*.self_attn.q_proj"]
    assert [(half.count, half.excluded_by_default) for half in halves] == [(61, False), (1, True)]


def test_tensors_of_an_mtp_head_are_not_loaded() -> None:
    shapes = decoder(64, 100) | dict(mlp("mtp.layers.0.mlp", 64, 128)) | dict(mlp("model.layers.0.mlp", 64, 128))
    assert found(shapes, config("llama", 1, 64, 100)).quantized_by_default == 3


def test_gpt2_has_no_linear_layers() -> None:
    linears = found(*gpt2())
    assert linears.transposed == 48
    assert linears.quantized_by_default == 1, "only the tied head, which no template excludes"
    assert [group.pattern for group in linears.groups] == ["lm_head"]
    assert linears.tied


def test_a_square_matrix_with_a_bias_proves_nothing() -> None:
    shapes = decoder(64, 100) | {"model.layers.0.a.q_proj.weight": (64, 64), "model.layers.0.a.q_proj.bias": (64,)}
    linears = found(shapes, config("llama", 1, 64, 100))
    assert (linears.transposed, linears.quantized_by_default) == (0, 1)


def test_a_tied_head_is_a_layer_of_its_own_to_the_engine() -> None:
    shapes = decoder(64, 100, head=False) | dict(mlp("model.layers.0.mlp", 64, 128))
    tied = found(shapes, config("llama", 1, 64, 100, tie_word_embeddings=True))
    assert (tied.tied, tied.has_head, tied.quantized_by_default) == (True, False, 3)
    head = group(tied, "lm_head")
    assert (head.in_features, head.out_features, head.excluded_by_default) == (64, 100, True)
    assert found(shapes, config("llama", 1, 64, 100)).tied, "no head in the files and no word on it: tied"
    untied = found(shapes, config("llama", 1, 64, 100, tie_word_embeddings=False))
    assert (untied.tied, total(untied)) == (False, 3)


@pytest.mark.parametrize(
    "name",
    [
        "model.embed_tokens",
        "wte",
        "transformer.wpe",
        "model.embed_tokens_per_layer",
        "shared",
        "gpt_neox.embed_in",
        "model.decoder.embed_positions",
        "bert.embeddings.token_type_embeddings",
        "vision_tower.embeddings.position_embedding",
        "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "embed",
        "strange_name",
    ],
)
def test_embeddings_are_no_linear_layers(name: str) -> None:
    shape = (100, 64) if name == "strange_name" else (512, 64)
    assert total(found({f"{name}.weight": shape}, config("llama", 1, 64, 100, tie_word_embeddings=False))) == 0


@pytest.mark.parametrize(
    "name",
    [
        "lm_head",
        "transformer.output_layer",
        "embed_out",
        "model.embed_vision.embedding_projection",
        "model.layers.0.mlp.shared_experts.up_proj",
        "model.layers.0.mlp.shared_expert_gate",
        "model.layers.0.embedder.fc1",
    ],
)
def test_layers_with_a_misleading_name_are_linear(name: str) -> None:
    assert total(found({f"{name}.weight": (100, 64)}, config("llama", 1, 64, 100))) == 1


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("model.layers.0.q_norm.weight", (8, 64)),
        ("model.layers.0.conv.weight", (64, 1, 4)),
        ("vision.patch_embed.proj.weight", (64, 3, 14, 14)),
        ("model.layers.0.mlp.up_proj.bias", (64, 64)),
        ("model.layers.0.A_log", (64, 16)),
        ("model.norm.weight", (64,)),
        ("model.layers.0.empty.weight", (0, 64)),
        ("model.layers.0.mlp.up_proj.weight_scale", (64, 2)),
    ],
)
def test_other_tensors_are_no_linear_layers(name: str, shape: tuple[int, ...]) -> None:
    assert total(found({name: shape}, config("llama", 1, 64, 100))) == 0


@pytest.mark.parametrize(
    ("gate_up", "down"), [((4, 96, 64), (4, 64, 48)), ((4, 64, 96), (4, 48, 64))], ids=["rows out", "rows in"]
)
def test_the_axis_of_the_hidden_size_tells_inputs_from_outputs(gate_up: tuple[int, ...], down: tuple[int, ...]) -> None:
    shapes = {"model.layers.0.mlp.experts.gate_up_proj": gate_up, "model.layers.0.mlp.experts.down_proj": down}
    linears = found(shapes, config("llama", 1, 64, 100, num_experts=4))
    assert linears.quantized_by_default == 12
    up = group(linears, "model.layers.*.mlp.experts.*.up_proj")
    back = group(linears, "model.layers.*.mlp.experts.*.down_proj")
    assert (up.in_features, up.out_features, back.in_features, back.out_features) == (64, 48, 48, 64)


def test_a_fused_expert_with_a_bias_stays_one_layer() -> None:
    shapes = {
        "model.layers.0.mlp.experts.gate_up_proj": (4, 64, 96),
        "model.layers.0.mlp.experts.gate_up_proj_bias": (4, 96),
        "model.layers.0.mlp.experts.down_proj": (4, 48, 64),
        "model.layers.0.mlp.router.weight": (4, 64),
    }
    linears = found(shapes, config("gpt_oss", 1, 64, 100, num_local_experts=4))
    assert linears.quantized_by_default == 8
    assert group(linears, "model.layers.*.mlp.experts.*.gate_up_proj").out_features == 96


def test_experts_without_that_word_are_known_by_their_number() -> None:
    shapes = {
        "model.layers.0.block_sparse_moe.input_linear.weight": (4, 96, 64),
        "model.layers.0.block_sparse_moe.output_linear.weight": (4, 64, 48),
    }
    assert found(shapes, config("llama", 1, 64, 100, num_local_experts=4)).quantized_by_default == 12


def test_dbrx_keeps_its_experts_below_each_other() -> None:
    prefix = "transformer.blocks.0.ffn"
    shapes = {f"{prefix}.experts.mlp.{name}": (16 * 32, 64) for name in ("w1", "v1", "w2")}
    shapes[f"{prefix}.router.layer.weight"] = (16, 64)
    linears = found(shapes, config("dbrx", 1, 64, 100, ffn_config={"moe_num_experts": 16}))
    assert linears.quantized_by_default == 48
    assert linears.fused_experts
    w2 = group(linears, "transformer.blocks.*.ffn.experts.mlp.*.w2")
    assert (w2.in_features, w2.out_features) == (32, 64)
    assert group(linears, "transformer.blocks.*.ffn.router.layer").excluded_by_default


def test_missing_layers_are_named() -> None:
    shapes = decoder(64, 100)
    for index in (0, 2, 3):
        shapes |= dict(mlp(f"model.layers.{index}.mlp", 64, 128))
    assert found(shapes, config("llama", 6, 64, 100)).missing_layers == (1, 4, 5)
    assert found(shapes, config("llama", 10**9, 64, 100)).missing_layers == (1, 4, 5, 6, 7)
    towers = decoder(64, 100) | dict(mlp("vision_tower.encoder.layers.7.mlp", 64, 128))
    assert found(towers, config("llama", 2, 64, 100)).missing_layers == ()


@pytest.mark.parametrize(
    "name", ["x.qweight", "x.weight_scale", "x.weight_scale_inv", "x.weight_packed", "x.experts.gate_up_proj_blocks"]
)
def test_tensors_of_a_quantized_input_are_noticed(name: str) -> None:
    assert found({name: (4, 4)}, config("llama", 1, 64, 100)).quantized_tensors
    assert not found({"x.weight": (4, 4)}, config("llama", 1, 64, 100)).quantized_tensors


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_each_tiny_family(tmp_path: Path, model_type: str) -> None:
    folder = make_tiny_model(tmp_path, model_type, layers=3, experts=4)
    document = {"model_type": model_type, "num_hidden_layers": 3, "hidden_size": 128, "vocab_size": 320}
    parsed = parse_config(document | {"num_experts": 4}, folder / "config.json")
    linears = find_linears(read_headers(folder).tensors, parsed, CATALOGUE.templates[model_type].exclude_defaults)
    per_layer = {"phi3": 4, "mixtral": 4 + 3 * 4, "qwen3_moe": 4 + 3 * 4}.get(model_type, 7)
    assert linears.quantized_by_default == 3 * per_layer


def test_numbers_are_whole_parts_of_a_name() -> None:
    assert pattern_of("model.layers.10.mlp.experts.3.w1") == "model.layers.*.mlp.experts.*.w1"
    assert pattern_of("h.0.c_attn2.fc1") == "h.*.c_attn2.fc1"
    assert pattern_of("0.weight.1") == "*.weight.*"


def test_a_pattern_without_a_wildcard_is_the_whole_name() -> None:
    assert not matcher(["down_proj"])("model.layers.0.mlp.down_proj")
    assert matcher(["*down_proj"])("model.layers.0.mlp.down_proj")
    assert matcher(["lm_head"])("lm_head")
    assert not matcher(["lm_head"])("model.lm_head")
    assert not matcher([])("lm_head")


names = st.text(st.sampled_from("ab.*?[]!0-_\n"), max_size=8)


@given(st.lists(names, max_size=4), names)
def test_matching_is_that_of_fnmatch(patterns: list[str], name: str) -> None:
    assert matcher(patterns)(name) == any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


@given(
    st.lists(
        st.builds(Linear, st.text(st.sampled_from("ab*.01"), max_size=6), *[st.integers(1, 2)] * 2, st.just("F32")),
        unique_by=lambda linear: linear.name.replace("*", "?"),
    )
)
def test_grouping_loses_no_layer(linears: list[Linear]) -> None:
    groups = group_linears(linears, ["a*"])
    assert sum(group.count for group in groups) == len(linears)
    assert sum(group.count for group in groups if group.excluded_by_default) == sum(
        linear.name.startswith("a") for linear in linears
    )
