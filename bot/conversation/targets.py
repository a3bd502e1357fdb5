"""What would be quantized, as two analyses of one model see it. Pure."""

from __future__ import annotations

from collections import Counter

from bot.conversation.wording import shortened, some
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis

_SHOWN = 3  # patterns or exclusions named in one sentence
_LONGEST = 120  # characters of one of them

_Layers = Counter[tuple[str, int, int]]


def difference(headers: ModelAnalysis, exact: ModelAnalysis, *, all_layers: bool = False) -> str:
    """What the engine's own list says otherwise than the headers of the weights, in a sentence; empty where both name
    the same targets and the same default exclusions.

    Targets are the same when patterns, numbers of layers and widths are. Layers that the engine leaves alone by default
    count only with `all_layers`, as where somebody replaced its exclusions.
    """
    before, after = _layers(headers, all_layers), _layers(exact, all_layers)
    if before.total() != after.total() or _count(headers) != _count(exact):
        return _other_number(headers, exact, before, after)
    old, new = (set(one.quantization_targets.exclude_defaults) for one in (headers, exact))
    if old != new:
        return f"The engine leaves {_listed(new)} alone by default, not {_listed(old)}."
    if before != after:
        return _other_layers(before, after)
    return ""


def _other_number(headers: ModelAnalysis, exact: ModelAnalysis, before: _Layers, after: _Layers) -> str:
    old, new = _count(headers), _count(exact)
    if old == new:  # only layers that are excluded by default differ
        return _other_layers(before, after)
    fused = headers.quantization_targets.has_non_linear_experts and new > old
    who = "The engine splits the fused experts" if fused else "The engine's own list of layers differs"
    return f"{who}: {new:,} layers would be quantized, not {old:,}."


def _other_layers(before: _Layers, after: _Layers) -> str:
    """Layers that only one of the two has."""
    gained, lost = after - before, before - after
    told = [f"it has {_named(gained)}"] if gained else []
    told += [f"it does not have {_named(lost)}"] if lost else []
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
        if all_layers or not group.excluded_by_default:
            layers[_key(group)] += group.count
    return layers


def _key(group: LinearGroup) -> tuple[str, int, int]:
    return group.pattern, group.in_features, group.out_features


def _count(analysis: ModelAnalysis) -> int:
    return analysis.quantization_targets.linear_layer_count


def _listed(exclusions: set[str]) -> str:
    return some(map(_short, sorted(exclusions)), _SHOWN) or "nothing"


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), _LONGEST)
