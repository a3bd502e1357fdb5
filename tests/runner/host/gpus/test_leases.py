"""Locks of GPUs: real files, real processes, and folders that somebody prepared."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runner.errors import Broken
from runner.host.gpus.leases import Leases
from tests.waiting import wait_until

GPU = "0000:05:00.0"
FILE = "0000_05_00.0.lock"
OTHER_USER = 65534


@pytest.fixture
def leases(tmp_path: Path) -> Leases:
    return Leases(tmp_path / "leases")


def taken(leases: Leases) -> int:
    descriptor = leases.take(GPU)
    assert descriptor is not None
    return descriptor


def test_one_at_a_time(leases: Leases) -> None:
    first = taken(leases)
    assert leases.take(GPU) is None
    assert leases.is_taken(GPU)
    assert not leases.is_taken("0000:26:00.0")
    os.close(first)
    assert not leases.is_taken(GPU)
    os.close(taken(leases))


def test_every_user_may_use_the_folder_whatever_the_umask(leases: Leases) -> None:
    before = os.umask(0o077)
    try:
        os.close(taken(leases))
    finally:
        os.umask(before)
    assert stat.S_IMODE(leases.folder.stat().st_mode) == 0o1777
    assert stat.S_IMODE((leases.folder / FILE).stat().st_mode) == 0o666


@pytest.mark.parametrize("also_inside", [True, False], ids=["all of it", "its first process only"])
def test_kill_9_frees_a_gpu_when_nothing_of_the_run_is_left(leases: Leases, also_inside: bool) -> None:
    descriptor = taken(leases)
    code = (
        "import os, subprocess, sys; fd = int(sys.argv[1]);"
        "inner = subprocess.Popen(['sleep', '600'], pass_fds=[fd], start_new_session=True);"
        "print(inner.pid, flush=True); inner.wait()"
    )
    words = [sys.executable, "-c", code, str(descriptor)]
    with subprocess.Popen(words, pass_fds=[descriptor], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        inner = int(run.stdout.readline())
        os.close(descriptor)
        assert leases.is_taken(GPU)
        run.kill()
        run.wait()
        assert leases.is_taken(GPU)  # what it started still computes
        if not also_inside:
            assert leases.take(GPU) is None
        os.kill(inner, signal.SIGKILL)
    wait_until(lambda: not leases.is_taken(GPU), 10, "the lease outlives its run")
    os.close(taken(leases))


def test_who_only_looks_does_not_take_it_away(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    os.close(taken(leases))
    looks = os.open(leases.folder / FILE, os.O_RDWR)
    fcntl.flock(looks, fcntl.LOCK_SH)
    assert leases.take(GPU) is None  # one that never ends looking
    monkeypatch.setattr(os, "sched_yield", lambda: fcntl.flock(looks, fcntl.LOCK_UN))
    os.close(taken(leases))
    os.close(looks)


@pytest.mark.parametrize(
    "plant",
    [
        lambda folder, treasure: (folder / FILE).symlink_to(treasure),
        lambda folder, treasure: (folder / FILE).symlink_to(treasure.with_name("not there")),
        lambda folder, _: os.mkfifo(folder / FILE),
        lambda folder, _: (folder / FILE).mkdir(),
    ],
    ids=["link", "link to nothing", "pipe", "folder"],
)
def test_what_was_planted_in_a_lock_s_place_is_neither_followed_nor_waited_for(
    leases: Leases, tmp_path: Path, plant: object
) -> None:
    treasure = tmp_path / "treasure"
    treasure.write_text("mine")
    treasure.chmod(0o600)
    leases.folder.mkdir()
    assert callable(plant)
    plant(leases.folder, treasure)
    before = treasure.stat()
    for attempt in (leases.take, leases.is_taken):
        with pytest.raises(Broken, match="Who has which GPU cannot be told") as problem:
            attempt(GPU)
        assert problem.value.code == "no_leases"
    assert (treasure.read_text(), treasure.stat().st_mode, treasure.stat().st_mtime) == (
        "mine",
        before.st_mode,
        before.st_mtime,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["leases", "treasure"]


def test_a_link_in_the_folder_s_place_is_not_followed(leases: Leases, tmp_path: Path) -> None:
    for target in (tmp_path / "elsewhere", tmp_path / "nowhere"):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        leases.folder.symlink_to(target)
        with pytest.raises(Broken):
            leases.take(GPU)
        leases.folder.unlink()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_in_the_folder_s_place_is_said(leases: Leases) -> None:
    leases.folder.write_text("")
    with pytest.raises(Broken, match="Not a directory"):
        leases.take(GPU)


def test_a_lock_on_a_file_that_was_removed_binds_nobody(leases: Leases, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody removes the file between open and lock: the lease is on the file that others will find."""
    real, removed = fcntl.flock, threading.Event()

    def flock(descriptor: int, kind: int) -> None:
        if not removed.is_set():
            (leases.folder / FILE).unlink()
            removed.set()
        real(descriptor, kind)

    os.close(taken(leases))
    monkeypatch.setattr(fcntl, "flock", flock)
    descriptor = taken(leases)
    assert os.path.samestat(os.fstat(descriptor), (leases.folder / FILE).stat())
    assert leases.take(GPU) is None
    os.close(descriptor)


def test_taking_a_gpu_makes_its_file_new_for_those_who_remove_old_ones(leases: Leases) -> None:
    os.close(taken(leases))
    os.utime(leases.folder / FILE, (1, 1))
    leases.is_taken(GPU)
    assert (leases.folder / FILE).stat().st_mtime == 1
    os.close(taken(leases))
    assert (leases.folder / FILE).stat().st_mtime > 1


def _as_other_user(folder: Path, answer: object) -> None:
    os.setgroups([])
    os.setgid(OTHER_USER)
    os.setuid(OTHER_USER)
    try:
        descriptor = Leases(folder).take(GPU)
    except Broken as problem:
        answer.put(str(problem))  # type: ignore[attr-defined]
        return
    answer.put("none" if descriptor is None else "taken")  # type: ignore[attr-defined]
    answer.close()  # type: ignore[attr-defined]
    answer.join_thread()  # type: ignore[attr-defined]


def asked_as_other_user(folder: Path) -> str:
    for parent in [folder, *folder.parents]:
        if parent.exists() and parent != folder and parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    spawn = multiprocessing.get_context("fork")
    answer = spawn.Queue()
    process = spawn.Process(target=_as_other_user, args=(folder, answer))
    process.start()
    said = str(answer.get(timeout=30))
    process.join()
    return said


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_daemons_of_two_users_share_the_leases(leases: Leases) -> None:
    descriptor = taken(leases)
    assert asked_as_other_user(leases.folder) == "none"
    os.close(descriptor)
    assert asked_as_other_user(leases.folder) == "taken"
    os.close(taken(leases))


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user")
def test_a_folder_that_this_user_may_not_write_is_said_with_what_to_do(leases: Leases) -> None:
    leases.folder.mkdir(mode=0o700)
    said = asked_as_other_user(leases.folder)
    assert "Permission denied" in said
    assert "gpus.lease_dir" in said
