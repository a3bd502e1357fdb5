"""What would be quantized, as two analyses of one model see it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from bot.conversation.patterns import matches_any
from bot.conversation.request import Request
from bot.conversation.wording import shortened, some
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis

_SHOWN = 3  # patterns or exclusions named in one sentence
_LONGEST = 120  # characters of one of them

_Layers = Counter[tuple[str, int, int]]


def difference(headers: ModelAnalysis, exact: ModelAnalysis, *, all_layers: bool = False) -> str:
    """What the engine's own list says otherwise than the headers of the weights, in a sentence; empty where both name
    the same targets and the same default exclusions.

    Targets are the same when patterns, numbers of layers and widths are. Layers that the engine leaves alone by default
    count only with `all_layers`, as where somebody replaced its exclusions; those that it never quantizes do not count.
    """
    before, after = _layers(headers, all_layers), _layers(exact, all_layers)
    if before.total() != after.total() or _count(headers) != _count(exact):
        return _other_number(headers, exact, before, after)
    old, new = (set(one.quantization_targets.exclude_defaults) for one in (headers, exact))
    if old != new:
        return f"The engine leaves {_listed(new)} alone by default, not {_listed(old)}."
    if before != after:
        return _other_layers(before, after, exact)
    return ""


def lost_patterns(request: Request, headers: ModelAnalysis, exact: ModelAnalysis) -> str:
    """The patterns of a request that matched layers by the names in the headers and match none by the engine's own, in
    a sentence; empty where there are none. Of the engine's default exclusions nobody wrote one."""
    defaults = {*headers.quantization_targets.exclude_defaults, *exact.quantization_targets.exclude_defaults}
    lost = [
        one
        for one in _written(request)
        if one not in defaults and matches_any(one, headers) and not matches_any(one, exact)
    ]
    if not lost:
        return ""
    matches = "match" if len(lost) > 1 else "matches"
    return f"By the engine's names, {_listed(lost)} {matches} nothing now: correct what was asked for."


def _written(request: Request) -> list[str]:
    """The patterns of layers that people wrote: what to leave out, and what to quantize in another way."""
    choices = request.plan_choices
    named = (*(choices.exclude_layers or ()), *request.exclusions.add, *(choices.layer_quant_config or ()))
    return list(dict.fromkeys(named))


def _other_number(headers: ModelAnalysis, exact: ModelAnalysis, before: _Layers, after: _Layers) -> str:
    old, new = _count(headers), _count(exact)
    if old == new:  # only layers that are excluded by default differ
        return _other_layers(before, after, exact)
    fused = headers.quantization_targets.has_non_linear_experts and new > old
    who = "The engine splits the fused experts" if fused else "The engine's own list of layers differs"
    return f"{who}: {new:,} layers would be quantized, not {old:,}."


def _other_layers(before: _Layers, after: _Layers, exact: ModelAnalysis) -> str:
    """Layers that only one of the two has, or that the engine has and never quantizes."""
    gained, lost = after - before, before - after
    left_alone = {_key(group) for group in exact.quantization_targets.groups if group.never_quantized}
    never = Counter({key: count for key, count in lost.items() if key in left_alone})
    lost -= never
    told = [f"it has {_named(gained)}"] if gained else []
    told += [f"it does not have {_named(lost)}"] if lost else []
    told += [f"it never quantizes {_named(never)}"] if never else []
    return f"The engine's own list of layers differs: {', and '.join(told)}."


def _named(layers: _Layers) -> str:
    named = (
        f"{_short(pattern)} ({count:,} of {inputs:,} → {outputs:,})"
        for (pattern, inputs, outputs), count in sorted(layers.items())
    )
    return some(named, _SHOWN)


def _layers(analysis: ModelAnalysis, all_layers: bool) -> _Layers:
    """How many layers there are of each pattern and shape; the same group may stand in several parts."""
    layers: _Layers = Counter()
    for group in analysis.quantization_targets.groups:
        if not group.never_quantized and (all_layers or not group.excluded_by_default):
            layers[_key(group)] += group.count
    return layers


def _key(group: LinearGroup) -> tuple[str, int, int]:
    return group.pattern, group.in_features, group.out_features


def _count(analysis: ModelAnalysis) -> int:
    return analysis.quantization_targets.linear_layer_count


def _listed(patterns: Collection[str]) -> str:
    return some(map(_short, sorted(patterns)), _SHOWN) or "nothing"


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST)
