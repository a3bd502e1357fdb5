"""All checks in the order in which a person mends things: the engine first, then GPUs, folders, kernel and API."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from runner.errors import Broken, RunnerError
from runner.host.accelerators import hardware
from runner.host.interpreter import Interpreter
from runner.host.tools import ToolRunner, run_tool
from runner.service import terminal
from runner.service.doctor.accelerator import accelerator
from runner.service.doctor.building import building
from runner.service.doctor.devices import devices
from runner.service.doctor.disks import disks
from runner.service.doctor.engine import engine
from runner.service.doctor.folders import folders
from runner.service.doctor.hub import hub
from runner.service.doctor.kernel import kernel
from runner.service.doctor.leases import leases
from runner.service.doctor.listening import listening
from runner.service.doctor.memory import memory
from runner.service.doctor.programs import programs
from runner.service.doctor.slurm import slurm
from runner.service.doctor.state import state
from runner.service.doctor.subject import Subject, Topic, told, warns
from runner.service.doctor.visibility import visibility
from runner.settings import RunnerSettings
from schemas.artifacts.plan import Finding, Severity

TOPICS: Final[Mapping[str, Topic]] = {
    "engine": engine,
    "programs": programs,
    "building": building,
    "accelerator": accelerator,
    "devices": devices,
    "visibility": visibility,
    "leases": leases,
    "slurm": slurm,
    "folders": folders,
    "state": state,
    "disks": disks,
    "hub": hub,
    "memory": memory,
    "kernel": kernel,
    "listening": listening,
}


@dataclass(frozen=True)
class Examination:
    """All findings. `verdict` is "unfit" where one of them blocks."""

    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Literal["fit", "unfit"]:
        """Whether runs can work here."""
        return "unfit" if any(finding.severity is Severity.BLOCKS for finding in self.findings) else "fit"

    @property
    def exit_code(self) -> int:
        """0 for a fit host, 1 for another: scripts rely on it."""
        return 0 if self.verdict == "fit" else 1

    def as_json(self) -> str:
        """The verdict and the findings for programs."""
        findings = [finding.model_dump(mode="json") for finding in self.findings]
        return json.dumps({"verdict": self.verdict, "findings": findings}, indent=2)


def examine(
    settings: RunnerSettings,
    *,
    root: Path = Path("/"),
    run: ToolRunner = run_tool,
    environment: Mapping[str, str] = os.environ,
) -> Examination:
    """Look at everything that a run needs, without a daemon. Takes up to a minute the first time; never raises."""
    return examined(_subject(settings, root, run, environment))


def examine_settings(problem: RunnerError) -> Examination:
    """Settings that cannot be read are all there is to say."""
    return Examination((told(problem),))


def examined(subject: Subject, topics: Mapping[str, Topic] = TOPICS) -> Examination:
    """What the checks say of a subject. One that falls says so, and hides no other."""
    return Examination(tuple(finding for name, topic in topics.items() for finding in _findings(name, topic, subject)))


def view(examination: Examination) -> RenderableType:
    """One line for each finding, and the verdict."""
    count = sum(finding.severity is Severity.BLOCKS for finding in examination.findings)
    verdict = "Runs can work here." if not count else f"Runs cannot work here: {count} of these block."
    return Group(*(terminal.finding_view(finding) for finding in examination.findings), Text(verdict, "bold"))


def _findings(name: str, topic: Topic, subject: Subject) -> list[Finding]:
    found: list[Finding] = []
    try:
        for finding in topic(subject):
            found.append(finding)  # noqa: PERF402 - what was found before a fall counts
    except Exception as error:  # the edge of one check: what it looked at is not what anybody expected
        about = " ".join(str(error).split())[:300]
        what = f"The check of {name} could not be finished: {type(error).__name__}: {about or 'no reason was given'}."
        found.append(warns("check_failed", what, "Look at what it names; this is a fault of ptq-runner."))
    return found


def _subject(settings: RunnerSettings, root: Path, run: ToolRunner, environment: Mapping[str, str]) -> Subject:
    interpreter = Interpreter(settings.quark.python, settings.state_dir / "cache", settings.limits.probe_seconds)
    facts, catalogue, problem = None, None, None

    async def look() -> None:
        nonlocal facts, catalogue
        facts = await interpreter.facts()
        catalogue = await interpreter.catalogue()

    try:
        asyncio.run(look())
    except RunnerError as error:
        problem = error
    except OSError as error:
        message = f"{settings.quark.python} cannot be asked: {error.strerror or error}."
        problem = Broken("interpreter_broken", message, "Correct quark.python, or mend what it names.")
    witness = facts.witness if facts else None
    return Subject(
        settings=settings,
        facts=facts,
        catalogue=catalogue,
        problem=problem,
        hardware=hardware(witness, root, run),
        root=root,
        run=run,
        environment=environment,
    )
