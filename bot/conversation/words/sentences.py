"""A sentence as a row of clauses, of which every word has to be understood."""

from __future__ import annotations

from dataclasses import dataclass

from bot.conversation.request import Changes
from bot.conversation.words import names, patterns, phrases, unread, values
from bot.conversation.words.clauses import Clause, calibrating, finishing, layers, places, quantizing, wishes
from bot.conversation.words.clauses.without import without
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Token
from bot.conversation.words.vocabulary import Vocabulary

_PREFIX = PhraseBook("/ptq", "/ptq_bot", "ptq")
_QUANTIZE = PhraseBook("quantize", "quantise", "quant", "/quantize", "/quantise", "convert", "compress")
_MAKE = PhraseBook("make", "turn")  # these are said of anything: only what is a model by its looks may follow
_A_VERSION = PhraseBook(
    *(f"{what} of" for what in ("version", "copy", "variant", "build", "quant", "quantization", "quantisation")),
    *("quantized version of", "quantised version of", "quantized copy of", "quantised copy of", "checkpoint of"),
    *("quantized model of", "quantized checkpoint of"),
)
_QUANTIZED = PhraseBook("quantized", "quantised")
_VERSION_WISHES = PhraseBook(
    *(f"{who} {want}" for who in ("i", "we") for want in ("want", "need", "would like", "want to have")),
    *("id like", "wed like", "id like to have", "id love", "need", "want", "give me", "get me", "make", "make me"),
    *("create", "build", "produce", "prepare", "generate", "lets make", "lets have", "could use"),
)
_WANTS = PhraseBook(
    *(f"{who} {want} to" for who in ("i", "we") for want in ("want", "need", "would like")),
    *("id like to", "wed like to", "lets", "let us"),
)
_THE_MODEL = PhraseBook("model", "hub model", "this model")
_THE_SAME = PhraseBook("it", "this", "that", "it all")
_ASSIGNS = PhraseBook("=", ":")
_MODEL_WORD = PhraseBook("model")
_BEHIND_NAME = PhraseBook(
    *phrases.words("to as in into with without using for on at and please revision , . ! ;"), *phrases.ASIDES
)

_BETWEEN = PhraseBook(
    *("and", "also", "then", "but", "plus", "with", "using", "enable"),
    *(",", ".", ";", ":", "!", "!!", "!!!", "...", "…", "-", "--", "–", "—", "(", ")", ").", "+", "&"),
    *phrases.COURTESY,
    *phrases.SECOND_THOUGHTS,
    *phrases.ASIDES,
)
_MORE = PhraseBook("and", "or", ", and")
_MORE_OR_COMMA = PhraseBook("and", "or", ", and", ",")
_OPPOSES = PhraseBook("instead of", "rather than")
_WISHES = PhraseBook(
    *(f"{who} {want}" for who in ("i", "we") for want in ("want", "need", "would like", "want to have")),
    *("id like", "wed like", "id like to have", "need", "want", "give me", "get me"),
)
_HEADS = PhraseBook(
    *_WISHES.phrases,
    *("use", "take", "choose", "pick", "apply", "try", "prefer", "go with", "go for", "make it", "make that", "use it"),
    *(f"{verb} to" for verb in ("switch", "switch it", "switch back", "change", "change it", "move", "set", "set it")),
    *("i prefer", "we prefer", "i want to use", "we want to use", "id prefer", "id like to use"),
    *(f"lets {verb}" for verb in ("use", "take", "try", "do", "go with", "go for")),
)
_ADD = PhraseBook("add", "add a", "add an", "add the")
_MOVES = PhraseBook(
    *("change", "switch", "set", "update", "increase", "raise", "bump", "reduce", "lower", "decrease", "move", "make"),
)
_AGREEMENTS = PhraseBook(
    *phrases.ACCEPT, *phrases.EXPLICIT, *phrases.PRAISE, *phrases.NEXT, *phrases.ANALYSIS, *phrases.PLAN, *phrases.RETRY
)
_DO = PhraseBook("do", "do it", "do it now")
_REJECTIONS = PhraseBook("no", "nope", "nah", "wrong", "thats wrong", "that is wrong", "not ok", *phrases.REJECTED)
_LINKS = frozenset({"and", "then", "but", "please"})

