"""The files of a control group, on a pretend tree: which are written, where, and when a run is only watched.

What the kernel does with them is not shown here.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from runner.runs.supervisor.memory_group import MemoryGroup, delegated

LIMIT = 10**9


def pretend(root: Path, own: str = "/system.slice/ptq.service/daemon", controllers: str = "cpu memory pids") -> Path:
    """A host whose service lies in a group of its own; the group above that."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_bytes(os.fsencode(f"1:name=systemd:/\n0::{own}\n"))
    folder = root / "sys" / "fs" / "cgroup" / own.strip("/")
    folder.mkdir(parents=True)
    for group in (folder, folder.parent):
        (group / "cgroup.controllers").write_text(controllers + "\n")
        (group / "cgroup.subtree_control").write_text("\n")
    return folder.parent


@pytest.fixture
def _delegated(monkeypatch: pytest.MonkeyPatch) -> None:
    """As systemd marks what it delegates. Not every file system of a test keeps such marks."""
    monkeypatch.setattr(os, "getxattr", lambda _, name: b"1" if name == "user.delegate" else b"")


@pytest.mark.usefixtures("_delegated")
def test_a_group_is_made_beside_that_of_the_service(tmp_path: Path) -> None:
    parent = pretend(tmp_path)
    group = MemoryGroup.make("run-1", LIMIT, tmp_path)
    assert group is not None
    made = parent / "run-1"
    assert (parent / "cgroup.subtree_control").read_text() == "+memory"
    files = {path.name: path.read_text() for path in made.iterdir()}
    assert files == {"memory.max": "1000000000", "memory.swap.max": "0", "memory.oom.group": "1"}
    group.enter()
    assert (made / "cgroup.procs").read_text() == str(os.getpid())
    assert group.killed() == 0
    (made / "memory.events").write_text("low 0\nhigh 0\nmax 41\noom 1\noom_kill 3\noom_group_kill 1\n")
    assert group.killed() == 3


@pytest.mark.usefixtures("_delegated")
def test_a_controller_that_is_handed_out_already_is_left_so(tmp_path: Path) -> None:
    parent = pretend(tmp_path)
    (parent / "cgroup.subtree_control").write_text("cpu memory\n")
    assert MemoryGroup.make("run-1", LIMIT, tmp_path) is not None
    assert (parent / "cgroup.subtree_control").read_text() == "cpu memory\n"


@pytest.mark.usefixtures("_delegated")
@pytest.mark.parametrize(
    ("own", "controllers", "limit"),
    [
        ("/a/b", "cpu memory", math.inf),
        ("/a/b", "cpu pids", LIMIT),
        ("/", "cpu memory", LIMIT),  # a container that sees only its own group
    ],
    ids=["no limit", "no controller", "no group above"],
)
def test_without_a_group_to_divide_there_is_none(tmp_path: Path, own: str, controllers: str, limit: float) -> None:
    pretend(tmp_path, own, controllers)
    before = sorted(tmp_path.rglob("*"))
    assert MemoryGroup.make("run-1", limit, tmp_path) is None
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("_delegated")
@pytest.mark.parametrize("name", [b"\x80", b"r\xe9gion", b"a\x0bb", b"a\xc2\x85b"])
def test_a_group_is_found_whatever_its_name_is(tmp_path: Path, name: bytes) -> None:
    parent = pretend(tmp_path, f"/{os.fsdecode(name)}/b")
    assert delegated(tmp_path) == parent


def test_a_list_of_groups_that_is_none_names_none(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_bytes(b"0::/a\0/b\n")
    assert delegated(tmp_path) is None


def test_without_a_host_that_has_groups_there_is_none(tmp_path: Path) -> None:
    assert MemoryGroup.make("run-1", LIMIT, tmp_path) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may write to groups that are not its own")
def test_that_root_may_write_is_no_delegation(tmp_path: Path) -> None:
    parent = pretend(tmp_path)
    assert MemoryGroup.make("run-1", LIMIT, tmp_path) is None
    assert not (parent / "run-1").exists()


@pytest.mark.usefixtures("_delegated")
@pytest.mark.parametrize("refused", ["cgroup.subtree_control", "run-1"])
def test_what_the_kernel_refuses_is_said_and_the_run_is_watched(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], refused: str
) -> None:
    """Such as a group that may not hand out controllers, because processes are in it."""
    parent = pretend(tmp_path)
    (parent / refused).unlink(missing_ok=True)
    if refused == "run-1":
        (parent / refused).touch()
    else:
        (parent / refused).mkdir()
    assert MemoryGroup.make("run-1", LIMIT, tmp_path) is None
    assert "memory is only watched" in capfd.readouterr().err


@pytest.mark.usefixtures("_delegated")
def test_a_group_that_cannot_be_entered_does_not_stop_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parent = pretend(tmp_path)
    group = MemoryGroup.make("run-1", LIMIT, tmp_path)
    assert group is not None
    (parent / "run-1" / "cgroup.procs").mkdir()
    group.enter()
    assert "memory is only watched" in capfd.readouterr().err


@pytest.mark.usefixtures("_delegated")
def test_a_group_is_removed_when_it_is_empty(tmp_path: Path) -> None:
    parent = pretend(tmp_path)
    group = MemoryGroup.make("run-1", LIMIT, tmp_path)
    assert group is not None
    group.remove()
    assert (parent / "run-1").exists(), "on the kernel's own tree its files are no obstacle"
    for file in (parent / "run-1").iterdir():
        file.unlink()
    group.remove()
    assert not (parent / "run-1").exists()
