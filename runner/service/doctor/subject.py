"""What the checks look at, gathered once, and how they say what they found."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from runner.errors import RunnerError
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.software import container_runtime
from runner.host.tools import ToolRunner, run_tool
from runner.settings import RunnerSettings
from schemas.artifacts.environment import Hardware
from schemas.artifacts.plan import Finding, Severity
from schemas.catalog import Catalogue


@dataclass(frozen=True)
class Subject:
    """This host, as far as it could be looked at.

    `facts` and `catalogue` are None where the quantization interpreter did not tell, and `problem` says why. `root` is
    the file system that is looked at and `run` starts tools: tests put their own in place.
    """

    settings: RunnerSettings
    facts: InterpreterFacts | None = None
    catalogue: Catalogue | None = None
    problem: RunnerError | None = None
    hardware: Hardware = field(default_factory=lambda: Hardware(accelerator="unknown"))
    root: Path = Path("/")
    run: ToolRunner = run_tool
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def container(self) -> str | None:
        """The container runtime around this process; None on a host of its own."""
        return container_runtime(self.root, self.environment)

    @property
    def backend(self) -> str:
        """What the interpreter's torch was built for: cuda, rocm, cpu, or unknown."""
        witness = self.facts.witness if self.facts else None
        return witness.backend if witness else "unknown"

    @property
    def user(self) -> str:
        """Who looks."""
        try:
            return getpass.getuser()
        except (KeyError, OSError):  # a user number without a name, as containers have them
            return str(os.getuid())


Topic = Callable[[Subject], Iterator[Finding]]


def blocks(code: str, message: str, hint: str = "") -> Finding:
    """Runs cannot work here before this is mended."""
    return Finding(severity=Severity.BLOCKS, code=code, message=message, hint=hint)


def warns(code: str, message: str, hint: str = "") -> Finding:
    """Runs may fail or be worse because of this."""
    return Finding(severity=Severity.WARNS, code=code, message=message, hint=hint)


def informs(code: str, message: str, hint: str = "") -> Finding:
    """How it is."""
    return Finding(severity=Severity.INFORMS, code=code, message=message, hint=hint)


def told(problem: RunnerError) -> Finding:
    """An error of the runner as a finding that blocks."""
    return blocks(problem.code, problem.message, problem.hint)
