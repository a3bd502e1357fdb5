"""The linear layers as the engine has them, in place of those that the weight files name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from runner.intake.layers import Linears
from runner.intake.linear import Linear, group_linears, matcher, names_of, place, tells_numbers
from runner.intake.modules import ModuleList
from schemas.artifacts.analysis import LinearGroup


def exact(
    named: Linears, modules: ModuleList, exclusions: Sequence[str], *, main_dtype: str, quantized: bool
) -> Linears:
    """What headers tell, with the engine's own names and numbers of layers.

    `named` are the layers by the names of the files. A layer that no file names so (experts that the engine takes
    apart) has the dtype of most weights, `main_dtype`. Weights that are `quantized` already tell no dtype of a layer.
    """
    dtypes = _Dtypes((), main_dtype) if quantized else _Dtypes(named.groups, main_dtype)
    return replace(
        named,
        groups=_groups(modules, exclusions, dtypes),
        norms=modules.norms,
        fused_experts=named.fused_experts or bool(modules.prepared),
        # Convolutions that multiply (GPT-2) are known for certain now, and they are no linear layers.
        transposed=sum(kept.count for kept in modules.kept if kept.kind == "Conv1D"),
    )


@dataclass(frozen=True)
class Disagreement:
    """Where the engine and the weight files name layers differently: patterns that only one of them has.

    `counted` are patterns of both with the number of layers of each: (pattern, engine's, files').
    """

    only_engine: tuple[str, ...]
    only_files: tuple[str, ...]
    counted: tuple[tuple[str, int, int], ...]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.only_engine or self.only_files or self.counted)


def disagreement(named: Sequence[LinearGroup], seen: Sequence[LinearGroup]) -> Disagreement:
    """Compare the layers that files name with those of the engine.

    Provisional ones are left out where only the files have them: a router that is no linear layer to the engine was
    announced as a layer that it may see differently.
    """
    files, engine = _counts(named), _counts(seen)
    certain = {group.pattern for group in named if not group.provisional or ".experts." in group.pattern}
    return Disagreement(
        only_engine=tuple(sorted(engine.keys() - files.keys())),
        only_files=tuple(sorted(certain - engine.keys())),
        counted=tuple(
            (pattern, engine[pattern], files[pattern])
            for pattern in sorted(engine.keys() & files.keys())
            if engine[pattern] != files[pattern]
        ),
    )


def convolutions(modules: ModuleList, exclusions: Iterable[str]) -> list[tuple[str, int]]:
    """(pattern, count) of the convolutions that the engine quantizes with the default exclusions."""
    excluded = matcher(exclusions)
    counts = ((group.pattern, sum(not excluded(name) for name in group.names())) for group in modules.convolutions)
    return [(pattern, count) for pattern, count in counts if count]


def _counts(groups: Iterable[LinearGroup]) -> dict[str, int]:
    counts: defaultdict[str, int] = defaultdict(int)
    for group in groups:
        counts[group.pattern] += group.count
    return counts


class _Dtypes:
    """The dtype of a layer, as the files have it."""

    def __init__(self, groups: Iterable[LinearGroup], main_dtype: str) -> None:
        by_pattern: defaultdict[str, list[LinearGroup]] = defaultdict(list)
        for group in groups:
            by_pattern[group.pattern].append(group)
        self._main = main_dtype
        self._of = {pattern: found[0].dtype for pattern, found in by_pattern.items() if not _differ(found)}
        self._mixed = {
            pattern: {name: group.dtype for group in found for name in names_of(group.pattern, group.numbers)}
            for pattern, found in by_pattern.items()
            if _differ(found)
        }

    def of_all(self, pattern: str) -> str | None:
        """The one dtype of all layers of a pattern; None where they differ."""
        return None if pattern in self._mixed else self._of.get(pattern, self._main)

    def of(self, pattern: str, name: str) -> str:
        """The dtype of one layer."""
        return self.of_all(pattern) or self._mixed[pattern].get(name, self._main)


def _differ(groups: Sequence[LinearGroup]) -> bool:
    return len({group.dtype for group in groups}) > 1


def _groups(modules: ModuleList, exclusions: Sequence[str], dtypes: _Dtypes) -> tuple[LinearGroup, ...]:
    """The layers in groups. Most groups stay whole: only what tells numbers apart needs every single name."""
    excluded = matcher(exclusions)
    whole: list[LinearGroup] = []
    apart: list[Linear] = []
    for group in modules.linears:
        dtype, never = dtypes.of_all(group.pattern), not group.replaced
        sizes = (group.in_features, group.out_features)
        if dtype is None or tells_numbers(exclusions):
            names = group.names()
            apart += [Linear(name, *sizes, dtypes.of(group.pattern, name), never_quantized=never) for name in names]
            continue
        whole.append(
            LinearGroup(
                pattern=group.pattern,
                count=group.count,
                in_features=group.in_features,
                out_features=group.out_features,
                dtype=dtype,
                excluded_by_default=excluded(next(group.names())),
                never_quantized=never,
                numbers=list(group.numbers),
            )
        )
    return tuple(sorted([*whole, *group_linears(apart, exclusions)], key=place))
