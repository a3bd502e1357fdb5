"""The deployment files, read as the programs that use them read them, as far as the tests look at them."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
SOCKET_FOLDER = "/run/quark-ptq-runner"


def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def compose() -> dict[str, Any]:
    """compose.yaml, with its anchors filled in and its variables as they stand."""
    content: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return content


def with_defaults(value: str) -> str:
    """A value of compose.yaml where no variable is set: ${NAME:-default} gives the default."""
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", value)


def unit(name: str) -> dict[str, list[str]]:
    """The settings of a systemd unit, each with its values in order; a line that ends in a backslash goes on.

    Raises ValueError for a line that is no section, comment or setting.
    """
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8").replace("\\\n", " ")
    settings: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line or line.startswith(("#", "[")):
            continue
        key, found, value = line.partition("=")
        if not found or not re.fullmatch(r"[A-Za-z]+", key):
            raise ValueError(f"{name} has a line that is no setting: {line}")
        settings.setdefault(key, []).append(value.strip())
    return settings


@dataclass(frozen=True)
class Instruction:
    """One instruction of a Containerfile, with the number of its stage."""

    stage: int
    name: str
    rest: str

    @property
    def words(self) -> list[str]:
        """What follows the instruction's name, as a shell would split it."""
        return shlex.split(self.rest)


def containerfile(name: str) -> list[Instruction]:
    """The instructions of a Containerfile. Those before the first FROM are of stage -1."""
    text = (DEPLOY / "containers" / name).read_text(encoding="utf-8")
    return list(_instructions(text))


def _instructions(text: str) -> Iterator[Instruction]:
    stage = -1
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        yield Instruction(stage, name, rest.strip())
