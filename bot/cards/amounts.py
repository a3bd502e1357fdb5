"""Numbers as people read them: bytes, durations, shares, counts, moments."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal

from bot.cards.texts import plain as plain

_UNITS = ("kB", "MB", "GB", "TB", "PB")
_DURATIONS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def size(number: int | None) -> str:
    """Bytes in powers of ten, as disks are sold: 16.4 GB. What is not known is said to be so."""
    if number is None:
        return "unknown"
    if number < 1000:
        return count(number, "byte")
    value = Decimal(number)
    for unit in _UNITS:
        value /= 1000
        rounded = _rounded(value, 1)
        if rounded < 1000 or unit == _UNITS[-1]:
            break
    return f"{rounded:,} {unit}"


def share(fraction: float) -> str:
    """A part of a whole: 53 %, 1.5 %."""
    if not math.isfinite(fraction):
        return "unknown"
    percent = Decimal(repr(float(fraction))) * 100
    return f"{_rounded(percent, 0 if abs(percent) >= 10 else 1).normalize():f} %"


def change(fraction: float | None) -> str:
    """A relative change with its sign: +1.5 %, -38.9 %, +131 %; finer where it would else be nothing: +0.03 %."""
    if fraction is None or not math.isfinite(fraction):
        return "unknown"
    percent = Decimal(repr(float(fraction))) * 100
    if abs(percent) >= 100:
        return f"{_rounded(percent, 0):+,} %"
    rounded = _rounded(percent, 1) or _rounded(percent, 2)
    return f"{rounded:+} %" if rounded else "0.0 %"


def duration(seconds: float | None) -> str:
    """A time in its two largest units: 3 min 20 s, 2 h 5 min."""
    if seconds is None or not math.isfinite(seconds):
        return "unknown"
    left = max(0, round(seconds))
    if left == 0:
        return "under 1 s" if seconds > 0 else "0 s"
    if left >= 600:  # seconds say nothing beside hours
        left = 60 * round(left / 60)
    parts = []
    for unit, length in _DURATIONS:
        whole, left = divmod(left, length)
        parts.append((whole, unit))
    while parts[0][0] == 0:
        parts.pop(0)
    return " ".join(f"{whole} {unit}" for whole, unit in parts[:2] if whole)


def rate(per_second: float | None) -> str:
    """How fast steps go: 3.2/s, or 12 s each where that is less than one."""
    if per_second is None or not math.isfinite(per_second) or per_second <= 0:
        return ""
    if per_second >= 1:
        return f"{per_second:,.1f}/s"
    each = 1 / per_second
    if not math.isfinite(each) or each >= 1e9:
        return ""
    return f"{each:.1f} s each" if each < 10 else f"{duration(each)} each"


def number(value: float | None) -> str:
    """A measurement in four digits: 9.476, 1.23e+06. What is none is said in words."""
    if value is None:
        return "not measured"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    return f"{value:#.4g}".rstrip(".") if 0.001 <= abs(value) < 10_000 else f"{value:.3g}"


def count(amount: int, noun: str) -> str:
    """1 layer, 18,624 layers."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def magnitude(amount: int) -> str:
    """A large count in words: 8.19 billion, 134.5 million."""
    if amount >= 10**9:
        return f"{_rounded(Decimal(amount) / 10**9, 2):,} billion"
    return f"{_rounded(Decimal(amount) / 10**6, 1):,} million" if amount >= 10**6 else f"{amount:,}"


def moment(at: datetime) -> str:
    """A time of day: 2026-11-30 12:03 UTC."""
    try:
        there = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except OverflowError:  # the last or the first day that there is, in another time zone
        return at.isoformat(" ", "minutes")
    return f"{there:%Y-%m-%d %H:%M} UTC"


def _rounded(value: Decimal, places: int) -> Decimal:
    """Rounded as people do it by hand: a five goes up."""
    precise = Context(prec=max(28, value.adjusted() + places + 2), rounding=ROUND_HALF_UP)
    return value.quantize(Decimal(1).scaleb(-places), context=precise)
