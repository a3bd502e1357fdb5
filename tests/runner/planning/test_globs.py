"""Globs counted over names that are never written down, against every name written down."""

from __future__ import annotations

import itertools
import re
import time
from collections import Counter
from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.planning.globs import Names, parse_numbers

_TEXT = st.text(alphabet="ab.L_]-19", max_size=5)
_NUMBERS = st.sets(st.integers(0, 130), min_size=1, max_size=8).map(lambda found: tuple(sorted(found)))


@st.composite
def names(draw: st.DrawFn) -> Names:
    """Names with up to three numbers; texts between them may be empty or have digits of their own."""
    slots = draw(st.lists(_NUMBERS, max_size=3))
    parts = draw(st.lists(_TEXT, min_size=len(slots) + 1, max_size=len(slots) + 1))
    return Names(tuple(parts), tuple(slots))


_GLOBS = st.one_of(
    st.text(alphabet="ab.L_*?[]!-0123", max_size=9),
    st.lists(
        st.sampled_from(
            ["*", "?", "[0-4]", "[!2-7]", "[!1]", "[]a]", "[a-b1]", "[", "1", "12", ".", "a", "L", "[z-a]"]
        ),
        max_size=7,
    ).map("".join),
)


def written_down(found: Names) -> list[str]:
    """Every name, as often as a combination of numbers makes it."""
    rows = itertools.product(*found.slots)
    first, *others = found.parts
    return [first + "".join(f"{n}{text}" for n, text in zip(row, others, strict=True)) for row in rows]


@given(found=names(), pattern=_GLOBS)
@settings(max_examples=400, deadline=None)
def test_a_count_is_what_fnmatch_counts(found: Names, pattern: str) -> None:
    matched = [name for name in written_down(found) if fnmatchcase(name, pattern)]
    assert found.count(pattern) == len(matched)
    assert list(found.examples(pattern)) == matched


@given(found=names(), patterns=st.lists(_GLOBS, max_size=5), pick=st.integers(0, 10**6))
@settings(max_examples=400, deadline=None)
def test_several_patterns_split_the_names_as_fnmatch_does(found: Names, patterns: list[str], pick: int) -> None:
    every = written_down(found)
    patterns = [*patterns, every[pick % len(every)]]  # a whole name as well, which random text seldom is
    expected = Counter(frozenset(p for p in patterns if fnmatchcase(name, p)) for name in every)
    assert found.ways(patterns) == dict(expected)
    assert sum(expected.values()) == found.size


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,2,4-6", (0, 2, 4, 5, 6)),
        ("", None),
        ("a", None),
        ("3-1", None),
        ("0-3,2", None),
        ("1,,2", None),
        ("0-999999999", None),
    ],
)
def test_numbers_of_a_text(text: str, numbers: tuple[int, ...] | None) -> None:
    assert parse_numbers(text) == numbers


def test_upper_and_lower_case_differ_as_they_do_for_the_engine() -> None:
    found = Names(("model.layers.", ".K_proj"), (tuple(range(4)),))
    assert (found.count("*k_proj"), found.count("*K_proj")) == (0, 4)


def test_many_layers_cost_little_more_than_few() -> None:
    """No name is written down: 14,848 experts are counted as quickly as 36 layers, within what a clock can tell."""
    few = Names(("model.layers.", ".mlp.down_proj"), (tuple(range(36)),))
    many = Names(("model.layers.", ".mlp.experts.", ".down_proj"), (tuple(range(3, 61)), tuple(range(256))))
    patterns = [f"*layers.{number}.*" for number in range(20)] + ["lm_head", "*mlp.gate", "*self_attn*"]

    def took(found: Names) -> float:
        started = time.perf_counter()
        for _ in range(20):
            found.ways(patterns)
        return time.perf_counter() - started

    assert sum(many.ways(patterns).values()) == 58 * 256
    assert took(many) < 10 * took(few) + 0.05


def test_a_thousand_whole_names_are_looked_up_one_by_one() -> None:
    many = Names(("model.layers.", ".mlp.experts.", ".down_proj"), (tuple(range(58)), tuple(range(256))))
    wanted = [f"model.layers.{n % 58}.mlp.experts.{n % 256}.down_proj" for n in range(1000)]
    started = time.monotonic()
    found = many.ways(["*.1.*", *wanted])
    assert time.monotonic() - started < 5
    assert sum(count for kinds, count in found.items() if not kinds) == sum(
        not re.search(r"\.1\.", name) for name in set(written_down(many)) - set(wanted)
    )