# What needs more words to be understood comes before what needs fewer: "fp8 kv cache" before "fp8".
_CLAUSES: tuple[Clause, ...] = (
    without,
    finishing.remote_code,
    quantizing.kv_cache,
    layers.exclusions,
    layers.no_overrides,
    layers.overrides,
    calibrating.calibration,
    finishing.evaluation,
    finishing.export,
    finishing.entry_point,
    places.runner,
    places.output,
    places.revision,
    places.model,
    wishes.priority,
    wishes.hardware,
    quantizing.replaced,
    quantizing.instead_of,
    quantizing.algorithm,
    quantizing.scheme,
)


# What stands beside something else, and is one by itself: a plan has one KV cache, and a list of algorithms.
_ADDED: tuple[Clause, ...] = (quantizing.kv_cache, finishing.evaluation, finishing.export)


@dataclass(frozen=True)
class Unread:
    """A sentence of which something is not understood: `text` is the first such part, as typed."""

    text: str


@dataclass(frozen=True)
class Reading:
    """What a sentence says. `to_quantize`: it asks to quantize; `model_alone`: it names a model without any verb."""

    changes: Changes
    to_quantize: bool
    model_alone: bool


def read_clauses(tokens: tuple[Token, ...], vocabulary: Vocabulary, in_thread: bool = False) -> Reading | Unread:
    """The sentence's changes, or what of it is not understood or contradicts another part. `in_thread`: it is said of a
    model that is known, so that "quantize aggressively" names no folder of that name."""
    cursor, gathered = Cursor(tokens, vocabulary), Gathered()
    _skip_between(cursor)
    if cursor.takes(_PREFIX):
        _skip_between(cursor)
    model_alone = names.is_place(cursor.token) and _model(cursor, gathered, any_name=False)
    to_quantize = begun = False
    while not cursor.ended:
        start = cursor.at
        if not to_quantize and _version_of(cursor, gathered, in_thread):
            begun = to_quantize = True
        elif _clause(cursor, gathered):
            if cursor.took_away and _takes_away_more(cursor):
                return Unread(unread.from_here(tokens, start))
            begun = True
        elif not to_quantize and _to_quantize(cursor, gathered, in_thread):
            begun = to_quantize = True
        elif not _agreement(cursor, begun or model_alone):
            return Unread(_unread(cursor, start))
        if gathered.contradicts:
            return Unread(unread.from_here(tokens[: cursor.at], start))
        _skip_between(cursor)
    changes = gathered.changes()
    return Unread(gathered.misfit()) if changes is None else Reading(changes, to_quantize, model_alone)


def begins_quantizing(tokens: tuple[Token, ...]) -> bool:
    """Whether the first word but courtesy asks to quantize."""
    cursor = Cursor(tokens, Vocabulary())
    _skip_between(cursor)
    return cursor.sees(_QUANTIZE)


def _unread(cursor: Cursor, start: int) -> str:
    blamed = cursor.blamed
    if blamed is not None and blamed >= start:
        return unread.from_here(cursor.tokens[: blamed + 1], blamed)
    adds = start > 0 and cursor.tokens[start - 1].key == "also"
    return unread.at(cursor.tokens, start - adds)


def _skip_between(cursor: Cursor) -> None:
    """What stands between two clauses. "Also" is kept in mind: it adds to something."""
    cursor.adds = False
    while not cursor.ended and not cursor.sees(_OPPOSES):
        if cursor.token is not None and cursor.token.kind is Kind.MENTION:
            cursor.at += 1
        elif link := cursor.reads(_BETWEEN):
            cursor.adds = cursor.adds or link == "also"
        else:
            return


def _takes_away_more(cursor: Cursor) -> bool:
    """Whether what follows may be taken away as well: "drop awq and fp8". A comma ends what "no" and "without" take."""
    start = cursor.at
    found = cursor.takes(_MORE if cursor.took_away in ("no", "without") else _MORE_OR_COMMA) and (
        values.scheme(cursor, loosely=True) is not None
        or values.algorithm(cursor) is not None
        or quantizing.takes_kv(cursor)
        or finishing.takes_evaluation(cursor)
    )
    cursor.at = start
    return found


