"""What the commands share: settings, the daemon, where to write and how to listen."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path

import click
from rich.console import Console

from runner.clock import SystemClock
from runner.service import terminal
from runner.service.client import Client
from runner.settings import RunnerSettings, load_settings


class Shell:
    """The terminal of one command."""

    def __init__(self, config: Path | None) -> None:
        self._config = config
        self.out = Console(soft_wrap=not sys.stdout.isatty(), highlight=False)
        self.err = Console(stderr=True, soft_wrap=not sys.stderr.isatty(), highlight=False)
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

    def listen(self, prompt: str) -> str | None:
        """One line from the person; None when nobody is there."""
        click.echo(f"\n>>> {prompt}: ", nl=False, err=True)
        line = sys.stdin.readline()
        if not sys.stdin.isatty():
            click.echo(terminal.plain(line.rstrip("\n")), err=True)
        return line if line else None
