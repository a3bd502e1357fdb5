"""Bytes, seconds and measurements in a sentence."""

from __future__ import annotations

import math

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def size(number: int) -> str:
    """Bytes in powers of ten, as disks are sold: 16.4 GB."""
    value, unit = float(number), "bytes"
    for larger in _UNITS:
        if round(value, 1) < 1000:
            break
        value, unit = value / 1000, larger
    return f"{number:,} {unit}" if unit == "bytes" else f"{value:,.1f} {unit}"


def duration(seconds: float) -> str:
    """A time as people say it: 40 s, 12 min, 3 h 20 min."""
    whole = max(0, round(seconds))
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    hours, left = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {left} min" if left else f"{hours} h"


def number(value: float) -> str:
    """A measurement in four digits: 7.312."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    return f"{value:.4g}"


def change(fraction: float) -> str:
    """A relative change with its sign: +1.4 %."""
    return f"{fraction:+.1%}".replace("%", " %") if math.isfinite(fraction) else "beyond measure"
