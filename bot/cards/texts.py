"""Text from people, models and programs, made fit to be shown: nothing in it hides, commands or runs on for ever."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from bot.conversation.person import Person

_LINE_END = re.compile("\r\n?")
# Letters that look like nothing at all. Source: Unicode, Default_Ignorable_Code_Point, and the Braille blank.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = re.compile("[\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def plain(text: object) -> str:
    """The text so that all of it can be seen; every text from outside passes here.

    Ends of lines stay, other blanks become a space, and what cannot be seen is written out: control characters, those
    that turn the direction of writing, halves of surrogate pairs (`\\x1b`, `\\u202e`, `\\ud800`).
    """
    unix = _LINE_END.sub("\n", str(text))
    if unix.isascii() and unix.isprintable():
        return unix
    return "".join(letter if letter == "\n" else _visible(letter) for letter in unix)


def line(text: object, longest: int = 300) -> str:
    """The text on one line, cut to so many characters."""
    return cut(plain(text).replace("\n", " ").strip(), longest)


def cut(text: str, longest: int) -> str:
    """The text, or its beginning and an ellipsis: `longest` characters at most."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def some(items: Iterable[object], at_most: int = 8, longest: int = 120) -> str:
    """The first few, and how many more there are."""
    kept = list(items)
    told = ", ".join(line(item, longest) for item in kept[:at_most])
    more = len(kept) - at_most
    return f"{told} and {more:,} more" if more > 0 else told


def who(person: Person | None) -> str:
    """A person's name; their id when they have none."""
    if person is None:
        return "nobody"
    return line(person.name, 80) or line(person.id, 80)


def last_part(path: str) -> str:
    """What people call a model or folder: the last part of its path or Hub id."""
    return line(path.rstrip("/").rpartition("/")[2] or path, 100)


@dataclass(frozen=True)
class Exact:
    """A command as it can be read without doubt.

    `hidden` counts characters that cannot be seen or look like a space; with any, they are written out and every
    backslash is doubled. `foreign` are the visible characters beyond ASCII, which may look like others.
    """

    text: str
    hidden: int
    foreign: tuple[str, ...]


def exact(command: str) -> Exact:
    """The command, letter by letter. A command without hidden characters stays as it is."""
    hidden = [letter for letter in command if _is_hidden(letter)]
    foreign = {letter for letter in command if not letter.isascii() and not _is_hidden(letter)}
    text = command
    if hidden:
        doubled = ((letter, "\\\\" if letter == "\\" else letter) for letter in command)
        text = "".join(_escaped(letter) if _is_hidden(letter) else shown for letter, shown in doubled)
    return Exact(text, len(hidden), tuple(sorted(foreign)))


def _is_hidden(letter: str) -> bool:
    return not letter.isprintable() or letter in _BLANK or _SELECTORS.match(letter) is not None


def _visible(letter: str) -> str:
    if letter.isprintable() and letter not in _BLANK:
        return letter
    return " " if letter == "\t" or unicodedata.category(letter)[0] == "Z" else _escaped(letter)


def _escaped(letter: str) -> str:
    code = ord(letter)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
