"""The queue of a real daemon on pretended GPUs: order, reasons, priorities, pause and drain, restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.errors import RunnerError
from schemas.api import PriorityRequest, QueueMode, QueueRequest
from schemas.runs import Run, RunState
from tests.e2e.host import Host, running_host
from tests.peers import interpreter
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until

GIB = 2**30


@pytest.fixture
def gpus(tmp_path: Path) -> PretendGpus:
    return PretendGpus(tmp_path / "root", 2)


@pytest.fixture
def host(tmp_path: Path, gpus: PretendGpus) -> Iterator[Host]:
    leases = {"lease_dir": str(tmp_path / "leases"), "settle_seconds": 2.0, "per_run": 2}
    host = Host(tmp_path / "host", pretended=gpus, gpus=leases)
    try:
        host.start()
        yield host
    finally:
        host.stop()


def submit(host: Host, name: str, **choices: Any) -> Run:
    return host.submit(host.manifest(name, **choices), name)


def held_back(host: Host, folder: Path) -> Path:
    """Runs wait in their middle until this file is there."""
    go = folder / "go"
    interpreter.tell(host.engine, wait_for=str(go))
    return go


def set_mode(host: Host, mode: QueueMode, reason: str = "") -> None:
    host.client.set_queue(QueueRequest(mode=mode, by="ada", reason=reason))


def placed(host: Host, run: str) -> int:
    """When a run got its place."""
    return (host.run_folder(run) / "placement.json").stat().st_mtime_ns


def wait_for_reason(host: Host, run: str, code: str) -> Run:
    wait_until(lambda: host.client.run(run).code == code, 20, f"{host.client.run(run)}")
    return host.client.run(run)


def test_runs_get_different_gpus_and_the_third_says_what_it_waits_for(
    host: Host, tmp_path: Path, gpus: PretendGpus
) -> None:
    go = held_back(host, tmp_path)
    first, second, third, fourth = (submit(host, name) for name in ("a", "b", "c", "d"))
    running = [host.wait_for(run.id, RunState.RUNNING) for run in (first, second)]

    assert sorted(gpu for run in running for gpu in run.gpus) == [gpus.name(0), gpus.name(1)]
    waits = wait_for_reason(host, third.id, "no_free_gpu")
    assert waits.reason.startswith("It waits for 1 GPU; 0 free (GPU 0 (0000:05:00.0): another run has it"), waits.reason
    assert (waits.position, waits.state) == (1, RunState.QUEUED)
    assert wait_for_reason(host, fourth.id, "behind").position == 2
    standing = host.client.queue()
    assert [run.id for run in standing.waiting] == [third.id, fourth.id]
    assert [gpu.run for gpu in standing.gpus] == [first.id, second.id]

    go.touch()
    ended = [host.wait_for(run.id, RunState.SUCCEEDED, seconds=60) for run in (first, second, third, fourth)]
    assert all(len(run.gpus) == 1 for run in ended), "where it computed is known afterwards too"
    assert placed(host, third.id) < placed(host, fourth.id)
    wait_until(lambda: all(not gpu.busy for gpu in host.client.queue().gpus), 10, "a GPU is still leased")


def test_a_run_that_needs_all_gpus_is_not_overtaken(host: Host, tmp_path: Path) -> None:
    go = held_back(host, tmp_path)
    one = submit(host, "one")
    host.wait_for(one.id, RunState.RUNNING)
    both, small = submit(host, "both", multi_gpu="auto"), submit(host, "small")

    waits = wait_for_reason(host, both.id, "no_free_gpu")
    assert waits.reason.startswith("It waits for 2 GPUs; 1 free"), waits.reason
    wait_for_reason(host, small.id, "behind")
    go.touch()

    ended = [host.wait_for(run.id, RunState.SUCCEEDED, seconds=60) for run in (one, both, small)]
    assert len(ended[1].gpus) == 2
    assert placed(host, both.id) < placed(host, small.id)


def test_each_run_sees_its_own_gpus_and_no_others(host: Host, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    interpreter.tell(host.engine, diary=str(diary))
    runs = [submit(host, "one"), submit(host, "two"), submit(host, "both", multi_gpu="auto")]
    gpus = [host.wait_for(run.id, RunState.SUCCEEDED, seconds=60).gpus for run in runs]

    lines = map(json.loads, diary.read_text().splitlines())
    masks = {Path(line["output"]).name: line["masks"] for line in lines}
    seen = [[name.partition(" ")[0] for name in names] for names in gpus]
    told = [masks[name] for name in ("one", "two", "both")]
    assert told == [{"HIP_VISIBLE_DEVICES": ",".join(indexes)} for indexes in seen]
    assert seen[2] == ["0", "1"]


def test_one_run_at_a_time_computes_on_the_cpu(tmp_path: Path) -> None:
    with running_host(tmp_path / "host") as host:
        go = held_back(host, tmp_path)
        first, second = submit(host, "a"), submit(host, "b")
        assert host.wait_for(first.id, RunState.RUNNING).gpus == []
        reason = wait_for_reason(host, second.id, "cpu_busy").reason
        assert reason == "It waits for the CPU: 1 run may compute on it at the same time."
        go.touch()
        for run in (first, second):
            host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_a_gpu_that_somebody_else_uses_is_left_alone(host: Host, gpus: PretendGpus) -> None:
    gpus.process(0, 4711, 72 * GIB)
    gpus.use(1, 3 * GIB)
    run = submit(host, "a")

    reason = wait_for_reason(host, run.id, "no_free_gpu").reason
    assert "72 GiB in use by process 4711" in reason, reason
    assert "3.0 GiB in use" in reason, reason
    gpus.use(1, 2**28)
    assert host.wait_for(run.id, RunState.SUCCEEDED, seconds=60).gpus == [gpus.name(1)]


def test_a_paused_queue_stays_paused_after_a_restart_and_starts_nothing(host: Host) -> None:
    set_mode(host, "paused", "The driver is exchanged.")
    run = submit(host, "a")
    waits = wait_for_reason(host, run.id, "paused")
    assert waits.reason == "It waits: ada paused this runner's queue. The driver is exchanged."
    host.kill()
    host.start()

    assert host.client.queue().mode == "paused"
    wait_for_reason(host, run.id, "paused")
    set_mode(host, "open")
    host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_a_draining_queue_takes_nothing_and_finishes_what_waits(host: Host, tmp_path: Path) -> None:
    go = held_back(host, tmp_path)
    manifests = {name: host.manifest(name) for name in ("a", "b", "c", "d")}
    runs = [host.submit(manifests[name], name) for name in ("a", "b", "c")]
    set_mode(host, "draining", "It moves to another rack.")

    with pytest.raises(RunnerError, match=r"takes no new runs: ada drains .* It moves to another rack") as refused:
        host.submit(manifests["d"], "d")
    assert refused.value.code == "draining"
    assert host.submit(manifests["a"], "a").id == runs[0].id, "what was taken before is known"
    go.touch()
    for run in runs:
        host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_priorities_change_the_order_and_last(host: Host) -> None:
    set_mode(host, "paused")
    a, b, c, d = (submit(host, name) for name in "abcd")
    host.client.set_priority(d.id, PriorityRequest(priority="high", by="ada"))
    assert host.client.set_priority(a.id, PriorityRequest(priority="low", by="ada")).position == 4
    host.kill()
    host.start()

    assert [run.id for run in host.client.queue().waiting] == [d.id, b.id, c.id, a.id]
    set_mode(host, "open")
    for run in (a, b, c, d):
        host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)
    assert sorted((a, b, c, d), key=lambda run: placed(host, run.id)) == [d, b, c, a]
    with pytest.raises(RunnerError, match="does not wait any more") as refused:
        host.client.set_priority(a.id, PriorityRequest(priority="high", by="ada"))
    assert refused.value.code == "not_waiting"


def test_the_gpus_of_a_run_stay_leased_while_no_daemon_lives(host: Host, tmp_path: Path, gpus: PretendGpus) -> None:
    go = held_back(host, tmp_path)
    run = submit(host, "a")
    host.wait_for(run.id, RunState.RUNNING)
    host.kill()
    other = Host(tmp_path / "other", pretended=gpus, gpus={"lease_dir": str(tmp_path / "leases")})
    try:
        other.start()
        theirs = [submit(other, name) for name in ("x", "y")]
        assert other.wait_for(theirs[0].id, RunState.SUCCEEDED, seconds=60).gpus == [gpus.name(1)]
        assert other.wait_for(theirs[1].id, RunState.SUCCEEDED, seconds=60).gpus == [gpus.name(1)]
        host.start()
        go.touch()
        assert host.wait_for(run.id, RunState.SUCCEEDED, seconds=60).gpus == [gpus.name(0)]
    finally:
        other.stop()


def test_a_cancelled_run_is_cancelling_until_the_memory_of_its_gpu_is_back(
    host: Host, tmp_path: Path, gpus: PretendGpus
) -> None:
    held_back(host, tmp_path)
    run = submit(host, "a")
    host.wait_for(run.id, RunState.RUNNING)
    gpus.use(0, 80 * GIB)
    host.client.cancel(run.id, "ada")
    wait_until(lambda: not host.processes(), 20, "the command does not end")
    assert host.state_of(run.id) is RunState.CANCELLING
    gpus.use(0, 2**28)
    assert host.wait_for(run.id, RunState.CANCELLED).reason.startswith("ada cancelled it.")


def test_a_cancelled_run_says_what_still_holds_its_gpu(host: Host, tmp_path: Path, gpus: PretendGpus) -> None:
    held_back(host, tmp_path)
    run = submit(host, "a")
    host.wait_for(run.id, RunState.RUNNING)
    gpus.use(0, 80 * GIB)
    host.client.cancel(run.id, "ada")
    ended = host.wait_for(run.id, RunState.CANCELLED)
    assert "Its GPUs are not free 2 s after its end: GPU 0 (0000:05:00.0): 80 GiB in use" in ended.reason


def test_a_waiting_run_knows_when_its_turn_may_come(host: Host, tmp_path: Path) -> None:
    done = submit(host, "a")
    host.wait_for(done.id, RunState.SUCCEEDED, seconds=60)
    go = held_back(host, tmp_path)
    running = [submit(host, name) for name in ("b", "c")]
    for run in running:
        host.wait_for(run.id, RunState.RUNNING)
    waits = wait_for_reason(host, submit(host, "d").id, "no_free_gpu")

    assert waits.expected_start is not None
    assert waits.expected_start >= waits.submitted_at
    go.touch()


def test_runs_wait_and_say_so_while_leases_cannot_be_kept(host: Host, tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("in the way")
    first, second = submit(host, "a"), submit(host, "b")
    reason = wait_for_reason(host, first.id, "no_leases").reason
    assert reason.startswith("It waits, since GPUs cannot be shared out: Who has which GPU cannot be told"), reason
    wait_for_reason(host, second.id, "behind")
    (tmp_path / "leases").unlink()
    for run in (first, second):
        host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_a_run_that_needs_a_gpu_that_is_gone_ends_and_holds_up_nobody(host: Host, gpus: PretendGpus) -> None:
    set_mode(host, "paused")
    run = submit(host, "a")
    gpus.remove()
    host.kill()
    host.start()
    set_mode(host, "open")
    ended = host.wait_for(run.id, RunState.FAILED, seconds=30)
    assert ended.code == "too_few_gpus"
    assert "It was not started: This run needs 1, and runs may use no GPU here." in ended.reason
    assert host.starts() == 0


def test_a_place_that_cannot_be_written_down_stops_one_run_and_not_the_daemon(host: Host) -> None:
    set_mode(host, "paused")
    run = submit(host, "a")
    (host.run_folder(run.id) / "placement.json").mkdir()
    set_mode(host, "open")
    wait_until(lambda: "tried again" in host.client.run(run.id).reason, 20, f"{host.client.run(run.id)}")
    (host.run_folder(run.id) / "placement.json").rmdir()
    host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_the_queue_is_shown_and_changed_in_a_terminal(host: Host) -> None:
    def told(*arguments: str) -> str:
        command = [sys.executable, "-m", "runner.service", "--config", str(host.config), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "200"})
        assert "Traceback" not in done.stderr
        return f"{done.returncode} {done.stdout}{done.stderr}"

    assert told("queue").startswith("0 The queue is open.")
    paused = told("queue", "pause", "--reason", "The driver is exchanged.")
    assert paused.startswith("0 The queue is paused: runs are taken and none starts.")
    assert "The driver is exchanged." in paused
    first, second = submit(host, "a"), submit(host, "b")
    assert told("priority", second.id, "high") == (
        f"0 Run {second.id} has priority high and is number 1 in the queue.\n"
    )
    shown = told("queue")
    assert shown.index(second.id) < shown.index(first.id)
    assert "0 (0000:05:00.0)" in shown
    assert '"mode": "open"' in told("queue", "open", "--json")
    for run in (first, second):
        host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)
    assert "does not wait any more" in told("priority", first.id, "low")
    assert told("queue", "stop").startswith("2 ")


def test_what_a_failed_run_left_is_set_apart_and_its_folder_can_be_used_again(host: Host) -> None:
    interpreter.tell(host.engine, spoil="not_quantized")
    failed = host.wait_for(submit(host, "a").id, RunState.FAILED, seconds=60)

    assert failed.partial_output
    assert Path(failed.partial_output, "config.json").exists()
    assert failed.partial_output in failed.reason
    interpreter.tell(host.engine)
    again = host.submit(host.manifest("a"), "again")
    assert host.wait_for(again.id, RunState.SUCCEEDED, seconds=60).output_dir == failed.output_dir
