"""Documents of a run come from regular files only, whatever lies in their place by now."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import NotHere
from runner.runs import documents
from runner.runs.documents import names, read_run_file
from runner.runs.folder import RunFolder
from runner.runs.redaction import Redactor
from schemas.artifacts.report import OutputFile, ValidationReport
from schemas.runs import Run, RunState

SECRET = "a secret of this host"
PROFILE = "quark_profile.yaml"


def run_with(output: Path, *modes: str) -> Run:
    """An ended run whose report lists the profile once with each of the modes."""
    files = [OutputFile(name=PROFILE, size_bytes=1, mode=mode) for mode in modes]
    report: dict[str, Any] = {"files": files}
    run: dict[str, Any] = {"id": "r1", "state": RunState.SUCCEEDED, "output_dir": str(output)}
    return Run.model_construct(**run, report=ValidationReport.model_construct(**report))


def read(tmp_path: Path, output: Path) -> bytes:
    return read_run_file(RunFolder(tmp_path / "r1"), run_with(output, "-rw-r--r--"), PROFILE, Redactor([SECRET]))


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path) -> None:
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.write_text("root:x:0:0")
    path.symlink_to(elsewhere)


def a_link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "gone")


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_socket(path: Path) -> None:
    # Named from within its folder: the path of a socket must not be long.
    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path.name)
    finally:
        os.chdir(before)


def a_folder(path: Path) -> None:
    path.mkdir()


NO_FILES = [a_pipe, a_link, a_link_to_nothing, a_link_to_a_device, a_socket, a_folder]


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    output = tmp_path / "out"
    output.mkdir()
    make(output / PROFILE)
    with pytest.raises(NotHere) as refused:
        read(tmp_path, output)
    assert refused.value.message == f"{output / PROFILE} is not a regular file."
    assert str(output) in refused.value.hint


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NotHere, match="does not exist"):
        read(tmp_path, tmp_path)


def test_an_output_folder_that_became_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / PROFILE).write_text("x: 1")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    with pytest.raises(NotHere, match="is a link"):
        read(tmp_path, tmp_path / "out")


def test_a_file_is_read_and_redacted(tmp_path: Path) -> None:
    (tmp_path / PROFILE).write_text(f"x: {SECRET}\n")
    assert read(tmp_path, tmp_path) == b"x: " + b"*" * len(SECRET) + b"\n"


def test_a_long_file_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_OUTPUT_FILE_LIMIT", 3)
    (tmp_path / PROFILE).write_text("abcdef")
    assert read(tmp_path, tmp_path) == b"abc"


@pytest.mark.parametrize("mode", ["lrwxrwxrwx", "prw-r--r--", "srwxr-xr-x", "crw-rw-rw-"])
def test_what_was_no_file_when_the_report_was_made_has_no_name(tmp_path: Path, mode: str) -> None:
    assert PROFILE not in names(run_with(tmp_path, mode))
    assert PROFILE in names(run_with(tmp_path, "-rw-------"))
