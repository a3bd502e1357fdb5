"""A run's folder that cannot be read for a while, and one that cannot be read any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.runs import RunState
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.waiting import wait_until


def _running(host: Host, run: str) -> Path:
    host.wait_for(run, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 10, "the command does not start")
    return host.run_folder(run)


def test_a_run_whose_folder_cannot_be_read_for_a_while_is_followed_again(host: Host) -> None:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    run = host.submit(host.manifest()).id
    folder = _running(host, run)
    away = folder.rename(host.folder / "away")
    host.wait_for(run, RunState.UNKNOWN)
    away.rename(folder)
    go.touch()
    host.wait_for(run, RunState.SUCCEEDED)
    assert host.starts() == 1


def test_a_run_that_waits_and_whose_folder_is_gone_holds_up_nobody(host: Host) -> None:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    first, second, third = (host.submit(host.manifest(name), name).id for name in ("a", "b", "c"))
    _running(host, first)
    away = host.run_folder(second).rename(host.folder / "away")
    go.touch()
    host.wait_for(third, RunState.SUCCEEDED)
    assert host.state_of(second) is RunState.UNKNOWN
    away.rename(host.run_folder(second))
    host.wait_for(second, RunState.SUCCEEDED)
    assert host.starts() == 3


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_of_which_nothing_can_be_read_any_more_is_closed_by_cancelling_it(host: Host, killed: bool) -> None:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    run = host.submit(host.manifest()).id
    folder = _running(host, run)
    host.kill()
    go.touch()
    wait_until((folder / "exit.json").exists, 20, "it does not end")
    (folder / "exit.json").write_bytes(b"{")
    host.start()
    host.wait_for(run, RunState.UNKNOWN)
    if killed:
        host.kill()
        host.start()
        host.wait_for(run, RunState.UNKNOWN)
    host.client.cancel(run, "ada")
    assert "cannot be read" in host.wait_for(run, RunState.LOST, seconds=10).reason
