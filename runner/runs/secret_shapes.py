"""What the redactor looks for: known secrets in all their spellings, and what looks like a well-known kind of token.

Every needle has a bounded length and is found wherever it begins, also within another one. So whether a byte is hidden
depends only on the few bytes around it: a log can be redacted in pieces and from the middle.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Protocol
from urllib.parse import quote, quote_plus

LOOK_BEHIND: Final = 3
"""How many bytes before its beginning decide whether a needle is there."""

Span = tuple[int, int]
Step = tuple[bytes, int, int]
"""A class of bytes as a regular expression, and how many of them at least and at most."""


class Haystack:
    """Bytes that are searched."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @cached_property
    def lower(self) -> bytes:
        return self.data.lower()


class Needle(Protocol):
    """Something to hide."""

    @property
    def reach(self) -> int:
        """The most bytes from its beginning to its end."""
        ...

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        """What to hide of every occurrence that begins at `start` or later; they may overlap."""
        ...

    def opening(self, hay: Haystack, start: int) -> int | None:
        """The first place, from `start` on, where one begins that would be another with more bytes behind the last."""
        ...


def joined(spans: Iterable[Span]) -> Iterator[Span]:
    """The same places in fewer spans: those that overlap or touch become one. They must come in order of beginning."""
    first = last = -1
    for start, end in spans:
        if start > last:
            if last > 0:
                yield first, last
            first = start
        last = max(last, end)
    if last > 0:
        yield first, last


class Literal:
    """A known sequence of bytes."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self.reach = len(value)

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        at = hay.data.find(self._value, start)
        while at >= 0:
            yield at, at + self.reach
            at = hay.data.find(self._value, at + 1)

    def opening(self, hay: Haystack, start: int) -> int | None:
        data, first = hay.data, self._value[:1]
        at = data.find(first, max(start, len(data) - self.reach + 1))
        while at >= 0:
            if self._value.startswith(data[at:]):
                return at
            at = data.find(first, at + 1)
        return None


class Shape:
    """A fixed beginning and, behind it, classes of bytes: ``hf_`` and letters, say.

    `seen` stays visible between the beginning and what is hidden; `after` must follow and stays visible.
    """

    def __init__(
        self,
        beginning: bytes,
        *hidden: Step,
        seen: tuple[Step, ...] = (),
        after: tuple[Step, ...] = (),
        before: bytes = b"",
        any_case: bool = False,
        hides_beginning: bool = True,
    ) -> None:
        self._beginning = beginning
        self._any_case = any_case
        self._hides_beginning = hides_beginning
        steps = (*seen, *hidden, *after)
        flags = re.IGNORECASE if any_case else 0
        start = before + re.escape(beginning)
        self._whole = re.compile(start + _whole(seen) + b"(" + _whole(hidden) + b")" + _whole(after), flags)
        self._begun = re.compile(start + _begun(steps), flags)
        self.reach = len(beginning) + sum(most for _, _, most in steps)

    def _found(self, hay: Haystack, start: int) -> Iterator[int]:
        data = hay.lower if self._any_case else hay.data
        at = data.find(self._beginning, start)
        while at >= 0:
            yield at
            at = data.find(self._beginning, at + 1)

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        for at in self._found(hay, start):
            if found := self._whole.match(hay.data, at):
                yield at if self._hides_beginning else found.start(1), found.end(1)

    def opening(self, hay: Haystack, start: int) -> int | None:
        for at in self._found(hay, max(start, len(hay.data) - self.reach)):
            if self._begun.match(hay.data, at):
                return at
        data = hay.lower if self._any_case else hay.data
        for length in range(len(self._beginning) - 1, 0, -1):
            if len(data) - length >= start and data.endswith(self._beginning[:length]):
                return len(data) - length
        return None


class DiscordToken:
    """Three parts with dots between them; the first is a user's number in base64 and so begins with M, N or O."""

    reach = 28 + 1 + 7 + 1 + 64
    _first = re.compile(rb"[MNO][\w-]{22,27}\Z", re.ASCII)
    _rest = re.compile(rb"\.[\w-]{6,7}\.[\w-]{27,64}", re.ASCII)
    _begun = re.compile(rb"[MNO](?:[\w-]{0,27}\Z|[\w-]{22,27}\.(?:[\w-]{0,7}\Z|[\w-]{6,7}\.[\w-]{0,64}\Z))", re.ASCII)

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        rest = self._rest.search(hay.data, start)
        while rest:
            dot, end = rest.span()
            if first := self._first.search(hay.data, max(start, dot - 28), dot):
                yield first.start(), end
            rest = self._rest.search(hay.data, dot + 1)

    def opening(self, hay: Haystack, start: int) -> int | None:
        found = self._begun.search(hay.data, max(start, len(hay.data) - self.reach))
        return found.start() if found else None


def _whole(steps: tuple[Step, ...]) -> bytes:
    return b"".join(b"%b{%d,%d}" % step for step in steps)


