"""The values of a plan as people type them: numbers, switches, schemes and algorithms.

Each function reads one value at the cursor and moves behind it, or gives None and leaves the cursor where it was.
"""

from __future__ import annotations

import re

from bot.conversation.words.cursor import Cursor
from bot.conversation.words.phrases import COURTESY, PhraseBook
from bot.conversation.words.text import Kind, Token

_NUMBER = re.compile(r"[0-9]{1,9}|[1-9],[0-9]{3}")
_THOUSANDS = re.compile(r"([0-9]{1,3})k")
_DECIMAL = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})(?:e-?[0-9]{1,2})?")
_FROM = PhraseBook("from")
_TO = PhraseBook("to")
_ON = PhraseBook("true", "enabled")
_OFF = PhraseBook("false", "off", "disabled")
_ENDING_ON = PhraseBook("on", "yes")
_ENDING_OFF = PhraseBook("no")
_BEHIND = PhraseBook("and", "but", "then", *COURTESY)

# What the name of a scheme looks like that this program has not heard of. fp16 and fp32 are no schemes.
_SCHEME = re.compile(
    r"(?!fp(?:16|32)\Z)"
    r"(?:u?int[0-9]{1,2}|fp[0-9]{1,2}|mx(?:fp|int)?[0-9]{1,2}|(?:nv|amd)fp[0-9]{1,2}|bfp[0-9]{1,2}|nf[0-9]{1,2}|ptpc)"
    r"(?:_[a-z0-9]{1,20}){0,6}"
)
# Short names for what the published tables recommend: the smallest model, GGUF, the only per-token FP8.
ALIASES = {"int4": "int4_wo_32", "uint4": "uint4_wo_32", "ptpc": "ptpc_fp8"}
_LOOSELY_AFTER = frozenset({"to", "as", "use", "using", "scheme", "with", "in", "=", ":"})
_BITS = PhraseBook("w8a8")
_PER_CHANNEL = PhraseBook("per channel", "per_channel")
_PER_TENSOR = PhraseBook("per tensor", "per_tensor")
_PER_CHANNEL_OR_TOKEN = PhraseBook("per channel", "per_channel", "per token", "per_token")
_PER_TOKEN = PhraseBook(*_PER_CHANNEL_OR_TOKEN.phrases, "ptpc")
_SMOOTH_QUANT = PhraseBook("smooth quant", "smooth_quant")
_GROUP = PhraseBook(
    *("group size", "group_size", "groups of", "with group size", "with groups of", "group", "g", "groupsize", "gs"),
    *(
        "with group",
        "per group",
        "per_group",
        "per group of",
        "per group size",
        "group size of",
        "with a group size of",
        "in groups of",
        "group of",
        "group size =",
        "group_size =",
    ),
)
_WEIGHT_ONLY = PhraseBook("weight only", "weight_only", "weights only")
_MOST_JOINED = 10
_GROUPED = re.compile(r"g([0-9]{1,4})")


def number(cursor: Cursor) -> int | None:
    """A whole number of plain digits, with commas between the thousands or none."""
    token = cursor.token
    if token is None or token.kind is not Kind.WORD or not _NUMBER.fullmatch(token.text):
        return None
    cursor.at += 1
    return int(token.text.replace(",", ""))


def count(cursor: Cursor) -> int | None:
    """A number of things, which may be counted in thousands: 1k. Of tokens, "2k" could be 2,000 as well as 2,048."""
    thousands = _THOUSANDS.fullmatch(cursor.key)
    if thousands is None:
        return number(cursor)
    cursor.at += 1
    return int(thousands[1]) * 1_000


def new_number(cursor: Cursor) -> int | None:
    """A number, or the second of "from 128 to 256"."""
    start = cursor.at
    if cursor.takes(_FROM) and (number(cursor) is None or not cursor.takes(_TO)):
        cursor.at = start
        return None
    return number(cursor)


def decimal(cursor: Cursor) -> float | None:
    """A number such as 1, 0.5 or 1e-3."""
    token = cursor.token
    if token is None or token.kind is not Kind.WORD or not _DECIMAL.fullmatch(token.text.lower()):
        return None
    cursor.at += 1
    return float(token.text)


def switch(cursor: Cursor) -> bool | None:
    """On or off. "On", "yes" and "no" count where the clause ends with them or courtesy follows: they begin clauses."""
    if cursor.takes(_ON):
        return True
    if cursor.takes(_OFF):
        return False
    start = cursor.at
    on, off = cursor.takes(_ENDING_ON), cursor.takes(_ENDING_OFF)
    if (on or off) and (cursor.token is None or cursor.token.kind is Kind.MARK or cursor.sees(_BEHIND)):
        return on
    cursor.at = start
    return None


