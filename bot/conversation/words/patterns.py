"""Patterns of layer names as people type them, and the layers that they name by a word."""

from __future__ import annotations

import re

from bot.conversation.words import layer_numbers, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind

_PATTERN = re.compile(r"[A-Za-z0-9_.*?\[\]!^-]{1,200}")
_SOME_LAYER = re.compile(r"lm_head|embed_tokens|[a-z0-9_]+_proj|self_attn|mlp|experts")
# The published picks for LLaMA-style names. Source: AMD Quark's published workflow, on layer_quant_config.
_BY_WORD = {
    "lm head": "lm_head",
    "output head": "lm_head",
    "attention": "*self_attn*",
    "attn": "*self_attn*",
    "attn layers": "*self_attn*",
    "attention layers": "*self_attn*",
    "attention block": "*self_attn*",
    "attention blocks": "*self_attn*",
    "self attention": "*self_attn*",
    "experts": "*experts*",
    "expert layers": "*experts*",
    "mlp": "*mlp*",
    "mlps": "*mlp*",
    "mlp layers": "*mlp*",
    "mlp blocks": "*mlp*",
    "feed forward": "*mlp*",
    "feed_forward": "*mlp*",
    "feed forward layers": "*mlp*",
    "ffn": "*mlp*",
}
_PROJECTION = re.compile(r"[a-z0-9_]+_proj")
_WORDS = PhraseBook(*_BY_WORD)
_AND = PhraseBook(", and", ",", "and", "+", "&")
_OPEN = PhraseBook("[")
_CLOSE = PhraseBook("]")
_FIELDS = PhraseBook(
    *("seq_len", "batch_size", "num_calib_data", "kv_cache", "kv_cache_scheme", "min_kv_scale", "kv_cache_post_rope"),
    *("trust_remote_code", "quark_cli", "quantize_quark", "quantize_quark.py", "entry_point", "model_export"),
    *("layer_quant_config", "exclude_layers", "evaluation_intent", "global_scheme", "output_dir", "attention_dtype"),
    *("data_type", "multi_gpu", "file2file_quantization", "num_eval_data", "evaluation_dataset", "template_file"),
    *("tensor_parallel", "write_algorithm_config", "calibration_dataset", "tensor_parallel_size"),
)


def one(cursor: Cursor, surely: bool = False) -> str | None:
    """One pattern. `surely`: only what can hardly be anything else than the name of layers, since a bare word with an
    underscore may as well be a folder."""
    start = cursor.at
    cursor.skips_article()
    if word := cursor.reads(_WORDS):
        return _BY_WORD[word]
    found = None if cursor.sees(_FIELDS) else _typed(cursor, surely)
    cursor.at = start if found is None else cursor.at + 1
    return found


def several(cursor: Cursor) -> list[str]:
    """Patterns with commas or "and" between them, as many as there are; empty when there is none."""
    start = cursor.at
    opened = cursor.takes(_OPEN)
    found: list[str] = []
    while more := layer_numbers.numbered(cursor) or _just_one(cursor):
        found += more
        behind = cursor.at
        if not cursor.takes(_AND):
            break
    else:
        # The last "and" leads to something else: it is left for that.
        cursor.at = behind if found else start
    if opened and not cursor.takes(_CLOSE):
        cursor.at = start
        return []
    return list(dict.fromkeys(found))


def sure(cursor: Cursor) -> list[str]:
    """The same, when the first of them can hardly be anything else than the name of layers."""
    start = cursor.at
    if not layer_numbers.numbered(cursor) and one(cursor, surely=True) is None:
        return []
    cursor.at = start
    return several(cursor)


def _just_one(cursor: Cursor) -> list[str]:
    found = one(cursor)
    return [] if found is None else [found]


def _typed(cursor: Cursor, surely: bool) -> str | None:
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    text = token.text.strip()
    if token.kind is Kind.WORD:
        text = text.removeprefix("[")
        text = text.removesuffix("]") if "[" not in text else text
    if not _PATTERN.fullmatch(text) or text.startswith("-") or not re.search("[A-Za-z*]", text):
        return None
    if values.looks_like_scheme(token, cursor):
        return None
    if text.lower() == "lm_head":
        return "lm_head"
    if token.kind is Kind.WORD and _PROJECTION.fullmatch(text.lower()):
        return f"*{text.lower()}*"  # it has one of these in every layer, and the bare name would be that of none
    if "*" in text or (_SOME_LAYER.fullmatch(text.rpartition(".")[2]) and ("." in text or "_" in text)):
        return text
    if surely:
        return None
    return text if token.kind is Kind.QUOTED or re.search(r"[_.\[]", text) else None
