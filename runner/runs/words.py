"""Small pieces of the sentences that a report is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 300  # characters of a name or a log line that a person is shown
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LAYER_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)")


def plain(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, without control characters, in characters that UTF-8 can carry, and not too long.

    File names, tensor names and log lines are written by programs that may have gone wrong; a report is read by people.
    """
    text = _CONTROL_SEQUENCE.sub("", text[: 20 * longest])
    text = "".join(letter if letter.isprintable() else _escaped(letter) for letter in text).strip()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _escaped(letter: str) -> str:
    if letter.isspace():
        return " "
    return letter.encode("ascii", "backslashreplace").decode("ascii") if ord(letter) > 0x7F else f"\\x{ord(letter):02x}"


def size(number: float) -> str:
    """Bytes as people say them, in powers of ten like the disk's label: 8.2 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(number) < 1000:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def count(number: int, noun: str) -> str:
    """`1 layer`, `252 layers`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(change: float) -> str:
    """A relative change with its sign: +0.8 %."""
    return f"{100 * change:+.1f} %" if abs(change) < 1 else f"{100 * change:+,.0f} %"


def some(names: Iterable[str], at_most: int = 3) -> str:
    """The first few names, and how many more there are."""
    kept = [plain(name, 120) for name in names]
    more = len(kept) - at_most
    return ", ".join(kept[:at_most]) + (f" and {more:,} more" if more > 0 else "")


def pattern(name: str) -> str:
    """The name with `*` for each layer or expert number: what one sentence can say of many layers."""
    return _LAYER_NUMBER.sub("*", name)
