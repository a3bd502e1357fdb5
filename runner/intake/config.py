"""What config.json and the tokenizer's files say of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.errors import NotHere, Refused
from runner.intake.listing import Listing
from runner.intake.source import Source, as_source, read_object_of

LONGEST_CONFIG = 16_000_000
LONGEST_TOKENIZER_CONFIG = 64_000_000
_MODEL_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")
_LARGEST = 10**9

# Families nest the language model's configuration under these names.
_TEXT = ("text_config", "llm_config", "language_config", "thinker_config")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
_VOCABULARY = ("vocab_size", "padded_vocab_size")
_POSITIONS = ("max_position_embeddings", "n_positions")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
_MODALITIES = ("vision", "audio", "image", "video")

WITH_CODE = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
    "vocab.txt",
)


@dataclass(frozen=True)
class ModelConfig:
    """config.json, read and checked. A number is None where the file does not tell it."""

    model_type: str
    architectures: tuple[str, ...]
    transformers_version: str
    hidden_layers: int | None
    hidden_size: int | None
    vocab_size: int | None
    experts: int | None
    ties_embeddings: bool | None
    modalities: tuple[str, ...]
    quantized_by: str | None
    max_positions: int | None = None


def read_config(model: Source | Path) -> ModelConfig:
    """Read config.json.

    Codes: config_missing, config_broken (not JSON, or not an object), model_type_missing, config_value_wrong.
    """
    source = as_source(model)
    try:
        document = read_object_of(source, "config.json", LONGEST_CONFIG, "config_broken")
    except NotHere:
        raise NotHere(
            "config_missing",
            f"{source.label()} has no config.json, so it is no model.",
            source.advice or "Name the folder that holds config.json, the weights and the tokenizer.",
        ) from None
    return parse_config(document, source.label("config.json"))


def parse_config(document: Mapping[str, Any], path: Path | str) -> ModelConfig:
    """The facts in the content of config.json. `path` is for messages."""
    levels = tuple(_levels(document))
    return ModelConfig(
        model_type=_model_type(document, path),
        architectures=_architectures(document, path),
        transformers_version=_text(document, "transformers_version", path) or "",
        hidden_layers=_count(levels, _LAYERS, path),
        hidden_size=_count(levels, _HIDDEN, path),
        vocab_size=_count(levels, _VOCABULARY, path),
        experts=_count((*levels, *_parts(levels, "ffn_config")), _EXPERTS, path, least=0) or None,
        ties_embeddings=_flag(levels, "tie_word_embeddings", path),
        modalities=tuple(
            name for name in _MODALITIES if any(isinstance(part.get(f"{name}_config"), dict) for part in levels)
        ),
        quantized_by=_quantized_by(levels),
        max_positions=_positions(levels),
    )


def remote_code(model: Source | Path) -> list[str]:
    """Where the model's own files name code that loading would run, as `file: class -> module`.

    A tokenizer brings code of its own as well, so config.json alone would not do.
    """
    source, found = as_source(model), list[str]()
    for name in WITH_CODE:
        if name not in source.listing.files:
            continue
        limit = LONGEST_CONFIG if name == "config.json" else LONGEST_TOKENIZER_CONFIG
        document = read_object_of(source, name, limit, "config_broken")
        parts = [document, *(part for key in _TEXT if isinstance(part := document.get(key), dict))]
        found += [f"{name}: {entry}" for part in parts for entry in _code(part.get("auto_map"))]
    return found


def has_tokenizer(listing: Listing, code: list[str]) -> bool:
    """Whether a tokenizer can be loaded: from its files, or by the model's own code."""
    names = set(listing.files)
    return (
        any(name in names for name in _TOKENIZERS)
        or {"vocab.json", "merges.txt"} <= names
        or any(name.endswith((".tiktoken", "tiktoken.model")) for name in names)
        or any(entry.startswith("tokenizer_config.json: ") for entry in code)
    )


