"""kill -9 of the daemon and of the supervisor in every state: nothing is lost and nothing runs twice."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from schemas.runs import RunState
from tests.e2e.host import GRACE_SECONDS, Host
from tests.peers import interpreter
from tests.waiting import wait_until


def _running(host: Host, **behaviour: object) -> tuple[str, Path]:
    """A run that calibrates until the returned file is made."""
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go), **behaviour)
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 10, "the command does not start")
    return run, go


def test_a_run_outlives_its_daemon(host: Host) -> None:
    run, go = _running(host)
    host.kill()
    assert host.processes(), "the run has to go on without its daemon"
    host.start()
    assert host.state_of(run) is RunState.RUNNING
    go.touch()
    ended = host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED)
    assert (ended.state, ended.exit_code, host.starts()) == (RunState.SUCCEEDED, 0, 1), ended.reason
    assert not host.processes()


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_run_that_ends_while_the_daemon_is_down_keeps_its_exit_status(host: Host, exit_code: int) -> None:
    run, go = _running(host, exit=exit_code)
    host.kill()
    go.touch()
    wait_until(lambda: not host.processes(), 20, "the run does not end")
    host.start()
    ended = host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED)
    assert ended.exit_code == exit_code
    assert ended.state is (RunState.FAILED if exit_code else RunState.SUCCEEDED), ended.reason
    assert host.starts() == 1


def test_queued_runs_survive_the_daemon_in_their_order(host: Host) -> None:
    run, go = _running(host)
    later = [host.submit(host.manifest(f"out{number}"), f"key{number}").id for number in range(3)]
    assert [host.client.run(one).position for one in later] == [1, 2, 3]
    host.kill()
    host.start()
    assert [host.client.run(one).position for one in later] == [1, 2, 3]
    go.touch()
    ends = [host.wait_for(one, RunState.SUCCEEDED, RunState.FAILED) for one in [run, *later]]
    assert [end.state for end in ends] == [RunState.SUCCEEDED] * 4
    finished = [end.ended_at for end in ends if end.ended_at is not None]
    assert finished == sorted(finished)
    assert host.starts() == 4


def test_a_killed_supervisor_means_lost_and_its_orphans_are_ended(host: Host) -> None:
    run, _ = _running(host, stubborn=True)
    for pid in host.supervisors():
        os.kill(pid, signal.SIGKILL)
    began = time.monotonic()
    ended = host.wait_for(run, RunState.LOST, seconds=15)
    assert time.monotonic() - began < 10
    assert ended.exit_code is None
    assert not host.processes()
    assert host.starts() == 1


def test_a_supervisor_killed_while_the_daemon_is_down_means_lost(host: Host) -> None:
    run, _ = _running(host, stubborn=True)
    host.kill()
    for pid in host.supervisors():
        os.kill(pid, signal.SIGKILL)
    host.start()
    began = time.monotonic()
    host.wait_for(run, RunState.LOST, seconds=15)
    assert time.monotonic() - began < 10
    assert not host.processes()
    host.kill()
    host.start()
    assert host.state_of(run) is RunState.LOST
    assert host.starts() == 1


def test_a_run_of_a_host_that_was_restarted_is_lost_and_says_so(host: Host) -> None:
    """Stood in for by the records of another boot, and nothing left running."""
    run, _ = _running(host)
    host.kill()
    for pid in host.processes():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not host.processes(), 10, "something is left")
    for record in (host.run_folder(run) / "begun.json", host.run_folder(run) / "child.json"):
        told = json.loads(record.read_text())
        record.write_text(record.read_text().replace(told["boot_id"], "00000000-0000-4000-8000-000000000000"))
    host.start()
    ended = host.wait_for(run, RunState.LOST, seconds=15)
    assert ended.reason.startswith("The host was restarted while it ran, so its outcome is not known.")
    assert host.starts() == 1


def test_a_stubborn_tree_is_gone_within_its_grace_time(host: Host) -> None:
    run, _ = _running(host, stubborn=True)
    wait_until(lambda: len(host.processes()) >= 3, 10, "the grandchild does not start")
    began = time.monotonic()
    host.client.cancel(run, "ada")
    wait_until(lambda: not host.processes(), 20, "something is left")
    assert time.monotonic() - began < GRACE_SECONDS + 2
    assert host.wait_for(run, RunState.CANCELLED).code == "cancelled"


def test_a_cancellation_survives_the_daemon(host: Host) -> None:
    run, _ = _running(host, stubborn=True)
    host.client.cancel(run, "ada")
    host.kill()
    wait_until(lambda: not host.processes(), 20, "the supervisor does not cancel on its own")
    host.start()
    ended = host.wait_for(run, RunState.CANCELLED)
    assert "ada" in ended.reason


def test_a_supervisor_killed_while_it_cancels_means_lost_and_leaves_nothing(host: Host) -> None:
    run, _ = _running(host, stubborn=True)
    host.client.cancel(run, "ada")
    for pid in host.supervisors():
        os.kill(pid, signal.SIGKILL)
    ended = host.wait_for(run, RunState.LOST, RunState.CANCELLED, seconds=15)
    assert ended.state is RunState.LOST
    assert not host.processes()


def _verifying(host: Host) -> tuple[str, Path]:
    """A run whose result is being loaded again until the returned file is made."""
    go = host.folder / "go"
    interpreter.tell(host.engine, check_waits_for=str(go))
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.VERIFYING)
    wait_until(lambda: (host.engine / "checked").exists(), 10, "the check does not start")
    return run, go


def test_a_verification_goes_on_with_the_next_daemon(host: Host) -> None:
    run, go = _verifying(host)
    host.kill()
    host.start()
    host.wait_for(run, RunState.VERIFYING)
    go.touch()
    assert host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED).state is RunState.SUCCEEDED
    assert host.starts() == 1
    assert len((host.engine / "checked").read_text().splitlines()) == 1


@pytest.mark.parametrize("daemon_too", [False, True])
def test_a_lost_check_is_made_again_and_the_command_is_not(host: Host, daemon_too: bool) -> None:
    run, go = _verifying(host)
    if daemon_too:
        host.kill()
    for pid in host.supervisors():
        os.kill(pid, signal.SIGKILL)
    if daemon_too:
        host.start()
    wait_until(lambda: len((host.engine / "checked").read_text().splitlines()) == 2, 20, "there is no second check")
    go.touch()
    assert host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED).state is RunState.SUCCEEDED
    assert host.starts() == 1
    assert not host.processes()


def test_a_run_can_be_cancelled_while_it_is_verified(host: Host) -> None:
    run, _ = _verifying(host)
    host.client.cancel(run, "ada")
    ended = host.wait_for(run, RunState.CANCELLED, RunState.SUCCEEDED)
    assert ended.state is RunState.CANCELLED
    assert not host.processes()


def test_a_waiting_run_is_cancelled_at_once_and_never_starts(host: Host) -> None:
    _, go = _running(host)
    waiting = host.submit(host.manifest("second"), "second").id
    host.client.cancel(waiting, "ada")
    host.wait_for(waiting, RunState.CANCELLED, seconds=5)
    go.touch()
    host.wait_for(host.client.runs(None, 10)[-1].id, RunState.SUCCEEDED)
    assert host.starts() == 1
    assert not (host.outputs / "second").exists()


def test_a_daemon_killed_at_any_moment_of_a_start_runs_the_command_at_most_once(host: Host) -> None:
    for round_number in range(6):
        interpreter.tell(host.engine)
        manifest = host.manifest(f"out{round_number}")
        run = host.submit(manifest, f"key{round_number}").id
        wait_until(lambda run=run, n=round_number: _seen(host, run, n), 10, "the moment does not come")  # type: ignore[misc]
        host.kill()
        host.start()
        ended = host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED, RunState.LOST)
        assert ended.state is RunState.SUCCEEDED, ended.reason
        assert host.starts() == round_number + 1


def _seen(host: Host, run: str, moment: int) -> bool:
    """Whether the moment has come at which this round kills the daemon: ever later in the life of a run."""
    folder = host.run_folder(run)
    names = ["submission.json", "work", "launch.json", "begun.json", "child.json", "exit.json"]
    return (folder / names[moment]).exists()


def test_the_same_key_is_the_same_run(host: Host) -> None:
    interpreter.tell(host.engine)
    manifest = host.manifest()
    first = host.submit(manifest, "one")
    host.wait_for(first.id, RunState.SUCCEEDED)
    host.kill()
    host.start()
    again = host.submit(manifest, "one")
    assert (again.id, again.state) == (first.id, RunState.SUCCEEDED)
    assert host.starts() == 1
