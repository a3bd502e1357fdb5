"""Folders, disks, memory, the kernel's bounds, and where the API listens."""

from __future__ import annotations

import errno
import fcntl
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.service.doctor.disks import disks
from runner.service.doctor.folders import folders
from runner.service.doctor.kernel import kernel
from runner.service.doctor.listening import listening
from runner.service.doctor.memory import memory
from runner.service.doctor.state import state
from schemas.artifacts.plan import Severity
from tests.peers.certificates import authority, needs_openssl, self_signed
from tests.runner.host.tools_on_path import write
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.service.doctor.hosts import found, gpus, host

GIB = 2**20  # kilobytes
TOKEN = "a-token-of-sixteen-letters"


def test_folders_that_are_not_there_block(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    roots = {"models": {"roots": [tmp_path / "gone"]}, "outputs": {"roots": [tmp_path / "file"]}}
    said = [finding for finding in folders(host(tmp_path, settings=roots)) if finding.severity == "blocks"]
    assert [finding.code for finding in said] == ["bad_root", "bad_root"]
    assert set(found(folders, host(tmp_path))) == {"no_roots", "no_datasets"}


def test_folders_that_are_closed_block(tmp_path: Path) -> None:
    models, outputs = tmp_path / "m", tmp_path / "o"
    models.mkdir(mode=0o700)
    outputs.mkdir(mode=0o755)
    open_to_all(tmp_path)
    subject = host(tmp_path, settings={"models": {"roots": [models]}, "outputs": {"roots": [outputs]}})
    if os.geteuid() != 0:
        models.chmod(0)
        outputs.chmod(0o500)
    with unprivileged():
        said = [finding.message for finding in folders(subject) if finding.code == "bad_root"]
    assert len(said) == 2
    assert "may not read" in said[0]
    assert "may not write into" in said[1]


def test_calibration_data_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "text.txt").write_text("some text")
    said = found(folders, host(tmp_path, settings={"datasets": {"mirror": tmp_path / "data"}}))
    assert "text.txt" in said["datasets"].message
    assert "no_datasets" not in found(folders, host(tmp_path, settings={"models": {"hub": True}}))


def test_a_state_folder_may_be_made_later(tmp_path: Path) -> None:
    assert found(state, host(tmp_path)) == {}
    assert not (tmp_path / "state").exists()
    assert list(tmp_path.glob("tmp*")) == []


