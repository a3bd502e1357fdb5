"""Layers that people call by their number: "layer 0", "layers 0-3", "the first two layers"."""

from __future__ import annotations

import re

from bot.conversation.words import phrases
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind

_MOST = 256  # layers that one sentence may name by number
_LAYER = PhraseBook(
    *("layer", "layers", "decoder layer", "decoder layers", "transformer layer", "transformer layers"),
    *("block", "blocks", "decoder block", "decoder blocks", "transformer block", "transformer blocks"),
    "layer number",
)
_FIRST = PhraseBook("first")
_SPOKEN = {
    word: at
    for at, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_RANGE = re.compile(r"([0-9]{1,4})-([0-9]{1,4})")
_NUMBER = re.compile(r"#?([0-9]{1,4})")
_TO = PhraseBook("to", "through", "until", "-", "–", "—")
_AND = PhraseBook(", and", ",", "and", "+", "&")
# What may stand behind a number in a list; "layer 0, 256 samples" names one layer.
_BEHIND = PhraseBook(
    *phrases.COURTESY,
    *phrases.ASIDES,
    *(",", ".", ";", "!", ":", "=", "and", "but", "then", "in", "at", "as", "to", "with", "using", "by", "from", "for"),
    *("alone", "unquantized", "unquantised", "untouched", "unchanged", "intact", "out", "too", "also", "stays", "stay"),
    *("please", "thanks", "instead", "only", "full precision", "not quantized", "is", "are", "+", "&", "-", "–"),
)


def numbered(cursor: Cursor) -> list[str]:
    """The patterns of the layers that are named by number here; empty, with the cursor unmoved, where none are.

    Families of the LLaMA kind call them model.layers.N; where a model does not, the plan says that nothing matches.
    """
    start = cursor.at
    cursor.skips_article()
    found = _first(cursor) if cursor.takes(_FIRST) else _listed(cursor) if cursor.takes(_LAYER) else []
    if not 0 < len(found) <= _MOST:
        cursor.at = start
        return []
    return [f"*layers.{number}.*" for number in dict.fromkeys(found)]


def _first(cursor: Cursor) -> list[int]:
    count = 1
    named = cursor.key
    if named in _SPOKEN or (named.isascii() and named.isdigit() and len(named) < 5):
        count = _SPOKEN.get(named) or int(named)
        cursor.at += 1
    return list(range(count)) if count <= _MOST and cursor.takes(_LAYER) else []


def _listed(cursor: Cursor) -> list[int]:
    found: list[int] = []
    while part := _range(cursor, beginning=not found):
        found += part
        behind = cursor.at
        if len(found) > _MOST or not cursor.takes(_AND):
            break
    else:
        cursor.at = behind if found else cursor.at
    return found


def _range(cursor: Cursor, beginning: bool) -> list[int]:
    start, token = cursor.at, cursor.token
    if token is None or token.kind is not Kind.WORD:
        return []
    joined, single = _RANGE.fullmatch(token.text), _NUMBER.fullmatch(token.text)
    if joined is None and single is None:
        return []
    cursor.at += 1
    first, last = (int(joined[1]), int(joined[2])) if joined else (int(single[1]),) * 2 if single else (0, 0)
    behind = cursor.at
    if single and cursor.takes(_TO):
        other = _NUMBER.fullmatch(cursor.token.text) if cursor.token is not None else None
        last = int(other[1]) if other else last
        cursor.at += 1 if other else behind - cursor.at
    if not beginning and not (cursor.ended or cursor.sees(_BEHIND)):
        cursor.at = start
        return []
    return list(range(first, last + 1)) if first <= last < first + _MOST else []
