"""Who may read a finished model."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from runner.errors import BadRequest
from runner.runs.permissions import parse_mode, readers, set_modes, who_may_read


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def make(folder: Path) -> Path:
    """A folder as the engine leaves it: weights for the owner only."""
    (folder / "sub" / "deeper").mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "sub/deeper/chat.jinja"):
        (folder / name).write_text(name)
    (folder / "model.safetensors").chmod(0o600)
    (folder / "sub").chmod(0o700)
    return folder


@pytest.mark.parametrize(
    ("wanted", "files", "folders", "shown"),
    [
        ("0640", 0o640, 0o750, "-rw-r-----"),
        ("640", 0o640, 0o750, "-rw-r-----"),
        ("0600", 0o600, 0o700, "-rw-------"),
        ("0644", 0o644, 0o755, "-rw-r--r--"),
        ("0660", 0o660, 0o770, "-rw-rw----"),
        ("0440", 0o440, 0o550, "-r--r-----"),
    ],
)
def test_files_get_the_mode_and_folders_the_matching_x_bits(
    wanted: str, files: int, folders: int, shown: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "out")
    owner = (folder.stat().st_uid, folder.stat().st_gid)
    listed = set_modes(folder, wanted)
    paths = [folder, *folder.rglob("*")]
    assert {mode(path) for path in paths if path.is_file()} == {files}
    assert {mode(path) for path in paths if path.is_dir()} == {folders}
    assert {file.mode for file in listed} == {shown}
    assert [file.name for file in listed] == ["config.json", "model.safetensors", "sub/deeper/chat.jinja"]
    assert {(path.stat().st_uid, path.stat().st_gid) for path in paths} == {owner}


def test_nothing_outside_the_folder_changes(tmp_path: Path) -> None:
    outside = tmp_path / "original"
    make(outside)
    before = {path: mode(path) for path in [outside, *outside.rglob("*")]}
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "weights").symlink_to(outside / "model.safetensors")
    (folder / "model").symlink_to(outside, target_is_directory=True)
    (folder / "nowhere").symlink_to("gone")
    os.link(outside / "config.json", folder / "config.json")
    os.mkfifo(folder / "pipe", 0o600)
    listed = {file.name: file.mode for file in set_modes(folder, "0666")}
    assert {path: mode(path) for path in [outside, *outside.rglob("*")]} == before
    assert mode(folder / "pipe") == 0o600
    assert listed["weights"].startswith("l")
    assert listed["config.json"] == stat.filemode((outside / "config.json").stat().st_mode)


def test_a_linked_folder_and_none_at_all_are_left_alone(tmp_path: Path) -> None:
    real = make(tmp_path / "real")
    real.chmod(0o700)
    link = tmp_path / "out"
    link.symlink_to(real, target_is_directory=True)
    assert set_modes(link, "0644") == []
    assert mode(real) == 0o700
    assert set_modes(tmp_path / "nothing", "0644") == []


def test_odd_names_and_deep_folders_are_no_problem(tmp_path: Path) -> None:
    folder = deep = tmp_path / "out"
    for _ in range(300):
        deep = deep / "d"
    deep.mkdir(parents=True)
    odd = os.fsdecode(b"\xff\x1b[31m\n")
    (deep / odd).write_text("x")
    (listed,) = set_modes(folder, "0600")
    assert mode(deep / odd) == 0o600
    assert listed.name.isprintable()
    listed.model_dump_json()


@pytest.mark.parametrize("wrong", ["", "0", "64", "0688", "abc", "4755", "00640", "rw-r-----", "-640", "６４０"])
def test_a_mode_that_is_none_is_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest) as refused:
        set_modes(tmp_path, wrong)
    assert refused.value.code == "bad_mode"


def test_all_modes_are_understood_with_and_without_a_leading_zero() -> None:
    for number in range(0o1000):
        assert parse_mode(f"{number:03o}") == parse_mode(f"0{number:03o}") == number


@pytest.mark.parametrize(
    ("bits", "sentence"),
    [
        (0o640, "User runner and group models may read it; nobody else may."),
        (0o600, "User runner may read it; nobody else may."),
        (0o644, "Everybody on this host may read it."),
        (0o040, "Group models may read it; nobody else may."),
        (0o604, "User runner and everybody else may read it."),
        (0o200, "Nobody but the administrator may read it."),
    ],
)
def test_readers_are_said_in_words(bits: int, sentence: str) -> None:
    assert readers(bits, "runner", "models") == sentence


def test_owners_are_named_or_numbered(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(0o600)
    path.chmod(0o640)
    facts = path.stat()
    told = who_may_read(path)
    if os.geteuid() == 0:
        os.chown(path, 4_000_000, 4_000_001)
        assert who_may_read(path) == "User 4000000 and group 4000001 may read it; nobody else may."
    assert told.startswith("User ")
    assert "nobody else" in told
    assert facts.st_mode & 0o777 == 0o640
