"""Run folders that were damaged by hand, by a full disk or by another version; and many people cancelling at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.service.client import Client
from schemas.runs import RunState
from tests.e2e.host import SECRET, Host, submission
from tests.peers import interpreter
from tests.waiting import wait_until


def _running(host: Host) -> tuple[str, Path]:
    go = host.folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 10, "the command does not start")
    return run, go


def test_cancelling_many_at_once_ends_each_of_them(host: Host) -> None:
    _running(host)
    waiting = [host.submit(host.manifest(f"out{number}"), f"key{number}").id for number in range(8)]

    def cancel(run: str) -> None:
        client = Client(host.settings)
        client.cancel(run, "ada")
        client.close()

    with ThreadPoolExecutor(8) as people:
        list(people.map(cancel, waiting * 3))
    for run in waiting:
        host.wait_for(run, RunState.CANCELLED, seconds=10)
    counts = host.client.health()
    assert (counts.queued, counts.active) == (0, 1)


def _future_version(folder: Path) -> None:
    path = folder / "submission.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"colour": "blue"}))


def _torn(folder: Path) -> None:
    path = folder / "submission.json"
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("damage", [_future_version, _torn])
def test_a_damaged_run_that_still_runs_holds_the_queue_and_can_be_cancelled(
    host: Host, damage: Callable[[Path], None]
) -> None:
    run, _ = _running(host)
    later = host.manifest("later")
    host.kill()
    damage(host.run_folder(run))
    host.start()
    host.wait_for(run, RunState.RUNNING)
    waiting = host.submit(later, "later").id
    assert host.client.run(waiting).position == 1
    host.client.cancel(run, "ada")
    wait_until(lambda: len(host.processes()) == 0 or host.starts() == 2, 20, "the damaged run is not ended")
    assert host.wait_for(run, RunState.UNKNOWN).reason
    interpreter.tell(host.engine)
    (host.folder / "go").touch()
    host.wait_for(waiting, RunState.SUCCEEDED)


def test_a_run_that_waited_already_does_not_start_beside_a_damaged_one(host: Host) -> None:
    run, _ = _running(host)
    waiting = host.submit(host.manifest("later"), "later").id
    host.kill()
    _torn(host.run_folder(run))
    host.start()
    host.wait_for(run, RunState.RUNNING)
    assert host.client.run(waiting).position == 1
    (host.folder / "go").touch()
    host.wait_for(waiting, RunState.SUCCEEDED)
    second_began = json.loads((host.run_folder(waiting) / "begun.json").read_text())["wall"]
    first_ended = json.loads((host.run_folder(run) / "exit.json").read_text())["ended_at"]
    assert first_ended <= second_began
    assert host.starts() == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("events.jsonl", b"[" * 100_000),
        ("events.jsonl", b'{"number": -5}\n'),
        ("events.jsonl", b"\x00" * 1000),
        ("cancel.json", b"{"),
        ("outcome.json", b"{"),
        ("exit.json", b"{"),
        ("begun.json", b"{"),
        ("child.json", b"{"),
    ],
)
def test_a_damaged_file_stops_neither_the_daemon_nor_the_others(host: Host, name: str, content: bytes) -> None:
    interpreter.tell(host.engine)
    run = host.submit(host.manifest()).id
    host.wait_for(run, RunState.SUCCEEDED)
    host.kill()
    (host.run_folder(run) / name).write_bytes(content)
    host.start()
    assert host.client.run(run).id == run
    other = host.submit(host.manifest("other"), "other").id
    host.wait_for(other, RunState.SUCCEEDED)
    assert host.starts() == 2


@pytest.mark.parametrize("gone", ["begun.json", "child.json", "launch.json", "lock"])
def test_a_file_that_is_gone_never_makes_the_command_run_again(host: Host, gone: str) -> None:
    run, go = _running(host)
    host.kill()
    (host.run_folder(run) / gone).unlink()
    host.start()
    go.touch()
    host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED, RunState.LOST, RunState.UNKNOWN)
    assert host.starts() == 1


def test_a_copy_of_a_run_never_runs(host: Host) -> None:
    run, go = _running(host)
    waiting = host.submit(host.manifest("second"), "second").id
    host.kill()
    shutil.copytree(host.run_folder(waiting), host.state / "runs" / f"{waiting}.bak")
    host.start()
    go.touch()
    for one in (run, waiting):
        host.wait_for(one, RunState.SUCCEEDED)
    copy = host.client.run(f"{waiting}.bak")
    assert copy.state is RunState.UNKNOWN
    assert "copy" in copy.reason
    assert host.starts() == 2


def test_secrets_in_what_a_run_says_do_not_leave_with_its_report(host: Host) -> None:
    interpreter.tell(host.engine, exit=1, says=f"OSError: 401 for https://user:{SECRET}@huggingface.co")
    run = host.submit(host.manifest()).id
    ended = host.wait_for(run, RunState.FAILED)
    assert ended.report is not None
    assert "OSError: 401" in ended.report.model_dump_json()
    assert SECRET not in ended.model_dump_json()
    for kept in ("outcome.json", "events.jsonl"):
        assert SECRET not in (host.run_folder(run) / kept).read_text()
    with pytest.raises(RunnerError) as caught:
        host.client.submit(submission(host.manifest(), "other").model_copy(update={"key": SECRET, "approvals": []}))
    assert SECRET not in str(caught.value)
