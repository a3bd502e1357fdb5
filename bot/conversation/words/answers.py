"""Whole sentences that answer: yes, no, stop. Nothing that says more than one of these is an answer.

A sentence agrees only when every word of it belongs to a phrase of agreement of that checkpoint or to courtesy. There
is no list of what speaks against an agreement: negations, conditions, quotations and doubts are simply not on the list
of what speaks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from bot.conversation.state import Checkpoint
from bot.conversation.words import phrases
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Sentence, Token

_FIRM = re.compile(r"!+|[.,;:\n]|[-–—]{1,2}")
"""Marks within an agreement. Dots that trail off are doubt."""

_ANY_TONE = re.compile(r"[.,;:!…\n–—-]+")


class _Role(Enum):
    SAYS = "says"  # the answer itself
    BESIDE = "beside"  # courtesy
    LEADS = "leads"  # courtesy at the beginning of what it belongs to: "ok run it", not "run ok"
    APART = "apart"  # may accompany an answer with a mark or courtesy between: "great, run it", not "great run"
    LINKS = "links"  # "and", between two answers
    MARK = "mark"


@dataclass(frozen=True)
class _Answer:
    """The phrases of one answer, by role. Behind those of `ending` no other may follow without a mark or "and": it
    would be what they speak of ("confirm that this is right", "of course not wrong")."""

    book: PhraseBook
    roles: dict[str, _Role]
    ending: frozenset[str]
    marks: re.Pattern[str]


def _answer(
    says: tuple[str, ...],
    *,
    beside: tuple[str, ...] = (),
    leads: tuple[str, ...] = (),
    apart: tuple[str, ...] = (),
    ending: tuple[str, ...] = (*phrases.ASKED_OF_OTHERS, "sure"),
    marks: re.Pattern[str] = _FIRM,
) -> _Answer:
    roles = {
        **dict.fromkeys(apart, _Role.APART),
        **dict.fromkeys((*phrases.COURTESY, *beside), _Role.BESIDE),
        **dict.fromkeys(leads, _Role.LEADS),
        **dict.fromkeys(says, _Role.SAYS),
        "and": _Role.LINKS,
    }
    return _Answer(PhraseBook(*roles), roles, frozenset(ending), marks)


_ANALYSIS_IS_RIGHT = _answer(
    (*phrases.AGREE, *phrases.ANALYSIS, *phrases.KIND, "next"),
    apart=tuple(word for word in phrases.PRAISE if word not in phrases.KIND),
)
_PLAN_IS_RIGHT = _answer((*phrases.AGREE, *phrases.PLAN), apart=phrases.PRAISE)
# What agrees elsewhere may accompany an explicit yes ("looks good, run it"), and is none.
_EXPLICIT = _answer(
    phrases.EXPLICIT,
    beside=tuple(phrase for phrase in phrases.AGREE if not phrase.isascii()),
    leads=(*phrases.SAID_OK, *phrases.LEADING),
    apart=(*phrases.PRAISE, *phrases.AGREE),
)
_AGREEMENTS = {
    Checkpoint.ANALYSIS: _ANALYSIS_IS_RIGHT,
    Checkpoint.PLAN: _PLAN_IS_RIGHT,
    Checkpoint.COMMAND: _EXPLICIT,
    Checkpoint.RESULT: _answer(phrases.ACCEPT, apart=phrases.PRAISE),
}
_REJECTION = _answer(
    phrases.REJECT,
    beside=("sorry", "oh", "hmm"),
    ending=tuple(phrase for phrase in phrases.REJECT if phrase not in ("no", "nope", "nah")),
    marks=_ANY_TONE,
)
_BESIDE = (*phrases.YES, *phrases.SAID_OK, *phrases.SECOND_THOUGHTS)
_RETRY = _answer(phrases.RETRY, beside=_BESIDE, marks=_ANY_TONE)
_REVISE = _answer(phrases.REVISE, beside=(*_BESIDE, "no"), marks=_ANY_TONE)
_STOP = _answer(
    phrases.CANCEL,
    beside=("no wait", *_BESIDE),
    apart=("no", "nope"),  # "no, cancel" stops; "no cancel" may mean the contrary
    ending=phrases.CANCEL,
    marks=_ANY_TONE,
)


# One letter is an answer by itself only: beside other words it may stand for anything.
_LETTERS = {
    Checkpoint.ANALYSIS: frozenset({"y", "k"}),
    Checkpoint.PLAN: frozenset({"y"}),
    Checkpoint.COMMAND: frozenset({"y"}),
    Checkpoint.RESULT: frozenset({"y"}),
}
_REASONS = PhraseBook(*phrases.REJECTED)
_BECAUSE = frozenset({"because", "since", "as"})
# A reason in which one of these stands may as well take the rejection back.
_TAKES_BACK = phrases.words(
    """
    not dont doesnt didnt isnt wasnt wont cant no nope never nothing nobody none unless if or but wait hold maybe
    perhaps yes yeah yep yup ok okay accept accepted approve approved confirm continue proceed go run sorry mistake
    actually kidding joke joking cancel stop later until when except only would could should might think guess
    unsure sure
    """
)


def agrees(sentence: Sentence, checkpoint: Checkpoint | None) -> bool:
    """Whether the whole sentence agrees with what the checkpoint asks. Where nothing is asked, nothing agrees."""
    if checkpoint is None:
        return False
    if _letter(sentence) in _LETTERS[checkpoint]:
        return True
    said = _said(sentence, _AGREEMENTS[checkpoint])
    return bool(said) and not _asks_others(sentence, said)


def rejects(sentence: Sentence) -> bool:
    """Whether the whole sentence is a no."""
    return bool(_said(sentence, _REJECTION))


def rejects_with_reason(sentence: Sentence) -> bool:
    """Whether it begins with an express rejection, and nothing behind that takes it back: "reject, too much loss"."""
    words, tokens = [token.word for token in sentence.tokens], sentence.tokens
    length = _REASONS.longest(words, 0)
    if not length or length + 1 >= len(tokens) or sentence.asks:
        return False
    apart = tokens[length].kind is Kind.MARK and _FIRM.fullmatch(tokens[length].text) is not None
    if not apart and words[length] not in _BECAUSE:
        return False
    reason = tokens[length + 1 :]
    plain = all(token.kind in (Kind.WORD, Kind.MARK) for token in reason)
    return plain and not takes_back(reason)


def takes_back(reason: Iterable[Token]) -> bool:
    """Whether the reason of something may as well take it back: "unless it is fast", "no wait"."""
    return any(token.word in _TAKES_BACK or token.key in _TAKES_BACK for token in reason)


def retries(sentence: Sentence) -> bool:
    """Whether the whole sentence asks for the same once more."""
    return bool(_said(sentence, _RETRY))


def revises(sentence: Sentence) -> bool:
    """Whether the whole sentence asks to go back to the plan."""
    return bool(_said(sentence, _REVISE))


def _letter(sentence: Sentence) -> str:
    """The word of a sentence of one word; empty for any other."""
    first, *marks = sentence.tokens
    ends = all(mark.kind is Kind.MARK and mark.text in (".", "!") for mark in marks)
    return first.word if ends and first.kind is Kind.WORD else ""


def cancels(sentence: Sentence) -> bool:
    """Whether the whole sentence stops everything."""
    return bool(_said(sentence, _STOP))


def _asks_others(sentence: Sentence, said: list[str]) -> bool:
    polite = any(token.word in phrases.PLEASE for token in sentence.tokens)
    return polite and all(phrase in phrases.ASKED_OF_OTHERS for phrase in said)


def _said(sentence: Sentence, answer: _Answer) -> list[str]:
    """The phrases that answer, when the sentence consists of nothing but such and what may accompany them."""
    segments = _segments(sentence.tokens, answer)
    if segments is None or not _well_placed(segments, answer):
        return []
    return [phrase for role, phrase in segments if role is _Role.SAYS]


def _segments(tokens: tuple[Token, ...], answer: _Answer) -> list[tuple[_Role, str]] | None:
    words = [token.word for token in tokens]
    segments: list[tuple[_Role, str]] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        length = 1
        if token.kind is Kind.MARK and answer.marks.fullmatch(token.text):
            segments.append((_Role.MARK, token.text))
        elif token.kind is Kind.MENTION and token.word in phrases.OWN_NAMES:
            segments.append((_Role.BESIDE, token.word))
        elif token.kind in (Kind.WORD, Kind.EMOJI) and (length := answer.book.longest(words, at)):
            phrase = " ".join(words[at : at + length])
            segments.append((answer.roles[phrase], phrase))
        else:
            return None
        at += length
    return segments


def _well_placed(segments: list[tuple[_Role, str]], answer: _Answer) -> bool:
    """Whether the sentence begins with a word, "and" stands between answers, what must stand apart does, what leads is
    led by nothing, and nothing follows what ends."""
    edge = (_Role.MARK, "")
    if not segments or segments[0][0] is _Role.MARK:
        return False
    around = [edge, *segments, edge]
    for (before, last), (role, phrase), (after, _) in zip(around, around[1:], around[2:], strict=False):
        match role:
            case _Role.LINKS if not (before is _Role.SAYS and after is _Role.SAYS):
                return False
            case _Role.APART if {before, after} & {_Role.SAYS, _Role.APART, _Role.LINKS}:
                return False
            case _Role.LEADS if before in (_Role.SAYS, _Role.LINKS):
                return False
            case _Role.SAYS if before is _Role.SAYS and last in answer.ending and last != phrase:
                return False
    return True
