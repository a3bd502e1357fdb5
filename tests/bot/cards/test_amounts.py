"""Numbers as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards import amounts


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (None, "unknown"),
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (483_100, "483.1 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (166_450_000, "166.5 MB"),
        (16_381_470_720, "16.4 GB"),
        (999_999_999_999, "1.0 TB"),
        (10**16, "10.0 PB"),
        (10**19, "10,000.0 PB"),
    ],
)
def test_sizes_are_in_powers_of_ten(number: int | None, words: str) -> None:
    assert amounts.size(number) == words


@pytest.mark.parametrize(
    ("fraction", "words"),
    [
        (9.614 / 9.476 - 1, "+1.5 %"),
        (0.015, "+1.5 %"),
        (0.0145, "+1.5 %"),  # 100 * 0.0145 is a little less than 1.45 in binary, and would come out as 1.4
        (0.0081, "+0.8 %"),
        (-0.389, "-38.9 %"),
        (0.0003, "+0.03 %"),
        (0.0, "0.0 %"),
        (-1e-9, "0.0 %"),
        (1.31, "+131 %"),
        (40.2, "+4,020 %"),
        (None, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
    ],
)
def test_changes_are_exact(fraction: float | None, words: str) -> None:
    assert amounts.change(fraction) == words


@pytest.mark.parametrize(
    ("fraction", "words"), [(0.525, "53 %"), (0.015, "1.5 %"), (1.0, "100 %"), (0.5, "50 %"), (math.nan, "unknown")]
)
def test_shares(fraction: float, words: str) -> None:
    assert amounts.share(fraction) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "unknown"),
        (math.inf, "unknown"),
        (-3, "0 s"),
        (0, "0 s"),
        (0.2, "under 1 s"),
        (45, "45 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (599, "9 min 59 s"),
        (3599, "1 h"),
        (7500, "2 h 5 min"),
        (86_400, "1 d"),
        (7 * 86_400, "7 d"),
        (100_000, "1 d 3 h"),
    ],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert amounts.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not measured"),
        (9.4761, "9.476"),
        (9.5, "9.500"),
        (253.0, "253.0"),
        (1234.0, "1234"),
        (1_230_000.0, "1.23e+06"),
        (math.nan, "not a number"),
        (math.inf, "infinite"),
    ],
)
def test_measurements_have_four_digits(value: float | None, words: str) -> None:
    assert amounts.number(value) == words


@pytest.mark.parametrize(
    ("rate", "words"),
    [(None, ""), (0.0, ""), (3.21, "3.2/s"), (0.21, "4.8 s each"), (0.005, "3 min 20 s each"), (5e-324, "")],
)
def test_rates(rate: float | None, words: str) -> None:
    assert amounts.rate(rate) == words


def test_counts_and_magnitudes() -> None:
    assert [amounts.count(n, "layer") for n in (0, 1, 18_624)] == ["0 layers", "1 layer", "18,624 layers"]
    assert [amounts.magnitude(n) for n in (12_345, 134_515_008, 8_190_735_360)] == [
        "12,345",
        "134.5 million",
        "8.19 billion",
    ]


def test_moments_are_in_utc() -> None:
    there = datetime(2026, 11, 30, 14, 3, 59, tzinfo=timezone(timedelta(hours=2)))
    assert amounts.moment(there) == "2026-11-30 12:03 UTC"
    assert amounts.moment(there.astimezone(UTC).replace(tzinfo=None)) == "2026-11-30 12:03 UTC"


@given(
    st.one_of(st.none(), st.integers(0, 10**400)),
    st.one_of(st.none(), st.floats()),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))])),
)
def test_no_number_is_too_odd(size: int | None, value: float | None, at: datetime) -> None:
    words = [amounts.size(size), amounts.change(value), amounts.duration(value), amounts.number(value)]
    words += [amounts.magnitude(size or 0), amounts.share(math.inf if value is None else value), amounts.moment(at)]
    assert all(words)
    assert amounts.rate(value).isascii()
