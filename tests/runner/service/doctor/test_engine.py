"""The interpreter's packages, its entry points, and what its kernels are compiled with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.errors import Broken
from runner.host.entry_points import IN_CHECKOUT
from runner.service.doctor.building import building
from runner.service.doctor.engine import engine
from runner.service.doctor.programs import programs
from schemas.artifacts.environment import Hardware
from schemas.artifacts.plan import Severity
from tests.runner.host.tools_on_path import write
from tests.runner.intake.engine import CATALOGUE
from tests.runner.service.doctor.hosts import CUDA, ROCM, facts, found, gpus, host


def test_an_engine_that_fits_is_told_in_one_line(tmp_path: Path) -> None:
    subject = host(tmp_path, catalogue=CATALOGUE, facts=facts(requires_python={"amd-quark": ">=3.11,<3.14"}))
    said = found(engine, subject)
    assert set(said) == {"engine"}
    assert "has Quark 0.13, torch 2.13.0+cpu and transformers 5.16.1: 1 schemes" in said["engine"].message


def test_a_missing_interpreter_is_all_there_is_to_say(tmp_path: Path) -> None:
    problem = Broken("interpreter_missing", "/x/python is not there.", "Set quark.python.")
    said = found(engine, host(tmp_path, facts=None, problem=problem))
    assert (set(said), said["interpreter_missing"].severity) == ({"interpreter_missing"}, Severity.BLOCKS)
    assert list(building(host(tmp_path, facts=None))) == []


def package(folder: Path, requires: str) -> str:
    """An installed Quark that asks for something; its folder."""
    (folder / "lib/quark").mkdir(parents=True)
    (folder / "lib/quark/__init__.py").write_text("")
    write(folder / "lib", "amd_quark-0.13.dist-info/METADATA", f"Name: amd-quark\n{requires}\n")
    return str(folder / "lib/quark")


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (
            {"python": "3.14.0", "requires_python": {"amd-quark": ">=3.11,<3.14", "torch": ">=3.10"}},
            "python_range",
            "is Python 3.14.0, and amd-quark 0.13 is made for Python >=3.11,<3.14.",
        ),
        ({"python": "3.10.9", "requires_python": {"amd-quark": ">=3.11,<3.14"}}, "python_range", "Python 3.10.9"),
        ({"packages": {"torch": "2.1.2+rocm5.6"}}, "torch_range", "torch 2.1.2+rocm5.6 is older than 2.2"),
        ({"packages": {"transformers": "4.57.1"}}, "transformers_range", "4.57.1 is outside of"),
        ({"missing": {"": ["joblib", "evaluate", "scipy"]}}, "requirements_missing", "joblib, evaluate and scipy"),
        ({"missing": {"": ["scipy"]}}, "requirements_missing", "asks for scipy,"),
        ({"packages": {"accelerate": None}}, "accelerate_missing", "loads models with accelerate"),
        ({"packages": {"datasets": None}}, "datasets_missing", "are read with datasets"),
        ({"packages": {"gguf": None}}, "gguf_missing", "exported as GGUF"),
    ],
)
def test_what_does_not_fit_is_found(change: dict[str, Any], code: str, words: str, tmp_path: Path) -> None:
    path = package(tmp_path, 'Requires-Dist: transformers<5.17,>5; extra == "cli"')
    said = found(engine, host(tmp_path, facts=facts(quark_path=path, **change)))
    assert set(said) == {code}
    assert words in said[code].message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"python_headers": None}, None),
        ({"compiler": None}, "finds no C++ compiler,"),
        ({"ninja": False, "python_headers": False}, "finds no ninja and no Python.h,"),
    ],
)
def test_what_kernels_need_is_missed(change: dict[str, Any], words: str | None, tmp_path: Path) -> None:
    said = found(building, host(tmp_path, facts=facts(**change)))
    assert set(said) == ({"no_compiler"} if words else set())
    assert words is None or words in said["no_compiler"].message


@pytest.mark.parametrize(
    ("build", "name", "usual"),
    [(ROCM, "hipcc", "opt/rocm/bin/hipcc"), (CUDA, "nvcc", "usr/local/cuda/bin/nvcc")],
)
def test_the_compiler_of_the_gpu_is_on_path_or_where_it_usually_is(
    build: Any, name: str, usual: str, tmp_path: Path
) -> None:
    subject = host(tmp_path, facts=facts(torch_build=build))
    assert name in found(building, subject)["no_gpu_compiler"].message
    write(subject.root, usual)
    assert found(building, subject) == {}
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    on_path = host(tmp_path / "other", facts=facts(torch_build=build), environment={"PATH": str(tmp_path / "bin")})
    assert found(building, on_path) == {}


def checkout(folder: Path, text: str = "print('quantize')\n") -> Path:
    write(folder / "Quark", str(IN_CHECKOUT), text)
    return folder / "Quark"


def test_each_entry_point_is_usable_or_says_why_not(tmp_path: Path) -> None:
    said = [(finding.severity, finding.message) for finding in programs(host(tmp_path))]
    assert [severity for severity, _ in said] == [Severity.INFORMS] * 3
    assert "no Quark checkout is configured" in said[0][1]
    assert "no quark-cli beside the interpreter" in said[1][1]
    assert said[2][1].startswith("own is usable: ")


def test_what_is_configured_and_not_there_blocks(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    quark = {"checkout": tmp_path / "empty", "script": tmp_path / "site/gone.py"}
    said = [finding for finding in programs(host(tmp_path, settings={"quark": quark})) if finding.severity == "blocks"]
    assert len(said) == 2
    assert {finding.code for finding in said} == {"entry_point_missing"}
    wanted = found(programs, host(tmp_path, settings={"quark": {"entry_point": "quark_cli"}}))
    assert wanted["entry_point_missing"].severity is Severity.BLOCKS


@pytest.mark.parametrize(("entry_point", "severity"), [("auto", Severity.INFORMS), ("quark_cli", Severity.BLOCKS)])
def test_the_command_line_needs_its_extra_and_a_gpu(entry_point: str, severity: Severity, tmp_path: Path) -> None:
    quark = {"quark": {"entry_point": entry_point}}
    there = {"quark_cli": "/venv/bin/quark-cli"}
    lacking = facts(**there, missing={"cli": ["timm", "pulp", "py7zr", "langdetect", "rouge_score"]})
    bare = found(programs, host(tmp_path, settings=quark, facts=lacking, hardware=gpus(1)))["cli_extra_missing"]
    assert (bare.severity, "lacks timm, pulp, py7zr, langdetect and 1 more" in bare.message) == (severity, True)
    assert "'amd-quark[cli]==0.13'" in bare.hint
    cpu = found(programs, host(tmp_path, settings=quark, facts=facts(**there)))["cli_without_gpu"]
    assert cpu.severity is severity
    fits = facts(**there, torch_build=ROCM)
    assert "cli_without_gpu" not in found(programs, host(tmp_path, settings=quark, facts=fits, hardware=gpus(1)))
    unknown = host(tmp_path, settings=quark, facts=fits, hardware=Hardware(accelerator="unknown"))
    assert "cli_without_gpu" not in found(programs, unknown)


def test_a_checkout_of_another_release_is_told(tmp_path: Path) -> None:
    place = checkout(tmp_path)
    write(place, "quark/version.py", "__version__ = '0.12'\n")
    settings = {"quark": {"checkout": place}}
    said = found(programs, host(tmp_path, settings=settings))["checkout_differs"]
    assert (said.severity, "is of Quark 0.12, and the interpreter has 0.13" in said.message) == (Severity.WARNS, True)
    same = facts(packages={"amd-quark": "0.12"})
    assert "checkout_differs" not in found(programs, host(tmp_path, settings=settings, facts=same))


@pytest.mark.parametrize(
    ("entry_point", "severity", "words"),
    [
        ("auto", Severity.WARNS, "so that auto does not take it"),
        ("quantize_quark", Severity.BLOCKS, "end at its start."),
    ],
)
def test_a_script_that_the_package_cannot_serve_is_told(
    entry_point: str, severity: Severity, words: str, tmp_path: Path
) -> None:
    place = checkout(tmp_path, "from quark import something_new\n")
    settings = {"quark": {"checkout": place, "entry_point": entry_point}}
    subject = host(tmp_path, settings=settings, facts=facts(quark_path=package(tmp_path, "")))
    said = found(programs, subject)["checkout_differs"]
    assert said.severity is severity
    assert "needs quark.something_new, which the installed Quark does not have" in said.message
    assert words in said.message
