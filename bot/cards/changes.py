"""What was asked for or changed, in words: "scheme int4_wo_32, calibration 256 samples"."""

from __future__ import annotations

from pydantic import JsonValue

from bot.cards.texts import line, some
from bot.conversation.request import Changes, Request

NAMES = {
    "global_scheme": "scheme",
    "kv_cache_scheme": "KV cache",
    "min_kv_scale": "smallest KV scale",
    "kv_cache_post_rope": "KV cache after RoPE",
    "exclude_layers": "excluded layers",
    "layer_quant_config": "layer schemes",
    "evaluation_intent": "evaluation",
    "model_export": "export",
    "entry_point": "entry point",
    "trust_remote_code": "the model's own code",
    "output_dir": "output folder",
}
"""Fields whose name for people is another than for programs."""

_CALIBRATION = {
    "dataset": "{}",
    "num_calib_data": "{} samples",
    "seq_len": "{} tokens each",
    "batch_size": "batch size {}",
}


def changes_in_words(changes: Changes) -> str:
    """All changes in one line; empty when nothing is changed."""
    return ", ".join(_named(name, value) for name, value in changes.flat().items())


def request_in_words(request: Request) -> str:
    """What was asked for so far beside the model, in one line; empty when only the model was named."""
    return ", ".join(_named(name, value) for name, value in request.choices.items())


def value_in_words(value: JsonValue, at_most: int = 12) -> str:
    """A value of a decision: lists and pairs in one line, null as "none"."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return some(map(value_in_words, value), at_most) or "none"
        case dict():
            return some((f"{name} = {value_in_words(item)}" for name, item in value.items()), at_most) or "none"
        case _:
            return line(value)


def _named(name: str, value: JsonValue) -> str:
    if name == "calibration" and isinstance(value, dict):
        told = [_CALIBRATION[key].format(line(item, 120)) for key, item in value.items() if key in _CALIBRATION]
        return f"calibration {' '.join(told) or 'as usual'}"
    return f"{NAMES.get(name, line(name))} {value_in_words(value)}"
