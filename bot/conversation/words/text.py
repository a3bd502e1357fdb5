"""A sentence as a person sees it: its words, marks, quotations and mentions.

Characters that look the same to everybody are taken for one another (full-width letters, typographic quotes, kinds of
space), and those that nobody sees are left out. What could make a sentence read otherwise than it looks - marks that
turn the direction of writing, control characters, words of mixed alphabets - makes it unreadable instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

LONGEST = 2_000
"""Characters of a sentence that is read at all: nobody decides with more, and reading stays quick."""

MOST_TOKENS = 200
"""Pieces of a sentence that is read at all."""

_QUOTED_AT_MOST = 300

_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f"
_SKIN_TONES = "".join(map(chr, range(0x1F3FB, 0x1F400)))
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_SEEN_AS: dict[int, str | None] = {
    **{0xFF01 + number: chr(0x21 + number) for number in range(0x5E)},
    **dict.fromkeys(map(ord, _UNSEEN + _SKIN_TONES)),
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, "‘’‛ʼ"), "'"),
    **dict.fromkeys(map(ord, "“”„‟«»"), '"'),
    **dict.fromkeys(map(ord, "‐‑−"), "-"),
}
# Slack writes emoji as names.
_EMOJI_NAMES = {
    "+1": "👍",
    "thumbsup": "👍",
    "ok_hand": "👌",
    "white_check_mark": "✅",
    "heavy_check_mark": "✔",
    "ballot_box_with_check": "☑",
    "ok": "🆗",
    "100": "💯",
    "pray": "🙏",
    "slightly_smiling_face": "🙂",
    "blush": "😊",
    "tada": "🎉",
    "rocket": "🚀",
    "raised_hands": "🙌",
    "-1": "👎",
    "thumbsdown": "👎",
}
_EMOJI_NAME = re.compile(rf":({'|'.join(map(re.escape, _EMOJI_NAMES))}):(?::skin-tone-[2-6]:)?")
_EMOJI = re.compile("([\u2600-\u27bf\U0001f000-\U0001faff])")

# Alphabets with letters that look like Latin ones.
_LOOKALIKES = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "MATHEMATICAL")
_LETTERS = re.compile(r"[^\W\d_]+")

_PIECE = re.compile(
    rf"""(?P<quoted>`[^`\n]{{1,{_QUOTED_AT_MOST}}}`
                   |"[^"\n]{{1,{_QUOTED_AT_MOST}}}"
                   |(?<![^\s(\[])'[^'\n]{{1,{_QUOTED_AT_MOST}}}'(?![^\s.:!?)\],;]))
       |(?P<mention><[@!\#][^<>\s]{{1,100}}>|(?<!\S)@[A-Za-z0-9][\w.-]{{0,99}})
       |(?P<number>(?<!\S)[1-9],[0-9]{{3}}(?![^\s.,:!?);]|,\S))
       |(?P<mark>[,;"`\n–—])
       |(?P<word>[^\s,;"`–—]+)""",
    re.VERBOSE,
)
_ENDS = frozenset("!.,;…")
_ONLY_MARKS = re.compile(r"[^\w*?]+")
_SETTING = re.compile(r"(-{0,2}[A-Za-z][A-Za-z0-9_-]*)([=:])(?!//)(.+)")
_ARROWS = ("->", "=>", "→")
_TAIL = ".!?:=…)"


class Kind(Enum):
    """What a piece of a sentence is."""

    WORD = "word"
    QUOTED = "quoted"  # between quotes or back-ticks: a value at most, never what the person says
    MARK = "mark"
    EMOJI = "emoji"
    MENTION = "mention"


@dataclass(frozen=True)
class Token:
    """One piece. `text` is as typed (without its quotes); `word` is lower case without apostrophes.

    `key` is the word as fields and schemes are compared: hyphens are underscores, and dashes in front are none; an
    arrow is "to".
    """

    kind: Kind
    text: str
    word: str
    key: str


@dataclass(frozen=True)
class Sentence:
    """A sentence in pieces. `asks`: it has a question mark of any alphabet."""

    tokens: tuple[Token, ...]
    asks: bool


def read(text: str) -> Sentence | None:
    """The sentence, or None for one that is too long to be read or does not read as it looks."""
    if len(text) > LONGEST or _hides(text):
        return None
    seen = _EMOJI_NAME.sub(lambda found: _EMOJI_NAMES[found[1]], text.translate(_SEEN_AS)).strip()
    if _mixes_alphabets(seen):
        return None
    tokens = tuple(_tokens(seen))
    if len(tokens) > MOST_TOKENS:
        return None
    return Sentence(
        tokens=tokens,
        asks=any("?" in token.text for token in tokens if token.kind is Kind.MARK) or _asks_otherwise(text),
    )


def _hides(text: str) -> bool:
    """Whether it has characters that are not seen, but change what is seen: also of the future's alphabets."""
    return any(
        unicodedata.category(character)[0] == "C" and character not in _UNSEEN and not character.isspace()
        for character in set(text)
    )


def _asks_otherwise(text: str) -> bool:
    return any(mark in text for mark in "¿؟⁇⁈⁉‽\u037e՞")


def _mixes_alphabets(text: str) -> bool:
    if text.isascii():
        return False
    return any(
        any(letter.isascii() for letter in run) and any(_looks_latin(letter) for letter in run)
        for run in _LETTERS.findall(text)
        if not run.isascii()
    )


def _looks_latin(letter: str) -> bool:
    return not letter.isascii() and unicodedata.name(letter, "").startswith(_LOOKALIKES)


def _tokens(text: str) -> Iterator[Token]:
    for piece in _PIECE.finditer(text):
        content = piece.group()
        match piece.lastgroup:
            case "quoted":
                yield Token(Kind.QUOTED, content[1:-1], "", "")
            case "mention":
                yield Token(Kind.MENTION, content, content.lower(), "")
            case "number":  # 1,024; but "64,512" may as well be two numbers
                yield _plain_word(content)
            case "mark":
                yield _mark(content)
            case _:
                yield from _split(content)


def _split(content: str) -> Iterator[Token]:
    """Words, emoji and marks that stand together without a space."""
    for part in _EMOJI.split(content):
        if _EMOJI.fullmatch(part):
            yield Token(Kind.EMOJI, part, part, part)
        elif part:
            yield from _word(part)


def _word(part: str) -> Iterator[Token]:
    if part in _ARROWS:
        yield Token(Kind.MARK, part, part, "to")
        return
    if len(part) > 1 and part[0] == "]" != part[1]:  # behind the quotation that ends a list
        yield _mark("]")
        part = part[1:]
    if _ONLY_MARKS.fullmatch(part):
        yield _mark(part)
        return
    if len(part) > 1 and part[0] == "(":
        yield _mark("(")
        part = part[1:]
    core = part.rstrip(_TAIL)
    tail = part[len(core) :]
    setting = _SETTING.fullmatch(core)
    if setting:
        yield _plain_word(setting[1])
        yield _mark(setting[2])
        core = setting[3]
    if len(core) > 2 and core[0] == core[-1] == "'":
        yield Token(Kind.QUOTED, core[1:-1], "", "")
    elif core:
        yield _plain_word(core)
    if tail:
        yield _mark(tail)


def _plain_word(text: str) -> Token:
    word = text.lower().replace("'", "") if text[0] != "'" and text[-1] != "'" else text.lower()
    key = word[2:] if word.startswith("--") else word
    return Token(Kind.WORD, text, word, key.replace("-", "_") if key[:1] != "-" else key)


def _mark(text: str) -> Token:
    ends = len(text) > 1 and set(text) <= _ENDS  # "great!. fp8": of several that end a clause the last one says as much
    return Token(Kind.MARK, text, text, ";" if text == "\n" else text[-1] if ends else text)
