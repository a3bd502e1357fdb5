"""Scheme, algorithm and KV cache."""

from __future__ import annotations

from bot.conversation.words import names, values
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook

_SCHEME = PhraseBook("global scheme", "global_scheme", "quant scheme", "quant_scheme", "quantization scheme", "scheme")
_BEFORE_SCHEME = PhraseBook(
    *("to", "as", "in", "into", "at", "quantized to", "quantized in", "quantized with", "quantized as", "quantised to"),
)
_OF_REST = PhraseBook(
    *(
        "to",
        "as",
        "in",
        "into",
        "at",
        "with",
        "=",
        ":",
        "is",
        "goes to",
        "quantized to",
        "shall be",
        "should be",
        "uses",
    ),
)
_QUANTIZE_REST = PhraseBook("quantize", "quantise", "put", "keep", "use", "set")
_REST_OF = (
    *("the rest", "rest", "everything else", "all else", "all other layers", "the other layers", "other layers"),
    *("all others", "the others", "the remaining layers", "remaining layers", "all remaining layers", "everything"),
    *("all layers", "all linear layers", "the whole model", "the rest of the model", "rest of the model", "the model"),
    *("the rest of it", "the rest of the layers"),
)
_REST = PhraseBook(*_REST_OF, "otherwise", "elsewhere", "everywhere else", "globally", "by default", "everywhere")
_AFTER_SCHEME = PhraseBook(
    *("quantization", "scheme", "everywhere", "everywhere else", "elsewhere", "otherwise", "globally"),
    *(f"{of} {rest}" for of in ("for", "on", "in") for rest in _REST_OF),
)
_ALGORITHM = PhraseBook(
    *("algorithm", "algorithms", "algo", "algos", "quant algo", "quant_algo", "quantization algorithm")
)
_NO_ALGORITHM = PhraseBook("plain rtn", "rtn baseline", "rtn", "plain", "round to nearest")
_NONE = PhraseBook("none", "null", "off", "false", "disabled")
_AND = PhraseBook(", and", ",", "and", "plus", "+", "&", "then", ", then", "and then", ", and then", "followed by")
_FROM = PhraseBook("from")
_TO = PhraseBook("to", "with", "by", "for")
_REPLACE = PhraseBook("replace")
_INSTEAD_OF = PhraseBook("instead of", "rather than", "in place of")

_KV = PhraseBook("kv cache", "kv_cache", "kvcache", "kv", "key value cache")
_KV_FIELD = PhraseBook("kv_cache_scheme", "kv_cache_dtype", "kv scheme")
_KV_SUFFIX = PhraseBook("scheme", "dtype", "quantization", "type", "in", "using")
_FOR_KV = PhraseBook("for", "on", "in")
_UNQUANTIZED = PhraseBook("unquantized", "unquantised")
_QUANTIZE = PhraseBook("quantize", "quantise")
_ATTENTION = PhraseBook(
    *("attention dtype", "attention_dtype", "attention math", "attention computation", "attention compute"),
    *("attention data type", "attention arithmetic", "attention matmul", "attention matmuls", "attention scores"),
)
_BEHIND_ATTENTION = PhraseBook("=", ":", "in", "to", "with", "at", "as", "using", "is")
_MIN_KV_SCALE = PhraseBook("min kv scale", "min_kv_scale", "minimum kv scale", "min kv cache scale")
_POST_ROPE = PhraseBook(
    *("kv cache post rope", "kv_cache_post_rope", "kv post rope", "post rope kv cache", "post_rope kv cache"),
    *("kv cache after rope", "kv_cache post_rope", "kv cache post_rope"),
)


def scheme(cursor: Cursor, gathered: Gathered) -> bool:
    """ "fp8", "scheme fp8", "to mxfp4", "change fp8 to int8"."""
    if cursor.takes(_SCHEME):
        name = _new_scheme(cursor)
    elif _takes_rest(cursor):
        cursor.takes(_OF_REST)
        name = values.scheme(cursor, loosely=True)
    elif cursor.moves:
        name = _other_scheme(cursor)
    else:
        cursor.takes(_BEFORE_SCHEME)
        name = values.scheme(cursor)
    if name is None:
        return False
    cursor.skips(_AFTER_SCHEME)
    return gathered.choose("global_scheme", name)


