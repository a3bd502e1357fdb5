"""Whether a pattern matches a layer: held against `fnmatch` on every single name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.patterns import matches_any
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis, QuantizationTargets
from tests import samples


def model(pattern: str, numbers: list[str], count: int = 1, *, never: bool = False) -> ModelAnalysis:
    """A model with one group of layers."""
    group = LinearGroup(
        pattern=pattern,
        count=count,
        in_features=8,
        out_features=8,
        dtype="BF16",
        numbers=numbers,
        never_quantized=never,
    )
    targets = QuantizationTargets(linear_layer_count=count, exclude_defaults=[], groups=[group])
    return samples.analysis(quantization_targets=targets)


EXPERTS = model("layers.*.experts.*.w1", ["3-60", "0-9,12,17-255"])


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*w1*", True),
        ("w1", False),
        ("layers.3.*", True),
        ("*layers.0.*", False),
        ("*layers.60.*experts.255.*", True),
        ("*layers.61.*", False),
        ("*experts.11.*", False),
        ("*experts.12.*", True),
        ("layers.?.*", True),
        ("layers.[012].*", False),
        ("layers.[!012].*", True),
        ("layers.3.experts.0.w1", True),
        ("*W1*", False),
        ("", False),
        ("[", False),
        ("*", True),
    ],
)
def test_numbers_are_judged_as_the_names_have_them(pattern: str, found: bool) -> None:
    assert matches_any(pattern, EXPERTS) is found


@given(st.text("*?[]!01a.", max_size=9))
def test_it_says_what_fnmatch_says_of_every_name(pattern: str) -> None:
    names = [f"a.{one}.{other}a" for one, other in product((0, 1, 10), (1, 11))]
    assert matches_any(pattern, model("a.*.*a", ["0-1,10", "1,11"])) is any(fnmatchcase(one, pattern) for one in names)


def test_numbers_that_are_not_told_begin_at_0() -> None:
    assert matches_any("*.35.q", model("layers.*.q", [], 36))
    assert not matches_any("*.36.q", model("layers.*.q", [], 36))


def test_what_is_never_quantized_is_matched_by_nothing() -> None:
    assert not matches_any("*", model("layers.*.gate", ["0-3"], 4, never=True))


def test_numbers_without_end_are_bounded() -> None:
    assert matches_any("*.7.q", model("layers.*.q", ["0-999999999"]))
    assert not matches_any("*.x", model("layers.*.q", ["0-999999999"]))
