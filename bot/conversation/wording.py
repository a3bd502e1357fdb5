"""What was asked for or changed, in words: "scheme int4_wo_32, calibration: 256 samples"."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from bot.conversation.request import Changes, Exclusions, Request

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
    "write_algorithm_config": "written algorithm configuration",
    "attention_dtype": "attention math",
    "data_type": "data type",
    "multi_gpu": "several GPUs",
    "file2file_quantization": "file to file",
    "num_eval_data": "evaluation samples",
    "evaluation_dataset": "evaluation dataset",
    "tasks": "evaluation tasks",
    "template_file": "template file",
    "tensor_parallel": "tensor parallel",
}
"""Fields whose name for people is another than for programs."""

_MOST, _LONGEST = 12, 300  # items of a list, characters of a value


def changes_in_words(changes: Changes) -> str:
    """All changes in one line; empty when nothing is changed."""
    told = [_named(name, value) for name, value in changes.flat().items() if name not in changes.relative]
    told += _exclusions(changes.exclusions)
    told += [_layer_scheme(pattern, name) for pattern, name in changes.layer_schemes.items()]
    told += [f"{name} added" for name in changes.with_algorithms]
    told += [f"{name} left out" for name in changes.without_algorithms]
    return ", ".join(told)


def request_in_words(request: Request) -> str:
    """What was asked for so far beside the model, in one line; empty when only the model was named."""
    told = [_named(name, value) for name, value in request.choices.items()]
    return ", ".join([*told, *_exclusions(request.exclusions)])


def value_in_words(value: JsonValue, at_most: int = _MOST) -> str:
    """A value: lists and pairs in one line, null as "none"."""
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
            return shortened(" ".join(str(value).split()), _LONGEST)


def some(items: Iterable[str], at_most: int) -> str:
    """The first few, and how many more there are."""
    kept = list(items)
    more = f" and {len(kept) - at_most:,} more" if len(kept) > at_most else ""
    return f"{', '.join(kept[:at_most])}{more}"


def shortened(text: str, longest: int) -> str:
    """The text, or its beginning and three dots: `longest` characters at most."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def _named(name: str, value: JsonValue) -> str:
    if name == "runner" and value is None:
        return "any runner"
    if name == "calibration" and isinstance(value, dict):
        return f"calibration: {_calibration(value) or 'as usual'}"
    if name == "exclude_layers" and value is None:
        return "excluded layers: the engine's defaults"
    return f"{NAMES.get(name, name)} {value_in_words(value)}"


def _exclusions(relative: Exclusions) -> list[str]:
    told = [f"also excluded: {some(relative.add, _MOST)}"] if relative.add else []
    return [*told, f"no longer excluded: {some(relative.drop, _MOST)}"] if relative.drop else told


def _layer_scheme(pattern: str, name: str | None) -> str:
    return f"{pattern} = {name}" if name else f"no scheme of its own for {pattern}"


def _calibration(said: dict[str, JsonValue]) -> str:
    """Only what was said: "4 samples of 32 tokens from text.txt", "samples of 32 tokens", "in batches of 2"."""
    samples, tokens, dataset, batch = (
        value_in_words(said[name]) if said.get(name) is not None else ""
        for name in ("num_calib_data", "seq_len", "dataset", "batch_size")
    )
    some_samples = f"{samples} sample{'' if samples == '1' else 's'}".strip()
    told = [some_samples] if samples or tokens else []
    told += [f"of {tokens} token{'' if tokens == '1' else 's'}"] if tokens else []
    told += [f"from {dataset}"] if dataset else []
    return " ".join([*told, f"in batches of {batch}"] if batch else told)
