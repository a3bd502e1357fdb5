"""The daemon's start: what is in its way is one sentence, and nobody else may write where it works."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from runner.errors import Refused, RunnerError
from runner.service import daemon
from runner.service.doctor.state import state
from runner.service.doctor.subject import Subject
from runner.service.state_folder import keep_others_out
from runner.settings import RunnerSettings


def _serve(folder: Path) -> subprocess.CompletedProcess[str]:
    config = folder / "runner.yaml"
    config.write_text(yaml.safe_dump({"state_dir": str(folder / "state")}))
    command = [sys.executable, "-m", "runner.service", "--config", str(config), "serve"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def _runs_is_a_file(state: Path) -> None:
    state.mkdir()
    (state / "runs").write_text("x")


def _socket_is_a_file(state: Path) -> None:
    state.mkdir()
    (state / "runner.sock").write_text("precious")


def _state_is_a_file(state: Path) -> None:
    state.write_text("x")


def _state_is_open(state: Path) -> None:
    state.mkdir()
    (state / "runs").mkdir()
    state.chmod(0o777)


IN_THE_WAY = [
    (_runs_is_a_file, "state/runs: it is not a folder"),
    (_socket_is_a_file, "runner.sock is in the way of the socket"),
    (_state_is_a_file, "state cannot be used"),
    (_state_is_open, "Other users can write into state_dir"),
]


@pytest.mark.parametrize(("prepare", "words"), IN_THE_WAY, ids=lambda value: getattr(value, "__name__", ""))
def test_what_is_in_the_way_is_one_sentence(prepare: Callable[[Path], None], words: str, tmp_path: Path) -> None:
    prepare(tmp_path / "state")
    done = _serve(tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_a_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    _socket_is_a_file(tmp_path / "state")
    _serve(tmp_path)
    assert (tmp_path / "state" / "runner.sock").read_text() == "precious"


def test_a_fall_while_starting_ends_the_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall(_: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / "runs"))

    monkeypatch.setattr("runner.runs.table.RunTable.recover", fall)
    with pytest.raises(RunnerError) as caught:
        daemon.run_daemon(RunnerSettings(state_dir=tmp_path / "state"))
    assert "runs: Permission denied" in caught.value.message
    assert not (tmp_path / "state" / "runner.sock").exists()


@contextmanager
def _owned_by(uid: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if this process were another user's, seen from the folder."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: uid)
        yield


def test_an_empty_folder_of_our_own_is_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    keep_others_out(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777, 0o2775])
def test_a_folder_with_content_that_others_may_have_changed_is_refused(mode: int, tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    tmp_path.chmod(mode)
    with pytest.raises(Refused) as caught:
        keep_others_out(tmp_path)
    assert caught.value.code == "unsafe_state_dir"
    assert f"chmod 700 {tmp_path}" in caught.value.hint
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


def test_the_doctor_tells_of_an_open_folder_first(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    tmp_path.chmod(0o777)
    host = Subject(RunnerSettings(state_dir=tmp_path))
    assert "unsafe_state_dir" in {finding.code for finding in state(host)}
    tmp_path.chmod(0o700)
    assert "unsafe_state_dir" not in {finding.code for finding in state(host)}


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755])
def test_a_folder_that_only_we_can_write_is_as_it_was(mode: int, tmp_path: Path) -> None:
    (tmp_path / "content").mkdir()
    tmp_path.chmod(mode)
    keep_others_out(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, -1)
    with pytest.raises(Refused) as caught:
        keep_others_out(tmp_path)
    assert "belongs to user 12345" in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns a folder as root")
def test_a_folder_of_root_that_a_group_can_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o2775)  # as volumes of a cluster are mounted
    with _owned_by(1000, monkeypatch), pytest.raises(Refused) as caught:
        keep_others_out(tmp_path)
    assert f"{tmp_path}/runner" in caught.value.hint


def _bound(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    return bound


def test_the_socket_of_a_dead_daemon_is_removed(tmp_path: Path) -> None:
    _bound(tmp_path / "s").close()
    daemon._clear(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    daemon._clear(tmp_path / "s")


def test_the_socket_of_a_living_program_is_not(tmp_path: Path) -> None:
    with _bound(tmp_path / "s") as living:
        living.listen()
        with pytest.raises(RunnerError) as caught:
            daemon._clear(tmp_path / "s")
    assert "Another program listens" in caught.value.message
    assert (tmp_path / "s").exists()


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("/nowhere")])
def test_whatever_else_is_there_is_in_the_way(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "s")
    with pytest.raises(RunnerError) as caught:
        daemon._clear(tmp_path / "s")
    assert "in the way" in caught.value.message


def test_a_port_that_is_taken_is_told_with_a_fitting_hint(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        settings = RunnerSettings(state_dir=tmp_path, listen=address, token="t" * 16)
        with pytest.raises(RunnerError) as caught, daemon._listening(settings):
            pass
    assert "Address already in use" in caught.value.message
    assert "Another program listens there" in caught.value.hint
