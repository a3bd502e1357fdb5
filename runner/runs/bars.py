"""Progress bars as tqdm draws them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Bar:
    """One state of one progress bar: one segment of a log."""

    name: str
    done: int
    total: int | None = None
    rate: float | None = None
    """Steps per second."""
    seconds_left: float | None = None
    rest: str = ""
    """What stands on the same line behind the bar."""

    @classmethod
    def read(cls, line: str) -> Bar | None:
        """The bar that a line begins with; None for any other line. Numbers that the bar does not know are None."""
        if "[" not in line or ("/s" not in line and "s/" not in line):
            return None
        if found := _WITH_TOTAL.fullmatch(line):
            total, left = _count(found["total"]), _seconds(found["left"])
        elif found := _WITHOUT_TOTAL.fullmatch(line):
            total, left = None, None
        else:
            return None
        return cls(found["name"] or "", _count(found["done"]), total, _rate(found["rate"]), left, found["rest"].strip())


_NUMBER = r"\d{1,18}(?:\.\d{1,18})?(?:e\+?\d{1,2})?[kMGTPEZY]?"
_RATE = r"(?P<rate>[^,\]]{1,60})(?:,[^\]]*)?\](?P<rest>.*)"
# "name:  25%|##5       | 2/8 [00:00<00:03, 1.76it/s, loss=1]"; the bar itself is missing where the terminal is narrow.
_WITH_TOTAL = re.compile(
    rf"(?:(?P<name>\S.{{0,160}}?): )?\s*\d{{1,3}}%(?:\|[^|]*\||\s)\s*(?P<done>{_NUMBER})/(?P<total>{_NUMBER})\s*"
    rf"\[[-\d:]+<(?P<left>[-\d:]+|\?),\s*{_RATE}"
)
# "name: 400 examples [00:00, 23388.42 examples/s]"
_WITHOUT_TOTAL = re.compile(
    rf"(?:(?P<name>\S.{{0,160}}?): )?\s*(?P<done>{_NUMBER})(?P<unit> ?[^\s\d\[\]]{{0,20}}) \[[-\d:]+,\s*{_RATE}"
)
_PER_SECOND = re.compile(r"(?P<number>\d[\d.]*(?:e[+-]?\d+)?)(?P<unit>[^/]*)/s")
_SECONDS_PER = re.compile(r"(?P<number>\d[\d.]*(?:e[+-]?\d+)?)(?P<scale>[kMGTPEZY]?)s/.*")
# A unit that begins with a letter of the scale would else read as a thousand times something ("k" + "eys").
_SCALED_UNIT = re.compile(r"(?P<scale>[kMGTPEZY]?)(?:it|i?B| ?examples|files?|ba)")
_SCALES: Final = {scale: 1000.0**power for power, scale in enumerate(["", *"kMGTPEZY"])}


def _count(text: str) -> int:
    """The number that a bar shows; "1.23M" means 1,230,000."""
    scale = text[-1] if text[-1].isalpha() else ""
    return round(float(text.removesuffix(scale)) * _SCALES[scale])


def _rate(text: str) -> float | None:
    """Steps per second from "1.7it/s", "4.37s/it", "12.3MB/s" or "2.1kit/s"; None from "?it/s"."""
    text = text.strip()
    if found := _PER_SECOND.fullmatch(text):
        unit = _SCALED_UNIT.fullmatch(found["unit"])
        return _as_float(found["number"], _SCALES[unit["scale"]] if unit else 1.0)
    if found := _SECONDS_PER.fullmatch(text):
        seconds = _as_float(found["number"], _SCALES[found["scale"]])
        return _finite(1 / seconds) if seconds else None
    return None


def _as_float(text: str, scale: float) -> float | None:
    try:
        return _finite(float(text) * scale)
    except ValueError:
        return None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _seconds(text: str) -> float | None:
    """Seconds from "MM:SS" or "H:MM:SS"; None from "?" and from a negative time."""
    if not re.fullmatch(r"(?:\d{1,9}:)?\d{1,9}:\d{1,9}", text):
        return None
    seconds = 0
    for part in text.split(":"):
        seconds = seconds * 60 + int(part)
    return float(seconds)