def _takes_rest(cursor: Cursor) -> bool:
    """Read what stands for all layers that are not named: "the rest", "quantize everything else"."""
    start = cursor.at
    cursor.takes(_QUANTIZE_REST)
    if cursor.takes(_REST):
        return True
    cursor.at = start
    return False


def _new_scheme(cursor: Cursor) -> str | None:
    if cursor.takes(_FROM) and (values.scheme(cursor, loosely=True) is None or not cursor.takes(_TO)):
        return None
    cursor.equals()
    return values.scheme(cursor, loosely=True)


def _other_scheme(cursor: Cursor) -> str | None:
    """What follows "change" or "replace": one scheme, and the one that takes its place."""
    cursor.takes(_FROM)
    if values.scheme(cursor, loosely=True) is None or not cursor.takes(_TO):
        return None
    return values.scheme(cursor, loosely=True)


def algorithm(cursor: Cursor, gathered: Gathered) -> bool:
    """ "awq", "awq and smoothquant", "algorithm none", "rtn"."""
    if cursor.adds:
        return added(cursor, gathered)
    if cursor.takes(_ALGORITHM):
        if cursor.takes(_FROM) and (not _several(cursor) or not cursor.takes(_TO)):
            return False
        cursor.equals()
        if cursor.takes(_NONE) or cursor.takes(_NO_ALGORITHM):
            return gathered.choose("algorithm", None)
        found = _several(cursor, quoted=True)
    elif cursor.moves:
        if not _several(cursor) or not cursor.takes(_TO):
            return False
        found = _several(cursor)
    elif cursor.takes(_NO_ALGORITHM):
        return gathered.choose("algorithm", None)
    else:
        found = _several(cursor)
    if not found:
        return False
    cursor.takes(_ALGORITHM)
    return gathered.choose("algorithm", ",".join(found))


def added(cursor: Cursor, gathered: Gathered) -> bool:
    """ "(add) smoothquant", "(also) awq": behind those that stand."""
    found = _several(cursor)
    cursor.takes(_ALGORITHM)
    return bool(found) and gathered.also(found)


def _several(cursor: Cursor, quoted: bool = False) -> list[str]:
    found: list[str] = []
    while names := values.joined_algorithms(cursor) or _one(cursor, quoted):
        found += names
        behind = cursor.at
        if not cursor.takes(_AND):
            break
    else:
        if found:
            cursor.at = behind
    return list(dict.fromkeys(found))


def _one(cursor: Cursor, quoted: bool) -> list[str]:
    name = values.algorithm(cursor, quoted)
    return [] if name is None else [name]


def replaced(cursor: Cursor, gathered: Gathered) -> bool:
    """ "replace awq with gptq"."""
    if not cursor.takes(_REPLACE):
        return False
    cursor.moves = True
    start = cursor.at
    for clause in (scheme, algorithm):
        if clause(cursor, gathered):
            return True
        cursor.at = start
    return False


def instead_of(cursor: Cursor, gathered: Gathered) -> bool:
    """ "instead of awq" says nothing more than what stands beside it."""
    del gathered
    if not cursor.takes(_INSTEAD_OF):
        return False
    return (
        values.scheme(cursor, loosely=True) is not None
        or values.algorithm(cursor) is not None
        or names.dataset(cursor, named=True) is not None
    )


