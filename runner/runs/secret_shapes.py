"""What the redactor looks for: known secrets in all their spellings, and what looks like a well-known kind of token.

Every needle has a bounded length and is found wherever it begins, also within another one. So whether a byte is hidden
depends only on the few bytes around it: a log can be redacted in pieces and from the middle.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, Protocol
from urllib.parse import quote_plus

LOOK_BEHIND: Final = 3
"""How many bytes before its beginning decide whether a needle is there."""

_PERCENT: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
# Logs are full of colours as \x1b; control characters of secrets are not looked for in that form.
_BACKSLASH: Final = re.compile(rb"\\(?:x[2-9A-Fa-f][0-9A-Fa-f]|u[0-9A-Fa-f]{4})")
_BEGUN_ESCAPE: Final = re.compile(rb"(?:%[0-9A-Fa-f]?|\\{1,4}(?:x[0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3})?)\Z")
_A_BACKSLASH: Final = ord("\\")
_A_PERCENT_SIGN: Final = ord("%")
_LONGEST_EXPRESSION: Final = 512  # bytes of a value; compiling one for a longer value takes too long
_MORE_BACKSLASHES: Final = 3  # text within JSON within JSON has two before each u, and once more has four
_LONGEST_ESCAPE: Final = _MORE_BACKSLASHES + len(rb"\u005f")

Span = tuple[int, int]
Step = tuple[bytes, int, int]
"""A class of bytes as a regular expression, and how many of them at least and at most."""


class Haystack:
    """Bytes that are searched."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._held: dict[bytes, bool] = {}

    @cached_property
    def lower(self) -> bytes:
        return self.data.lower()

    def holds(self, part: bytes) -> bool:
        """Whether this part, in small letters, is there in any case."""
        if part not in self._held:
            self._held[part] = part in self.lower
        return self._held[part]

    @cached_property
    def escapes(self) -> dict[int, tuple[int, bytes]]:
        """Where %5F, \\x5f and \\u005f stand, in order: the end of each, and the bytes that it means."""
        found = [(at.start(), at.end(), bytes((int(at[0][1:], 16),))) for at in _PERCENT.finditer(self.data)]
        for at in _BACKSLASH.finditer(self.data):
            code = int(at[0][2:], 16)
            meant = bytes((code,)) if at[0][1:2] == b"x" else chr(code).encode("utf-8", "surrogatepass")
            found.append((at.start(), at.end(), meant))
        return {start: (end, meant) for start, end, meant in sorted(found)}

    @cached_property
    def escape_starts(self) -> list[int]:
        return list(self.escapes)


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
    """A known sequence of bytes. One for `any_case` has to be given in small letters."""

    def __init__(self, value: bytes, any_case: bool = False) -> None:
        self._value = value
        self._any_case = any_case
        self.reach = len(value)

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        data = hay.lower if self._any_case else hay.data
        at = data.find(self._value, start)
        while at >= 0:
            yield at, at + self.reach
            at = data.find(self._value, at + 1)

    def opening(self, hay: Haystack, start: int) -> int | None:
        data, first = hay.lower if self._any_case else hay.data, self._value[:1]
        at = data.find(first, max(start, len(data) - self.reach + 1))
        while at >= 0:
            if self._value.startswith(data[at:]):
                return at
            at = data.find(first, at + 1)
        return None


