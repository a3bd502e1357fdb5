"""Whether a sentence asks something."""

from __future__ import annotations

from collections.abc import Iterator

from bot.conversation.words import phrases
from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Sentence, Token

_ASKS = phrases.words(
    """
    what which why how when where who whom whose whats whys hows whos wheres whens
    is are am was isnt arent wasnt werent does did doesnt didnt
    can could would should shall will may might must couldnt wouldnt shouldnt wont
    has had explain describe clarify help
    """
)
_WH = phrases.words("what which why how when where who whom whose")
# "do" also begins what is no question: "do it", "do not trust remote code".
_ASKS_WITH = PhraseBook(
    *(f"{do} {who}" for do in ("do", "dont", "have", "havent") for who in ("you", "we", "i", "they", "these", "those")),
    *("do the", "do all", "do both", "tell me", "show me", "any idea", "any ideas", "i wonder", "wondering"),
)
_BEFORE = PhraseBook(
    *phrases.COURTESY,
    *phrases.SECOND_THOUGHTS,
    *phrases.YES,
    *phrases.SAID_OK,
    *("and", "but", "no", "also", "then"),
)
_MARKS = frozenset((*".,;:!-–—\n(", "!!", "!!!", "..."))
_ASKS_FOR = PhraseBook("can you", "could you")
_POLITELY = PhraseBook(*(f"{verb} you" for verb in ("can", "could", "would", "will")))


def is_question(sentence: Sentence) -> bool:
    """Whether it has a question mark or begins as a question does, with or without words of courtesy in front."""
    return sentence.asks or any(_begins_question(part) for part in _parts(sentence.tokens))


def politely_asked(sentence: Sentence) -> tuple[Token, ...]:
    """The deed that "can you ..." or "could you please ...?" asks for; empty when it is not asked so."""
    tokens = _without_opening(sentence.tokens)
    length = _POLITELY.longest([token.key for token in tokens], 0)
    if not length:
        return ()
    ends = tokens[-1].kind is Kind.MARK and set(tokens[-1].text) <= set("?!.")
    return tokens[length : -1 if ends else None]


def asks_for_a_deed(sentence: Sentence) -> bool:
    """Whether "can you ..." or "could you ..." asks for it; "would you use awq?" asks what somebody thinks of it."""
    tokens = _without_opening(sentence.tokens)
    return _ASKS_FOR.longest([token.key for token in tokens], 0) > 0


def _parts(tokens: tuple[Token, ...]) -> Iterator[tuple[Token, ...]]:
    """The sentence without its opening words, and what stands behind each mark where that asks what, why or how."""
    yield _without_opening(tokens)
    for at, token in enumerate(tokens[:-1]):
        if token.kind is Kind.MARK and tokens[at + 1].key in _WH:
            yield tokens[at + 1 : at + 2]


def _without_opening(tokens: tuple[Token, ...]) -> tuple[Token, ...]:
    keys, at = [token.key for token in tokens], 0
    while at < len(tokens):
        if tokens[at].kind is Kind.MENTION or tokens[at].text in _MARKS:
            at += 1
        elif length := _BEFORE.longest(keys, at):
            at += length
        else:
            break
    return tokens[at:]


def _begins_question(tokens: tuple[Token, ...]) -> bool:
    keys = [token.key for token in tokens[:3]]
    return bool(keys) and (keys[0] in _ASKS or _ASKS_WITH.longest(keys, 0) > 0)
