"""Pieces of sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runs import words


@given(text=st.text(st.characters()), longest=st.integers(1, 50))
def test_plain_text_is_one_short_printable_line(text: str, longest: int) -> None:
    shown = words.plain(text, longest)
    assert shown.isprintable()
    assert len(shown) <= longest
    shown.encode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[32m[QUARK-INFO]: done\x1b[0m", "[QUARK-INFO]: done"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("bell\x07", "bell\\x07"),
        ("\udcff.bin", "\\udcff.bin"),
        ("  größer  ", "größer"),
    ],
)
def test_plain(text: str, shown: str) -> None:
    assert words.plain(text) == shown


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (8_192_000_000, "8.2 GB"), (2.5e15, "2500.0 TB")],
)
def test_sizes(number: float, said: str) -> None:
    assert words.size(number) == said


@pytest.mark.parametrize(
    ("change", "said"), [(0.0081, "+0.8 %"), (-0.002, "-0.2 %"), (0.44, "+44.0 %"), (1.31, "+131 %"), (40, "+4,000 %")]
)
def test_percents(change: float, said: str) -> None:
    assert words.percent(change) == said


def test_counts_and_lists() -> None:
    assert words.count(1, "layer") == "1 layer"
    assert words.count(44_727, "layer") == "44,727 layers"
    assert words.some(["a", "b"]) == "a, b"
    assert words.some("abcde") == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.layers.10.mlp.experts.3.w1", "model.layers.*.mlp.experts.*.w1"),
        ("h.0", "h.*"),
        ("lm_head", "lm_head"),
        ("model.layers.*.k2.w1", "model.layers.*.k2.w1"),
    ],
)
def test_numbers_become_stars(name: str, expected: str) -> None:
    assert words.pattern(name) == expected