def _clause(cursor: Cursor, gathered: Gathered) -> bool:
    start = cursor.at
    cursor.headed = cursor.moves = cursor.wished = False
    cursor.took_away = cursor.key
    if without(cursor, gathered):
        return True
    cursor.at, cursor.took_away = start, ""
    if cursor.takes(_ADD):
        return _any_of(_ADDED, cursor, gathered, start)
    cursor.wished = cursor.sees(_WISHES)
    cursor.headed = cursor.takes(_HEADS)
    cursor.moves = not cursor.headed and cursor.takes(_MOVES)
    cursor.skips_article()
    return _any_of(_CLAUSES, cursor, gathered, start)


def _any_of(clauses: tuple[Clause, ...], cursor: Cursor, gathered: Gathered, start: int) -> bool:
    begin = cursor.at
    for clause in clauses:
        if clause(cursor, gathered):
            return True
        cursor.at = begin
    cursor.at = start
    return False


def _version_of(cursor: Cursor, gathered: Gathered, in_thread: bool) -> bool:
    """ "I need an fp8 version of Qwen/Qwen3-8B", "a quantized Qwen/Qwen3-8B"."""
    start = cursor.at
    wished = cursor.takes(_VERSION_WISHES)
    cursor.skips_article()
    scheme = values.scheme(cursor, loosely=True)
    if cursor.takes(_A_VERSION) or (wished and cursor.takes(_QUANTIZED)):
        cursor.skips_article()
        cursor.takes(_THE_MODEL)
        any_name = not in_thread and cursor.before == "of" and names.ends_as_name(cursor)
        if _model(cursor, gathered, any_name):
            return scheme is None or gathered.choose("global_scheme", scheme)
    cursor.at = start
    return False


def _to_quantize(cursor: Cursor, gathered: Gathered, in_thread: bool) -> bool:
    """ "quantize Qwen/Qwen3-8B", "I want to quantize the model /models/llama", "quantize it"."""
    start = cursor.at
    cursor.takes(_WANTS)
    if not cursor.takes(_QUANTIZE) and not (cursor.takes(_MAKE) and names.is_place(cursor.token)):
        cursor.at = start
        return False
    cursor.skips_article()
    called_model = cursor.takes(_THE_MODEL)
    if not called_model and cursor.takes(_THE_SAME):
        return True
    cursor.takes(_ASSIGNS)
    if not _is_said_of_a_plan(cursor):
        alone = cursor.sees_behind(_BEHIND_NAME) or _scheme_behind(cursor)
        any_name = called_model or cursor.sees_behind(_MODEL_WORD) or (not in_thread and alone)
        _model(cursor, gathered, any_name)
        cursor.takes(_MODEL_WORD)
    return True


def _model(cursor: Cursor, gathered: Gathered, any_name: bool) -> bool:
    found = names.model(cursor, any_name)
    return found is not None and places.tell_model(found, gathered)


def _scheme_behind(cursor: Cursor) -> bool:
    """Whether the next word names a scheme: "quantize tiny fp8"."""
    behind = cursor.tokens[cursor.at + 1 : cursor.at + 2]
    return bool(behind) and values.known_scheme(behind[0], cursor) is not None


def _is_said_of_a_plan(cursor: Cursor) -> bool:
    """Whether a scheme, an algorithm or layers stand where a model could."""
    start = cursor.at
    if cursor.token is None or cursor.quoted:
        return False
    found = (
        values.looks_like_scheme(cursor.token, cursor)
        or values.algorithm(cursor) is not None
        or patterns.one(cursor, surely=True) is not None
    )
    cursor.at = start
    return found


def _agreement(cursor: Cursor, begun: bool) -> bool:
    """An agreement in front of a change or behind it, where something stands between; or a no in front of it."""
    start = cursor.at
    if not begun and cursor.takes(_REJECTIONS):
        if not cursor.ended and cursor.tokens[cursor.at].kind is Kind.MARK:
            return True
        cursor.at = start
    kinds = {token.kind for token in cursor.tokens[max(0, cursor.at - 1) : cursor.at + 1]}
    apart = not begun or bool(kinds & {Kind.MARK, Kind.EMOJI}) or cursor.before in _LINKS
    if cursor.before in phrases.PLEASE and cursor.takes(_DO):  # "please do"
        return cursor.key != "not"
    if not apart or not cursor.takes(_AGREEMENTS):
        return False
    cursor.skips(_AGREEMENTS)
    return True
