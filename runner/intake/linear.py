"""One linear layer, and many of them in groups."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from schemas.artifacts.analysis import LinearGroup

_NUMBER = re.compile(r"(?:(?<=\.)|^)\d+(?=\.|$)")


class Linear(NamedTuple):
    """One linear layer by its module name. Provisional is one that the engine may see differently."""

    name: str
    in_features: int
    out_features: int
    dtype: str
    provisional: bool = False


def group_linears(linears: Iterable[Linear], exclusions: Iterable[str]) -> tuple[LinearGroup, ...]:
    """Layers that differ only by numbers in their names together, those that are quantized first, then by name.

    Whether a layer is excluded is decided by its own full name, so one pattern may stand in two groups.
    """
    excluded = matcher(exclusions)
    counts = Counter(
        (
            excluded(linear.name),
            pattern_of(linear.name),
            linear.in_features,
            linear.out_features,
            linear.dtype,
            linear.provisional,
        )
        for linear in linears
    )
    return tuple(
        LinearGroup(
            pattern=pattern,
            count=count,
            in_features=inputs,
            out_features=outputs,
            dtype=dtype,
            excluded_by_default=left_out,
            provisional=provisional,
        )
        for (left_out, pattern, inputs, outputs, dtype, provisional), count in sorted(counts.items())
    )


def pattern_of(name: str) -> str:
    """A name with `*` for each number that is a whole part of it: model.layers.*.mlp.up_proj."""
    return _NUMBER.sub("*", name)


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a module matches any pattern, as the engine decides it: fnmatch on the full name.

    A pattern without a wildcard has to be the whole name. Source: amd-quark 0.13.
    """
    expressions = [fnmatch.translate(pattern) for pattern in patterns]
    if not expressions:
        return lambda _: False
    found = re.compile("|".join(expressions)).match
    return lambda name: found(name) is not None
