"""Layers that are left out or quantized otherwise."""

from __future__ import annotations

from pydantic import JsonValue

from bot.conversation.words import patterns, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_EXCLUDE = PhraseBook(
    "exclude", "excluding", "exclude_layers", "exclude layers", "excluded layers", "exclusions", "except"
)
_ONLY = PhraseBook("only", "just", "for", "layers")
_NOTHING = PhraseBook("nothing", "none", "no layers", "no layer", "nothing at all")
_DEFAULT = PhraseBook("default", "defaults", "the default", "the defaults")
_DEFAULT_EXCLUSIONS = PhraseBook(
    "default exclusions", "default exclude layers", "default exclude_layers", "standard exclusions"
)
_FROM_QUANTIZATION = PhraseBook("from quantization", "from being quantized")

_OVERRIDE = PhraseBook(
    *("quantize", "quantise", "keep", "put", "override", "layer_quant_config", "layer_quant_scheme"),
    *("layer quant config", "layer quant scheme", "layer override", "layer scheme"),
)
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


def exclusions(cursor: Cursor, gathered: Gathered) -> bool:
    """ "exclude lm_head and *mlp.gate*", "exclude nothing". They replace the engine's defaults."""
    if cursor.takes(_DEFAULT_EXCLUSIONS):
        return gathered.choose("exclude_layers", None)
    # "Also exclude ..." adds to a list that is not seen here.
    if cursor.adds or not cursor.takes(_EXCLUDE):
        return False
    cursor.equals()
    cursor.skips(_ONLY)
    if cursor.takes(_NOTHING):
        return gathered.choose("exclude_layers", [])
    if cursor.takes(_DEFAULT):
        return gathered.choose("exclude_layers", None)
    found: list[JsonValue] = [*patterns.several(cursor)]
    if not found or _scheme_follows(cursor):
        return False
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_FROM_QUANTIZATION)
    return gathered.choose("exclude_layers", found)


def overrides(cursor: Cursor, gathered: Gathered) -> bool:
    """ "quantize *self_attn* with fp8", "*self_attn* fp8", "keep lm_head at fp8", "fp8 for the attention"."""
    if cursor.adds and not gathered.has_layers:
        return False
    start = cursor.at
    if _scheme_for(cursor, gathered):
        return True
    cursor.at = start
    verb = cursor.key
    if cursor.takes(_OVERRIDE):
        found = _sure(cursor) if verb in _QUANTIZES else patterns.several(cursor)
    else:
        only = patterns.one(cursor, surely=True)
        found = [only] if only else []
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_WITH)
    name = values.scheme(cursor, loosely=True) if found else None
    return name is not None and _tell(found, name, gathered)


def _scheme_for(cursor: Cursor, gathered: Gathered) -> bool:
    name = values.scheme(cursor)
    if name is None or not cursor.takes(_FOR):
        return False
    found = _sure(cursor)
    if not found or _scheme_follows(cursor):
        return False
    cursor.takes(_LAYERS_WORD)
    return _tell(found, name, gathered)


def _scheme_follows(cursor: Cursor) -> bool:
    """Whether the last pattern may have a scheme of its own: "exclude lm_head, *self_attn* fp8" can be read in two
    ways."""
    start = cursor.at
    cursor.takes(_LAYERS_WORD)
    cursor.takes(_WITH)
    found = values.scheme(cursor, loosely=True) is not None
    cursor.at = start
    return found


def _sure(cursor: Cursor) -> list[str]:
    """Patterns, when the first of them can hardly be the name of a model."""
    start = cursor.at
    if patterns.one(cursor, surely=True) is None:
        return []
    cursor.at = start
    return patterns.several(cursor)


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


def no_overrides(cursor: Cursor, gathered: Gathered) -> bool:
    """ "layer overrides none"."""
    if not takes_overrides(cursor):
        return False
    cursor.equals()
    return cursor.takes(_NONE) and none_of_them(gathered)


def none_of_them(gathered: Gathered) -> bool:
    """No scheme of their own for any layers."""
    return gathered.choose("layer_quant_config", {})
