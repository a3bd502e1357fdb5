"""A sentence as a row of clauses, of which every word has to be understood."""

from __future__ import annotations

from dataclasses import dataclass

from bot.conversation.request import Changes
from bot.conversation.words import hints, names, openings, patterns, phrases, unread, values
from bot.conversation.words.clauses import (
    Clause,
    calibrating,
    configuring,
    finishing,
    keeping,
    layers,
    measuring,
    places,
    quantizing,
    running,
    wishes,
)
from bot.conversation.words.clauses.without import without
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered
from bot.conversation.words.text import Kind, Token
from bot.conversation.words.vocabulary import Vocabulary

# What needs more words to be understood comes before what needs fewer: "fp8 kv cache" before "fp8".
_CLAUSES: tuple[Clause, ...] = (
    without,
    finishing.remote_code,
    configuring.configuration,
    quantizing.kv_cache,
    quantizing.attention,
    layers.exclusions,
    layers.no_overrides,
    layers.overrides,
    keeping.kept,
    keeping.included,
    measuring.evaluation,
    calibrating.calibration,
    running.data_type,
    running.multi_gpu,
    running.file2file,
    running.tensor_parallel,
    running.template_file,
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


# What may stand beside something else: a plan has one KV cache, and a list of algorithms.
_ADDED: tuple[Clause, ...] = (
    quantizing.kv_cache,
    measuring.evaluation,
    finishing.export,
    running.multi_gpu,
    quantizing.added,
)


_ONE_BY_ONE = "Say of each what becomes of it, as in: no awq, use fp8."


@dataclass(frozen=True)
class Unread:
    """A sentence of which something is not understood: `text` is the first such part, as typed; `hint` says what may
    be written instead. `begun`: something before it was."""

    text: str
    hint: str = ""
    begun: bool = False


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
    if cursor.takes(openings.PREFIX):
        _skip_between(cursor)
    model_alone = names.is_place(cursor.token) and _model(cursor, gathered, any_name=False)
    to_quantize = begun = False
    while not cursor.ended:
        start = cursor.at
        if not to_quantize and _version_of(cursor, gathered, in_thread):
            begun = to_quantize = True
        elif _clause(cursor, gathered):
            if cursor.took_away and _takes_away_more(cursor):
                return Unread(unread.from_here(tokens, start), _ONE_BY_ONE, begun=True)
            begun = True
        elif not to_quantize and _to_quantize(cursor, gathered, in_thread):
            begun = to_quantize = True
        elif not _agreement(cursor, begun or model_alone):
            told = cursor.advice or hints.of(tokens[start:], vocabulary)
            return Unread(_unread(cursor, start), told, begun=begun or model_alone)
        if gathered.contradicts:
            return Unread(unread.from_here(tokens[: cursor.at], start), begun=True)
        _skip_between(cursor)
    changes = gathered.changes()
    return Unread(gathered.misfit(), begun=True) if changes is None else Reading(changes, to_quantize, model_alone)


def begins_quantizing(tokens: tuple[Token, ...]) -> bool:
    """Whether the first word but courtesy asks to quantize."""
    cursor = Cursor(tokens, Vocabulary())
    _skip_between(cursor)
    return cursor.sees(openings.QUANTIZE)


def _unread(cursor: Cursor, start: int) -> str:
    blamed = cursor.blamed
    if blamed is not None and blamed >= start:
        return unread.from_here(cursor.tokens[: blamed + 1], blamed)
    adds = start > 0 and cursor.tokens[start - 1].key == "also"
    return unread.at(cursor.tokens, start - adds)


def _skip_between(cursor: Cursor) -> None:
    """What stands between two clauses. "Also" is kept in mind: it adds to something."""
    cursor.adds = False
    while not cursor.ended and not cursor.sees(openings.OPPOSES):
        if cursor.token is not None and cursor.token.kind is Kind.MENTION:
            cursor.at += 1
        elif link := cursor.reads(openings.BETWEEN):
            cursor.adds = cursor.adds or link == "also"
        else:
            return


def _takes_away_more(cursor: Cursor) -> bool:
    """Whether what follows may be taken away as well: "drop awq and fp8". A comma ends what "no" and "without" take."""
    start = cursor.at
    found = cursor.takes(openings.MORE if cursor.took_away in ("no", "without") else openings.MORE_OR_COMMA) and (
        values.scheme(cursor, loosely=True) is not None
        or values.algorithm(cursor) is not None
        or quantizing.takes_kv(cursor)
        or measuring.takes_evaluation(cursor)
    )
    cursor.at = start
    return found


def _clause(cursor: Cursor, gathered: Gathered) -> bool:
    start = cursor.at
    cursor.headed = cursor.moves = cursor.wished = False
    cursor.took_away, cursor.advice = cursor.key, ""
    if without(cursor, gathered):
        return True
    cursor.at, cursor.took_away = start, ""
    for clause in (keeping.kept, keeping.included):
        if clause(cursor, gathered):
            return True
        cursor.at = start
    if cursor.takes(openings.ADD):
        cursor.skips_article()
        return _any_of(_ADDED, cursor, gathered, start)
    cursor.wished = cursor.sees(openings.WISHES)
    cursor.headed = cursor.takes(openings.HEADS)
    cursor.moves = not cursor.headed and cursor.takes(openings.MOVES)
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
    wished = cursor.takes(openings.VERSION_WISHES)
    cursor.skips_article()
    scheme = values.scheme(cursor, loosely=True)
    if cursor.takes(openings.A_VERSION) or (wished and cursor.takes(openings.QUANTIZED)):
        cursor.skips_article()
        cursor.takes(openings.THE_MODEL)
        any_name = not in_thread and cursor.before == "of" and names.ends_as_name(cursor)
        if _model(cursor, gathered, any_name):
            return scheme is None or gathered.choose("global_scheme", scheme)
    cursor.at = start
    return False


def _to_quantize(cursor: Cursor, gathered: Gathered, in_thread: bool) -> bool:
    """ "quantize Qwen/Qwen3-8B", "I want to quantize the model /models/llama", "quantize it"."""
    start = cursor.at
    cursor.takes(openings.WANTS)
    if not cursor.takes(openings.QUANTIZE) and not (cursor.takes(openings.MAKE) and names.is_place(cursor.token)):
        cursor.at = start
        return False
    cursor.skips_article()
    called_model = cursor.takes(openings.THE_MODEL)
    if not called_model and cursor.takes(openings.THE_SAME):
        return True
    cursor.takes(openings.ASSIGNS)
    behind = cursor.at
    if not called_model and (name := values.algorithm(cursor)) is not None:
        # It may be a model's folder as well, and what is to be quantized is no algorithm.
        cursor.at, cursor.advice = start, f"Say: use {name}, for the algorithm; or: model ./{name}, for a folder."
        return False
    cursor.at = behind
    if not _is_said_of_a_plan(cursor):
        alone = cursor.sees_behind(openings.BEHIND_NAME) or _scheme_behind(cursor)
        any_name = called_model or cursor.sees_behind(openings.MODEL_WORD) or (not in_thread and alone)
        _model(cursor, gathered, any_name)
        cursor.takes(openings.MODEL_WORD)
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
    if not begun and cursor.takes(openings.REJECTIONS):
        if not cursor.ended and cursor.tokens[cursor.at].kind is Kind.MARK:
            return True
        cursor.at = start
    kinds = {token.kind for token in cursor.tokens[max(0, cursor.at - 1) : cursor.at + 1]}
    apart = not begun or bool(kinds & {Kind.MARK, Kind.EMOJI}) or cursor.before in openings.LINKS
    if cursor.before in phrases.PLEASE and cursor.takes(openings.DO):  # "please do"
        return cursor.key != "not"
    if not apart or not cursor.takes(openings.AGREEMENTS):
        return False
    cursor.skips(openings.AGREEMENTS)
    return True
