"""Which layers a plan quantizes, and how.

The engine decides by module name: an exclusion wins over everything, then an override with exactly that name, then the
first override whose pattern matches, then the global scheme. Patterns are those of `fnmatch`; without a wildcard they
must be the whole name. Source: layer configuration of amd-quark 0.13.

A group of an analysis stands for many layers: in its pattern each `*` is a number. A pattern of a person that names no
number treats all layers of a group alike, so one of them speaks for all; otherwise every name is tried.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import LayerMatch, QuantPlan

_WILDCARDS = "*?["


@dataclass(frozen=True)
class Target:
    """Layers of one group that are treated alike: `scheme` is None where they are left alone.

    `pattern` is the override that chose the scheme; None for the global scheme.
    """

    group: LinearGroup
    count: int
    scheme: str | None
    pattern: str | None = None


def in_order(overrides: dict[str, str]) -> list[tuple[str, str]]:
    """Overrides in the order in which the engine gets them: the most specific pattern first.

    The engine takes the first that matches, while a digest knows no order of keys; hence the order comes from the keys:
    exact names, then patterns with many literal characters, then the alphabet.
    """

    def specificity(item: tuple[str, str]) -> tuple[bool, int, str]:
        pattern = item[0]
        literal = sum(character not in _WILDCARDS for character in pattern)
        return has_wildcard(pattern), -literal, pattern

    return sorted(overrides.items(), key=specificity)


def has_wildcard(pattern: str) -> bool:
    """Whether a pattern can match several names."""
    return any(character in pattern for character in _WILDCARDS)


def targets(plan: QuantPlan, analysis: ModelAnalysis) -> list[Target]:
    """What the plan does to every group of layers; a group stands once for each different treatment."""
    overrides = in_order(plan.layer_quant_config)
    patterns = [*plan.exclude_layers, *(pattern for pattern, _ in overrides)]
    found: list[Target] = []
    for group in analysis.quantization_targets.groups:
        if group.excluded_by_default and not plan.exclude_layers_changed:
            found.append(Target(group, group.count, None))
            continue
        names = list(_names(group, analysis, patterns))
        ways = Counter(_treatment(name, plan, overrides) for name in names)
        found += [Target(group, _share(group, hits, len(names)), *way) for way, hits in ways.items()]
    return found


def quantized(plan: QuantPlan, analysis: ModelAnalysis) -> list[Target]:
    """The targets that are not left alone."""
    return [target for target in targets(plan, analysis) if target.scheme is not None]


def matches(plan: QuantPlan, analysis: ModelAnalysis) -> list[LayerMatch]:
    """What each pattern of the plan matches, the exclusions first."""
    named: list[tuple[Literal["exclude", "override"], str]] = [("exclude", name) for name in plan.exclude_layers]
    named += [("override", pattern) for pattern, _ in in_order(plan.layer_quant_config)]
    exact = names_are_exact(analysis)
    found = []
    for role, pattern in named:
        groups = matching(pattern, analysis)
        count, examples = sum(group.count for group in groups), [group.pattern for group in groups[:3]]
        found.append(LayerMatch(pattern=pattern, role=role, count=count, examples=examples, exact=exact))
    return found


def matching(pattern: str, analysis: ModelAnalysis) -> list[LinearGroup]:
    """The groups of which the pattern matches at least one layer."""
    return [
        group
        for group in analysis.quantization_targets.groups
        if any(fnmatchcase(name, pattern) for name in _names(group, analysis, [pattern]))
    ]


def matching_any(patterns: Iterable[str], analysis: ModelAnalysis) -> list[LinearGroup]:
    """The groups of which at least one pattern matches a layer."""
    hit = {group.pattern for pattern in patterns for group in matching(pattern, analysis)}
    return [group for group in analysis.quantization_targets.groups if group.pattern in hit]


def names_are_exact(analysis: ModelAnalysis) -> bool:
    """Whether the groups carry the engine's own module names, not those of the weight files."""
    found = analysis.quantization_targets
    return found.method == "modules" and not found.provisional and bool(found.groups)


def described(groups: Iterable[LinearGroup], limit: int = 3) -> str:
    """Group patterns for a sentence, at most `limit` of them."""
    patterns = list(dict.fromkeys(group.pattern for group in groups))
    rest = len(patterns) - limit
    return ", ".join(patterns[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _treatment(name: str, plan: QuantPlan, overrides: list[tuple[str, str]]) -> tuple[str | None, str | None]:
    if any(fnmatchcase(name, pattern) for pattern in plan.exclude_layers):
        return None, None
    for pattern, scheme in overrides:
        if fnmatchcase(name, pattern):
            return scheme, pattern
    return plan.global_scheme, None


def _share(group: LinearGroup, hits: int, of: int) -> int:
    """How many layers of a group a part of its names stands for; what matches at all is at least one layer."""
    return max(1, round(group.count * hits / of))


def _names(group: LinearGroup, analysis: ModelAnalysis, patterns: list[str]) -> Iterator[str]:
    """Names that stand for the group: one where no pattern can tell them apart, else all that its numbers allow."""
    parts = group.pattern.split("*")
    stars = len(parts) - 1
    if not stars or not any(character.isdigit() or character in "?[" for pattern in patterns for character in pattern):
        yield "0".join(parts)
        return
    for numbers in itertools.product(*_ranges(group, analysis, stars)):
        yield parts[0] + "".join(f"{number}{part}" for number, part in zip(numbers, parts[1:], strict=True))


def _ranges(group: LinearGroup, analysis: ModelAnalysis, stars: int) -> list[range]:
    """The numbers of each `*`: layers first, experts last."""
    layers = range(max(analysis.model.hidden_layers or 1, 1))
    experts = range(max(analysis.model.experts or 1, 1))
    if stars == 1:
        return [range(max(len(layers), group.count))]
    return [layers] + [experts] * (stars - 1)