def kv_cache(cursor: Cursor, gathered: Gathered) -> bool:
    """ "kv cache fp8", "fp8 kv cache", "fp8 for the kv cache", "quantize the kv cache"."""
    if cursor.takes(_MIN_KV_SCALE):
        cursor.equals()
        scale = values.decimal(cursor)
        return scale is not None and gathered.choose("min_kv_scale", scale)
    start = cursor.at
    if cursor.takes(_QUANTIZE):
        cursor.skips_article()
    if cursor.takes(_POST_ROPE):
        cursor.equals()
        on = values.switch(cursor)
        return gathered.choose("kv_cache_post_rope", True if on is None else on)
    cursor.at = start
    wanted = cursor.takes(_QUANTIZE) or cursor.before in ("with", "enable", "add")
    cursor.skips_article()
    if cursor.takes(_KV) or cursor.takes(_KV_FIELD):
        return _kv_scheme_behind(cursor, gathered, wanted)
    return _kv_scheme_before(cursor, gathered)


def _kv_scheme_behind(cursor: Cursor, gathered: Gathered, wanted: bool) -> bool:
    cursor.skips(_KV_SUFFIX)
    if cursor.takes(_FROM) and (values.scheme(cursor, loosely=True) is None or not cursor.takes(_TO)):
        return False
    cursor.equals()
    if cursor.takes(_NONE) or cursor.takes(_UNQUANTIZED):
        return gathered.choose("kv_cache_scheme", None)
    name = values.scheme(cursor, loosely=True)
    if name is None and wanted and len(cursor.vocabulary.kv_cache_schemes) == 1:
        (name,) = cursor.vocabulary.kv_cache_schemes
    return name is not None and gathered.choose("kv_cache_scheme", name)


def _kv_scheme_before(cursor: Cursor, gathered: Gathered) -> bool:
    name = values.scheme(cursor)
    if name is None:
        return False
    if cursor.takes(_FOR_KV):
        cursor.skips_article()
    if not cursor.takes(_KV):
        return False
    cursor.skips(_KV_SUFFIX)
    start = cursor.at
    cursor.equals()
    off = cursor.takes(_NONE)
    other = None if off else values.scheme(cursor, loosely=True)
    cursor.at = start
    if not off and other in (None, name):
        return gathered.choose("kv_cache_scheme", name)
    # The scheme in front is that of the weights if a KV cache cannot have it: "int8 kv cache fp8", "int8 kv cache off".
    possible = cursor.vocabulary.kv_cache_schemes
    return (name in possible or not (off or other in possible)) and gathered.contradict()


def takes_kv(cursor: Cursor) -> bool:
    """Read the name of the KV cache, with a scheme in front or none."""
    start = cursor.at
    values.scheme(cursor)
    if cursor.takes(_KV) or cursor.takes(_KV_FIELD):
        cursor.skips(_KV_SUFFIX)
        return True
    cursor.at = start
    return False


def takes_algorithm_word(cursor: Cursor) -> bool:
    """Read the word for it."""
    return cursor.takes(_ALGORITHM)


def attention(cursor: Cursor, gathered: Gathered) -> bool:
    """ "attention math in fp8", "fp8 attention math", "attention_dtype fp8": the computation, not its layers."""
    name = values.scheme(cursor)
    if name is not None:
        if cursor.takes(_FOR_KV):
            cursor.skips_article()
        if not cursor.takes(_ATTENTION):
            return False
        start = cursor.at
        cursor.takes(_BEHIND_ATTENTION)
        # "int8, attention dtype: fp8" without its comma: the scheme in front is that of the weights.
        another = values.scheme(cursor, loosely=True) is not None
        cursor.at = start
        return not another and gathered.choose("attention_dtype", name)
    wanted = cursor.takes(_QUANTIZE)
    cursor.skips_article()
    if not cursor.takes(_ATTENTION):
        return False
    cursor.equals()
    cursor.takes(_KV_SUFFIX)
    if cursor.takes(_NONE) or cursor.takes(_UNQUANTIZED):
        return gathered.choose("attention_dtype", None)
    name = values.scheme(cursor, loosely=True)
    if name is None and wanted and len(cursor.vocabulary.attention_schemes) == 1:
        (name,) = cursor.vocabulary.attention_schemes
    return name is not None and gathered.choose("attention_dtype", name)


def takes_attention(cursor: Cursor) -> bool:
    """Read the name of the attention's computation."""
    return cursor.takes(_ATTENTION)
