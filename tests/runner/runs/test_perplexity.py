"""Bands of perplexity by precision and size class."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.runs.perplexity import Precision, SizeClass, Verdict, judge, precision, size_class
from tests.runner.runs.exported import catalogue

CATALOGUE = catalogue()
B = 1_000_000_000
FP8, INT8, SIX, FOUR, OTHER = Precision

# What was measured or published, and around each limit.
TABLE = [
    (7.2169, 7.2752, FP8, 8 * B, Verdict.EXPECTED),
    (7.2169, 7.36, FP8, 8 * B, Verdict.BEYOND),
    (1.8561, 1.8951, FP8, 405 * B, Verdict.EXPECTED),
    (1.8561, 1.8951, FP8, 70 * B, Verdict.BEYOND),
    (9.72, 9.91, FP8, B // 8, Verdict.EXPECTED),
    (9.72, 9.94, FP8, B // 8, Verdict.EXPECTED),
    (9.72, 10.13, SIX, B // 8, Verdict.EXPECTED),
    (9.72, 14.01, FOUR, B // 8, Verdict.EXPECTED),
    (9.72, 14.01, FOUR, 8 * B, Verdict.BEYOND),
    (9.72, 22.4, INT8, B // 8, Verdict.COLLAPSED),
    (6.14, 253.0, INT8, 8 * B, Verdict.COLLAPSED),
    (7.2155, 7.27, INT8, 8 * B, Verdict.EXPECTED),
    (7.0, 7.6, INT8, 8 * B, Verdict.BEYOND),
    (6.0, 6.6, FOUR, 8 * B, Verdict.EXPECTED),
    (6.0, 6.7, FOUR, 8 * B, Verdict.BEYOND),
    (6.0, 6.5, SIX, 8 * B, Verdict.EXPECTED),
    (6.0, 6.7, OTHER, 8 * B, Verdict.BEYOND),
    (6.0, 5.9, FP8, 8 * B, Verdict.EXPECTED),
    (6.0, 5.0, FP8, 8 * B, Verdict.BETTER),
    (6.0, 12.0, FOUR, 8 * B, Verdict.BEYOND),
    (6.0, 12.1, FOUR, 8 * B, Verdict.COLLAPSED),
    (6.0, math.inf, FP8, 8 * B, Verdict.COLLAPSED),
    (6.0, math.nan, FP8, 8 * B, Verdict.COLLAPSED),
    (6.0, 0.0, FP8, 8 * B, Verdict.COLLAPSED),
]


@pytest.mark.parametrize(("original", "quantized", "kind", "parameters", "expected"), TABLE)
def test_verdicts(original: float, quantized: float, kind: Precision, parameters: int, expected: Verdict) -> None:
    judged = judge(original, quantized, kind, parameters)
    assert judged.verdict is expected
    assert judged.words.isprintable()


@pytest.mark.parametrize(
    ("schemes", "expected"),
    [
        (["fp8"], FP8),
        (["ptpc_fp8"], FP8),
        (["int8"], INT8),
        (["mxfp6_e2m3"], SIX),
        (["int4_wo_128"], FOUR),
        (["uint4_wo_32"], FOUR),
        (["mxfp4"], FOUR),
        (["nvfp4"], FOUR),
        (["int4_fp8"], FOUR),
        (["fp8", "int4_wo_32"], FOUR),
        (["mx9"], OTHER),
        ([], OTHER),
    ],
)
def test_the_coarsest_scheme_decides(schemes: list[str], expected: Precision) -> None:
    assert precision(CATALOGUE.schemes[name] for name in schemes) is expected


def test_size_classes_meet_without_gap() -> None:
    assert [size_class(n) for n in (0, B - 1, B, 100 * B - 1, 100 * B)] == [
        SizeClass.SMALL,
        SizeClass.SMALL,
        SizeClass.MEDIUM,
        SizeClass.MEDIUM,
        SizeClass.LARGE,
    ]


ORDER = [Verdict.BETTER, Verdict.EXPECTED, Verdict.BEYOND, Verdict.COLLAPSED]


@given(
    original=st.floats(1, 1e6),
    quantized=st.lists(st.floats(1, 1e9), min_size=2, max_size=2),
    kind=st.sampled_from(Precision),
    parameters=st.integers(0, 10**13),
)
def test_a_worse_perplexity_is_never_judged_better(
    original: float, quantized: list[float], kind: Precision, parameters: int
) -> None:
    verdicts = [judge(original, value, kind, parameters).verdict for value in sorted(quantized)]
    assert verdicts == sorted(verdicts, key=ORDER.index)
