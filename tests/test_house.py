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
LAYERS = {
    "runner": ["service", "runs", "engines", "manifest", "planning", "intake", "host", "settings", "clock", "errors"],
    "bot": ["service", "platforms", "store", "cards", "conversation", "settings", "clock", "errors"],
}
# What a platform is, is said below the store, which keeps what platforms hand over.
CONTRACT = "bot.platforms.contract"


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


@pytest.mark.parametrize("package", LAYERS)
def test_within_a_package_imports_go_downwards(package: str) -> None:
    layers, wrong = LAYERS[package], []
    for path in _sources(package):
        layer = path.relative_to(ROOT / package).parts[0].removesuffix(".py")
        if layer not in layers:
            continue
        for name in _imports(path):
            parts = name.split(".")
            known = parts[0] == package and len(parts) > 1 and parts[1] in layers
            if known and layers.index(parts[1]) < layers.index(layer) and name != CONTRACT:
                wrong.append((str(path), name))
    assert not wrong


def test_platforms_know_nothing_of_each_other() -> None:
    platforms = [path for path in (ROOT / "bot" / "platforms").iterdir() if (path / "__init__.py").exists()]
    wrong = [
        (path, name)
        for platform in platforms
        for path in platform.rglob("*.py")
        for name in _imports(path)
        if name.startswith("bot.platforms.")
        and name != CONTRACT
        and not name.startswith(f"bot.platforms.{platform.name}")
    ]
    assert platforms
    assert not wrong


@pytest.mark.parametrize("daemon", ["runner.service.daemon", "bot.service.serving"])
def test_a_daemon_does_not_load_the_engine(daemon: str) -> None:
    code = f"import sys, {daemon}; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not ENGINE & {name.split(".")[0] for name in loaded}
    assert daemon.startswith("bot") or "rich" not in loaded  # a library of the bot's store loads it


@pytest.mark.parametrize(
    ("program", "commands"),
    [
        (
            "ptq-runner",
            ("serve", "doctor", "intake", "plan", "manifest", "run", "runs", "show", "logs", "cancel", "diagnose"),
        ),
        ("ptq-bot", ("serve", "demo", "check", "history", "db", "understand")),
    ],
)
def test_a_program_is_installed_by_its_name(program: str, commands: tuple[str, ...]) -> None:
    path = Path(sys.executable).parent / program
    shown = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
    for command in commands:
        assert f"\n  {command} " in shown


def test_the_example_settings_can_be_read() -> None:
    settings = load_settings(ROOT / "deploy" / "runner.example.yaml")
    assert settings.outputs.mode == "0640"
    assert settings.models.roots
