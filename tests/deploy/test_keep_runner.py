"""What keeps the daemon running in a container, with real daemons and real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from schemas.runs import RunState
from tests.deploy.files import DEPLOY, ROOT
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.waiting import wait_until

KEEPER = str(DEPLOY / "containers" / "keep-runner.sh")


def _keep(state: Path, *command: str, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as words:
        return subprocess.Popen(
            # A shell cannot trap what was ignored when it began, as HUP is below nohup.
            ["env", "--default-signal=HUP", "sh", KEEPER, str(state), *command],
            env={**os.environ, "KEEP_RUNNER_SECONDS": "0.1"},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
        )


class Kept(Host):
    """A host whose daemon is started and kept by the script."""

    def start(self) -> None:
        """Start the keeper, and wait until the daemon answers."""
        serve = [sys.executable, "-m", "runner.service", "--config", str(self.config), "serve"]
        self.daemon = _keep(self.state, *serve, log=self.folder / "daemon.log")
        wait_until(self._answers, 30, "the daemon does not answer")

    def kept(self) -> psutil.Process:
        """The daemon that runs now."""
        assert self.daemon is not None

        def child() -> psutil.Process | None:
            assert self.daemon is not None
            for one in psutil.Process(self.daemon.pid).children():
                with suppress(psutil.NoSuchProcess):  # the keeper's pauses end at any moment
                    if one.name() not in {"sleep", "sh"}:
                        return one
            return None

        return wait_until(child, 10, "no daemon is kept")

    def wait_for_another(self, before: psutil.Process) -> None:
        """Until a daemon answers that is not this one."""
        wait_until(lambda: not before.is_running() and self.kept() != before, 20, "no other daemon is started")
        wait_until(self._answers, 30, "the new daemon does not answer")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "h")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _running(host: Host) -> tuple[str, Path]:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 10, "the command does not start")
    return run, go


@pytest.mark.parametrize("how", ["the daemon is killed", "the keeper gets HUP"])
def test_a_run_goes_on_under_another_daemon(host: Kept, how: str) -> None:
    run, go = _running(host)
    before = host.kept()
    assert host.daemon is not None
    if how == "the daemon is killed":
        before.kill()
    else:
        host.daemon.send_signal(signal.SIGHUP)
    host.wait_for_another(before)
    assert host.state_of(run) is RunState.RUNNING
    go.touch()
    assert host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED).state is RunState.SUCCEEDED
    assert host.starts() == 1


def test_stopping_the_container_cancels_the_run_and_says_so(host: Kept) -> None:
    run, _ = _running(host)
    assert host.daemon is not None
    host.daemon.terminate()
    host.daemon.wait(30)
    assert not host.processes()
    host.start()
    ended = host.wait_for(run, RunState.CANCELLED, RunState.LOST, RunState.FAILED)
    assert ended.state is RunState.CANCELLED
    assert "SIGTERM" in (ended.reason or "")


def test_a_program_that_falls_is_started_again_until_told_to_stop(tmp_path: Path) -> None:
    starts, log = tmp_path / "starts", tmp_path / "log"
    keeper = _keep(tmp_path, "sh", "-c", 'echo start >> "$0"; exit 3', str(starts), log=log)
    try:
        wait_until(lambda: starts.exists() and len(starts.read_text().splitlines()) >= 3, 10, "it is not started again")
        assert "ended with status 3" in log.read_text()
        keeper.terminate()
        keeper.wait(10)
    finally:
        keeper.kill()
        keeper.wait()
