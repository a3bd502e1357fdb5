"""Checkpoints of real size that take no space: true headers, and holes where the weights would be."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Shapes = dict[str, tuple[int, ...]]
_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I32": 4}


def header_of(shapes: Mapping[str, tuple[int, ...]], dtype: str = "BF16") -> tuple[dict[str, Any], int]:
    """A correct header, and the bytes of data that belong to it."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        size = math.prod(shape) * _BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    return header, offset


def write_sparse(path: Path, header: Mapping[str, Any], data_bytes: int) -> None:
    """A safetensors file whose data is a hole."""
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + data_bytes)


def write_checkpoint(
    folder: Path, shapes: Shapes, config: Mapping[str, Any], *, dtype: str = "BF16", shards: int = 1
) -> Path:
    """config.json, a tokenizer and the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(dict(config)))
    (folder / "tokenizer.json").write_text("{}")
    if shards == 1:
        write_sparse(folder / "model.safetensors", *header_of(shapes, dtype))
        return folder
    names = list(shapes)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = names[number::shards]
        write_sparse(folder / file, *header_of({name: shapes[name] for name in part}, dtype))
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def attention(prefix: str, hidden: int, queries: int, keys: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Separate query, key, value and output projections with the norms around them."""
    yield f"{prefix}.self_attn.q_proj.weight", (queries, hidden)
    yield f"{prefix}.self_attn.k_proj.weight", (keys, hidden)
    yield f"{prefix}.self_attn.v_proj.weight", (keys, hidden)
    yield f"{prefix}.self_attn.o_proj.weight", (hidden, queries)
    yield f"{prefix}.input_layernorm.weight", (hidden,)
    yield f"{prefix}.post_attention_layernorm.weight", (hidden,)


def mlp(prefix: str, hidden: int, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Gate, up and down."""
    yield f"{prefix}.gate_proj.weight", (width, hidden)
    yield f"{prefix}.up_proj.weight", (width, hidden)
    yield f"{prefix}.down_proj.weight", (hidden, width)


def decoder(hidden: int, vocab: int, *, head: bool = True) -> Shapes:
    """Embedding, last norm and head of a decoder, without its layers."""
    shapes: Shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    return shapes | ({"lm_head.weight": (vocab, hidden)} if head else {})


def qwen3_8b() -> tuple[Shapes, dict[str, Any]]:
    """36 layers of seven linear layers each."""
    shapes = decoder(4096, 151936)
    for index in range(36):
        prefix = f"model.layers.{index}"
        shapes |= dict(attention(prefix, 4096, 4096, 1024)) | dict(mlp(f"{prefix}.mlp", 4096, 12288))
        shapes |= {f"{prefix}.self_attn.{norm}.weight": (128,) for norm in ("q_norm", "k_norm")}
    return shapes, config("qwen3", 36, 4096, 151936, architectures=["Qwen3ForCausalLM"], tie_word_embeddings=False)


def mixtral_8x7b() -> tuple[Shapes, dict[str, Any]]:
    """The file's names, which are not those of the modules in transformers 5."""
    shapes = decoder(4096, 32000)
    for index in range(32):
        prefix = f"model.layers.{index}"
        shapes |= dict(attention(prefix, 4096, 4096, 1024))
        shapes[f"{prefix}.block_sparse_moe.gate.weight"] = (8, 4096)
        for expert in range(8):
            for name, shape in (("w1", (14336, 4096)), ("w2", (4096, 14336)), ("w3", (14336, 4096))):
                shapes[f"{prefix}.block_sparse_moe.experts.{expert}.{name}.weight"] = shape
    return shapes, config("mixtral", 32, 4096, 32000, num_local_experts=8, tie_word_embeddings=False)


def qwen3_30b_a3b(*, fused: bool = False) -> tuple[Shapes, dict[str, Any]]:
    """128 experts in each of 48 layers, each expert apart or all of a layer in one tensor."""
    shapes = decoder(2048, 151936)
    for index in range(48):
        prefix = f"model.layers.{index}"
        shapes |= dict(attention(prefix, 2048, 4096, 512))
        shapes[f"{prefix}.mlp.gate.weight"] = (128, 2048)
        if fused:
            shapes[f"{prefix}.mlp.experts.gate_up_proj"] = (128, 1536, 2048)
            shapes[f"{prefix}.mlp.experts.down_proj"] = (128, 2048, 768)
            continue
        for expert in range(128):
            shapes |= dict(mlp(f"{prefix}.mlp.experts.{expert}", 2048, 768))
    return shapes, config("qwen3_moe", 48, 2048, 151936, num_experts=128, tie_word_embeddings=False)


def deepseek_v3(layers: int = 61, experts: int = 256) -> tuple[Shapes, dict[str, Any]]:
    """Three dense layers, then experts; one more layer than config.json counts predicts further tokens."""
    hidden = 7168
    shapes = decoder(hidden, 129280)
    for index in range(layers + 1):
        prefix = f"model.layers.{index}"
        for name, shape in (
            ("q_a_proj", (1536, hidden)),
            ("q_b_proj", (24576, 1536)),
            ("kv_a_proj_with_mqa", (576, hidden)),
            ("kv_b_proj", (32768, 512)),
            ("o_proj", (hidden, 16384)),
        ):
            shapes[f"{prefix}.self_attn.{name}.weight"] = shape
        shapes[f"{prefix}.self_attn.q_a_layernorm.weight"] = (1536,)
        if index < 3:
            shapes |= dict(mlp(f"{prefix}.mlp", hidden, 18432))
            continue
        shapes[f"{prefix}.mlp.gate.weight"] = (experts, hidden)
        shapes |= dict(mlp(f"{prefix}.mlp.shared_experts", hidden, 2048))
        for expert in range(experts):
            shapes |= dict(mlp(f"{prefix}.mlp.experts.{expert}", hidden, 2048))
    shapes[f"model.layers.{layers}.eh_proj.weight"] = (hidden, 2 * hidden)
    return shapes, config("deepseek_v3", layers, hidden, 129280, n_routed_experts=experts, tie_word_embeddings=False)


def gpt2() -> tuple[Shapes, dict[str, Any]]:
    """Twelve layers whose matrices are inputs x outputs (Conv1D), and a head that is the embedding."""
    shapes: Shapes = {"wte.weight": (50257, 768), "wpe.weight": (1024, 768), "ln_f.weight": (768,)}
    for index in range(12):
        for name, shape in (
            ("attn.c_attn", (768, 2304)),
            ("attn.c_proj", (768, 768)),
            ("mlp.c_fc", (768, 3072)),
            ("mlp.c_proj", (3072, 768)),
        ):
            shapes[f"h.{index}.{name}.weight"] = shape
            shapes[f"h.{index}.{name}.bias"] = shape[1:]
    return shapes, {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "vocab_size": 50257}


def config(model_type: str, layers: int, hidden: int, vocab: int, **more: Any) -> dict[str, Any]:
    """What config.json says of a decoder."""
    measures = {"num_hidden_layers": layers, "hidden_size": hidden, "vocab_size": vocab}
    return {"model_type": model_type, "transformers_version": "5.10.0", **measures, **more}
