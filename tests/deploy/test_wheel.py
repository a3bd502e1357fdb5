"""The wheel: everything that the programs need is in it, and they start from it without the engine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.deploy.files import ROOT, project

PACKAGES = ("schemas", "runner", "bot")
BUILDER = "hatchling"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree. Nothing is fetched, and nothing is written into the tree."""
    if importlib.util.find_spec(BUILDER) is None:
        pytest.skip(f"{BUILDER} is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", BUILDER, "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the wheel's content."""
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def _sources() -> set[str]:
    """Every file of the packages, of whatever kind."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_of_the_packages_is_in_it_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == _sources()


@pytest.mark.parametrize(
    "pattern",
    [
        "schemas/json/*.json",
        "runner/ptq/*.py",
        "bot/platforms/web/templates/*.html",
        "bot/platforms/web/static/*",
        "bot/store/migrations/versions/*.py",
        "*/py.typed",
    ],
)
def test_what_is_read_at_run_time_is_in_it(unpacked: Path, pattern: str) -> None:
    assert list(unpacked.glob(pattern))


def test_it_says_what_the_project_says(unpacked: Path) -> None:
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    for extra in project()["optional-dependencies"]:
        assert f"Provides-Extra: {extra}\n" in text
    assert list(unpacked.glob("*.dist-info/licenses/LICENSE"))


@pytest.mark.parametrize("program", ["ptq-runner", "ptq-bot"])
def test_its_programs_start_without_the_engine(unpacked: Path, program: str, tmp_path: Path) -> None:
    module, function = project()["scripts"][program].split(":")
    code = f"""
import sys
for engine in ("torch", "transformers", "quark", "numpy"):
    sys.modules[engine] = None  # whoever imports it now fails
from {module} import {function} as main
assert main.callback and sys.modules["{module}"].__file__.startswith({str(unpacked)!r})
sys.argv = [{program!r}, "--help"]
main()
"""
    asked = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert "serve" in asked.stdout


def test_its_programs_are_those_of_the_project(unpacked: Path) -> None:
    (entry,) = unpacked.glob("*.dist-info/entry_points.txt")
    declared = dict(line.split(" = ") for line in entry.read_text(encoding="utf-8").splitlines() if " = " in line)
    assert declared == project()["scripts"]
