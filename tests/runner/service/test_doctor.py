"""What the doctor says of a checkout that is of another release, and of missing tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.host.entry_points import IN_CHECKOUT
from runner.service.doctor import _checkout, _Host, _tools
from runner.settings import QuarkSettings, RunnerSettings
from schemas.artifacts.environment import Hardware
from schemas.artifacts.plan import Severity
from tests.runner.intake.engine import FACTS


def host(checkout: Path | None = None, entry_point: Any = "auto", **facts: Any) -> _Host:
    """A host of which only the interpreter and the settings matter."""
    settings = RunnerSettings(quark=QuarkSettings(checkout=checkout, entry_point=entry_point))
    return _Host(settings, FACTS.model_copy(update=facts), None, None, Hardware(accelerator="cpu"))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"compiler": "/usr/bin/c++", "ninja": True, "python_headers": True}, None),
        ({"compiler": "/usr/bin/c++", "ninja": True, "python_headers": None}, None),
        ({"compiler": None, "ninja": True}, "finds no C++ compiler."),
        ({"compiler": "/usr/bin/c++", "ninja": False, "python_headers": False}, "finds no ninja and no Python.h."),
    ],
)
def test_what_kernels_need_is_missed(facts: dict[str, Any], words: str | None) -> None:
    found = list(_tools(host(**facts)))
    assert [finding.code for finding in found] == (["no_compiler"] if words else [])
    assert words is None or words in found[0].message


def test_a_checkout_of_another_release_is_told(tmp_path: Path) -> None:
    (tmp_path / "quark").mkdir()
    (tmp_path / "quark" / "version.py").write_text("__version__ = '0.12'\n")
    (found,) = _checkout(host(tmp_path, packages={"amd-quark": "0.13"}))
    assert (found.severity, found.code) == (Severity.WARNS, "checkout_differs")
    assert "is of Quark 0.12, and the interpreter has 0.13" in found.message
    assert list(_checkout(host(tmp_path, packages={"amd-quark": "0.12"}))) == []
    assert list(_checkout(host())) == []


@pytest.mark.parametrize(("entry_point", "severity"), [("auto", Severity.WARNS), ("quantize_quark", Severity.BLOCKS)])
def test_a_script_that_the_package_cannot_serve_is_told(tmp_path: Path, entry_point: str, severity: Severity) -> None:
    package, script = tmp_path / "lib" / "quark", tmp_path / "Quark" / IN_CHECKOUT
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    script.parent.mkdir(parents=True)
    script.write_text("from quark import something_new\n")
    (found,) = _checkout(host(tmp_path / "Quark", entry_point, quark_path=str(package)))
    assert (found.severity, "quark.something_new" in found.message) == (severity, True)
