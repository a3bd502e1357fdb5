"""A place in a sentence, and what can be read from there."""

from __future__ import annotations

from bot.conversation.words.phrases import PhraseBook
from bot.conversation.words.text import Kind, Token
from bot.conversation.words.vocabulary import Vocabulary

_UNREADABLE = "\0"
_ARTICLES = PhraseBook("the", "a", "an", "my", "our")
_EQUALS = PhraseBook("=", ":", "to", "is", "be", "should be", "shall be", "of", "at", "as", "with")
_ASSIGNS = PhraseBook("=", ":")


class Cursor:
    """Reads tokens from left to right. What does not fit is not consumed.

    `vocabulary` has the names. What led to the clause that is read: `headed` after a verb that is followed by a value
    ("use", "switch to"), `wished` after one that may as well ask for a model ("I need"), `moves` after one that needs
    to be told where to ("change", "increase"), `adds` after "also".
    `took_away` is the verb of the clause that was read, where that took something away. `blamed` is the token for which
    a clause that fits otherwise was not read; `advice` says what to write instead, where a clause knows.
    """

    def __init__(self, tokens: tuple[Token, ...], vocabulary: Vocabulary) -> None:
        self.tokens = tokens
        self.vocabulary = vocabulary
        self.at = 0
        self.moves = False
        self.headed = False
        self.wished = False
        self.adds = False
        self.took_away = ""
        self.blamed: int | None = None
        self.advice = ""
        self._keys = [token.key or _UNREADABLE for token in tokens]

    @property
    def token(self) -> Token | None:
        """The token here; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def key(self) -> str:
        """The key here; empty at the end, and none of a quotation or mention."""
        return self._keys[self.at] if self.at < len(self._keys) else ""

    @property
    def before(self) -> str:
        """The key before; empty at the beginning."""
        return self._keys[self.at - 1] if self.at else ""

    @property
    def ended(self) -> bool:
        """Whether everything was read."""
        return self.at >= len(self.tokens)

    def sees(self, book: PhraseBook) -> bool:
        """Whether one of the phrases stands here."""
        return book.longest(self._keys, self.at) > 0

    def sees_behind(self, book: PhraseBook) -> bool:
        """Whether one of the phrases, or the end, stands behind the token here."""
        return self.at + 1 >= len(self.tokens) or book.longest(self._keys, self.at + 1) > 0

    def takes(self, book: PhraseBook) -> bool:
        """Read one of the phrases, the longest that stands here."""
        length = book.longest(self._keys, self.at)
        self.at += length
        return length > 0

    def reads(self, book: PhraseBook) -> str:
        """The same, telling which; empty when none stands here."""
        start = self.at
        return " ".join(self._keys[start : self.at]) if self.takes(book) else ""

    def skips(self, book: PhraseBook) -> None:
        """Read as many of the phrases as stand here."""
        while self.takes(book):
            pass

    def skips_article(self) -> None:
        """Read an article, if one stands here."""
        self.takes(_ARTICLES)

    def equals(self) -> bool:
        """Read what stands between a field and its value ("=", "to", "of"), if anything does."""
        return self.takes(_EQUALS)

    @property
    def assigned(self) -> bool:
        """Whether "=" or ":" stands right before: what follows is a value, however it is spelled."""
        return self.before in _ASSIGNS.phrases

    @property
    def told(self) -> bool:
        """Whether something here leads to a value, so that a plain word behind the field's name is one: "change the
        output", "output: foo", "the output to foo"; but not "the output is odd"."""
        return self.headed or self.moves or self.key in ("=", ":", "to")

    @property
    def articled(self) -> bool:
        """Whether an article stands here or right before: what it speaks of is rather described than set."""
        return self.before in _ARTICLES.phrases or self.key in _ARTICLES.phrases

    @property
    def quoted(self) -> bool:
        """Whether a quotation stands here."""
        return self.token is not None and self.token.kind is Kind.QUOTED
