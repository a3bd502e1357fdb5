"""Clauses that take something away."""

from __future__ import annotations

from bot.conversation.words.clauses import finishing, layers, places, quantizing
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_WITHOUT = PhraseBook(
    *("no", "without", "cancel", "stop", "stop using", "drop", "remove", "disable", "skip", "turn off", "switch off"),
    *("dont use", "do not use", "never use", "dont apply", "do not apply", "dont quantize", "do not quantize"),
    *("dont run", "do not run", "omit", "clear", "unset", "forget"),
)
_ANY = PhraseBook("any", "all", "using")
_MIN_KV_SCALE = PhraseBook("min kv scale", "min_kv_scale", "minimum kv scale")
_POST_ROPE = PhraseBook("kv cache post rope", "kv_cache_post_rope", "kv post rope", "post rope", "post_rope")
_REMOTE_CODE = PhraseBook("remote code", "trust remote code", "trust_remote_code", "trusting remote code")


def without(cursor: Cursor, gathered: Gathered) -> bool:
    """ "no kv cache", "without awq", "skip evaluation", "stop using awq"."""
    if not cursor.takes(_WITHOUT):
        return False
    cursor.skips(_ANY)
    cursor.skips_article()
    if cursor.takes(_MIN_KV_SCALE):
        return gathered.choose("min_kv_scale", None)
    if cursor.takes(_POST_ROPE):
        return gathered.choose("kv_cache_post_rope", False)
    if quantizing.takes_kv(cursor):
        return gathered.choose("kv_cache_scheme", None)
    if finishing.takes_evaluation(cursor):
        return gathered.choose("evaluation_intent", "none")
    if quantizing.takes_algorithm(cursor):
        return gathered.choose("algorithm", None)
    if cursor.takes(_REMOTE_CODE):
        return gathered.choose("trust_remote_code", False)
    if places.takes_revision(cursor):
        return gathered.own("revision", "")
    if layers.takes_exclusions(cursor):
        return gathered.choose("exclude_layers", [])
    return layers.takes_overrides(cursor) and layers.none_of_them(gathered)
