"""What may stand behind an order: courtesy, or a reason that takes nothing back and wants nothing itself."""

from __future__ import annotations

from bot.conversation.words import answers, openings, phrases
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.orders import offering, priorities, queues
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.sentences import Unread, read_clauses
from bot.conversation.words.text import Kind, Token
from bot.conversation.words.vocabulary import Vocabulary

_BECAUSE = PhraseBook("because", "because of", "because of the", "since", "as", "due to", "due to the", "for")
_BETWEEN = PhraseBook(
    *phrases.COURTESY,
    *phrases.SECOND_THOUGHTS,
    *(",", ".", "!", "!!", "!!!", "...", "-", "–", "—", ":"),
    *("and", "then", "lets", "i want to", "we need to", "we have to"),
)
_VERBS = (openings.HEADS, openings.MOVES, openings.ADD, openings.QUANTIZE, openings.WANTS, openings.MAKE)
_RUNNER = PhraseBook("runner", "the runner", "on runner", "on the runner")
_FIRM = frozenset({",", ".", ";", ":", "-", "–", "—", "(", "!"})
_MOST_JOINTS = 8
_LONGEST = 200


def reason(cursor: Cursor) -> str | None:
    """What stands behind an order: nothing but courtesy (empty), or a reason. None where it may be anything else."""
    cursor.takes(queues.AGAIN)
    start = cursor.at
    if ends(cursor):
        return ""
    cursor.at = start
    apart = cursor.token is not None and cursor.token.kind is Kind.MARK and cursor.token.text in _FIRM
    cursor.at += apart
    if apart and _asks_for_more(cursor):  # before "as" and "for" are taken for its beginning: "as fast as possible"
        return None
    if (not cursor.takes(_BECAUSE) and not apart) or _asks_for_more(cursor):
        return None
    rest = cursor.tokens[cursor.at :]
    while rest and (rest[-1].word in phrases.COURTESY or rest[-1].kind is Kind.MARK):
        rest = rest[:-1]
    plain = all(token.kind in (Kind.WORD, Kind.MARK) for token in rest)
    if not rest or not plain or answers.takes_back(rest):
        return None
    return " ".join(token.text for token in rest)[:_LONGEST]


def ends(cursor: Cursor) -> bool:
    """Whether nothing follows but courtesy."""
    skip(cursor)
    return cursor.ended


def skip(cursor: Cursor) -> None:
    """Read courtesy, marks and mentions."""
    while not cursor.ended:
        if cursor.token is not None and cursor.token.kind is Kind.MENTION:
            cursor.at += 1
        elif not cursor.takes(_BETWEEN):
            return


def _asks_for_more(cursor: Cursor) -> bool:
    """Whether what would be the reason wants something itself, which nobody must swallow: "high priority, use fp8"."""
    cursor.skips(_BETWEEN)
    if cursor.ended or any(cursor.sees(book) for book in _VERBS):
        return True
    rest = cursor.tokens[cursor.at :]
    joints = [at for at, token in enumerate(rest) if token.kind is Kind.MARK or token.key in offering.JOINTS]
    if len(joints) > _MOST_JOINTS:
        return True
    parts = [rest[begin:] for begin in (0, *(at + 1 for at in joints)) if begin < len(rest)]
    return any(_wants(part, cursor.vocabulary) for part in parts)


def _wants(part: tuple[Token, ...], vocabulary: Vocabulary) -> bool:
    """Whether something that changes a plan, or another order, begins here, however it goes on."""
    found = read_clauses(part, vocabulary, in_thread=True)
    if found.begun if isinstance(found, Unread) else found.to_quantize or not found.changes.nothing:
        return True
    cursor = Cursor(part, vocabulary)
    skip(cursor)
    start = cursor.at
    for reading in (priorities.read, offering.read, queues.read):
        cursor.at = start
        if reading(cursor) is not None:
            return True
    cursor.at = start
    return cursor.sees(_RUNNER)
