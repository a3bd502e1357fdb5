"""Layers that are left as they are, or quantized after all, beside what is said of others already."""

from __future__ import annotations

from bot.conversation.words import hints, patterns, values
from bot.conversation.words.clauses.layers import scheme_follows
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind

_KEEP = PhraseBook("keep", "leave", "preserve")
_PARTS = PhraseBook("kv cache", "kv_cache", "scheme", "algorithm", "evaluation", "export", "calibration", "dataset")
_NOT_QUANTIZED = PhraseBook(
    *("dont quantize", "do not quantize", "never quantize", "dont quantise", "do not quantise", "dont touch"),
    *("do not touch", "never touch", "not quantize", "not quantizing", "without quantizing", "skip quantizing"),
    *("no quantization for", "no quantization of", "no quantization on", "without quantization of", "not touching"),
    *("dont compress", "do not compress", "spare", "skip", "leave out", "omit"),
)
_EXCEPT = PhraseBook("except", "except for", "excluding", "except in", "apart from", "but not")
_ALL_BUT = PhraseBook(
    *(
        f"{verb}{all_of} {but}"
        for verb in ("", "quantize ", "quantise ")
        for all_of in ("everything", "all layers", "all", "anything")
        for but in ("except", "except for", "but", "apart from", "excluding")
    )
)
_NOT = PhraseBook("not", "not the")
_ADD = PhraseBook("add")
_TO_EXCLUSIONS = PhraseBook(
    *(
        f"to {article}{word}"
        for article in ("", "the ")
        for word in ("exclusions", "excluded layers", "exclude_layers")
    ),
    *("to the exclusion list", "to exclude layers", "to the exclude list", "to the excludes"),
)
_TOO = PhraseBook("too", "as well", "also", "in addition")
_STAYS = PhraseBook("stays", "stay", "remains", "remain", "is kept", "are kept", "kept", "left", "is left")
_WIDE = (
    *("full precision", "high precision", "original precision", "its original precision", "their original precision"),
    *("bf16", "bfloat16", "fp16", "float16", "16 bit", "16_bit", "16bit", "16 bits", "half precision"),
)
_AS_IT_IS = PhraseBook(
    *(f"{at} {wide}" for at in ("in", "at", "as", "with", "to") for wide in _WIDE),
    *_WIDE,
    *("unquantized", "unquantised", "not quantized", "as is", "as_is", "as it is", "as they are", "alone", "untouched"),
    *("out", "out of it", "out of quantization", "out of the quantization", "unchanged", "intact", "as it was"),
    *("in its original form", "in original form", "in its dtype", "from being quantized", "the way it is"),
)
_QUANTIZE = PhraseBook("quantize", "quantise", "also quantize", "include", "also include", "compress")
_AFTER_ALL = PhraseBook("too", "as well", "also", "after all", "anyway", "nevertheless")
_INCLUDE = PhraseBook(
    *("dont exclude", "do not exclude", "never exclude", "stop excluding", "no longer exclude", "not exclude"),
    *("dont skip", "do not skip", "dont keep", "do not keep", "dont leave", "do not leave", "unexclude", "un_exclude"),
)
_TAKE = PhraseBook("remove", "take", "drop", "delete")
_FROM_EXCLUSIONS = PhraseBook(
    *(
        f"{of} {article}{word}"
        for of in ("from", "out of", "off")
        for article in ("", "the ")
        for word in ("exclusions", "excluded layers", "exclude_layers", "exclusion list", "exclude list", "excludes")
    )
)


def kept(cursor: Cursor, gathered: Gathered) -> bool:
    """ "keep layer 0", "leave lm_head in bf16", "don't quantize lm_head", "skip lm_head", "except layer 0", "lm_head
    unquantized": left out beside what is left out already."""
    # "Exclude lm_head but not *gate*" says the contrary of "fp8 but not *gate*".
    but_not = cursor.before == "but" and not gathered.excludes and cursor.takes(_NOT)
    if cursor.takes(_ADD):
        found = patterns.several(cursor)
        return bool(found) and cursor.takes(_TO_EXCLUSIONS) and gathered.exclude(found)
    if cursor.takes(_ALL_BUT):
        found = patterns.several(cursor)
        return bool(found) and not scheme_follows(cursor) and gathered.choose("exclude_layers", [*found])
    if but_not or cursor.takes(_EXCEPT):
        found = patterns.several(cursor)
    elif cursor.takes(_NOT_QUANTIZED):
        cursor.takes(_TOO)
        found = patterns.sure(cursor)
    elif cursor.takes(_KEEP):
        return _kept_so(cursor, gathered)
    else:
        return _so(cursor, gathered)
    if not found or scheme_follows(cursor):
        return False
    cursor.takes(_AS_IT_IS)
    cursor.takes(_TOO)
    return gathered.exclude(found)


def _kept_so(cursor: Cursor, gathered: Gathered) -> bool:
    start = cursor.at
    found = patterns.several(cursor)
    so = bool(found) and not scheme_follows(cursor) and cursor.takes(_AS_IT_IS)
    if not found and _of_the_plan(cursor):
        cursor.advice = hints.STANDS
    if not so:
        cursor.at = start
        found = patterns.sure(cursor)
    if not found or scheme_follows(cursor):
        return False
    cursor.takes(_AS_IT_IS)
    cursor.takes(_TOO)
    return gathered.exclude(found)


def _of_the_plan(cursor: Cursor) -> bool:
    """Whether a scheme, an algorithm or another thing that a plan has by itself stands here, and nothing more."""
    start = cursor.at
    cursor.skips_article()
    found = (
        values.scheme(cursor, loosely=True) is not None or values.algorithm(cursor) is not None or cursor.takes(_PARTS)
    )
    cursor.takes(_PARTS)
    found = found and (cursor.ended or cursor.token is None or cursor.token.kind is Kind.MARK)
    cursor.at = start
    return found


def _so(cursor: Cursor, gathered: Gathered) -> bool:
    found = patterns.sure(cursor)
    if not found or scheme_follows(cursor):
        return False
    cursor.takes(_STAYS)
    so = cursor.takes(_AS_IT_IS)
    cursor.takes(_TOO)
    return so and gathered.exclude(found)


def included(cursor: Cursor, gathered: Gathered) -> bool:
    """ "quantize lm_head too", "don't exclude lm_head", "take lm_head out of the exclusions": quantized after all."""
    adds = cursor.adds or cursor.before == "also"
    if cursor.takes(_TAKE):
        found = patterns.several(cursor)
        return bool(found) and cursor.takes(_FROM_EXCLUSIONS) and gathered.exclude(found, excluded=False)
    if cursor.takes(_INCLUDE):
        found, told = patterns.sure(cursor), True
    else:
        word = cursor.reads(_QUANTIZE)
        told = adds or word.startswith("also") or word == "include" or (bool(word) and cursor.takes(_TOO))
        found = patterns.sure(cursor) if word else []
    if not found or scheme_follows(cursor):
        return False
    told = cursor.takes(_AFTER_ALL) or told
    return told and gathered.exclude(found, excluded=False)