def _begun(steps: tuple[Step, ...]) -> bytes:
    """Matches where the steps, or their beginning, reach to the very end of the bytes."""
    if not steps:
        return rb"\Z"
    (kind, least, most), *later = steps
    goes_on = b"|%b{%d,%d}%b" % (kind, least, most, _begun(tuple(later))) if later else b""
    return b"(?:%b{0,%d}\\Z%b)" % (kind, most, goes_on)


_WORD: Final = rb"[A-Za-z0-9]"
_WORD_DASH: Final = rb"[A-Za-z0-9_-]"
_BLANK: Final = rb"[ \t]"
_QUOTE: Final = rb"""[b\\"']"""  # also \" within JSON, and b' as Python shows bytes

# "task-…" is no key, but "\nsk-…" and "%3Dsk-…" within an escaped text are.
_NOT_WITHIN_A_WORD: Final = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"


def _authorization(scheme: bytes, least: int) -> Shape:
    """The HTTP header, however it is shown. In prose, words may follow "authorization: token": those are shorter."""
    return Shape(
        b"authorization",
        (rb"""[^\s"'\\]""", least, 4096),
        seen=(
            (_QUOTE, 0, 2),
            (_BLANK, 0, 4),
            (rb"[:=,]", 1, 1),
            (_BLANK, 0, 4),
            (_QUOTE, 0, 3),
            *((b"%c" % letter, 1, 1) for letter in scheme),
            (_BLANK, 1, 4),
        ),
        any_case=True,
        hides_beginning=False,
    )


SHAPES: Final[tuple[Needle, ...]] = (
    Shape(b"hf_", (_WORD, 16, 200)),
    Shape(b"hf_oauth_", (rb"[A-Za-z0-9._-]", 16, 2048)),
    Shape(b"hf_jwt_", (rb"[A-Za-z0-9._-]", 16, 2048)),
    Shape(b"xox", (rb"[a-z]", 1, 1), (rb"-", 1, 1), (rb"[A-Za-z0-9-]", 10, 255)),
    Shape(b"xapp-", (rb"[A-Za-z0-9-]", 10, 255)),
    DiscordToken(),
    *(Shape(b"gh%b_" % kind, (_WORD, 20, 255)) for kind in (b"p", b"o", b"u", b"s", b"r")),
    Shape(b"github_pat_", (rb"[A-Za-z0-9_]", 20, 255)),
    Shape(b"glpat-", (_WORD_DASH, 20, 255)),
    Shape(b"sk-", (_WORD_DASH, 20, 255), before=_NOT_WITHIN_A_WORD),
    Shape(b"AKIA", (rb"[A-Z0-9]", 16, 16)),
    Shape(b"ASIA", (rb"[A-Z0-9]", 16, 16)),
    _authorization(b"bearer", 1),
    _authorization(b"basic", 4),
    _authorization(b"bot", 16),
    _authorization(b"token", 16),
    Shape(
        b"bearer",
        (rb"[A-Za-z0-9._~+/=-]", 16, 4096),
        seen=((_BLANK, 1, 4),),
        any_case=True,
        hides_beginning=False,
    ),
    # The name is hidden as well: some services take the token there.
    Shape(
        b"://",
        (rb"""[^\s/@:"'<>]""", 0, 128),
        (rb":", 1, 1),
        (rb"""[^\s/"'<>]""", 1, 255),
        after=((rb"@", 1, 1),),
        hides_beginning=False,
    ),
    Shape(b"hooks.slack.com/services/", (rb"[A-Za-z0-9/]", 8, 255), hides_beginning=False),
    Shape(b"/api/webhooks/", (rb"[0-9]", 1, 24), (rb"/", 1, 1), (_WORD_DASH, 16, 255), hides_beginning=False),
)


def spellings(secret: str) -> set[bytes]:
    """The ways in which a secret may stand in a log: plain, in a URL, in base64, in JSON and as Python shows it."""
    plain = octets(secret)
    shown = json.dumps(secret)[1:-1]
    texts = {
        shown,
        shown.replace("/", "\\/"),
        json.dumps(shown)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
    }
    for coded in (quote_plus(plain), *(quote(plain, safe=safe) for safe in ("", "/", "!'()*"))):
        texts |= {coded, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), coded)}
    return {plain, *map(octets, texts), *_base64(plain)}


def octets(text: str) -> bytes:
    """The bytes of a text, also of one that came from bytes that are no UTF-8, as environment variables may."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _base64(plain: bytes) -> Iterator[bytes]:
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        yield encode(plain).rstrip(b"=")
        # Within a longer text ("user:" before it) the secret may begin at any of three places of a group. The first
        # and the last character then depend on its neighbours and are left out.
        for before, unsure in ((0, 0), (1, 2), (2, 3)):
            yield encode(bytes(before) + plain)[unsure : (before + len(plain)) * 8 // 6]
