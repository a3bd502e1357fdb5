"""Which layers a plan quantizes, and how.

The engine decides by module name: an exclusion wins over everything, then an override with exactly that name, then the
first override whose pattern matches, then the global scheme. Patterns are those of `fnmatch`, upper and lower case told
apart; without a wildcard they must be the whole name. Source: layer configuration of amd-quark 0.13.

A group of an analysis stands for many layers: in its pattern each `*` is a number, and the group says which. Everything
here counts layers exactly, without writing down their names. Where a group does not say its numbers, layers are taken
to be numbered from 0 and counts are shares of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from runner.planning.globs import Names, has_wildcard, parse_numbers
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import LayerMatch, QuantPlan

__all__ = [
    *("Hit", "Target", "described", "examples", "hits", "in_order", "linear_groups", "matches"),
    *("matching", "matching_any", "names_are_exact", "names_are_modules", "quantized", "targets", "ways"),
]

SHOWN = 3
"""How many names stand for all that a pattern matches."""


@dataclass(frozen=True)
class Target:
    """Layers of one group that are treated alike: `scheme` is None where they are left alone.

    `pattern` is the override that chose the scheme; None for the global scheme.
    """

    group: LinearGroup
    count: int
    scheme: str | None
    pattern: str | None = None


@dataclass(frozen=True)
class Hit:
    """How many layers of a group a pattern matches: at least one."""

    group: LinearGroup
    count: int


def in_order(overrides: dict[str, str]) -> list[tuple[str, str]]:
    """Overrides in the order in which the engine gets them: the most specific pattern first.

    The engine takes the first that matches, while a digest knows no order of keys; hence the order comes from the keys:
    exact names, then patterns with many literal characters, then the alphabet.
    """

    def specificity(item: tuple[str, str]) -> tuple[bool, int, str]:
        pattern = item[0]
        literal = sum(character not in "*?[" for character in pattern)
        return has_wildcard(pattern), -literal, pattern

    return sorted(overrides.items(), key=specificity)


def targets(plan: QuantPlan, analysis: ModelAnalysis) -> list[Target]:
    """What the plan does to every group of layers; a group stands once for each different treatment."""
    overrides = in_order(plan.layer_quant_config)
    excluded = frozenset(plan.exclude_layers)
    found: list[Target] = []
    for group in analysis.quantization_targets.groups:
        if group.never_quantized or (group.excluded_by_default and not plan.exclude_layers_changed):
            found.append(Target(group, group.count, None))
            continue
        treated: dict[tuple[str | None, str | None], int] = {}
        for matched, count in ways(group, analysis, (*plan.exclude_layers, *plan.layer_quant_config)).items():
            way: tuple[str | None, str | None] = (None, None)
            if not matched & excluded:
                named = ((scheme, pattern) for pattern, scheme in overrides if pattern in matched)
                way = next(named, (plan.global_scheme, None))
            treated[way] = treated.get(way, 0) + count
        found += [Target(group, count, *way) for way, count in treated.items()]
    return found


def quantized(plan: QuantPlan, analysis: ModelAnalysis) -> list[Target]:
    """The targets that are not left alone."""
    return [target for target in targets(plan, analysis) if target.scheme is not None]


def matches(plan: QuantPlan, analysis: ModelAnalysis) -> list[LayerMatch]:
    """What each pattern of the plan matches, the exclusions first."""
    named: list[tuple[Literal["exclude", "override"], str]] = [("exclude", name) for name in plan.exclude_layers]
    named += [("override", pattern) for pattern, _ in in_order(plan.layer_quant_config)]
    numbered = all(_names(group, analysis)[1] for group in analysis.quantization_targets.groups)
    exact = names_are_exact(analysis) and numbered
    return [
        LayerMatch(
            pattern=pattern,
            role=role,
            count=sum(hit.count for hit in hits(pattern, analysis)),
            examples=examples(pattern, analysis),
            exact=exact,
        )
        for role, pattern in named
    ]


def ways(group: LinearGroup, analysis: ModelAnalysis, patterns: Iterable[str]) -> dict[frozenset[str], int]:
    """How many layers of a group match exactly which of the patterns. The counts add up to the whole group."""
    names, exact = _names(group, analysis)
    found = _ways(names, tuple(patterns))
    return {kinds: count if exact else _share(group, count, names.size) for kinds, count in found}


def hits(pattern: str, analysis: ModelAnalysis) -> list[Hit]:
    """The groups of which the pattern matches at least one layer, and how many of each."""
    found = []
    for group in linear_groups(analysis):
        names, exact = _names(group, analysis)
        count = _count(names, pattern)
        if count:
            found.append(Hit(group, count if exact else _share(group, count, names.size)))
    return found


def examples(pattern: str, analysis: ModelAnalysis) -> list[str]:
    """A few names that a pattern matches: the first of each group, then further ones, lowest numbers first."""
    found = [_examples(_names(group, analysis)[0], pattern) for group in linear_groups(analysis)]
    firsts = [names[0] for names in found if names]
    return [*firsts, *(name for names in found for name in names[1:])][:SHOWN]


def matching(pattern: str, analysis: ModelAnalysis) -> list[LinearGroup]:
    """The groups of which the pattern matches at least one layer."""
    return [hit.group for hit in hits(pattern, analysis)]


def matching_any(patterns: Iterable[str], analysis: ModelAnalysis) -> list[LinearGroup]:
    """The groups of which at least one pattern matches a layer."""
    patterns = tuple(patterns)
    return [
        group
        for group in linear_groups(analysis)
        if any(_count(_names(group, analysis)[0], pattern) for pattern in patterns)
    ]


def linear_groups(analysis: ModelAnalysis) -> list[LinearGroup]:
    """The groups that a pattern can mean: not those that no plan quantizes, such as routers of a class of their own."""
    return [group for group in analysis.quantization_targets.groups if not group.never_quantized]


def names_are_exact(analysis: ModelAnalysis) -> bool:
    """Whether the groups carry the engine's own module names, not those of the weight files."""
    found = analysis.quantization_targets
    return found.method == "modules" and not found.provisional and bool(found.groups)


