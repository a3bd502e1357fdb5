"""The output of a command, made readable: lines, without what terminals, launchers and collectors put around them.

Progress bars share lines with messages, several processes write into one log, and whoever collects logs puts times,
levels and ranks before each line. What decides is found behind all of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from runner.runs.words import plain

_LONGEST = 2000
_READ = 20 * _LONGEST  # characters of a line that are looked at: a list of choices may be long
_MESSAGE_LINES = 8

_COLOUR = re.compile(r"(?:\x1b|\^\[|\u241b)\[[0-9;:?]*[ -/]*[@-~]")
# "name:  3%|#   | 4/200 [00:00<00:32,  6.01it/s]" and the like: what follows on the line is another writer's.
_BAR_END = re.compile(r"(\[[\d:?<]{4,40},[^\[\]]{0,60}(?:/s|s/\w{1,10})[^\[\]]{0,60}\])(?=\s*\S)")
_PREFIX = re.compile(
    r"""
    (?P<rank>\[?(?:rank|default|worker|device)[ _:]?\d+\]?:[ ]?|\(\w[^()]{0,60}\bpid=\d+[^()]{0,60}\)[ ]?)
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[ ]?[+-]\d\d:?\d\d)?\]?(?:[:,]?[ ]|(?=\[)|$)
    | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[ ]
    | \[[ ]*\d+\.\d+(?:[ ]+[EO])?\][ ]
    | [A-Z][a-z]{2}[ ]{1,2}\d{1,2}[ ]\d\d:\d\d:\d\d[ ]\S{1,80}[ ][\w./@()-]{1,80}(?:\[\d+\])?:[ ]
    | [IWEF]\d{4}[ ]\d\d:\d\d:\d\d\S*[ ]+\d+[ ]\S{1,80}\][ ]
    | (?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)(?::\w+:|:[ ]|[ ]+)(?:\d\d-\d\d[ ]\d\d:\d\d:\d\d[ ])?
    | \[(?:DEBUG|WARNING|WARN|ERROR|CRITICAL|FATAL)\]:?[ ]
    | \[[\w./-]{1,80}:\d+\][ ]
    | (?:[A-Za-z][\w.-]{0,60})?[ ]{0,40}\|[ ]
    | \d{1,5}:[ ](?=\S|[ ]{2,}File[ ])
    """,
    re.VERBOSE,
)
_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|OfflineModeIsEnabled)(?::|$)"
)
_USAGE = re.compile(r"^(?!slurmstepd|srun|sbatch)\S{1,200}: error: ")
# What says only that something else failed, before it or in another process.
_ECHO = re.compile(
    r"^(?:\S+\.)?(?:ChildFailedError|CalledProcessError|ProcessExitedException|ProcessRaisedException|BrokenPipeError"
    r"|ConnectionResetError|EOFError|SystemExit|KeyboardInterrupt|BrokenProcessPool|EngineDeadError|CancelledError)\b"
    r"|ncclRemoteError|Connection closed by"
    r"|sys\.meta_path is None|See root cause above|root cause above"
)
_CALM = re.compile(r"\b(?:DEBUG|INFO|WARNING|WARN)\b|\bwarnings?\.warn\b|\b\w*Warning: ")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_TRACEBACK = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Line:
    """One line: as it stands there without colours, and what it says behind times, levels and ranks."""

    whole: str
    text: str
    writer: str = ""
    ends: bool = False
    """Whether it names an exception, or is a program's complaint about its arguments."""

    @property
    def indented(self) -> bool:
        """Whether it belongs to what stands above it, as the lines of a traceback do."""
        return self.text[:1].isspace()

    @property
    def calm(self) -> bool:
        """Whether its writer says that nothing failed: it is an information or a warning."""
        return _CALM.search(self.whole, 0, 120) is not None


class Output:
    """Lines of output, oldest first, and those of them that end a command."""

    def __init__(self, raw: Iterable[str]) -> None:
        self.lines = [line for text in raw for line in _lines_of(text)]

    @cached_property
    def exceptions(self) -> list[int]:
        """Places of all lines that name an exception, or a program's complaint about its arguments."""
        return [place for place, line in enumerate(self.lines) if line.ends]

    @cached_property
    def deciding(self) -> list[int]:
        """Places of the exceptions that may have ended the command, the likeliest first.

        That is the last one of each writer, then what it was raised from. What only says that something else failed
        counts where nothing else does.
        """
        last = list({self.lines[place].writer: place for place in self.exceptions if not self._echoes(place)}.values())
        last.sort(reverse=True)
        if not last:
            return self.exceptions[-1:]
        return list(dict.fromkeys([*last, *self._causes_of(last[0])]))

    @property
    def last_exception(self) -> str:
        """The line that names the exception which ended the command; empty where none does."""
        return self.lines[self.deciding[0]].text if self.deciding else ""

    def message(self, place: int) -> Iterator[str]:
        """The line of an exception, then what its message says below that line."""
        line = self.lines[place]
        yield line.text
        for below in self.lines[place + 1 : place + 1 + _MESSAGE_LINES]:
            if below.text.startswith((_TRACEBACK, *_CHAINED)):
                return
            if below.writer == line.writer:
                yield below.text

    def _echoes(self, place: int) -> bool:
        return _ECHO.search(self.lines[place].text) is not None

    def _causes_of(self, place: int) -> Iterator[int]:
        """Earlier exceptions from which this one was raised, the nearest first."""
        before = [other for other in self.exceptions if other < place]
        for earlier in reversed(before):
            between = self.lines[earlier + 1 : place]
            if not any(line.text.startswith(_CHAINED) for line in between):
                return
            yield earlier
            place = earlier


def _lines_of(raw: str) -> Iterator[Line]:
    """The lines of one piece of output, without the empty ones."""
    if len(raw) > _READ:
        raw = raw[: _READ // 2] + " ... " + raw[-_READ // 2 :]
    text = _COLOUR.sub("", raw) if "[" in raw else raw
    if "/s" in text or "s/" in text:
        text = _BAR_END.sub("\\1\r", text)
    for part in re.split(r"[\r\n]+", text):
        if part.strip():
            yield _line(part)


def _line(part: str) -> Line:
    # Python's own test of a whole string is far quicker than looking at each letter.
    whole = part.rstrip() if part.isprintable() and len(part) <= _LONGEST else _cleaned(part)
    text, writer = whole, ""
    for _ in range(8):
        if _names_an_exception(text) or (found := _PREFIX.match(text)) is None:
            break
        writer = writer or (found["rank"] or "").strip()
        text = text[found.end() :]
    if text.startswith('{"ptq"'):
        told = _error_event(text)
        return Line(whole, told or text, writer, bool(told))
    return Line(whole, text, writer, _names_an_exception(text))


def _cleaned(part: str) -> str:
    """The same in printable characters; how far a line is indented stays, since that says what it is."""
    indent = len(part) - len(part.lstrip(" \t"))
    return " " * min(indent, 40) + plain(part, _LONGEST)


def _names_an_exception(text: str) -> bool:
    return bool(_EXCEPTION.match(text) or _USAGE.match(text))


def _error_event(text: str) -> str:
    """The exception that an event of our own script stands for; empty for any other event."""
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    match event:
        case {"ptq": "error", "type": str(kind), "message": str(message)}:
            return plain(f"{kind}: {message}".removesuffix(": "), _LONGEST)
    return ""


def last_exception(lines: Sequence[str]) -> str:
    """The last line that names an exception, or a program's complaint about its arguments; empty where none does.

    The own script also tells its errors as an event, a JSON line: that one is given as the exception it stands for.
    """
    return Output(lines).last_exception
