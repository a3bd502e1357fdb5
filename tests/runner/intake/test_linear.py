"""Groups of names: whatever the names are, their groups stand for exactly these."""

from __future__ import annotations

import runpy
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.intake.linear import (
    Linear,
    group_linears,
    names_of,
    parsed,
    products,
    ranges,
    read_ranges,
    tells_numbers,
)
from schemas.artifacts.analysis import LinearGroup
from tests.runner.ptq.scripts import SCRIPTS

PROBE: dict[str, Any] = runpy.run_path(str(SCRIPTS / "module_probe.py"))

numbers = st.integers(0, 6)
part = st.one_of(st.sampled_from(["model", "layers", "experts", "q_proj", "01", "a1", "x*"]), numbers.map(str))
trees = st.sets(st.lists(part, min_size=1, max_size=5).map(".".join), max_size=40)


def names_in(groups: tuple[LinearGroup, ...]) -> Counter[str]:
    return Counter(name for group in groups for name in names_of(group.pattern, group.numbers))


@given(trees, st.lists(st.sampled_from(["*q_proj", "model.*", "*.0.*", "*[13]", "lm_head", "*2"]), max_size=3))
def test_the_groups_of_a_tree_are_exactly_its_names(tree: set[str], exclusions: list[str]) -> None:
    linears = [Linear(name, 4, 4, "BF16") for name in sorted({name.replace("*", "?") for name in tree})]
    groups = group_linears(linears, exclusions)
    assert names_in(groups) == Counter(linear.name for linear in linears)
    assert all(group.count == len(list(names_of(group.pattern, group.numbers))) for group in groups)
    assert list(groups) == sorted(groups, key=lambda group: (group.excluded_by_default, group.pattern))


@given(st.sets(st.tuples(numbers, numbers, numbers), min_size=1))
def test_products_are_disjoint_and_complete_in_both_programs(points: set[tuple[int, ...]]) -> None:
    for found in (products(points), PROBE["products"](points)):
        texts = [[ranges(axis) for axis in axes] for axes in found]
        assert Counter(name for text in texts for name in names_of("*.*.*", text)) == Counter(
            ".".join(map(str, point)) for point in points
        )


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([()], [()]),
        ([(0,), (1,), (5,)], [((0, 1, 5),)]),
        ([(layer, expert) for layer in range(3) for expert in range(4)], [((0, 1, 2), (0, 1, 2, 3))]),
        # Two kinds of layers that alternate, with other numbers of experts: one group for each kind.
        (
            [(layer, expert) for layer in range(4) for expert in range(2 + layer % 2)],
            [((0, 2), (0, 1)), ((1, 3), (0, 1, 2))],
        ),
        # Layers with experts of their own, beside one expert of all layers.
        ([(layer, layer + 1) for layer in range(3)] + [(layer, 9) for layer in range(3)], 3),
    ],
)
def test_as_few_products_as_one_would_write(points: list[tuple[int, ...]], expected: list[Any]) -> None:
    found = products(points)
    assert PROBE["products"](points) == found
    assert (len(found) if isinstance(expected, int) else found) == expected


@given(st.sets(st.integers(0, 10**9), min_size=1))
def test_ranges_are_read_as_they_were_written(found: set[int]) -> None:
    text = ranges(sorted(found))
    assert read_ranges(text) == sorted(found)
    assert PROBE["ranges"](sorted(found)) == text


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1--2", "0-99999999999", "1,", "1 ", "\u0663"])
def test_other_texts_are_no_ranges(text: str) -> None:
    with pytest.raises(ValueError, match="numbers"):
        read_ranges(text)


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        ("model.layers.11.mlp.experts.0.up_proj", "model.layers.*.mlp.experts.*.up_proj", (11, 0)),
        ("lm_head", "lm_head", ()),
        ("model.layers.01.w", "model.layers.01.w", ()),
        ("h1.2x.3", "h1.2x.*", (3,)),
        ("a.*.4", "a.?.*", (4,)),
        ("0", "*", (0,)),
    ],
)
def test_only_whole_parts_that_are_written_as_indexes_are_numbers(
    name: str, pattern: str, found: tuple[int, ...]
) -> None:
    assert parsed(name) == (pattern, found)


@pytest.mark.parametrize(
    ("patterns", "expected"), [(["*.gate", "lm_head"], False), (["*.0.*"], True), (["*[ab]"], True), (["layer?"], True)]
)
def test_what_can_tell_layers_of_a_group_apart(patterns: list[str], expected: bool) -> None:
    assert tells_numbers(patterns) is expected