def names_are_modules(analysis: ModelAnalysis) -> bool:
    """Whether a pattern that matches no name here matches none in the engine either.

    True for the engine's own list. Names of weight files are those of the modules as well where nothing is provisional
    and the model has but one tower: renaming goes with fused experts, and with what surrounds a language model.
    """
    found = analysis.quantization_targets
    if names_are_exact(analysis):
        return True
    doubtful = found.provisional or any(group.provisional for group in found.groups)
    return bool(found.groups) and not doubtful and not analysis.model.modalities


def described(groups: Iterable[LinearGroup], limit: int = SHOWN) -> str:
    """Group patterns for a sentence, at most `limit` of them."""
    patterns = list(dict.fromkeys(group.pattern for group in groups))
    rest = len(patterns) - limit
    return ", ".join(patterns[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _share(group: LinearGroup, count: int, of: int) -> int:
    """How many layers of a group a part of its names stands for; what matches at all is at least one layer."""
    return max(1, round(group.count * count / of))


def _names(group: LinearGroup, analysis: ModelAnalysis) -> tuple[Names, bool]:
    """The names of a group, and whether they are exactly its layers."""
    found = _numbered(group.pattern, tuple(group.numbers))
    if found is not None and found.size == group.count:
        return found, True
    return _guessed(group.pattern, group.count, analysis.model.hidden_layers or 1, analysis.model.experts or 1), False


# What follows is kept: one plan asks the same of each group for its targets, its estimates and its findings, and a
# conversation makes plan after plan of one model.


@lru_cache(maxsize=4096)
def _ways(names: Names, patterns: tuple[str, ...]) -> tuple[tuple[frozenset[str], int], ...]:
    return tuple(names.ways(patterns).items())


@lru_cache(maxsize=4096)
def _count(names: Names, pattern: str) -> int:
    return names.count(pattern)


@lru_cache(maxsize=4096)
def _examples(names: Names, pattern: str) -> tuple[str, ...]:
    return tuple(islice(names.examples(pattern), SHOWN))


@lru_cache(maxsize=4096)
def _numbered(pattern: str, numbers: tuple[str, ...]) -> Names | None:
    """The names that a group's numbers say; None where they do not fit its pattern."""
    parts, slots = tuple(pattern.split("*")), [parse_numbers(text) for text in numbers]
    known = tuple(slot for slot in slots if slot is not None)
    return Names(parts, known) if len(known) == len(slots) == len(parts) - 1 else None


@lru_cache(maxsize=4096)
def _guessed(pattern: str, count: int, layers: int, experts: int) -> Names:
    """Names of a group that does not say its numbers: layers first, experts last."""
    parts = tuple(pattern.split("*"))
    stars = len(parts) - 1
    if stars <= 1:
        return Names(parts, (tuple(range(max(layers, count))),) * stars)
    return Names(parts, (tuple(range(layers)), *[tuple(range(experts))] * (stars - 1)))
