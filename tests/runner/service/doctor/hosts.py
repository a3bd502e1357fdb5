"""Pretend hosts for the checks: only what a test is about is anything out of the ordinary."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runner.host.interpreter_facts import InterpreterFacts, TorchBuild
from runner.service.doctor.subject import Subject, Topic
from runner.settings import RunnerSettings
from schemas.artifacts.environment import Gpu, Hardware
from schemas.artifacts.plan import Finding
from tests.runner.host.tools_on_path import tools
from tests.runner.intake.engine import FACTS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROCM = TorchBuild(hip="7.1", tag="rocm7.1")
CUDA = TorchBuild(cuda="12.6", tag="cu126")


def facts(**more: Any) -> InterpreterFacts:
    """An interpreter that has all it needs."""
    packages = {**FACTS.packages, "gguf": "0.19", **more.pop("packages", {})}
    values = {"compiler": "/usr/bin/c++", "ninja": True, "python_headers": True, "packages": packages, **more}
    return FACTS.model_copy(update=values)


def gpus(count: int, accelerator: Any = "amd-rocm") -> Hardware:
    """So many GPUs of one kind."""
    listed = [
        Gpu(index=index, uuid=f"GPU-{index:016x}", bus_address=f"0000:{index:02x}:00.0") for index in range(count)
    ]
    return Hardware(accelerator=accelerator, gpu_count=count, gpus=listed, gpu_model="Pretend", gpu_arch="gfx942")


def host(folder: Path, *, settings: dict[str, Any] | None = None, **more: Any) -> Subject:
    """A host without GPUs whose root is `folder/root`, which is made. `settings` are runner.yaml's."""
    root = folder / "root"
    (root / "dev/shm").mkdir(parents=True, exist_ok=True)
    values = {"state_dir": folder / "state", **(settings or {})}
    found: dict[str, Any] = {
        "facts": facts(),
        "hardware": Hardware(accelerator="cpu"),
        "root": root,
        "run": tools(),
        "environment": {},
        "now": NOW,
        **more,
    }
    return Subject(RunnerSettings.model_validate(values), **found)


def found(topic: Topic, subject: Subject) -> dict[str, Finding]:
    """What a check says, by code. Every finding is a sentence, and what blocks or warns says what to do."""
    said = list(_checked(topic(subject)))
    return {finding.code: finding for finding in said}


def _checked(findings: Iterator[Finding]) -> Iterator[Finding]:
    for finding in findings:
        assert finding.message.endswith("."), finding
        assert "\n" not in finding.message + finding.hint
        assert finding.hint or finding.severity == "informs" or finding.code in {"certificate", "disk_unknown"}, finding
        yield finding