def test_a_state_folder_that_cannot_be_used_blocks(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert "is in the way" in found(state, host(tmp_path))["bad_state_dir"].message
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    open_to_all(tmp_path)
    with unprivileged():
        said = found(state, host(tmp_path, settings={"state_dir": closed / "state"}))
    assert "cannot be written" in said["bad_state_dir"].message


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_blocks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    said = found(state, host(tmp_path))["no_locks"]
    assert (said.severity, os.strerror(number) in said.message) == (Severity.BLOCKS, True)


def test_locks_that_do_nothing_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert "Locks do nothing" in found(state, host(tmp_path))["no_locks"].message


def mounted(folder: Path, kind: str, options: str) -> Any:
    subject = host(folder)
    spaced = str(folder).replace(" ", r"\040")
    first = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\ngarbage\n"
    lines = f"{first}36 22 0:52 / {spaced} rw,relatime shared:1 - {kind} server:/x rw,{options}\n"
    write(subject.root, "proc/self/mountinfo", lines)
    return subject


@pytest.mark.parametrize(
    ("kind", "options", "code", "words"),
    [
        ("ext4", "", None, ""),
        ("tmpfs", "", None, ""),
        ("nfs4", "vers=4.2,local_lock=none", "network_state_dir", "a network file system (nfs4)"),
        ("nfs", "nolock", "unshared_locks", "mounted with nolock"),
        ("nfs", "local_lock=all", "unshared_locks", "mounted with local_lock=all"),
        ("lustre", "flock", "network_state_dir", "(lustre)"),
        ("lustre", "lazystatfs", "unshared_locks", "mounted with no flock"),
        ("fuse.sshfs", "", "network_state_dir", "(fuse.sshfs)"),
    ],
)
def test_a_state_folder_on_a_network(kind: str, options: str, code: str | None, words: str, tmp_path: Path) -> None:
    place = tmp_path / "with a space"
    place.mkdir()
    said = found(state, mounted(place, kind, options))
    assert set(said) == ({code} if code else set())
    assert code is None or words in said[code].message


def test_the_last_mount_over_a_folder_is_meant(tmp_path: Path) -> None:
    subject = mounted(tmp_path, "nfs", "")
    text = (subject.root / "proc/self/mountinfo").read_text()
    write(subject.root, "proc/self/mountinfo", f"{text}40 36 8:2 / {tmp_path} rw - xfs /dev/sdb rw\n")
    assert found(state, subject) == {}
    write(subject.root, "proc/self/mountinfo", f"{text}40 36 8:2 / {tmp_path}-other rw - xfs /dev/sdb rw\n")
    assert "network_state_dir" in found(state, subject)


class Room(NamedTuple):
    """What statvfs tells."""

    f_bavail: int
    f_frsize: int = 1
    f_files: int = 100
    f_favail: int = 50
    f_blocks: int = 10**12


def test_little_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "kernels"))
    settings = {
        "outputs": {"roots": [tmp_path / "out"]},
        "limits": {"disk_reserve_bytes": 10**9},
        "models": {"hub": True},
    }
    subject = host(tmp_path, settings=settings, environment={"HF_HOME": str(tmp_path / "hf")})
    monkeypatch.setattr(os, "statvfs", lambda _: Room(10**9))
    assert [finding.severity for finding in disks(subject)] == [Severity.INFORMS] * 2
    monkeypatch.setattr(os, "statvfs", lambda _: Room(10**9 - 1))
    said = list(disks(subject))
    assert {finding.code for finding in said} == {"disk_full"}
    severities = [finding.severity for finding in said]
    assert severities == [Severity.BLOCKS, Severity.BLOCKS, Severity.WARNS, Severity.WARNS]
    assert f"{tmp_path}/hf/hub (the cache of the Hub), less than the 1.0 GB" in said[-1].message
    monkeypatch.setattr(os, "statvfs", lambda _: Room(10**12, f_favail=0))
    assert [finding.code for finding in disks(subject)].count("no_inodes") == 4
    monkeypatch.setattr(os, "statvfs", lambda _: Room(10**12, f_favail=0, f_files=0))
    assert [finding.code for finding in disks(subject)] == ["disk", "disk"]


def test_a_closed_cache_of_kernels_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "closed" / "kernels"))
    subject = host(tmp_path, settings={"limits": {"disk_reserve_bytes": 0}})
    (tmp_path / "closed").mkdir(mode=0o555)
    open_to_all(tmp_path)
    with unprivileged():
        assert "cache_closed" in found(disks, subject)
    (tmp_path / "closed").chmod(0o777)
    with unprivileged():
        assert "cache_closed" not in found(disks, subject)


@pytest.mark.parametrize(
    ("installed", "limit", "codes"),
    [
        (64, None, set()),
        (2, None, {"memory_little"}),
        (64, 16, {"memory_limit"}),
        (64, 2, {"memory_limit"}),
        (None, None, set()),
    ],
)
def test_memory_that_is_limited(installed: int | None, limit: int | None, codes: set[str], tmp_path: Path) -> None:
    subject = host(tmp_path)
    if installed:
        write(subject.root, "proc/meminfo", f"MemTotal: {installed * GIB} kB\nMemAvailable: {installed * GIB} kB\n")
    if limit:
        write(subject.root, "proc/self/cgroup", "0::/box\n")
        write(subject.root, "sys/fs/cgroup/box/memory.max", f"{limit << 30}\n")
    said = found(memory, subject)
    assert set(said) - {"memory_watched"} == codes
    if "memory_limit" in said:
        assert said["memory_limit"].severity is (Severity.WARNS if limit == 2 else Severity.INFORMS)


