"""Clauses that take something away."""

from __future__ import annotations

from bot.conversation.words import values
from bot.conversation.words.clauses import configuring, layers, measuring, places, quantizing, running
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_WITHOUT = PhraseBook(
    *("no", "without", "cancel", "stop", "stop using", "drop", "remove", "disable", "skip", "turn off", "switch off"),
    *("dont use", "do not use", "never use", "dont apply", "do not apply", "dont quantize", "do not quantize"),
    *("dont run", "do not run", "omit", "clear", "unset", "forget", "not", "dont write", "do not write", "dont set"),
    *(f"{who} {want}" for who in ("i", "we") for want in ("dont want", "do not want", "dont need", "do not need")),
    *("get rid of", "leave out", "leave away", "ditch", "dont derive", "do not derive", "not using", "dont do"),
)
_NOT = frozenset({"not", "not using"})
_ANY = PhraseBook("any", "all", "using")
_MIN_KV_SCALE = PhraseBook("min kv scale", "min_kv_scale", "minimum kv scale")
_POST_ROPE = PhraseBook("kv cache post rope", "kv_cache_post_rope", "kv post rope", "post rope", "post_rope")
_REMOTE_CODE = PhraseBook("remote code", "trust remote code", "trust_remote_code", "trusting remote code")


def without(cursor: Cursor, gathered: Gathered) -> bool:
    """ "no kv cache", "without awq", "skip evaluation", "stop using awq", "not fp8" beside another scheme."""
    how = cursor.reads(_WITHOUT)
    if not how:
        return False
    start = cursor.at
    cursor.skips(_ANY)
    cursor.skips_article()
    begin = cursor.at
    for clause in (_kv, _run, _algorithm, _others):
        if clause(cursor, gathered):
            return True
        cursor.at = begin
    cursor.at = start
    if how not in _NOT:
        return False
    refused = values.scheme(cursor, loosely=True)
    return refused is not None and gathered.refuse(refused)


def _kv(cursor: Cursor, gathered: Gathered) -> bool:
    if cursor.takes(_MIN_KV_SCALE):
        return gathered.choose("min_kv_scale", None)
    if cursor.takes(_POST_ROPE):
        return gathered.choose("kv_cache_post_rope", False)
    if quantizing.takes_attention(cursor):
        return gathered.choose("attention_dtype", None)
    return quantizing.takes_kv(cursor) and gathered.choose("kv_cache_scheme", None)


def _run(cursor: Cursor, gathered: Gathered) -> bool:
    if measuring.nothing_of(cursor, gathered) or running.nothing_of(cursor, gathered):
        return True
    if configuring.takes_configuration(cursor):
        return gathered.choose("write_algorithm_config", False)
    return measuring.takes_evaluation(cursor) and gathered.choose("evaluation_intent", "none")


def _algorithm(cursor: Cursor, gathered: Gathered) -> bool:
    name = values.algorithm(cursor)
    if name is None:
        return quantizing.takes_algorithm_word(cursor) and gathered.choose("algorithm", None)
    quantizing.takes_algorithm_word(cursor)
    return gathered.without(name)


def _others(cursor: Cursor, gathered: Gathered) -> bool:
    if cursor.takes(_REMOTE_CODE):
        return gathered.choose("trust_remote_code", False)
    if places.takes_revision(cursor):
        return gathered.own("revision", "")
    if layers.no_override_of(cursor, gathered):
        return True
    if layers.takes_exclusions(cursor):
        return gathered.choose("exclude_layers", [])
    return layers.takes_overrides(cursor) and layers.none_of_them(gathered)
