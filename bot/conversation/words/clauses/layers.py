"""Layers that are left out or quantized otherwise."""

from __future__ import annotations

import re

from pydantic import JsonValue

from bot.conversation.words import layer_numbers, patterns, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_EXCLUDE = PhraseBook(
    *("exclude", "exclude_layers", "exclude layers", "excluded layers", "exclusions", "change the exclusions")
)
_ONLY = PhraseBook("only", "just", "for", "layers", "all", "all of", "every")
_NOTHING = PhraseBook("nothing", "none", "no layers", "no layer", "nothing at all")
_DEFAULT = PhraseBook("default", "defaults", "the default", "the defaults")
_DEFAULT_EXCLUSIONS = PhraseBook(
    "default exclusions", "default exclude layers", "default exclude_layers", "standard exclusions"
)
_FROM_QUANTIZATION = PhraseBook("from quantization", "from being quantized")

_OVERRIDE = PhraseBook(
    *("quantize", "quantise", "keep", "leave", "put", "override", "layer_quant_config", "layer_quant_scheme"),
    *("layer quant config", "layer quant scheme", "layer override", "layer scheme"),
)
_KEEPS = frozenset({"keep", "leave"})
_ONE_BY_ONE = "Say it one by one, as in: keep layer 0 in full precision, and attention in fp8."
_WHICH_LAYERS = "Name the layers by a pattern or a number, as in: also exclude *mlp.gate*, or: keep layer 0."
_QUANTIZES = frozenset({"quantize", "quantise"})
_LAYERS_WORD = PhraseBook("layers", "layer", "blocks", "modules")
_WITH = PhraseBook("with", "to", "at", "as", "in", "using", "by", "=", ":")
_FOR = PhraseBook("for", "on", "in")
_OVERRIDES = PhraseBook(
    *("layer overrides", "overrides", "layer override", "per layer overrides", "per_layer overrides", "layer schemes"),
    *("per pattern overrides", "per_pattern overrides", "layer_quant_config", "layer quant config"),
)
_EXCLUSIONS = PhraseBook("exclusions", "excluded layers", "exclude layers", "exclude_layers", "exclusion")
_NONE = PhraseBook("none", "null", "off")
_OVERRIDES_OF = PhraseBook(
    *(
        f"{what} {of}"
        for what in ("override", "overrides", "layer override", "own scheme")
        for of in ("for", "of", "on")
    ),
    *(f"{what} {of}" for what in ("scheme of its own", "scheme of their own") for of in ("for", "on")),
)
_TOO = PhraseBook("too", "as well", "also", "in addition", "additionally")


def exclusions(cursor: Cursor, gathered: Gathered) -> bool:
    """ "exclude lm_head and *mlp.gate*", "exclude nothing". They replace what is excluded by then; with "also" or "too"
    they are added to it."""
    if cursor.takes(_DEFAULT_EXCLUSIONS):
        return gathered.choose("exclude_layers", None)
    adds = cursor.adds
    if not cursor.takes(_EXCLUDE):
        return False
    adds = cursor.takes(_TOO) or adds
    cursor.equals()
    cursor.skips(_ONLY)
    if cursor.before == "layers" and cursor.key[:1].isdigit():
        cursor.at -= 1  # "exclude layers 0 and 1": the word belongs to the numbers
    if not adds and cursor.takes(_NOTHING):
        return gathered.choose("exclude_layers", [])
    if not adds and cursor.takes(_DEFAULT):
        return gathered.choose("exclude_layers", None)
    found: list[JsonValue] = [*patterns.several(cursor)]
    if not found:
        cursor.advice = _WHICH_LAYERS
    if not found or scheme_follows(cursor):
        return False
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_FROM_QUANTIZATION)
    if cursor.takes(_TOO) or adds:
        return gathered.exclude(map(str, found))
    return gathered.choose("exclude_layers", found)


def overrides(cursor: Cursor, gathered: Gathered) -> bool:
    """ "quantize *self_attn* with fp8", "*self_attn* fp8", "keep lm_head at fp8", "fp8 for the attention"."""
    start = cursor.at
    if _scheme_for(cursor, gathered):
        return True
    cursor.at = start
    verb = cursor.key
    if cursor.takes(_OVERRIDE):
        begin = cursor.at
        found = patterns.sure(cursor) if verb in _QUANTIZES else patterns.several(cursor)
        two = verb in _KEEPS or cursor.adds
        if two and any(token.text == "," for token in cursor.tokens[begin : cursor.at]):
            cursor.advice = _ONE_BY_ONE  # "keep layer 0, attention in fp8": what becomes of layer 0?
            return False
    else:
        begin = cursor.at
        found = patterns.sure(cursor)
        if any(token.text == "," for token in cursor.tokens[begin : cursor.at]) and not _of_numbers(found):
            # "lm_head, attention in fp8": what becomes of the first?
            cursor.at = begin
            only = patterns.one(cursor, surely=True)
            found = [only] if only else layer_numbers.numbered(cursor)
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_WITH)
    name = values.scheme(cursor, loosely=True) if found else None
    return name is not None and _tell(found, name, gathered)


def _of_numbers(found: list[str]) -> bool:
    return all(re.fullmatch(r"\*layers\.[0-9]+\.\*", pattern) for pattern in found)


def _scheme_for(cursor: Cursor, gathered: Gathered) -> bool:
    name = values.scheme(cursor)
    if name is None or not cursor.takes(_FOR):
        return False
    found = patterns.sure(cursor)
    if not found or scheme_follows(cursor):
        return False
    cursor.takes(_LAYERS_WORD)
    return _tell(found, name, gathered)


def scheme_follows(cursor: Cursor) -> bool:
    """Whether the last pattern may have a scheme of its own: "exclude lm_head, *self_attn* fp8" can be read in two
    ways."""
    start = cursor.at
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_WITH)
    found = values.scheme(cursor, loosely=True) is not None
    cursor.at = start
    return found


def _tell(found: list[str], name: str, gathered: Gathered) -> bool:
    for pattern in found:
        gathered.layers(pattern, name)
    return True


def takes_exclusions(cursor: Cursor) -> bool:
    """Read the word for them."""
    return cursor.takes(_EXCLUSIONS)


def takes_overrides(cursor: Cursor) -> bool:
    """Read the word for them."""
    return cursor.takes(_OVERRIDES)


def no_override_of(cursor: Cursor, gathered: Gathered) -> bool:
    """ "(no) override for lm_head": behind a word that takes it away."""
    found = patterns.several(cursor) if cursor.takes(_OVERRIDES_OF) else []
    if scheme_follows(cursor):
        return False
    for pattern in found:
        gathered.layers(pattern, None)
    return bool(found)


def no_overrides(cursor: Cursor, gathered: Gathered) -> bool:
    """ "layer overrides none"."""
    if not takes_overrides(cursor):
        return False
    cursor.equals()
    return cursor.takes(_NONE) and none_of_them(gathered)


def none_of_them(gathered: Gathered) -> bool:
    """No scheme of their own for any layers."""
    return gathered.choose("layer_quant_config", {})
