"""Tiny language models with random weights, written by the standard library alone.

They have the layout of a Hugging Face checkpoint and load offline with transformers, yet making one takes milliseconds
and needs neither torch nor the engine. The weights mean nothing: use them for structure, never for accuracy.
"""

from __future__ import annotations

import json
import math
import random
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "mixtral", "phi3")
SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")
SMALLEST_VOCABULARY = 256 + len(SPECIAL_TOKENS)

_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "phi3": "Phi3ForCausalLM",
}
_DTYPE_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
_DTYPE_BYTES = {"BF16": 2, "F16": 2, "F32": 4}
_WORDS = re.findall(
    r"\w+",
    "the a model layer weight scale of to in with each every small large number group row column value token text is "
    "was are holds keeps reads writes rounds between before after long short first last and or not when then so",
)

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class TinyShape:
    """The sizes of a tiny model. `intermediate` is the width of the MLP, or of one expert."""

    model_type: str
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    experts: int
    tied: bool

    @property
    def head(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads


def make_tiny_model(
    folder: Path | str,
    model_type: str = "llama",
    *,
    hidden: int = 128,
    intermediate: int = 256,
    layers: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    vocab: int = 320,
    experts: int = 4,
    tied: bool = False,
    shards: int = 1,
    dtype: str = "BF16",
    tokenizer: bool = True,
    extra_config: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Path:
    """Write a complete checkpoint with random weights into `folder` and return the folder.

    `model_type` is one of MODEL_TYPES; `dtype` a safetensors name (BF16, F16, F32); `shards` above 1 writes that many
    weight files and an index. The tokenizer is byte-level: one token per UTF-8 byte, so a text has as many tokens as
    bytes and `vocab` must be at least SMALLEST_VOCABULARY. `extra_config` is merged into config.json last.
    The same arguments give the same bytes.
    """
    if model_type not in _ARCHITECTURES:
        raise ValueError(f"There is no tiny {model_type}; take one of {', '.join(MODEL_TYPES)}.")
    if vocab < SMALLEST_VOCABULARY:
        raise ValueError(f"The tokenizer has {SMALLEST_VOCABULARY} tokens; a vocabulary of {vocab} is too small.")
    if hidden % heads or heads % kv_heads:
        raise ValueError(f"{hidden} hidden, {heads} heads and {kv_heads} key-value heads do not divide evenly.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shape = TinyShape(model_type, hidden, intermediate, layers, heads, kv_heads, vocab, experts, tied)
    config = tiny_config(shape, dtype) | dict(extra_config or {})
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "do_sample": False})
    _write_weights(folder, tiny_shapes(shape), dtype, shards, random.Random(seed))
    if tokenizer:
        write_tokenizer(folder)
    return folder


def tiny_config(shape: TinyShape, dtype: str = "BF16") -> dict[str, Any]:
    """What config.json of a tiny model says."""
    config: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[shape.model_type]],
        "model_type": shape.model_type,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "vocab_size": shape.vocab,
        "max_position_embeddings": 2048,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_cache": True,
        "tie_word_embeddings": shape.tied,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": _DTYPE_NAMES[dtype],
    }
    match shape.model_type:
        case "llama":
            config |= {"attention_bias": False, "mlp_bias": False}
        case "mistral":
            config |= {"sliding_window": None}
        case "qwen3_moe":
            config |= {"num_experts": shape.experts, "num_experts_per_tok": 2, "decoder_sparse_step": 1}
            config |= {"moe_intermediate_size": shape.intermediate, "norm_topk_prob": True, "mlp_only_layers": []}
        case "mixtral":
            config |= {"num_local_experts": shape.experts, "num_experts_per_tok": 2, "sliding_window": None}
        case "phi3":
            config |= {"pad_token_id": 0, "sliding_window": None, "original_max_position_embeddings": 2048}
    return config


def tiny_shapes(shape: TinyShape) -> Shapes:
    """Every tensor of the checkpoint and its shape, under the names that the family's *files* use."""
    shapes: Shapes = {"model.embed_tokens.weight": (shape.vocab, shape.hidden)}
    for index in range(shape.layers):
        prefix = f"model.layers.{index}."
        for name, size in (*_attention(shape), *_feed_forward(shape)):
            shapes[prefix + name] = size
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{prefix}{norm}.weight"] = (shape.hidden,)
    shapes["model.norm.weight"] = (shape.hidden,)
    if not shape.tied:
        shapes["lm_head.weight"] = (shape.vocab, shape.hidden)
    return shapes


