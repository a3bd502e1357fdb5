"""Takes secrets out of everything that leaves this host.

In logs each byte of a secret becomes ``*``, so that offsets into a log stay valid. The result is the same whether a log
is redacted as a whole, as a stream or window by window, and wherever it is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from runner.runs.secret_shapes import LOOK_BEHIND, SHAPES, Haystack, Needle, Span, joined, needles_of, octets

SHORTEST_SECRET: Final = 6
"""A shorter value (in characters) is not looked for: "true" or "1234" would hide half a log and protect nothing."""

_LONG_LINE: Final = 16
_HIDDEN_TEXT: Final = b"***"


class Redactor:
    """Hides the given secrets and whatever looks like a token."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {text for secret in secrets for text in _parts(secret)}
        self._needles: tuple[Needle, ...] = (*needles_of(known), *SHAPES)
        self.reach = max(needle.reach for needle in self._needles)

    def redact(self, data: bytes) -> bytes:
        """The same bytes with every secret hidden; of the same length."""
        return _hide(data, self.spans(Haystack(data), 0))

    def stream(self) -> RedactedStream:
        """Redacts a log that arrives in pieces."""
        return RedactedStream(self)

    def redact_window(
        self, read: Callable[[int, int], bytes], offset: int, length: int, size_known_end: int, final: bool
    ) -> tuple[bytes, int]:
        """At most `length` redacted bytes from `offset`, and the offset to go on from.

        `read(start, count)` gives bytes of the log, of which `size_known_end` are there. Until the log is `final`,
        bytes at its end that may be the beginning of a secret are held back: fewer bytes, or none, come out.
        """
        begin = max(0, offset - self.reach - LOOK_BEHIND)
        end = min(size_known_end, offset + length + self.reach)
        if length <= 0 or end <= offset:
            return b"", offset
        hay = Haystack(read(begin, end - begin))
        first = LOOK_BEHIND if begin else 0
        spans = self.spans(hay, first)
        stop = min(offset - begin + length, len(hay.data))
        if not final:
            stop = min(stop, _settled(self.opening(hay, first), spans))
        content = _hide(hay.data, spans)[offset - begin : stop]
        return content, offset + len(content)

    def redact_text(self, text: str) -> str:
        """A text for people with every secret replaced by ``***``."""
        data = octets(text)
        spans = self.spans(Haystack(data), 0)
        if not spans:
            return text
        shown, at = [], 0
        for start, end in spans:
            shown += [data[at:start], _HIDDEN_TEXT]
            at = end
        return b"".join([*shown, data[at:]]).decode("utf-8", "surrogateescape")

    def redact_document(self, document: JsonValue) -> JsonValue:
        """A document with every text in it redacted, its keys too."""
        match document:
            case str():
                return self.redact_text(document)
            case list():
                return [self.redact_document(item) for item in document]
            case dict():
                return {self.redact_text(key): self.redact_document(value) for key, value in document.items()}
            case _:
                return document

    def spans(self, hay: Haystack, start: int) -> list[Span]:
        """What to hide: spans in order that do not touch, of all secrets that begin at `start` or later."""
        found = (span for needle in self._needles for span in joined(needle.spans(hay, start)))
        return list(joined(sorted(found)))

    def opening(self, hay: Haystack, start: int) -> int:
        """The first place, from `start` on, where a secret may begin that goes on after the last byte; else the end."""
        openings = (needle.opening(hay, start) for needle in self._needles)
        return min((at for at in openings if at is not None), default=len(hay.data))


class RedactedStream:
    """Redacts a growing log; what comes out lags behind by the beginning of a possible secret, and else by nothing."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._kept = b""
        self._start = 0  # where in the kept bytes secrets may begin; those before are only looked back at
        self._given = 0  # how many of the kept bytes are out already, as hidden ones

    def feed(self, data: bytes) -> bytes:
        """The bytes that are settled now."""
        hay = Haystack(self._kept + data)
        spans = self._redactor.spans(hay, self._start)
        opening = self._redactor.opening(hay, self._start)
        settled = max(self._given, _settled(opening, spans))
        redacted = _hide(hay.data, spans)[self._given : settled]
        dropped = max(0, opening - LOOK_BEHIND)
        self._kept = hay.data[dropped:]
        self._start = opening - dropped
        self._given = settled - dropped
        return redacted

    def finish(self) -> bytes:
        """The bytes that were held back. The log has ended."""
        spans = self._redactor.spans(Haystack(self._kept), self._start)
        redacted = _hide(self._kept, spans)[self._given :]
        self._kept, self._start, self._given = b"", 0, 0
        return redacted


def secrets_of(environ: Mapping[str, str]) -> set[str]:
    """The values of the variables whose names say that they are secrets: HF_TOKEN, DB_PASSWORD, apiKey, …

    A name that tells of a place, such as SSH_AUTH_SOCK or TOKEN_FILE, holds none.
    """
    return {value for name, value in environ.items() if value.lower() not in _SETTINGS and _says_secret(name)}


_SECRET_WORDS: Final = re.compile(
    r"(?:PAT|JWT|\w*(?:TOKEN|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PASS|PWD|KEYS?|CREDENTIALS?|AUTH|AUTHORIZATION|COOKIE))"
    r"\d*"
)
_OTHER_WORDS: Final = re.compile(r"(?:MON|DON|TUR|HOT)KEYS?|ASKPASS|BYPASS|COMPASS")
_SETTINGS: Final = {"", "true", "false", "none", "default", "enabled", "disabled", "required", "optional"}
_NOT_SECRET_NAMES: Final = {"PWD", "OLDPWD"}
_PLACES_AND_KINDS: Final = {
    *("FILE", "PATH", "DIR", "DIRECTORY", "HOME", "SOCK", "SOCKET", "HOST", "PORT"),
    *("NAME", "TYPE", "METHOD", "PROVIDER", "VERSION", "LENGTH", "LIMIT", "COUNT", "TIMEOUT", "TTL", "ENABLED"),
}


def _says_secret(name: str) -> bool:
    words = [word for word in re.split(r"[^A-Z0-9]+", name.upper()) if word]
    if not words or name in _NOT_SECRET_NAMES or words[-1] in _PLACES_AND_KINDS:
        return False
    return any(_SECRET_WORDS.fullmatch(word) and not _OTHER_WORDS.fullmatch(word) for word in words)


def _parts(secret: str) -> list[str]:
    """What to look for of one secret: all of it, and its long lines, since a log may show them one by one."""
    whole = secret.strip()
    lines = [line.strip() for line in whole.splitlines()]
    lines = [line for line in lines if len(line) >= _LONG_LINE and not line.startswith("-----")]
    return [text for text in {whole, *lines} if len(text) >= SHORTEST_SECRET]


def _settled(opening: int, spans: list[Span]) -> int:
    """Up to where nothing can change any more: what is hidden already stays hidden, also within a possible secret."""
    return next((last for first, last in spans if first <= opening < last), opening)


def _hide(data: bytes, spans: list[Span]) -> bytes:
    if not spans:
        return data
    hidden = bytearray(data)
    for first, last in spans:
        hidden[first:last] = b"*" * (last - first)
    return bytes(hidden)
