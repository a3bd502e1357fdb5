"""One of the changes that a failed run offers is taken."""

from __future__ import annotations

from bot.conversation.words import answers, phrases
from bot.conversation.words.cursor import Cursor
from bot.conversation.words.orders.order import Order
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.sentences import Reading, read_clauses
from bot.conversation.words.text import Kind

_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "1st": 1, "2nd": 2, "3rd": 3}
_TAKES = (
    "take",
    "use",
    "apply",
    "try",
    "accept",
    "choose",
    "pick",
    "go with",
    "lets take",
    "lets use",
    "lets try",
    "do",
)
_TAKE = PhraseBook(*(f"{verb}{the}" for verb in _TAKES for the in ("", " the", " your", " that", " this")))
_AN_OFFER = PhraseBook("offer", "suggestion", "suggested change", "proposal", "recommendation", "suggested fix", "fix")
_NUMBER = PhraseBook("number", "no", "#")
_WHAT_IS_OFFERED = PhraseBook(
    *("do what you suggest", "do what is suggested", "do as suggested", "do as you suggest", "do as offered"),
    *("try what you suggest", "try as suggested", "as suggested", "as you suggest", "as you suggested", "as offered"),
    *("plan as suggested", "follow the suggestion", "take what is offered", "try what is suggested", "as recommended"),
)
_TRIES = PhraseBook(
    *(
        f"{verb} {how}"
        for verb in ("try", "retry", "plan", "try again", "try it", "run", "again", "go", "do it", "plan it")
        for how in ("with", "using")
    ),
    *("use", "take", "with"),
)
_LIKE_THAT = [said.split() for said in phrases.AS_SUGGESTED]
_LONGEST_ABOUT = 8  # words
JOINTS = frozenset({"and", "but", "then", "also", "with", "using", "plus", "do"})
"""Behind these something of its own may begin."""


def read(cursor: Cursor) -> Order | None:
    """ "Take the first offer", "use the suggestion", "try with fewer samples as suggested"."""
    start = cursor.at
    if cursor.takes(_WHAT_IS_OFFERED):
        return Order(kind="offer")
    if cursor.takes(_TAKE):
        number = _ORDINALS.get(cursor.key)
        cursor.at += number is not None
        if cursor.takes(_AN_OFFER):
            behind = cursor.at
            cursor.takes(_NUMBER)
            if number is None and cursor.key.isascii() and cursor.key.isdigit() and len(cursor.key) == 1:
                number = int(cursor.key) or None
                cursor.at += 1
            else:
                cursor.at = behind
            return Order(kind="offer", offer=number or 1)
    cursor.at = start
    return _as_suggested(cursor)


def _as_suggested(cursor: Cursor) -> Order | None:
    """ "Try with fewer samples, as suggested"; what says exactly what shall change is a change: "256 samples"."""
    start = cursor.at
    if not cursor.takes(_TRIES):
        return None
    rest = list(cursor.tokens[cursor.at :])
    while rest and (rest[-1].word in phrases.COURTESY or (rest[-1].kind is Kind.MARK and rest[-1].text in (".", "!"))):
        rest.pop()
    words = [token.word for token in rest]
    length = next((len(like) for like in _LIKE_THAT if words[-len(like) :] == like), 0)
    about = rest[:-length] if length else []
    if about and about[-1].text == ",":
        about.pop()
    plain = all(token.kind is Kind.WORD and token.key not in JOINTS for token in about)
    if not 0 < len(about) <= _LONGEST_ABOUT or not plain or answers.takes_back(about):
        return None
    end = cursor.at + len(about)
    if isinstance(read_clauses(cursor.tokens[start:end], cursor.vocabulary, in_thread=True), Reading):
        return None
    cursor.at = len(cursor.tokens)  # only courtesy is left
    return Order(kind="offer", about=" ".join(token.word for token in about))
