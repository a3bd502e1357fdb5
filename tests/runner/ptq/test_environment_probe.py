"""What an interpreter has installed, told quickly and without loading any of it."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

from runner.ptq import environment_probe
from runner.ptq.environment_probe import PACKAGES, missing, read_torch_build, required_python
from tests.runner.ptq.scripts import loads_before_it_ends, run_script

BUILDS = [
    ("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", (None, None, "cpu")),
    ("__version__ = '2.7.1+cu126'\ncuda: Optional[str] = '12.6'\nhip: Optional[str] = None\n", ("12.6", None, "cu126")),
    ("__version__ = '2.13.0'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", ("13.0", None, "cu130")),
    (
        "__version__ = '2.13.0+rocm7.1'\ncuda: Optional[str] = None\nhip: Optional[str] = '7.1.25424-4179531dcd'\n",
        (None, "7.1", "rocm7.1"),
    ),
    ("__version__ = '2.6.0'\ncuda = None\nhip = '6.2.41133-dd7f95766'\n", (None, "6.2", "rocm6.2")),
    ('__version__ = "2.4.0a0+git1234567"\ncuda = "12.4"\n', ("12.4", None, "git1234567")),
    ("", (None, None, None)),
    ("from .elsewhere import __version__, cuda, hip\n", (None, None, None)),
]


@pytest.mark.parametrize(("text", "expected"), BUILDS, ids=[str(build[1][2]) for build in BUILDS])
def test_what_torch_was_built_for(text: str, expected: tuple[str | None, str | None, str | None]) -> None:
    build = read_torch_build(text)
    assert (build["cuda"], build["hip"], build["tag"]) == expected


def test_it_tells_what_is_installed() -> None:
    told = json.loads(run_script("environment_probe.py").stdout)
    installed = {item.metadata["Name"].lower().replace("_", "-") for item in importlib.metadata.distributions()}
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))
    assert told["prefix"] == sys.prefix
    assert set(told["packages"]) == set(PACKAGES)
    for name, version in told["packages"].items():
        assert (version is not None) is (name.lower().replace("_", "-") in installed), name
    assert (told["quark_path"] is not None) is ("amd-quark" in installed)
    assert (told["torch_build"]["tag"] is not None) is ("torch" in installed)
    if told["quark_cli"]:
        assert Path(told["quark_cli"]).parent == Path(sys.executable).parent


def test_it_loads_nothing_heavy() -> None:
    status, modules = loads_before_it_ends("environment_probe.py")
    assert status == 0
    assert not modules & {"torch", "quark", "transformers", "datasets", "numpy", "runner", "schemas"}


def _distribution(folder: Path, name: str, *lines: str) -> None:
    place = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *lines, ""]))


def test_what_a_package_asks_for_and_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    _distribution(tmp_path, "there")
    _distribution(
        tmp_path,
        "engine",
        "Requires-Python: >=3.11,<3.14",
        "Requires-Dist: there>=0.1",
        "Requires-Dist: absent-1 (>=2)",
        "Requires-Dist: absent.2<3,>=1",
        'Requires-Dist: absent_3[fast]>=1; extra == "cli"',
        "Requires-Dist: there; extra == 'cli'",
        'Requires-Dist: there; extra == "whole"',
        'Requires-Dist: absent4; sys_platform == "win32"',
        'Requires-Dist: absent5; python_version < "3.9" and extra == "cli"',
    )
    assert missing("engine") == {"": ["absent-1", "absent.2"], "cli": ["absent_3"]}
    assert (missing("nothing"), required_python("nothing")) == ({}, None)
    assert (required_python("engine"), required_python("there")) == (">=3.11,<3.14", None)


def test_the_bounds_of_the_engine_are_told() -> None:
    told = environment_probe.environment()
    assert set(told["requires_python"]) <= {"amd-quark", "torch", "transformers"}
    assert all(isinstance(names, list) and names for names in told["missing"].values())
