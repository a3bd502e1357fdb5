"""Recorded input from real runs, where this host has it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

ABSENT = "PTQ_FIXTURES does not name a folder with recorded outputs"


def fixtures_folder() -> Path | None:
    """The folder that PTQ_FIXTURES names, relative to the repository unless absolute; None when it is not there."""
    named = os.environ.get("PTQ_FIXTURES")
    if not named:
        return None
    folder = Path(__file__).parent.parent / named
    return folder if folder.is_dir() else None


def fixture(*parts: str) -> Path:
    """One recorded file or folder; skips the test, saying why, when it is not there."""
    folder = fixtures_folder()
    if folder is None:
        pytest.skip(ABSENT)
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} does not exist")
    return path


def fixture_files(pattern: str) -> list[ParameterSet]:
    """Parameters for a test that runs once per recorded file; one skipped parameter when there is none."""
    folder = fixtures_folder()
    found = sorted(folder.glob(pattern)) if folder else []
    if not found:
        reason = f"no {pattern} in {folder}" if folder else ABSENT
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(path, id=path.name) for path in found]
