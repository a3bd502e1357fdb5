"""Pieces of a log: from a regular file only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.errors import NotHere
from runner.runs.folder import RunFolder
from runner.runs.logs import LogPiece, read_log
from runner.runs.redaction import Redactor
from runner.runs.reload import _read_outcome
from tests.runner.runs.test_documents import NO_FILES

NONE = Redactor()


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_regular_file_is_not_shown(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    make(folder / "log")
    with pytest.raises(NotHere, match=r"The log cannot be shown: .* is not a regular file\.") as refused:
        read_log(folder / "log", NONE, 0, 100, ended=True)
    assert refused.value.code == "log_not_readable"


@pytest.mark.parametrize("ended", [True, False])
def test_no_log_yet(tmp_path: Path, ended: bool) -> None:
    assert read_log(tmp_path / "log", NONE, 5, 100, ended) == LogPiece(b"", 0, 0, complete=ended)


def test_pieces_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"0123456789")
    assert read_log(tmp_path / "log", NONE, 2, 3, ended=True) == LogPiece(b"234", 5, 10, complete=False)
    assert read_log(tmp_path / "log", NONE, 7, 30, ended=True) == LogPiece(b"789", 10, 10, complete=True)
    assert read_log(tmp_path / "log", NONE, 99, 30, ended=False) == LogPiece(b"", 10, 10, complete=False)


@pytest.mark.parametrize("make", NO_FILES)
def test_the_check_has_no_outcome_from_what_is_no_file(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = tmp_path / "check"
    folder.mkdir()
    make(folder / "log")
    outcome = _read_outcome(RunFolder(folder), timed_out=False)
    assert outcome.ok is None
    assert "is not a regular file" in outcome.reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"ptq": ["reload"]}', "It said nothing."),
        ('{"ptq": {}}', "It said nothing."),
        ('{"ptq": "reload", "a": ' + "[" * 60_000, "It said nothing."),
        ('{"ptq": "error", "type": ' + "[" * 900 + "]" * 900 + "}", "Error: "),
        ('{"ptq": "error", "type": "ValueError", "message": "no"}', "ValueError: no"),
    ],
)
def test_a_hostile_last_word(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "log").write_text(line)
    assert _read_outcome(RunFolder(tmp_path), timed_out=False).reason == reason


@pytest.mark.parametrize(
    ("seconds", "read"),
    [("1.5", 1.5), ("3", 3.0), ("1" * 400, None), ("1e999", None), ("NaN", None), ("true", None), ('"1"', None)],
)
def test_the_seconds_of_the_check_are_a_number_or_none(tmp_path: Path, seconds: str, read: float | None) -> None:
    (tmp_path / "log").write_text('{"ptq": "reload", "ok": true, "seconds": ' + seconds + "}")
    outcome = _read_outcome(RunFolder(tmp_path), timed_out=False)
    assert (outcome.ok, outcome.seconds) == (True, read)