class Escaped:
    """A known sequence of bytes of which any, but at least one, stand there as %5F, \\x5f or \\u005f."""

    def __init__(self, value: bytes) -> None:
        self._value = value
        self._places: dict[bytes, list[int]] = {}  # where in the value the bytes of one escape stand
        for place in range(len(value)):
            for length in range(1, min(4, len(value) - place + 1)):
                self._places.setdefault(value[place : place + length], []).append(place)
        self.reach = _LONGEST_ESCAPE * len(value)
        # Only for speed, and where a value can be read in one way only.
        plainly = len(value) <= _LONGEST_EXPRESSION and not set(value) & {_A_BACKSLASH, _A_PERCENT_SIGN}
        self._whole = re.compile(b"".join(map(_in_any_form, _characters(value)))) if plainly else None

    def spans(self, hay: Haystack, start: int) -> Iterator[Span]:
        found: list[Span] = []
        for begin, place, at in self._begun(hay, start):
            if self._whole is None:
                found += [(begin, end) for end in self._ends(hay, at, place)[0]]
            elif match := self._whole.match(hay.data, begin):
                found.append(match.span())
        return iter(sorted(found))

    def opening(self, hay: Haystack, start: int) -> int | None:
        data, size = hay.data, len(hay.data)
        last = range(max(start, size - _LONGEST_ESCAPE), size)
        begun = [
            at - place
            for at in last
            if _BEGUN_ESCAPE.match(data, at)
            for place in range(min(len(self._value), at - start + 1))
            if data.endswith(self._value[:place], at - place, at)
        ]
        from_here = max(start, size - self.reach)
        begun += [begin for begin, place, at in self._begun(hay, from_here) if self._ends(hay, at, place)[1]]
        return min(begun, default=None)

    def _begun(self, hay: Haystack, start: int) -> Iterator[tuple[int, int, int]]:
        """Where the value may begin, up to its first escape: its beginning, and how it goes on, here and in the hay."""
        if not hay.escapes:
            return
        data, starts = hay.data, hay.escape_starts
        for at in starts[bisect_left(starts, start) :]:
            end, meant = hay.escapes[at]
            for place in self._places.get(meant, ()):
                # Backslashes before the first byte of the value need not be hidden.
                for more in range(_MORE_BACKSLASHES + 1 if place and data[at] == _A_BACKSLASH else 1):
                    begin = at - more - place
                    if begin < start or data[at - more : at].strip(b"\\"):
                        break
                    if data.startswith(self._value[:place], begin):
                        yield begin, place + len(meant), end

    def _ends(self, hay: Haystack, at: int, place: int) -> tuple[list[int], bool]:
        """Where the value ends whose rest, from `place` on, stands at `at`; and whether it may go on behind the data.

        A value that holds a percent sign or a backslash can be read in more than one way, so all are tried.
        """
        data, value, escapes = hay.data, self._value, hay.escapes
        ends, goes_on = [], False
        waiting, seen = [(at, place)], {(at, place)}
        while waiting:
            at, place = waiting.pop()
            if place == len(value):
                ends.append(at)
                continue
            goes_on = goes_on or at == len(data) or _BEGUN_ESCAPE.match(data, at) is not None
            ways = [(at + 1, place + 1)] if data.startswith(value[place : place + 1], at) else []
            for more in range(_MORE_BACKSLASHES + 1):
                end, meant = escapes.get(at + more, (0, b""))
                if meant and value.startswith(meant, place) and (not more or data[at + more] == _A_BACKSLASH):
                    ways.append((end, place + len(meant)))
                if data[at + more : at + more + 1] != b"\\":
                    break
            new = [way for way in ways if way not in seen]
            seen.update(new)
            waiting += new
        return ends, goes_on


def _characters(value: bytes) -> Iterator[bytes]:
    """The value in pieces, each of them one character of UTF-8 or one byte that is none."""
    return (octets(letter) for letter in value.decode("utf-8", "surrogateescape"))