def _levels(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The configuration and the language model's inside it, outermost first."""
    yield document
    for name in _TEXT:
        if isinstance(inner := document.get(name), dict):
            yield from _levels(inner)


def _parts(levels: tuple[Mapping[str, Any], ...], name: str) -> Iterator[Mapping[str, Any]]:
    for level in levels:
        if isinstance(part := level.get(name), dict):
            yield part


def _model_type(document: Mapping[str, Any], path: Path | str) -> str:
    model_type = document.get("model_type")
    if model_type is None or model_type == "":
        raise Refused(
            "model_type_missing",
            f"{path} does not say which model_type this is.",
            "Add the model_type of the family to config.json, or take the config.json of the original model.",
        )
    if not isinstance(model_type, str) or not _MODEL_TYPE.fullmatch(model_type):
        raise _wrong(path, "model_type", model_type, "a name is needed")
    return model_type


def _architectures(document: Mapping[str, Any], path: Path | str) -> tuple[str, ...]:
    names = document.get("architectures")
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) and _MODEL_TYPE.fullmatch(name) for name in names):
        raise _wrong(path, "architectures", names, "a list of class names is needed")
    return tuple(names[:8])


def _text(document: Mapping[str, Any], key: str, path: Path | str) -> str | None:
    value = document.get(key)
    if value is not None and not (isinstance(value, str) and len(value) <= 100 and value.isprintable()):
        raise _wrong(path, key, value, "a short text is needed")
    return value


def _positions(levels: tuple[Mapping[str, Any], ...]) -> int | None:
    """The longest text that the model was made for. Nothing rests on it, so that odd values are as good as absent."""
    found = (level.get(key) for level in levels for key in _POSITIONS)
    return next((value for value in found if type(value) is int and 0 < value <= _LARGEST), None)


def _count(
    levels: tuple[Mapping[str, Any], ...], keys: tuple[str, ...], path: Path | str, *, least: int = 1
) -> int | None:
    """The first of several spellings of a number, the outermost level first. null is as good as absent."""
    for level in levels:
        for key in keys:
            value = level.get(key)
            if value is None:
                continue
            if isinstance(value, list) and key in _EXPERTS and value and all(type(item) is int for item in value):
                value = max(value)  # one number for each layer
            if type(value) is not int or not least <= value <= _LARGEST:
                raise _wrong(path, key, value, f"a whole number from {least} is needed")
            return value
    return None


def _flag(levels: tuple[Mapping[str, Any], ...], key: str, path: Path | str) -> bool | None:
    for level in levels:
        value = level.get(key)
        if value is not None:
            if not isinstance(value, bool):
                raise _wrong(path, key, value, "true or false is needed")
            return value
    return None


def _quantized_by(levels: tuple[Mapping[str, Any], ...]) -> str | None:
    """The method of an input that is quantized already."""
    for level in levels:
        for key in ("quantization_config", "compression_config"):
            section = level.get(key)
            if not isinstance(section, dict) or not section:
                continue
            method = section.get("quant_method")
            named = isinstance(method, str) and _MODEL_TYPE.fullmatch(method)
            return str(method) if named else "compressed-tensors" if key == "compression_config" else "unknown"
    return None


def _code(auto_map: Any) -> Iterator[str]:
    """`class -> module` for each entry of an auto_map; a list names a slow and a fast tokenizer."""
    if isinstance(auto_map, list | str):
        auto_map = {"AutoTokenizer": auto_map}
    if not isinstance(auto_map, dict):
        return
    for name, target in auto_map.items():
        for module in target if isinstance(target, list) else [target]:
            if isinstance(module, str) and module:
                yield f"{_shown(name)} -> {_shown(module)}"


def _shown(text: str) -> str:
    return text[:200] if text.isprintable() else ascii(text)[:200]


def _wrong(path: Path | str, key: str, value: Any, need: str) -> Refused:
    return Refused(
        "config_value_wrong",
        f"{path} has {key} {ascii(value)[:80]}; {need}.",
        "Take the config.json of the original model.",
    )
