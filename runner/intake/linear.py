"""One linear layer, and many of them in groups."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from schemas.artifacts.analysis import LinearGroup

# As an index is written: in "layers.01" there is no number that would be written so again.
_NUMBER = re.compile(r"(?:(?<=\.)|^)(0|[1-9]\d{0,8})(?=\.|$)")
_RANGES = re.compile(r"[0-9]{1,12}(?:-[0-9]{1,12})?(?:,[0-9]{1,12}(?:-[0-9]{1,12})?)*")
_MOST_NUMBERS = 2_000_000

Numbers = tuple[tuple[int, ...], ...]
"""The numbers of each `*` of a pattern."""


class Linear(NamedTuple):
    """One linear layer by its module name. Provisional is one that the engine may see differently."""

    name: str
    in_features: int
    out_features: int
    dtype: str
    provisional: bool = False
    never_quantized: bool = False


class Bunch(NamedTuple):
    """Linear layers that differ only by the numbers in their names: all are like `like`, and `points` has them."""

    pattern: str
    points: Sequence[tuple[int, ...]]
    like: Linear


def group_linears(linears: Iterable[Linear], exclusions: Iterable[str]) -> tuple[LinearGroup, ...]:
    """Layers that differ only by numbers in their names together; see `group_bunches`."""
    found: dict[tuple[str, Linear], list[tuple[int, ...]]] = {}
    for linear in linears:
        pattern, numbers = parsed(linear.name)
        found.setdefault((pattern, linear._replace(name="")), []).append(numbers)
    return group_bunches((Bunch(pattern, points, like) for (pattern, like), points in found.items()), exclusions)


def group_bunches(bunches: Iterable[Bunch], exclusions: Iterable[str]) -> tuple[LinearGroup, ...]:
    """Layers in groups, those that are quantized first, then by name.

    Whether a layer is excluded is decided by its own full name, so one pattern may stand in two groups. A group is
    every combination of its numbers; layers that do not form one stand in several groups.
    """
    patterns = list(exclusions)
    excluded, one_by_one = matcher(patterns), tells_numbers(patterns)
    found: defaultdict[tuple[bool, str, Linear], set[tuple[int, ...]]] = defaultdict(set)
    for pattern, points, like in bunches:
        like = like._replace(name="")
        if not one_by_one and points:
            found[excluded(named(pattern, points[0])), pattern, like].update(points)
            continue
        for numbers in points:
            found[excluded(named(pattern, numbers)), pattern, like].add(numbers)
    return tuple(sorted((group for key, points in found.items() for group in _groups(*key, points)), key=place))


def named(pattern: str, numbers: Iterable[int]) -> str:
    """The name that has these numbers in the places of `*`."""
    parts = pattern.split("*")
    return parts[0] + "".join(f"{number}{part}" for number, part in zip(numbers, parts[1:], strict=True))


def parsed(name: str) -> tuple[str, tuple[int, ...]]:
    """A name with `*` for each number that is a whole part of it, and the numbers: model.layers.*.mlp.up_proj, (3,).

    A `*` of the name itself, which no module of a model has, is told as `?`: each `*` of a pattern is a number.
    """
    parts = _NUMBER.split(name.replace("*", "?"))
    return "*".join(parts[::2]), tuple(map(int, parts[1::2]))


def pattern_of(name: str) -> str:
    """A name with `*` for each number that is a whole part of it."""
    return parsed(name)[0]


def names_of(pattern: str, numbers: Iterable[str]) -> Iterator[str]:
    """All names of a group: its pattern with every combination of its numbers, as in `LinearGroup.numbers`."""
    parts = pattern.split("*")
    for chosen in product(*map(read_ranges, numbers)):
        yield parts[0] + "".join(f"{number}{part}" for number, part in zip(chosen, parts[1:], strict=True))


def products(points: Iterable[tuple[int, ...]]) -> list[Numbers]:
    """Disjoint cross products that together are the points: of two ways to find them, the one with fewer."""
    points = list(points)
    axes = tuple(tuple(sorted(set(axis))) for axis in zip(*points, strict=True))
    if prod(map(len, axes)) == len(points):
        return [axes]
    forward = _split(points)
    backward = [numbers[::-1] for numbers in _split([point[::-1] for point in points])]
    return sorted(backward if len(backward) < len(forward) else forward)


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as a text: "0,2,4-9"."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def read_ranges(text: str) -> list[int]:
    """The numbers of a text as `ranges` writes it. Raises ValueError for any other, and for more than 2,000,000."""
    if not _RANGES.fullmatch(text):
        raise ValueError(f"{ascii(text)[:80]} are no numbers")
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        run = range(int(first), int(last or first) + 1)
        if len(numbers) + len(run) > _MOST_NUMBERS:
            raise ValueError(f"{text[:80]} are more than {_MOST_NUMBERS} numbers")
        numbers += run
    return numbers


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a module matches any pattern, as the engine decides it: fnmatch on the full name.

    A pattern without a wildcard has to be the whole name. Source: amd-quark 0.13.
    """
    expressions = [fnmatch.translate(pattern) for pattern in patterns]
    if not expressions:
        return lambda _: False
    found = re.compile("|".join(expressions)).match
    return lambda name: found(name) is not None


def tells_numbers(patterns: Iterable[str]) -> bool:
    """Whether a pattern could match one layer of a group and not another, which differs from it by numbers alone."""
    return any(character.isdigit() or character in "?[" for pattern in patterns for character in pattern)


def place(group: LinearGroup) -> tuple[bool, str, int, int, str, bool, list[str]]:
    """Where a group stands among others: those that are quantized first, then by name."""
    sizes = (group.in_features, group.out_features)
    return group.excluded_by_default, group.pattern, *sizes, group.dtype, group.provisional, group.numbers


def _split(points: Iterable[tuple[int, ...]]) -> list[Numbers]:
    """Points that differ in the first number alone together, wherever the rest behind it is the same."""
    behind: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    for point in points:
        if not point:
            return [()]
        behind[point[0]].add(point[1:])
    alike: defaultdict[frozenset[tuple[int, ...]], list[int]] = defaultdict(list)
    for first, rest in behind.items():
        alike[frozenset(rest)].append(first)
    return [(tuple(sorted(firsts)), *numbers) for rest, firsts in alike.items() for numbers in _split(rest)]


def _groups(excluded: bool, pattern: str, like: Linear, points: set[tuple[int, ...]]) -> Iterator[LinearGroup]:
    for numbers in products(points):
        yield LinearGroup(
            pattern=pattern,
            count=prod(map(len, numbers)),
            in_features=like.in_features,
            out_features=like.out_features,
            dtype=like.dtype,
            excluded_by_default=excluded,
            provisional=like.provisional,
            never_quantized=like.never_quantized,
            numbers=[ranges(axis) for axis in numbers],
        )
