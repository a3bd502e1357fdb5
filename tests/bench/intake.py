"""Intake by the warm daemon against a process that only reads the model's configuration with transformers."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runner.service.client import Client
from schemas.api import IntakeRequest

_ONE_LINE = "import sys; from transformers import AutoConfig; AutoConfig.from_pretrained(sys.argv[1])"


@dataclass(frozen=True)
class Comparison:
    """Median seconds of both, taken in turns."""

    intake: float
    one_line: float

    @property
    def ratio(self) -> float:
        """How many times faster the daemon is."""
        return self.one_line / self.intake

    def __str__(self) -> str:
        """Both times and the ratio."""
        return (
            f"intake by the warm daemon {self.intake * 1000:.1f} ms, AutoConfig in a process {self.one_line:.2f} s: "
            f"{self.ratio:.0f} times faster"
        )


def compare(client: Client, model: Path, rounds: int = 3) -> Comparison:
    """Analyse the model and read its configuration in turns. The first analysis is not counted: it warms the daemon."""
    request = IntakeRequest(model=str(model))
    client.intake(request)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds_of(lambda: client.intake(request)))
        command = [sys.executable, "-c", _ONE_LINE, str(model)]
        theirs.append(seconds_of(lambda command=command: subprocess.run(command, check=True)))  # type: ignore[misc]
    return Comparison(statistics.median(ours), statistics.median(theirs))


def seconds_of(work: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