def _attention(shape: TinyShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    queries, keys = shape.heads * shape.head, shape.kv_heads * shape.head
    if shape.model_type == "phi3":
        yield "self_attn.qkv_proj.weight", (queries + 2 * keys, shape.hidden)
    else:
        for name, rows in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
            yield f"self_attn.{name}.weight", (rows, shape.hidden)
            if shape.model_type == "qwen2":
                yield f"self_attn.{name}.bias", (rows,)
    yield "self_attn.o_proj.weight", (shape.hidden, queries)
    if shape.model_type in {"qwen3", "qwen3_moe"}:
        yield "self_attn.q_norm.weight", (shape.head,)
        yield "self_attn.k_norm.weight", (shape.head,)


def _feed_forward(shape: TinyShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    up, down = (shape.intermediate, shape.hidden), (shape.hidden, shape.intermediate)
    match shape.model_type:
        case "phi3":
            yield "mlp.gate_up_proj.weight", (2 * shape.intermediate, shape.hidden)
            yield "mlp.down_proj.weight", down
        case "mixtral":
            yield "block_sparse_moe.gate.weight", (shape.experts, shape.hidden)
            for expert in range(shape.experts):
                for name, size in (("w1", up), ("w2", down), ("w3", up)):
                    yield f"block_sparse_moe.experts.{expert}.{name}.weight", size
        case "qwen3_moe":
            yield "mlp.gate.weight", (shape.experts, shape.hidden)
            for expert in range(shape.experts):
                for name, size in (("gate_proj", up), ("up_proj", up), ("down_proj", down)):
                    yield f"mlp.experts.{expert}.{name}.weight", size
        case _:
            for name, size in (("gate_proj", up), ("up_proj", up), ("down_proj", down)):
                yield f"mlp.{name}.weight", size


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """Write one safetensors file from name -> (dtype, shape, little-endian bytes)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)  # the format wants the data aligned to 8 bytes
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded)
        for _, _, data in tensors.values():
            file.write(data)


def _write_weights(folder: Path, shapes: Shapes, dtype: str, shards: int, chance: random.Random) -> None:
    tensors = {name: (dtype, shape, _values(name, shape, dtype, chance)) for name, shape in shapes.items()}
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    names = list(tensors)
    width = math.ceil(len(names) / shards)
    weight_map: dict[str, str] = {}
    for number in range(shards):
        part = names[number * width : (number + 1) * width]
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        weight_map |= dict.fromkeys(part, file)
    size = sum(len(data) for _, _, data in tensors.values())
    _write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": weight_map})


def _values(name: str, shape: tuple[int, ...], dtype: str, chance: random.Random) -> bytes:
    """Values of one tensor: norms are 1, biases 0, everything else of size 1/128 to 1/32 with a random sign."""
    count, width = math.prod(shape), _DTYPE_BYTES[dtype]
    if "norm" in name:
        return {"BF16": b"\x80\x3f", "F16": b"\x00\x3c", "F32": b"\x00\x00\x80\x3f"}[dtype] * count
    if name.endswith(".bias"):
        return bytes(width * count)
    data = bytearray(chance.randbytes(width * count))
    # Only the highest byte decides size and sign; the others stay random. All of it in a few calls, hence fast.
    high = (0x20, 0x22, 0xA0, 0xA2) if dtype == "F16" else (0x3C, 0x3C, 0xBC, 0xBC)
    data[width - 1 :: width] = data[width - 1 :: width].translate(bytes(high[byte % 4] for byte in range(256)))
    return bytes(data)


def write_tokenizer(folder: Path) -> None:
    """Write a byte-level tokenizer: one token per UTF-8 byte, special tokens in front, `<s>` before every text."""
    vocabulary = {token: index for index, token in enumerate((*SPECIAL_TOKENS, *_byte_characters()))}
    special = [
        {"id": index, "content": token, "special": True}
        | {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        for index, token in enumerate(SPECIAL_TOKENS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    begin, text = {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [begin, text],
        "pair": [begin, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }
    model: dict[str, Any] = {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": None, "dropout": None}
    model |= {"continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False}
    _write_json(
        folder / "tokenizer.json",
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None}
        | {"pre_tokenizer": byte_level, "post_processor": template, "decoder": byte_level, "model": model},
    )
    names = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>"}
    _write_json(
        folder / "tokenizer_config.json",
        names | {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 2048},
    )
    _write_json(folder / "special_tokens_map.json", names)


def _byte_characters() -> list[str]:
    """The printable stand-in of each byte in byte-level vocabularies (as GPT-2 introduced them), in byte order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def tiny_text(path: Path | str, words: int = 4000, seed: int = 0) -> Path:
    """Write a text of that many words, the same for the same seed, and return its path.

    With the suffix .jsonl each paragraph is one line `{"text": ...}`; otherwise paragraphs are parted by empty lines.
    The tiny tokenizer makes about 5.5 tokens of a word.
    """
    path, chance = Path(path), random.Random(seed)
    chosen = [chance.choice(_WORDS) for _ in range(words)]
    paragraphs = [" ".join(chosen[start : start + 60]).capitalize() + "." for start in range(0, words, 60)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"text": paragraph}) + "\n" for paragraph in paragraphs), encoding="utf-8")
    else:
        path.write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    return path


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
