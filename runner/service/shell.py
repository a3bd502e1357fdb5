"""What the commands share: settings, the daemon, where to write and how to listen."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path

import click
from rich.console import Console, RenderableType
from rich.text import Text

from runner.clock import SystemClock
from runner.service import terminal
from runner.service.client import Client
from runner.settings import RunnerSettings, load_settings

_LONGEST_LINE = 10_000  # characters of an answer


class Shell:
    """The terminal of one command."""

    def __init__(self, config: Path | None) -> None:
        self._config = config
        self.out = _console(stderr=False)
        self.err = _console(stderr=True)
        self.clock = SystemClock()

    @property
    def settings(self) -> RunnerSettings:
        """runner.yaml and the environment."""
        return load_settings(self._config)

    @cached_property
    def client(self) -> Client:
        """The daemon."""
        return Client(self.settings)

    def close(self) -> None:
        """Close what was opened."""
        if "client" in self.__dict__:
            self.client.close()

    def say(self, sentence: str) -> None:
        """A sentence on standard output, as it is: no markup, and nothing in it moves the cursor."""
        self.show(Text(terminal.plain(sentence)))

    def tell(self, sentence: str) -> None:
        """The same on standard error."""
        self.show(Text(terminal.plain(sentence)), self.err)

    def show(self, view: RenderableType, console: Console | None = None) -> None:
        """A view of a document. On a narrow terminal the terminal itself breaks lines: what is copied stays whole."""
        console = console or self.out
        console.print(view, soft_wrap=console.soft_wrap or console.width < terminal.NARROW)

    def listen(self, prompt: str) -> str | None:
        """One line from the person; None when nobody is there."""
        click.echo(f"\n>>> {prompt}: ", nl=False, err=True)
        line = sys.stdin.readline(_LONGEST_LINE)
        if not sys.stdin.isatty():
            click.echo(terminal.plain(line.rstrip("\n")), err=True)
        return line if line else None


def _console(stderr: bool) -> Console:
    """Text is text: what comes from outside may hold square brackets and the names of emoji."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, soft_wrap=not stream.isatty(), highlight=False, markup=False, emoji=False)
