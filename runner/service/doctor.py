"""`ptq-runner doctor`: what is missing, wrong or risky on this host, each with its fix."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType

from runner.errors import RunnerError
from runner.host.accelerators import hardware
from runner.host.checkout import checkout_version, missing_names
from runner.host.datasets import mirrored_datasets
from runner.host.entry_points import wanted_entry_point_problem
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.paths import nearest_existing
from runner.service import terminal
from runner.service.state_folder import danger_in
from runner.settings import RunnerSettings
from schemas.artifacts.environment import Hardware
from schemas.artifacts.plan import Finding, Severity
from schemas.catalog import Catalogue


@dataclass(frozen=True)
class _Host:
    """What was found, as far as it could be."""

    settings: RunnerSettings
    facts: InterpreterFacts | None
    catalogue: Catalogue | None
    problem: RunnerError | None
    hardware: Hardware


def examine(settings: RunnerSettings) -> list[Finding]:
    """Look at everything that a run needs, without a daemon. Takes up to a minute the first time."""
    host = asyncio.run(_look(settings))
    return [*_engine(host), *_checkout(host), *_accelerator(host), *_folders(settings), *_tools(host)]


def is_fit(findings: list[Finding]) -> bool:
    """Whether runs can work here."""
    return all(finding.severity is not Severity.BLOCKS for finding in findings)


def findings_view(findings: list[Finding]) -> RenderableType:
    """One line for each."""
    return Group(*(terminal.finding_view(finding) for finding in findings))


async def _look(settings: RunnerSettings) -> _Host:
    interpreter = Interpreter(settings.quark.python, settings.state_dir / "cache", settings.limits.probe_seconds)
    facts, catalogue, problem = None, None, None
    try:
        facts = await interpreter.facts()
        catalogue = await interpreter.catalogue()
    except RunnerError as error:
        problem = error
    found = await asyncio.to_thread(hardware, facts.witness if facts else None)
    return _Host(settings, facts, catalogue, problem, found)


def _engine(host: _Host) -> Iterator[Finding]:
    if host.problem is not None:
        yield _finding(Severity.BLOCKS, host.problem.code, host.problem.message, host.problem.hint)
    if host.catalogue is not None:
        offer, versions = host.catalogue, host.catalogue.versions
        yield _finding(
            Severity.INFORMS,
            "engine",
            f"{host.settings.quark.python} has Quark {versions.quark}, torch {versions.torch} and transformers "
            f"{versions.transformers}: {len(offer.schemes)} schemes, {len(offer.templates)} families.",
        )
    missing = wanted_entry_point_problem(host.settings, host.facts)
    if missing is not None:
        yield _finding(Severity.BLOCKS, missing.code, missing.message, missing.hint)


def _accelerator(host: _Host) -> Iterator[Finding]:
    found = host.hardware
    if found.accelerator == "unknown":
        seen = "; ".join([*found.contradictions, *found.evidence]) or "nothing was found"
        hint = "Install the vendor's driver and tools, or a torch build that fits the GPU."
        yield _finding(
            Severity.WARNS, "accelerator_unknown", f"It is not clear what this host computes on: {seen}.", hint
        )
    elif found.accelerator == "cpu":
        hint = "Runs take the CPU: fit for small models only."
        yield _finding(Severity.INFORMS, "accelerator", "This host has no GPU.", hint)
    else:
        what = f"{found.gpu_count} x {found.gpu_model or 'GPU'} ({found.gpu_arch or 'architecture unknown'})"
        yield _finding(Severity.INFORMS, "accelerator", f"This host has {what}, {found.accelerator}.")
    for contradiction in found.contradictions if found.accelerator != "unknown" else []:
        hint = "Install the build of torch that fits this host into the quantization interpreter."
        yield _finding(Severity.WARNS, "accelerator_contradiction", f"{contradiction}.", hint)


def _folders(settings: RunnerSettings) -> Iterator[Finding]:
    yield from _roots("models.roots", settings.models.roots, os.R_OK | os.X_OK)
    yield from _roots("outputs.roots", settings.outputs.roots, os.W_OK | os.X_OK)
    if not os.access(nearest_existing(settings.state_dir), os.W_OK | os.X_OK):
        message = f"state_dir {settings.state_dir} cannot be written."
        yield _finding(Severity.BLOCKS, "bad_state_dir", message, "Give the runner's user write access to it.")
    elif settings.state_dir.is_dir() and (danger := danger_in(settings.state_dir)):
        yield _finding(Severity.BLOCKS, danger.code, danger.message, danger.hint)
    datasets = mirrored_datasets(settings.datasets.mirror)
    if datasets:
        yield _finding(Severity.INFORMS, "datasets", f"The dataset mirror holds {', '.join(datasets)}.")
    elif not settings.models.hub:
        yield _finding(
            Severity.WARNS,
            "no_datasets",
            "There is no calibration data: the dataset mirror is empty or not set, and this runner is offline.",
            "Set datasets.mirror in runner.yaml and put a text file or a downloaded dataset into it.",
        )


def _roots(setting: str, roots: list[Path], access: int) -> Iterator[Finding]:
    if not roots:
        yield _finding(Severity.BLOCKS, "no_roots", f"{setting} names no folder.", f"Set {setting} in runner.yaml.")
    for root in roots:
        if not root.is_dir() or not os.access(root, access):
            hint = "Create it, or correct the setting or its permissions."
            yield _finding(Severity.BLOCKS, "bad_root", f"{root} of {setting} cannot be used.", hint)
        elif access & os.W_OK:
            free = shutil.disk_usage(root).free
            yield _finding(Severity.INFORMS, "disk", f"{terminal.size(free)} are free in {root}.")


def _tools(host: _Host) -> Iterator[Finding]:
    facts = host.facts
    if facts is None:
        return
    missing = [
        name
        for name, there in (
            ("C++ compiler", facts.compiler is not None),
            ("ninja", facts.ninja),
            ("Python.h", facts.python_headers is not False),
        )
        if not there
    ]
    if missing:
        hint = "Install what is missing: Quark compiles its kernels with it when they are first used."
        found = f"The quantization interpreter finds no {' and no '.join(missing)}."
        yield _finding(Severity.WARNS, "no_compiler", found, hint)


def _checkout(host: _Host) -> Iterator[Finding]:
    """A checkout of another release may call what the installed package does not have, or the other way round."""
    settings, facts = host.settings, host.facts
    checkout = settings.quark.checkout
    if checkout is None or facts is None:
        return
    version = checkout_version(checkout)
    if version is not None and facts.quark is not None and version != facts.quark:
        yield _finding(
            Severity.WARNS,
            "checkout_differs",
            f"The checkout {checkout} is of Quark {version}, and the interpreter has {facts.quark}.",
            "Check out the release that is installed, or let our own script run (quark.entry_point own).",
        )
    lacking = missing_names(checkout, facts.quark_path)
    if lacking:
        shown = ", ".join(lacking[:3])
        yield _finding(
            Severity.BLOCKS if settings.quark.entry_point == "quantize_quark" else Severity.WARNS,
            "checkout_differs",
            f"quantize_quark.py of the checkout {checkout} needs {shown}, which the installed Quark does not have: it "
            "ends at its start.",
            "Check out the release that is installed, or let our own script run (quark.entry_point own).",
        )


def _finding(severity: Severity, code: str, message: str, hint: str = "") -> Finding:
    return Finding(severity=severity, code=code, message=message, hint=hint)
