"""A run's folder: made once, whole or not at all, and what its files say."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.engines.engine import (
    Begun,
    Cancel,
    CancelledBeforeStart,
    Child,
    EndedOrphans,
    Exit,
    Exited,
    Lost,
    NotBegun,
    Observed,
    Running,
    Unreadable,
)
from runner.errors import BadRequest, Broken, Conflict, NotHere
from runner.runs import folder as module
from runner.runs.folder import Launch, RunFolder, lock_is_held, new_mark, observe
from runner.runs.processes import boot_id

AT = "2026-01-01T00:00:00Z"
NAME = {"boot_id": "b", "pid": 7, "start_ticks": 8}
BEGUN = NAME | {"wall": AT, "monotonic": 1.5}
HERE, NOW = {"host": os.uname().nodename}, {"boot_id": boot_id()}
CANCEL = {"by": "ana", "at": AT, "reason": "no"}
EXIT = {"exit_code": 3, "cancelled": False, "ended_at": AT, "seconds": 2.5}
DAMAGED = "{"

FILES = tuple[Mapping[str, object], bool, object]


@contextmanager
def locked(folder: RunFolder) -> Iterator[None]:
    with (folder.path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def put(folder: RunFolder, files: Mapping[str, object]) -> None:
    for name, content in files.items():
        (folder.path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))


begun, child, cancel, told = Begun(**BEGUN), Child(**NAME), Cancel(**CANCEL), Exit(**EXIT)
never = EXIT | {"exit_code": None, "cancelled": True, "ended_by": "cancel.json"}
TABLE: list[tuple[Mapping[str, object], bool, Observed]] = [
    ({}, False, NotBegun()),
    ({}, True, Running(cancelling=False, child=None)),
    ({"cancel": CANCEL}, False, CancelledBeforeStart(cancel)),
    ({"cancel": DAMAGED}, False, CancelledBeforeStart(None)),
    ({"cancel": CANCEL}, True, Running(cancelling=True, child=None)),
    ({"begun": BEGUN}, True, Running(cancelling=False, child=None)),
    ({"begun": BEGUN, "child": NAME}, True, Running(cancelling=False, child=child)),
    ({"begun": BEGUN, "child": NAME, "cancel": CANCEL}, True, Running(cancelling=True, child=child)),
    ({"begun": BEGUN, "child": NAME, "exit": EXIT}, True, Running(cancelling=False, child=child)),
    ({"begun": BEGUN, "child": NAME, "exit": EXIT}, False, Exited(told)),
    ({"begun": DAMAGED, "child": DAMAGED, "exit": EXIT}, False, Exited(told)),
    ({"begun": BEGUN, "exit": EXIT | {"from_a_newer_supervisor": 1}}, False, Exited(told)),
    ({"begun": BEGUN, "cancel": CANCEL, "exit": never}, False, CancelledBeforeStart(cancel)),
    ({"begun": BEGUN, "exit": never | {"ended_by": "SIGTERM"}}, False, CancelledBeforeStart(None)),
    ({"begun": BEGUN}, False, Lost(begun, None)),
    ({"begun": BEGUN | HERE}, False, Lost(Begun(**BEGUN | HERE), None, rebooted=True)),
    ({"begun": BEGUN | HERE | NOW}, False, Lost(Begun(**BEGUN | HERE | NOW), None)),
    ({"begun": BEGUN | {"host": "node-7"}}, False, Lost(Begun(**BEGUN | {"host": "node-7"}), None)),
    ({"begun": BEGUN, "child": NAME}, False, Lost(begun, child)),
    ({"begun": BEGUN, "child": NAME, "cancel": CANCEL}, False, Lost(begun, child)),
    ({"begun": DAMAGED, "child": NAME}, False, Lost(None, child)),
    ({"begun": "", "child": DAMAGED}, False, Lost(None, None)),
    ({"child": NAME}, False, Lost(None, child)),
    ({"child": NAME, "cancel": CANCEL}, False, Lost(None, child)),
    ({"child": DAMAGED}, False, Lost(None, None)),
    ({"exit": EXIT}, False, Exited(told)),
    ({"exit": never, "cancel": CANCEL}, False, CancelledBeforeStart(cancel)),
]


@pytest.mark.parametrize(("files", "held", "expected"), TABLE)
def test_what_the_files_say(tmp_path: Path, files: Mapping[str, object], held: bool, expected: Observed) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    put(folder, files)
    (folder.path / "lock").touch()
    if held:
        with locked(folder):
            assert observe(folder) == expected
    else:
        assert observe(folder) == expected


@pytest.mark.parametrize("content", ["", DAMAGED, "[]", "null", '{"exit_code": 3}', '{"exit_code": "three"}', "\udcff"])
def test_a_damaged_outcome_is_not_taken_for_a_lost_run(tmp_path: Path, content: str) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    put(folder, {"begun": BEGUN})
    (folder.path / "exit.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    state = folder.observe()
    assert isinstance(state, Unreadable)
    assert "exit.json of run run-1 cannot be read" in state.why


def test_a_folder_that_is_not_there_is_not_taken_for_a_waiting_run(tmp_path: Path) -> None:
    state = RunFolder(tmp_path / "run-1").observe()
    assert isinstance(state, Unreadable)
    assert str(tmp_path / "run-1") in state.why


def test_a_run_that_begins_between_two_looks_is_not_called_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})

    def runs_meanwhile(path: Path) -> bool:
        held = lock_is_held(path)
        put(folder, {"begun": BEGUN, "child": NAME, "exit": EXIT})
        return held

    monkeypatch.setattr(module, "lock_is_held", runs_meanwhile)
    assert folder.observe() == Exited(told)


def test_a_lock_that_is_only_read_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not lock_is_held(path)
    with path.open("w") as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        assert not lock_is_held(path)
        fcntl.flock(reader, fcntl.LOCK_EX)
        assert lock_is_held(path)
    assert not lock_is_held(path)


def test_a_folder_is_made_once_and_never_overwritten(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path / "runs", "run-1", {"launch.json": b"one", "submission.json": b"two"})
    assert first.path == tmp_path / "runs" / "run-1"
    again = RunFolder.create(tmp_path / "runs", "run-1", {"launch.json": b"other", "more.json": b""})
    assert again == first
    assert {path.name: path.read_bytes() for path in first.path.iterdir()} == {
        "launch.json": b"one",
        "submission.json": b"two",
    }
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["run-1"]
    assert first.path.stat().st_mode & 0o777 == 0o700
    assert (first.path / "launch.json").stat().st_mode & 0o777 == 0o600


def test_of_many_at_once_one_makes_the_folder(tmp_path: Path) -> None:
    def make(number: int) -> RunFolder:
        return RunFolder.create(tmp_path, "run-1", {"a.json": b"%d" % number, "b.json": b"%d" % number})

    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(make, range(24)))
    assert folders == {RunFolder(tmp_path / "run-1")}
    folder = folders.pop()
    assert folder.read("a.json") == folder.read("b.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run-1"]


def test_one_that_is_quicker_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def slower(unfinished: Path, path: Path) -> Path:
        path.mkdir()
        (path / "launch.json").write_bytes(b"the other's")
        return rename(unfinished, path)

    monkeypatch.setattr(Path, "rename", slower)
    folder = RunFolder.create(tmp_path, "run-1", {"launch.json": b"mine"})
    assert folder.read("launch.json") == b"the other's"
    assert [path.name for path in tmp_path.iterdir()] == ["run-1"]


def test_a_disk_that_does_not_take_it_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Broken, match="No space left"):
        RunFolder.create(tmp_path, "run-1", {"launch.json": b"{}"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "/etc", "a\nb", "a\0b", "-x", "x" * 129])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRequest):
        RunFolder.create(tmp_path, name, {})
    with pytest.raises(BadRequest):
        RunFolder.create(tmp_path, "run-1", {name: b""})
    assert list(tmp_path.iterdir()) == []


def test_all_folders_are_listed_without_unfinished_ones(tmp_path: Path) -> None:
    assert RunFolder.all(tmp_path / "runs") == []
    for name in ("run-2", "run-1"):
        RunFolder.create(tmp_path, name, {})
    (tmp_path / ".new-run-3-abc").mkdir()
    (tmp_path / "notes.txt").touch()
    assert [folder.run_id for folder in RunFolder.all(tmp_path)] == ["run-1", "run-2"]


def test_only_old_unfinished_folders_are_removed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {"launch.json": b"{}"})
    for name, age in ((".new-old", 7200), (".new-young", 10)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "launch.json").touch()
        os.utime(tmp_path / name, (100_000 - age, 100_000 - age))
    os.utime(folder.path, (0, 0))
    assert RunFolder.clean_up(tmp_path, now=100_000) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".new-young", "run-1"]


def test_missing_is_told_from_damaged(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {"cancel.json": b"{"})
    assert folder.read_if_there("nothing.json") is None
    assert folder.read_as("nothing.json", Cancel) is None
    with pytest.raises(NotHere, match="run-1 has no nothing"):
        folder.read("nothing.json")
    with pytest.raises(Broken, match=r"cancel\.json of run run-1 cannot be read"):
        folder.read_as("cancel.json", Cancel)
    (folder.path / "a_folder").mkdir()
    with pytest.raises(Broken):
        folder.read("a_folder")


def test_a_write_that_fails_leaves_the_old_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {"note.json": b"old"})
    folder.write("note.json", b"new")
    assert folder.read("note.json") == b"new"

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Broken, match="No space left") as caught:
        folder.write("note.json", b"newer")
    assert caught.value.hint
    assert folder.read("note.json") == b"new"
    assert [path.name for path in folder.path.iterdir()] == ["note.json"]


def test_the_first_request_to_cancel_counts(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    assert not folder.cancel_asked()
    folder.ask_cancel("ana", "no", AT)
    folder.ask_cancel("ben", "too", AT)
    assert folder.cancel_asked()
    assert folder.read_as("cancel.json", Cancel) == cancel


def test_only_a_lost_run_has_orphans(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    with pytest.raises(Conflict, match="NotBegun"):
        folder.end_orphans()
    put(folder, {"begun": BEGUN})
    done = folder.end_orphans(0)
    assert (done.ended, done.left) == (0, ())
    assert "launch.json and child.json do not tell its mark" in done.doubt
    folder.write("launch.json", Launch(argv=["x"], cwd="/", mark=new_mark("run-1")).as_bytes())
    assert folder.end_orphans(0) == EndedOrphans(0)


def test_whatever_cannot_be_found_out_counts_as_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    assert not folder.has_begun()
    with locked(folder):
        assert folder.has_begun()
        assert not folder.has_records()

    def unknown(_path: Path) -> bool:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(module, "lock_is_held", unknown)
    assert folder.has_begun()
    assert isinstance(folder.observe(), Unreadable)


def test_a_run_that_ends_between_two_looks_is_not_called_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {})
    put(folder, {"begun": BEGUN, "child": NAME})

    def ends_meanwhile(_folder: RunFolder) -> None:
        put(folder, {"exit": EXIT})

    monkeypatch.setattr(RunFolder, "living_supervisor", ends_meanwhile)
    assert folder.observe() == Exited(told)


def test_marks_never_repeat() -> None:
    assert len({new_mark("run-1") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/etc/hostname"), lambda path: path.mkdir()]
)
def test_what_is_no_file_is_damaged_and_nobody_waits_for_it(tmp_path: Path, make: Callable[[Path], None]) -> None:
    folder = RunFolder.create(tmp_path, "run-1", {"launch.json": b"{}"})
    make(folder.path / "exit.json")
    with pytest.raises(Broken):
        folder.read_if_there("exit.json")
