"""The table of recorded failures: what it prints, and that it notices what does not agree."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from schemas.artifacts.report import FailureClass
from tests.agreement import failures
from tests.agreement.__main__ import run
from tests.fixtures_folder import fixture

OOM = "# own run | rc=1 | diagnosis: gpu_oom (capacity) | fix: smaller\ntorch.OutOfMemoryError: HIP out of memory\n"


def test_every_recorded_failure_agrees() -> None:
    out = io.StringIO()
    assert failures.main(fixture("failures"), out) == 0
    assert f"{len(failures.TRUTHS)} of {len(failures.TRUTHS)} recorded failures agree" in out.getvalue()


def test_an_unknown_file_is_judged_by_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "new_one.txt").write_text(OOM)
    assert failures.main(tmp_path, io.StringIO()) == 0
    (tmp_path / "other.txt").write_text(OOM.replace("gpu_oom (capacity)", "truncated safetensors"))
    out = io.StringIO()
    assert failures.main(tmp_path, out) == 1
    assert "it is memory, not load" in out.getvalue()


def test_a_file_whose_words_say_no_class_does_not_agree(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# diagnosis: nobody knows\nRuntimeError: x\n")
    assert failures.main(tmp_path, io.StringIO()) == 1


def test_a_wrong_class_or_fix_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hip_oom_strix.txt").write_text(OOM)
    assert failures.main(tmp_path, io.StringIO()) == 0
    wrong = failures.Truth(FailureClass.MEMORY, ("buy a new car",), "HIP out")
    monkeypatch.setattr(failures, "TRUTHS", {"hip_oom_strix": wrong})
    out = io.StringIO()
    assert failures.main(tmp_path, out) == 1
    assert "buy a new car" in out.getvalue()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["failures", str(tmp_path)]) == 2
    assert "no recorded failures" in capsys.readouterr().err
    (tmp_path / "a.txt").write_text(OOM)
    assert run(["failures", str(tmp_path)]) == 0
    assert run(["failures", str(tmp_path / "a.txt")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert run(["matrix", str(tmp_path)]) == 2
