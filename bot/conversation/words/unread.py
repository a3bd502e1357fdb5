"""The part of a sentence that was not understood, as typed, to be shown to whoever wrote it."""

from __future__ import annotations

from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Token

MOST_CHARACTERS = 60
"""Characters of a part that is shown: it has to be found, not to be read again."""

_MOST_TOKENS = 6
# What leads to the part without being of it: "to w8a8".
_LEADS = PhraseBook(
    *("to", "as", "in", "into", "for", "on", "at", "of", "by", "use", "take", "the", "a", "an", "my", "our"),
    *("switch to", "change to", "go with", "go for", "lets use", "i want", "i need", "id like"),
)
_ENDS = frozenset({"and", "but", "with", "then", "also", "using", "please"})
_ASSIGNS = frozenset({"=", ":"})


def at(tokens: tuple[Token, ...], start: int) -> str:
    """The part that begins at a token: to the next mark or link, without the words that lead to it."""
    keys = [token.key for token in tokens]
    begin = start
    while (length := _LEADS.longest(keys, begin)) and begin + length < len(tokens):
        begin += length
    end = begin + 1
    while end < len(tokens) and not _ends(tokens[end]):
        end += 1
    return from_here(tokens[:end], begin)


def from_here(tokens: tuple[Token, ...], start: int) -> str:
    """All from a token on, as much as is shown."""
    shown = tokens[start : start + _MOST_TOKENS]
    text = " ".join(" ".join(token.text for token in shown).split())
    cut = len(text) > MOST_CHARACTERS
    return f"{text[: MOST_CHARACTERS - 1]}…" if cut else text


def _ends(token: Token) -> bool:
    return (token.kind is Kind.MARK and token.text not in _ASSIGNS) or token.key in _ENDS
