"""Whether the quantization_config of the output tells a server what the plan wants."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from typing import Any

from runner.planning.globs import has_wildcard
from runner.runs import words
from runner.runs.intended import Intended
from runner.runs.judgement import Judgement, broken, doubtful, held
from runner.runs.output import Output
from schemas.artifacts.report import FailureClass
from schemas.catalog import TensorSpec

CONFIG_CHECK, KV_CONFIG = "quantization_config", "KV cache configuration"

_COMPARED = ("dtype", "qscheme", "group_size", "ch_axis", "symmetric", "is_dynamic", "scale_type")
_MOST_PATTERNS, _LONGEST_PATTERN = 500, 300
_NEW_RUN = "Do not serve it: a server would read the weights wrongly. Look in the log at what the export said."


def config_judgements(output: Output, intended: Intended) -> Iterator[Judgement]:
    """All checks of config.json."""
    found = output.config.get("quantization_config") if output.config is not None else None
    if not isinstance(found, Mapping):
        reason = output.config_problem or "config.json has no quantization_config."
        yield broken(CONFIG_CHECK, reason, FailureClass.EXPORT, _NEW_RUN)
        return
    method = found.get("quant_method")
    if method != "quark":
        detail = f"quant_method in config.json is {_shown(method)} and should be 'quark'."
        yield broken(CONFIG_CHECK, detail, FailureClass.EXPORT, _NEW_RUN)
        return
    yield says_what_is_planned(found, output, intended)
    if intended.plan.kv_cache_scheme is not None:
        yield kv_cache_is_told(found, intended)


def says_what_is_planned(found: Mapping[str, Any], output: Output, intended: Intended) -> Judgement:
    """For each layer the configuration gives the specification of the planned scheme.

    The engine rewrites its lists (exclusions become full names, KV cache layers become overrides), so the lists are not
    compared: they are asked, layer by layer, as a server asks them.
    """
    told = Told(found)
    wrong: Counter[str] = Counter()
    asked = 0
    for name, layer in output.layers.items():
        if not (layer.quantized or intended.groups_of(name)):
            continue
        if not layer.quantized and any(map(intended.is_provisional, intended.groups_of(name))):
            continue
        asked += 1
        if problem := _difference(told.layer(name), name, intended):
            wrong[f"{words.pattern(name)} {problem}"] += 1
    if not asked and (problem := _weights_differ(told.everything, intended)):
        wrong[f"every layer {problem}"] += 1
    if wrong:
        return broken(
            CONFIG_CHECK, f"config.json differs from the plan: {words.some(wrong)}.", FailureClass.EXPORT, _NEW_RUN
        )
    version = f" by Quark {_shown(found['version'])}" if isinstance(found.get("version"), str) else ""
    return held(CONFIG_CHECK, f"config.json{version} describes {words.plain(intended.plan.global_scheme)} as planned.")


def kv_cache_is_told(found: Mapping[str, Any], intended: Intended) -> Judgement:
    """The configuration says that the KV cache is quantized, where, and with which least scale."""
    plan = intended.plan
    action = "Plan without a KV cache scheme, or ask the server's documentation which form it needs."
    layers = found.get("kv_cache_quant_config")
    if not isinstance(layers, Mapping) or not layers:
        return broken(KV_CONFIG, "config.json says nothing of a quantized KV cache.", FailureClass.EXPORT, action)
    if bool(found.get("kv_cache_post_rope")) != plan.kv_cache_post_rope:
        planned = "after" if plan.kv_cache_post_rope else "before"
        detail = f"config.json has another place for the KV cache's quantization than the plan, {planned} RoPE."
        return broken(KV_CONFIG, detail, FailureClass.EXPORT, action)
    export = found.get("export")
    told = export.get("min_kv_scale") if isinstance(export, Mapping) else None
    if told is not None and told != (plan.min_kv_scale or 0.0):
        detail = f"min_kv_scale in config.json is {_shown(told)} and should be {plan.min_kv_scale or 0.0:g}."
        return doubtful(KV_CONFIG, detail, "Decide whether that least scale is good enough.")
    return held(KV_CONFIG, f"config.json describes a KV cache in {words.plain(plan.kv_cache_scheme or '')}.")


class Told:
    """A quantization_config, asked by layer name. Whatever its values are, asking never fails and never takes long."""

    def __init__(self, found: Mapping[str, Any]) -> None:
        exclude = found.get("exclude")
        names = [name for name in exclude if isinstance(name, str)] if isinstance(exclude, list) else []
        layers = found.get("layer_quant_config")
        self._layers: Mapping[str, Any] = layers if isinstance(layers, Mapping) else {}
        # Full names by the ten thousand are usual for experts: they are looked up, only patterns are tried in turn.
        self._excluded = set(names)
        self._exclusions = _compiled(name for name in names if has_wildcard(name))
        self._overrides = _compiled(key for key in self._layers if has_wildcard(key))
        self.everything: Any = found.get("global_quant_config")

    def layer(self, name: str) -> Any:
        """The configuration of a layer; None when it is excluded."""
        if name in self._excluded or any(pattern.match(name) for _, pattern in self._exclusions):
            return None
        if name in self._layers:
            return self._layers[name]
        return next((self._layers[key] for key, pattern in self._overrides if pattern.match(name)), self.everything)


def _compiled(patterns: Iterable[str]) -> list[tuple[str, re.Pattern[str]]]:
    """Patterns of `fnmatch`, ready to match: only so many, and none of absurd length, whoever wrote them."""
    return [
        (pattern, re.compile(translate(pattern)))
        for pattern in itertools.islice(patterns, _MOST_PATTERNS)
        if len(pattern) <= _LONGEST_PATTERN
    ]


def _difference(told: Any, name: str, intended: Intended) -> str:
    """How the configuration of a layer differs from the plan; empty when it does not."""
    scheme = intended.scheme(name)
    if scheme is None:
        return "" if told is None else "is quantized in config.json and left alone in the plan"
    if told is None:
        return f"is excluded in config.json and {scheme.name} in the plan"
    if not isinstance(told, Mapping):
        return "has a configuration that cannot be read"
    for part, planned in (("weight", scheme.weight), ("input_tensors", scheme.input)):
        if problem := _stages_differ(told.get(part), planned):
            return f"{part.removesuffix('_tensors')} {problem} ({scheme.name})"
    return ""


def _weights_differ(told: Any, intended: Intended) -> str:
    """The same for the global scheme, for an output without any layer to ask about."""
    scheme = intended.catalogue.schemes.get(intended.plan.global_scheme)
    if scheme is None:
        return ""
    problem = _stages_differ(told.get("weight") if isinstance(told, Mapping) else None, scheme.weight)
    return f"weight {problem} ({scheme.name})" if problem else ""


def _stages_differ(told: Any, planned: list[TensorSpec]) -> str:
    stages = [] if told is None else told if isinstance(told, list) else [told]
    if len(stages) != len(planned):
        return f"has {words.count(len(stages), 'stage')} and should have {len(planned)}"
    for stage, spec in zip(stages, planned, strict=True):
        if not isinstance(stage, Mapping):
            return "has a specification that cannot be read"
        for field in _COMPARED:
            if stage.get(field) != getattr(spec, field):
                return f"{field} is {_shown(stage.get(field))} and should be {_shown(getattr(spec, field))}"
    return ""


def _shown(value: Any) -> str:
    """A value of somebody's JSON in a sentence, however large it is."""
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "an object"
    return words.plain(repr(value) if not isinstance(value, str) else value, 60)
