"""A supervisor that is killed at any moment: the command runs at most once, and never without a record of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engines.engine import Exited, Lost, Observed, Running
from runner.runs.folder import RunFolder
from runner.runs.processes import find_marked
from tests.runner.runs.supervising import Host, a_host
from tests.waiting import wait_until

MOMENTS = ["supervisor.log", "lock", ".exit.json.reserved", "begun.json", "child.json", "log", "ran", "exit.json"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    with a_host(tmp_path) as host:
        yield host


@pytest.mark.chaos
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_a_run_happens_at_most_once(host: Host, moment: str) -> None:
    folder = host.folder(["/bin/sh", "-c", "echo x >> ran; (setsid sleep 60 &); exec sleep 0.05"])
    ran = host.root / "ran"
    supervisor = host.start(folder)
    wait_until(ran.exists if moment == "ran" else (folder.path / moment).exists, 10, f"{moment} is there")
    supervisor.kill()
    supervisor.wait()
    for _ in range(2):
        host.start(folder).wait(20)
    state = wait_until(lambda: _at_rest(folder), 10, "the lock is free")
    if ran.exists():
        assert ran.read_text() == "x\n"
        assert (folder.path / "child.json").exists()
    if isinstance(state, Lost):
        assert state.child is not None or not ran.exists()
        folder.end_orphans(0.1)
    else:  # a kill before the beginning, for which the second start made up, or one after the end
        assert isinstance(state, Exited)
        assert (state.exit.exit_code, ran.exists()) == (0, True)
    assert not find_marked(*host.folders)


def _at_rest(folder: RunFolder) -> Observed | None:
    state = folder.observe()
    return None if isinstance(state, Running) else state
