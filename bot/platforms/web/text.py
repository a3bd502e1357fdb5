"""Text of people and models as HTML: escaped, and with every character that hides or reorders others made visible."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache

from markupsafe import Markup, escape

from bot.cards.amounts import moment

# Overrides and embeddings reorder what stands around them; the marks are invisible and reorder too.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# Letters and marks that draw nothing, though Unicode counts them as printable.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


_MOMENT = re.compile(r"\b([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}) UTC\b")

_LINES = str.maketrans("", "", "\n")
_LINES_AND_TABS = str.maketrans("", "", "\n\t")


def words(text: str) -> Markup:
    """Words of a person or a model. Control characters and what reorders text are shown by their code points."""
    return _marked(text, exact=False)


def told(text: str) -> Markup:
    """Words of a card. Moments in them become times, which the page's script turns into the reader's own."""
    pieces, end = [], 0
    for moment_in in _MOMENT.finditer(text):
        day, minute = moment_in.groups()
        pieces.append(_marked(text[end : moment_in.start()], exact=False))
        pieces.append(Markup('<time datetime="{}T{}:00Z">{}</time>').format(day, minute, moment_in[0]))
        end = moment_in.end()
    return Markup("").join([*pieces, _marked(text[end:], exact=False)])


def exact(text: str) -> Markup:
    """A command, whose every letter counts: whatever is invisible or only looks like ASCII is marked.

    Lines break between arguments only, where one of them is not longer than a line.
    """
    words = (Markup('<span class="word">{}</span>').format(_marked(word, exact=True)) for word in text.split(" "))
    return Markup(" ").join(words)


def when(at: datetime) -> Markup:
    """A time of day in UTC, which the page's script turns into the reader's own."""
    return Markup('<time datetime="{}">{}</time>').format(f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", moment(at))


def _marked(text: str, exact: bool) -> Markup:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii() and text.translate(_LINES if exact else _LINES_AND_TABS).isprintable():
        return escape(text)
    return Markup("").join(_letter(letter, exact) for letter in text)


@lru_cache(maxsize=4096)
def _letter(letter: str, exact: bool) -> Markup:
    if letter == "\n" or (letter == "\t" and not exact):
        return Markup(letter)
    hidden = letter in _REORDERING or unicodedata.category(letter) in {"Cc", "Cs"} or letter in "\u2028\u2029"
    if exact:
        hidden = hidden or not letter.isprintable() or letter in _BLANK or _is_variation(letter)
    if hidden:
        return Markup('<span class="odd" title="{}">{}</span>').format(_name(letter), f"U+{ord(letter):04X}")
    if exact and not letter.isascii():
        return Markup('<span class="foreign" title="{}">{}</span>').format(_name(letter), letter)
    return escape(letter)


def _is_variation(letter: str) -> bool:
    return "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"


def _name(letter: str) -> str:
    return f"U+{ord(letter):04X} {unicodedata.name(letter, '')}".strip()
