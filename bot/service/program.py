"""The edge of the program: every end of a command is a sentence and an exit status, never a traceback."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, NoReturn

import click

from bot.cards.amounts import plain
from bot.errors import BotError

_FAILED = 1
_INTERRUPTED = 130  # 128 + SIGINT, as shells say it
_DEBUG = "PTQ_BOT_DEBUG"


class Program(click.Group):
    """Turns every error into one sentence on standard error, and the exit status 1."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the program and end it."""
        for stream in (sys.stdin, sys.stdout):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            super().main(*args, **extra)
            sys.exit(0)
        except KeyboardInterrupt:
            sys.exit(_INTERRUPTED)
        except SystemExit:
            raise
        except BrokenPipeError:
            with suppress(OSError, ValueError):  # whoever read the output went away, as `head` does
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_FAILED)
        except Exception as error:  # the edge of the program
            if os.environ.get(_DEBUG):
                raise
            with suppress(OSError):
                click.echo(sentence_of(error), err=True)
            sys.exit(_FAILED)


def sentence_of(error: BaseException) -> str:
    """What an error means to the person, with a hint on a second line where there is one."""
    match error:
        case BotError():
            text = f"{error.message}\n  {error.hint}".rstrip()
        case BaseExceptionGroup():
            return sentence_of(error.exceptions[0])
        case OSError(filename=None):
            text = f"Reading or writing failed: {error.strerror or error}."
        case OSError():
            text = f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}."
        case _:
            about = " ".join(str(error).split())[:300]
            text = f"This is a fault of ptq-bot: {type(error).__name__}: {about}; run with {_DEBUG}=1 to see where."
    return "ptq-bot: " + "\n".join(plain(line) for line in text.splitlines())
