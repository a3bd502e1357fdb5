"""What a person typed, checked once: every argument and option of the programs is of one of these types."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.errors import BadRequest

if TYPE_CHECKING:  # older releases of the library have the type without its parameter
    _Text = click.ParamType[str]
    _Path = click.ParamType[Path]
else:
    _Text = _Path = click.ParamType

_LONGEST = 4096  # characters, as long as a path may be on Linux
_RUN = re.compile(r"run-[0-9a-f]{1,64}")


def checked(text: str, name: str, longest: int = _LONGEST, lines: bool = False) -> str:
    """The text itself. Raises BadRequest for what is too long, not UTF-8, or has control characters.

    Such text cannot be sent, or looks different from what it is where somebody has to approve it.
    """
    if len(text) > longest:
        raise BadRequest("bad_argument", f"{name} has {len(text)} characters; {longest} are allowed.")
    for letter in text:
        match unicodedata.category(letter):
            case "Cs":
                raise BadRequest("bad_argument", f"{name} is not UTF-8 text.")
            case "Cc" | "Cf" if not (lines and letter in "\n\t"):
                raise BadRequest("bad_argument", f"{name} has the invisible character U+{ord(letter):04X}.")
    return text


class Words(_Text):
    """Text on one line, or a small document of several."""

    name = "text"

    def __init__(self, longest: int = _LONGEST, lines: bool = False, empty: bool = False) -> None:
        self.longest = longest
        self.lines = lines
        self.empty = empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check what was typed. Raises BadRequest."""
        text, name = str(value), _named(param, ctx)
        return checked(text if self.empty else _filled(text, name), name, self.longest, self.lines)


class FilePath(_Path):
    """A file or folder, which need not exist."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Check what was typed. Raises BadRequest."""
        if isinstance(value, Path):
            return value  # a default of ours
        name = _named(param, ctx)
        return expanded(checked(_filled(str(value), name), name))


class RunName(_Text):
    """The name of a run."""

    name = "run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check what was typed. Raises BadRequest."""
        text, hint = str(value).strip(), "`ptq-runner runs` lists them."
        if not text:
            raise BadRequest("bad_argument", "Name a run.", hint)
        checked(text, _named(param, ctx), longest=200)
        if not _RUN.fullmatch(text):
            raise BadRequest(
                "bad_argument", f"{text[:80]!r} is not the name of a run, such as run-0123456789abcdef.", hint
            )
        return text


def expanded(text: str) -> Path:
    """The path with ~ replaced. Raises BadRequest where it names nobody's home."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        user = Path(text).parts[0]
        raise BadRequest("bad_argument", f"{user} in {text[:200]!r} is nobody's home folder here.") from None


def _filled(text: str, name: str) -> str:
    if not text.strip():
        raise BadRequest("bad_argument", f"{name} is empty.", "Give it a value, or leave it out where that is allowed.")
    return text


def _named(param: click.Parameter | None, ctx: click.Context | None) -> str:
    return "An argument" if param is None else param.get_error_hint(ctx).strip("'").replace("' / '", " or ")
