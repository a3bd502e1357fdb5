"""Rules of the house that a program can hold: who imports whom, and what the programs are called."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.settings import load_settings

ROOT = Path(__file__).parent.parent
ENGINE = {"torch", "transformers", "quark", "numpy", "datasets", "safetensors", "accelerate"}
# Within the runner a module imports downwards only.
LAYERS = ["service", "runs", "engines", "manifest", "planning", "intake", "host", "settings", "clock", "errors"]


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def _sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("schemas", {"runner", "bot", "tests"}), ("runner", {"bot", "tests"}), ("bot", {"runner", "tests"})],
)
def test_packages_import_only_what_they_may(package: str, forbidden: set[str]) -> None:
    wrong = [(path, name) for path in _sources(package) for name in _imports(path) if name.split(".")[0] in forbidden]
    assert not wrong


def test_only_the_scripts_for_the_engine_import_it() -> None:
    outside = [path for package in ("schemas", "runner", "bot") for path in _sources(package)]
    wrong = [
        (path, name)
        for path in outside
        if path.parent.name != "ptq"
        for name in _imports(path)
        if name.split(".")[0] in ENGINE
    ]
    assert not wrong


def test_the_scripts_for_the_engine_need_nothing_of_this_project() -> None:
    scripts = sorted((ROOT / "runner" / "ptq").glob("*.py"))
    assert scripts
    assert not [
        (path, name) for path in scripts for name in _imports(path) if name.split(".")[0] in {"runner", "schemas"}
    ]


def test_within_the_runner_imports_go_downwards() -> None:
    wrong = []
    for path in _sources("runner"):
        layer = path.relative_to(ROOT / "runner").parts[0].removesuffix(".py")
        if layer not in LAYERS:
            continue
        for name in _imports(path):
            parts = name.split(".")
            known = parts[0] == "runner" and len(parts) > 1 and parts[1] in LAYERS
            if known and LAYERS.index(parts[1]) < LAYERS.index(layer):
                wrong.append((str(path), name))
    assert not wrong


def test_the_daemon_does_not_load_the_engine_or_the_terminal() -> None:
    code = "import sys, runner.service.daemon; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not ENGINE & {name.split(".")[0] for name in loaded}
    assert "rich" not in loaded


def test_the_program_is_installed_by_its_name() -> None:
    program = Path(sys.executable).parent / "ptq-runner"
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    for command in (
        "serve",
        "doctor",
        "intake",
        "plan",
        "manifest",
        "run",
        "runs",
        "show",
        "logs",
        "cancel",
        "diagnose",
    ):
        assert f"\n  {command} " in shown


def test_the_example_settings_can_be_read() -> None:
    settings = load_settings(ROOT / "deploy" / "runner.example.yaml")
    assert settings.outputs.mode == "0640"
    assert settings.models.roots
