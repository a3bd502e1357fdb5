"""What a scheme for the KV cache or for attention does to the layers that fill it.

The engine keeps one configuration for each of its patterns of key, value and query layers, and finds it by looking at
that pattern as if it were a name: an override of a person counts where it matches the pattern's own text, else where it
ends with the projection's name or speaks of attention. So an override by position is lost, one for a single layer
spreads to all, and one excluded key layer turns the quantization of all keys off. Source: template and layer
configuration of amd-quark 0.13, seen with it on modules of a small Qwen3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from runner.planning import layers
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan

_ATTENTION = "attn", "attention"


@dataclass(frozen=True)
class Projection:
    """The layers of one pattern of the engine: what the plan wants of them (None: leave alone) and what they get.

    `wanted` counts layers by scheme. `without` counts those that an override of their own keeps from getting scales of
    the pattern's outputs, which only attention knows.
    """

    pattern: str
    gets: str | None
    wanted: Counter[str | None] = field(default_factory=Counter)
    without: int = 0

    @property
    def layers(self) -> int:
        """How many layers the pattern matches."""
        return sum(self.wanted.values())

    @property
    def lost(self) -> dict[str | None, int]:
        """Layers that get something else than the plan says, by what it says."""
        return {scheme: count for scheme, count in self.wanted.items() if scheme != self.gets}


def of_kv_cache(plan: QuantPlan, analysis: ModelAnalysis, patterns: Sequence[str]) -> list[Projection]:
    """What the key and value layers get in a plan with a KV cache scheme. `patterns` are those of the template."""
    found = []
    for pattern, scheme in _looked_up(plan, patterns).items():
        wanted: Counter[str | None] = Counter()
        for matched, count in _layers(plan, analysis, pattern):
            wanted[_wanted(plan, matched)] += count
        # All layers of the pattern share one configuration, which the first excluded one empties.
        found.append(Projection(pattern, None if None in wanted else scheme, wanted))
    return found


def of_attention(
    plan: QuantPlan, analysis: ModelAnalysis, patterns: Sequence[str], kv_patterns: Sequence[str]
) -> list[Projection]:
    """What query layers get in a plan with an attention scheme; those that nothing names share one configuration."""
    found = []
    before = [pattern for pattern in kv_patterns if plan.kv_cache_scheme is not None]
    looked_up = _looked_up(plan, [*before, *patterns])
    for pattern in patterns:
        scheme = looked_up[pattern]
        wanted: Counter[str | None] = Counter()
        without = 0
        for matched, count in _layers(plan, analysis, pattern):
            named = matched & {*plan.exclude_layers, *plan.layer_quant_config} - {pattern}
            if named:
                without += count
            wanted[scheme if named else _wanted(plan, matched)] += count
        found.append(Projection(pattern, scheme, wanted, without))
    return found


def _layers(plan: QuantPlan, analysis: ModelAnalysis, pattern: str) -> Iterator[tuple[frozenset[str], int]]:
    """The pattern's layers by which patterns of the plan match them."""
    asked = (*plan.exclude_layers, *plan.layer_quant_config, pattern)
    for group in layers.linear_groups(analysis):
        for matched, count in layers.ways(group, analysis, asked).items():
            if pattern in matched:
                yield matched, count


def _wanted(plan: QuantPlan, matched: frozenset[str]) -> str | None:
    if matched.intersection(plan.exclude_layers):
        return None
    overrides = layers.in_order(plan.layer_quant_config)
    return next((scheme for name, scheme in overrides if name in matched), plan.global_scheme)


def _looked_up(plan: QuantPlan, patterns: Sequence[str]) -> dict[str, str | None]:
    """The scheme that the engine finds for each of its patterns, in the order in which it looks."""
    overrides = dict(layers.in_order(plan.layer_quant_config))
    found: dict[str, str | None] = {}
    for pattern in patterns:
        if any(fnmatchcase(pattern, excluded) for excluded in plan.exclude_layers):
            found[pattern] = None
            continue
        leaf = pattern.rpartition(".")[2].strip("*")
        named = [scheme for name, scheme in overrides.items() if fnmatchcase(pattern, name)]
        alike = (
            scheme
            for name, scheme in overrides.items()
            if (leaf and name.endswith(leaf)) or any(word in name for word in _ATTENTION)
        )
        scheme = named[0] if named else next(alike, plan.global_scheme)
        # What was found for one pattern is an override for those that follow.
        overrides[pattern] = found[pattern] = scheme
    return found
