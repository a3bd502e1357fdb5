"""The edge of the program: every end of a command is a sentence and an exit status, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from contextlib import suppress
from typing import Any, NoReturn

import click
from pydantic import ValidationError

from runner.errors import RunnerError
from runner.service import terminal

_FAILED = 1
_INTERRUPTED = 130  # 128 + SIGINT, as shells say it
_DEBUG = "PTQ_RUNNER_DEBUG"


class Program(click.Group):
    """Turns every error into one sentence on standard error, and the exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C ends it without an error."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _say("\nStopped.")
            raise click.exceptions.Exit(_INTERRUPTED) from None

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the program and end it."""
        _open_streams()
        try:
            super().main(*args, **extra)
            status: Any = 0
        except SystemExit as end:
            status = end.code
        except Exception as error:  # the edge of the program
            status = _tell(error)
        sys.exit(_flushed(status))


def sentence_of(error: Exception) -> str:
    """What an error means to the person, with a hint on a second line where there is one."""
    match error:
        case RunnerError():
            text = f"{error.message}\n  {error.hint}".rstrip()
        case ValidationError():
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            text = f"{place or error.title} is not valid: {first['msg']}."
        case UnicodeError():
            text = f"Something here is not text that can be written as UTF-8: {error}."
        case OSError(filename=None):
            text = f"Reading or writing failed: {error.strerror or error}."
        case OSError():
            name = error.filename
            shown = os.fsdecode(name) if isinstance(name, bytes) else name
            text = f"{shown} cannot be used: {error.strerror}."
        case _:
            about = " ".join(str(error).split())[:300]
            text = f"This is a fault of ptq-runner: {type(error).__name__}: {about}; run with {_DEBUG}=1 to see where."
    return f"ptq-runner: {terminal.plain(text)}"


def _tell(error: Exception) -> int:
    if os.environ.get(_DEBUG):
        with suppress(OSError):
            traceback.print_exception(error)
    if not _is_closed_pipe(error):
        _say(sentence_of(error))
    return _FAILED


def _is_closed_pipe(error: Exception) -> bool:
    """Whoever read the output went away, as `head` does: they know."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE and error.filename is None


def _say(text: str) -> None:
    with suppress(OSError):  # there is nobody left to tell
        click.echo(text, err=True)


def _open_streams() -> None:
    """Give the program streams that are open, and that can say everything in one way or another.

    A stream that the caller closed is None here, and its number would go to the next file that is opened.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", errors="replace"))
        elif hasattr(stream, "reconfigure") and name != "stderr":  # Python escapes on standard error by itself
            stream.reconfigure(errors="replace")


def _flushed(status: Any) -> Any:
    """Write what is still held back, while somebody can be told that it failed; Python itself would be too late."""
    try:
        sys.stdout.flush()
    except OSError as error:
        status = status or _tell(error)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status