def _in_any_form(character: bytes) -> bytes:
    """An expression for a character or its bytes, plain or escaped."""
    in_bytes = b"".join(
        rb"(?:%b|%%(?i:%02x)|\\{1,%d}x(?i:%02x))" % (re.escape(b"%c" % byte), byte, _MORE_BACKSLASHES + 1, byte)
        for byte in character
    )
    try:
        code = ord(character.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return in_bytes
    if code > 0xFFFF:
        return in_bytes
    return rb"(?:%b|\\{1,%d}u(?i:%04x))" % (in_bytes, _MORE_BACKSLASHES + 1, code)


class Shape:
    """A fixed beginning and, behind it, classes of bytes: ``hf_`` and letters, say.

    `seen` stays visible between the beginning and what is hidden; `after` must follow and stays visible. `only_with` is
    a part of the beginning that hardly any log holds: without it nothing else is looked for.
    """

    def __init__(
        self,
        beginning: bytes,
        *hidden: Step,
        seen: tuple[Step, ...] = (),
        after: tuple[Step, ...] = (),
        before: bytes = b"",
        any_case: bool = False,
        only_with: bytes = b"",
        hides_beginning: bool = True,
    ) -> None:
        self._beginning = beginning
        self._only_with = only_with
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
        if self._only_with and not hay.holds(self._only_with):
            return
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


def _tokens(beginning: bytes, inner: bytes, least: int, most: int, before: bytes = b"") -> Iterator[Shape]:
    """A token of letters, digits and the characters `inner`, plain and where its signs stand as %5F or \\u005f."""
    yield Shape(beginning, (rb"[A-Za-z0-9%b]" % inner, least, most), before=before)
    sign = beginning[-1:]
    for written, escape in ((b"%%%02x" % ord(sign), b"%"), (rb"\u%04x" % ord(sign), rb"\\")):
        within = rb"[A-Za-z0-9%b]" % (escape + inner if inner else b"")
        yield Shape(
            beginning.replace(sign, written),
            (within, least, most),
            before=before,
            any_case=True,
            only_with=written,
        )


SHAPES: Final[tuple[Needle, ...]] = (
    *_tokens(b"hf_", b"", 16, 200),
    *_tokens(b"hf_oauth_", b"._-", 16, 2048),
    *_tokens(b"hf_jwt_", b"._-", 16, 2048),
    Shape(b"xox", (rb"[a-z]", 1, 1), (rb"-", 1, 1), (rb"[A-Za-z0-9-]", 10, 255)),
    *(token for kind in b"abceoprs" for token in tuple(_tokens(b"xox%c-" % kind, b"-", 10, 255))[1:]),
    *_tokens(b"xapp-", b"-", 10, 255),
    DiscordToken(),
    *(token for kind in b"pousr" for token in _tokens(b"gh%c_" % kind, b"", 20, 255)),
    *_tokens(b"github_pat_", b"_", 20, 255),
    *_tokens(b"glpat-", b"_-", 20, 255),
    *_tokens(b"sk-", b"_-", 20, 255, _NOT_WITHIN_A_WORD),
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


def needles_of(secrets: Iterable[str]) -> list[Needle]:
    """Known secrets in every spelling that a log may show, in a fixed order."""
    secrets = set(secrets)
    exact = {spelling for secret in secrets for spelling in _spellings(secret)}
    any_case = {spelling.lower() for secret in secrets for spelling in _spellings_of_any_case(octets(secret))}
    return [
        *map(Literal, sorted(exact)),
        *(Literal(spelling, any_case=True) for spelling in sorted(any_case)),
        *map(Escaped, sorted(map(octets, secrets))),
    ]


def _spellings(secret: str) -> set[bytes]:
    """Plain, in the query of a URL, in base64, in JSON and as Python shows it; what has only escapes is `Escaped`."""
    plain = octets(secret)
    shown = json.dumps(secret)[1:-1]
    texts = {
        shown,
        shown.replace("/", "\\/"),
        json.dumps(shown)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
    }
    if " " in secret:
        coded = quote_plus(plain)
        texts |= {coded, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), coded)}
    return {plain, *map(octets, texts), *_base64(plain)}


def _spellings_of_any_case(plain: bytes) -> Iterator[bytes]:
    yield plain.hex().encode()
    yield base64.b32encode(plain).rstrip(b"=")
    for before in range(5):  # like base64: five bytes are a group of eight characters
        coded = base64.b32encode(bytes(before) + plain)
        yield coded[-(before * 8 // -5) : (before + len(plain)) * 8 // 5]


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