def scheme(cursor: Cursor, loosely: bool = False) -> str | None:
    """A scheme. Names that nobody has published are taken where a scheme has to stand (`loosely`, or after "to", "use"
    and their like), so that the runner says what it knows of them."""
    start = cursor.at
    loosely = loosely or cursor.headed or cursor.before in _LOOSELY_AFTER
    if cursor.quoted:
        return _named_scheme(cursor, loosely=True) if loosely else None
    cursor.takes(_BITS)  # "w8a8 int8" says it twice; by itself it may be int8 or fp8
    found = _spelled_apart(cursor) or _granular(cursor) or _named_scheme(cursor, loosely)
    if found is None:
        cursor.at = start
    else:
        cursor.takes(_BITS)
    return found


def known_scheme(token: Token, cursor: Cursor) -> str | None:
    """The scheme that a token names, when somebody has published it."""
    text = token.text.strip()
    if text in cursor.vocabulary.schemes:
        return text
    key = text.lower().replace("-", "_")
    return cursor.vocabulary.scheme_of.get(key) or ALIASES.get(key)


def looks_like_scheme(token: Token, cursor: Cursor) -> bool:
    """Whether a token names a scheme, published or not."""
    return known_scheme(token, cursor) is not None or _SCHEME.fullmatch(token.key) is not None


def _named_scheme(cursor: Cursor, loosely: bool) -> str | None:
    token = cursor.token
    if token is None or token.kind not in (Kind.WORD, Kind.QUOTED):
        return None
    key = token.text.strip().lower().replace("-", "_")
    name = known_scheme(token, cursor) or (key if loosely and _is_new(key, cursor) else None)
    cursor.at += name is not None
    return name


def _is_new(key: str, cursor: Cursor) -> bool:
    """Whether it has the looks of a scheme that nobody has published: no part of those that are."""
    return _SCHEME.fullmatch(key) is not None and not any(key in known for known in cursor.vocabulary.scheme_of)


def _spelled_apart(cursor: Cursor) -> str | None:
    """Names in words: int4 wo 32, int4 group size 64, uint4 g128, int4 per channel."""
    start, kind = cursor.at, cursor.key
    if kind not in ("int4", "uint4"):
        return None
    cursor.at += 1
    cursor.takes(_WEIGHT_ONLY)
    said = cursor.key in ("wo", "wa")
    of = cursor.key if said else "wo"
    cursor.at += said
    group = _group(cursor, said)
    found = f"{kind}_{of}_{group}"
    # A group that nobody offers leaves its number behind, and the sentence is not understood.
    if found not in cursor.vocabulary.schemes:
        cursor.at = start
        return None
    return found


def _granular(cursor: Cursor) -> str | None:
    """Names with what has a scale of its own: "fp8 per tensor" is fp8 itself, "per channel fp8" is ptpc_fp8.

    Source: AMD Quark's schemes; INT8 has a scale per tensor, and FP8 one per tensor or per token and channel.
    """
    start = cursor.at
    tensor, token = cursor.takes(_PER_TENSOR), cursor.takes(_PER_TOKEN)
    kind = cursor.key
    if kind in ("fp8", "int8"):
        cursor.at += 1
        if not tensor and not token:
            behind = cursor.at
            tensor, token = cursor.takes(_PER_TENSOR), cursor.takes(_PER_CHANNEL_OR_TOKEN)
            if cursor.key in ("fp8", "int8"):  # "fp8 per channel fp8": it is said of the one that follows
                tensor, token, cursor.at = False, False, behind
        found = kind if tensor and not token else "ptpc_fp8" if token and not tensor and kind == "fp8" else ""
        if found in cursor.vocabulary.schemes:
            return found
    cursor.at = start
    return None


def _group(cursor: Cursor, said: bool) -> str | int | None:
    grouped = _GROUPED.fullmatch(cursor.key)
    if grouped:
        cursor.at += 1
        return int(grouped[1])
    if cursor.takes(_PER_CHANNEL):
        return "per_channel"
    if cursor.takes(_GROUP) or said:
        return number(cursor)
    return None


def algorithm(cursor: Cursor, quoted: bool = False) -> str | None:
    """One algorithm that is known; between quotes only where it is asked for or stands behind a verb."""
    token = cursor.token
    if token is None or not (token.kind is Kind.WORD or (cursor.quoted and (quoted or cursor.headed))):
        return None
    names, text = cursor.vocabulary, token.text.strip()
    if cursor.takes(_SMOOTH_QUANT):
        return names.algorithm_of.get("smoothquant")
    found = text if text in names.algorithms else names.algorithm_of.get(text.lower().replace("-", "_"))
    cursor.at += found is not None
    return found


def joined_algorithms(cursor: Cursor) -> list[str]:
    """Several algorithms that are known in one word: awq+smoothquant. Empty when they are not."""
    token = cursor.token
    if token is None or token.kind is not Kind.WORD or not 0 < token.text.count("+") < _MOST_JOINED:
        return []
    named = [cursor.vocabulary.algorithm_of.get(part.replace("-", "_")) for part in token.word.split("+")]
    found = [name for name in named if name is not None]
    if len(found) < len(named):
        return []
    cursor.at += 1
    return found