def test_the_bounds_of_the_kernel(tmp_path: Path) -> None:
    subject = host(tmp_path)
    write(subject.root, "proc/sys/vm/max_map_count", "65530\n")
    said = found(kernel, subject)["memory_maps_few"]
    assert (said.severity, "is 65,530" in said.message) == (Severity.INFORMS, True)
    assert "sysctl -w vm.max_map_count=4194304" in said.hint
    several = host(tmp_path, hardware=gpus(8))
    assert found(kernel, several)["memory_maps_few"].severity is Severity.WARNS
    write(subject.root, "proc/sys/vm/max_map_count", "1048576\n")
    assert "memory_maps_few" not in found(kernel, several)


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = host(tmp_path, environment={"container": "docker"})
    monkeypatch.setattr(os, "statvfs", lambda _: Room(1, f_blocks=64 << 20))
    said = found(kernel, subject)["little_shared_memory"]
    assert (said.message, said.hint) == (
        "/dev/shm has 67.1 MB, which loaders of data and several GPUs use up.",
        "Start the container with --shm-size=8g.",
    )
    monkeypatch.undo()
    (subject.root / "dev/shm").rmdir()
    assert "No such file" in found(kernel, subject)["no_shared_memory"].message


def test_a_clock_that_was_never_set(tmp_path: Path) -> None:
    assert "clock" not in found(kernel, host(tmp_path))
    said = found(kernel, host(tmp_path, now=datetime(1970, 1, 1, tzinfo=UTC)))["clock"]
    assert "1970-01-01 00:00 UTC" in said.message


@pytest.mark.parametrize(
    ("listen", "code"),
    [
        ("http://127.0.0.1:8470", None),
        ("http://[::1]:8470", None),
        ("http://localhost:8470", None),
        ("http://0.0.0.0:8470", "plain_http"),
        ("http://gpu1.example:8470", "plain_http"),
        ("", None),
        (f"unix:///{'x' * 110}", "cannot_listen"),
    ],
)
def test_who_could_read_the_token(listen: str, code: str | None, tmp_path: Path) -> None:
    said = found(listening, host(tmp_path, settings={"listen": listen, "token": TOKEN}))
    assert set(said) == ({code} if code else set())


def test_a_socket_in_a_closed_folder(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    subject = host(tmp_path, settings={"listen": f"unix://{tmp_path}/closed/runner.sock"})
    open_to_all(tmp_path)
    with unprivileged():
        said = found(listening, subject)
    assert said["cannot_listen"].severity is Severity.BLOCKS


def with_tls(folder: Path, pair: Any, now: datetime) -> Any:
    settings = {"listen": "https://0.0.0.0:8470", "token": TOKEN, "tls": pair.settings}
    return host(folder, settings=settings, now=now)


@needs_openssl
def test_when_a_certificate_expires(tmp_path: Path) -> None:
    pair, now = self_signed(tmp_path, days=100), datetime.now(UTC)
    said = found(listening, with_tls(tmp_path, pair, now))
    assert set(said) == {"certificate"}
    assert "for localhost, 127.0.0.1" in said["certificate"].message
    soon = found(listening, with_tls(tmp_path, pair, now + timedelta(days=80)))["certificate_expires"]
    assert (soon.severity, "expires in 19 days" in soon.message) == (Severity.WARNS, True)
    pair.key.chmod(0o644)
    assert "chmod 600" in found(listening, with_tls(tmp_path, pair, now))["key_open"].hint


@needs_openssl
def test_a_certificate_that_nobody_takes_blocks(tmp_path: Path) -> None:
    now, ours = datetime.now(UTC), authority(tmp_path)
    expired = found(listening, with_tls(tmp_path, ours.sign("old", until="20250102000000Z"), now))["bad_certificate"]
    assert (expired.severity, "certificate has expired" in expired.message) == (Severity.BLOCKS, True)
    pair = ours.sign("runner")
    pair.key.unlink()
    assert "cannot be read" in found(listening, with_tls(tmp_path, pair, now))["bad_certificate"].message
