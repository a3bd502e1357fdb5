"""A daemon that hands its runs to a real Slurm of two nodes with pretended GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.runs import Run, RunState
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.peers.slurm import Slurm, missing
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm cannot be started here: {missing()}")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    cluster = Slurm(tmp_path_factory.mktemp("slurm") / "cluster")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def host(slurm: Slurm, tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "host", engine="slurm", slurm={"look_seconds": 0.2}, gpus={"per_run": 2})
    host.environment = slurm.environment
    interpreter.build_for_rocm(host.engine)
    try:
        host.start()
        yield host
        assert not host.processes(), "a process of a run is left"
    finally:
        host.stop()


def submit(host: Host, name: str = "out", **choices: Any) -> Run:
    return host.submit(host.manifest(name, **choices), name)


def held_back(host: Host, folder: Path, **behaviour: Any) -> Path:
    """Runs wait in their middle until this file is there."""
    go = folder / "go"
    interpreter.tell(host.engine, wait_for=str(go), **behaviour)
    return go


def partition(slurm: Slurm, state: str) -> None:
    """Let jobs start, or wait."""
    slurm.call("scontrol", "update", "PartitionName=gpu", f"State={state}")


def number_of(run: Run) -> int:
    return int(run.job.removeprefix("Slurm job "))


def at_work(slurm: Slurm) -> list[tuple[int, str]]:
    return [job for job in slurm.jobs() if job[1] in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")]


def waits_in_slurm(host: Host, run: Run) -> Run:
    wait_until(lambda: host.client.run(run.id).code == "pending", 30, f"{host.client.run(run.id)}")
    return host.client.run(run.id)


def succeeded(host: Host, run: Run) -> Run:
    return host.wait_for(run.id, RunState.SUCCEEDED, seconds=60)


def test_a_run_computes_on_a_node_on_the_gpus_that_slurm_gave_it(host: Host, slurm: Slurm, tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    go = held_back(host, tmp_path, diary=str(diary))
    one, both = submit(host, "one"), submit(host, "both", multi_gpu="auto")
    running = [host.wait_for(run.id, RunState.RUNNING) for run in (one, both)]
    wait_until(lambda: host.client.run(one.id).progress.percent > 0, 20, "no progress is told")
    assert {number_of(run) for run in running} == {number for number, _ in at_work(slurm)}
    go.touch()

    ended = [succeeded(host, run) for run in (one, both)]
    assert [run.job for run in ended] == [run.job for run in running], "its job is known afterwards too"
    assert all(run.report and run.report.status == "success" for run in ended)
    lines = [line for line in map(json.loads, diary.read_text().splitlines()) if line["what"] == "start"]
    masks = {Path(line["output"]).name: line["masks"] for line in lines}
    assert [set(masks[name]) for name in ("one", "both")] == [{"HIP_VISIBLE_DEVICES"}] * 2, "exactly one mask"
    assert len(masks["one"]["HIP_VISIBLE_DEVICES"].split(",")) == 1
    assert len(masks["both"]["HIP_VISIBLE_DEVICES"].split(",")) == 2
    assert host.starts() == 2
    wait_until(lambda: not at_work(slurm), 20, "a job is left")


def test_a_command_that_fails_keeps_its_exit_status(host: Host) -> None:
    interpreter.tell(host.engine, exit=3)
    failed = host.wait_for(submit(host).id, RunState.FAILED, seconds=60)
    assert failed.exit_code == 3
    assert failed.report is not None


def test_a_command_gets_the_variables_that_the_runner_gives_it_and_no_others(host: Host, tmp_path: Path) -> None:
    go = held_back(host, tmp_path)
    run = submit(host)
    host.wait_for(run.id, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 20, "the command does not start")
    child = json.loads((host.run_folder(run.id) / "child.json").read_text())["pid"]
    names = {entry.partition(b"=")[0].decode() for entry in Path(f"/proc/{child}/environ").read_bytes().split(b"\0")}
    go.touch()
    succeeded(host, run)

    told = set(json.loads((host.run_folder(run.id) / "launch.json").read_text())["variables"])
    assert names - {""} == told | {"HIP_VISIBLE_DEVICES", "PTQ_RUN_MARK"}
    assert not any(name.startswith("SLURM") for name in names)


def test_a_job_that_waits_says_why_and_is_taken_back_when_it_is_cancelled(host: Host, slurm: Slurm) -> None:
    partition(slurm, "DOWN")
    try:
        run = submit(host)
        waits = waits_in_slurm(host, run)
        assert waits.reason == f"{waits.job} waits: pending (PartitionDown)"
        host.client.cancel(run.id, "ada")
        ended = host.wait_for(run.id, RunState.CANCELLED, seconds=30)
        assert ended.reason == "ada cancelled it before it began."
        wait_until(lambda: not at_work(slurm), 20, "the job is left")
    finally:
        partition(slurm, "UP")
    assert host.starts() == 0


def test_a_stubborn_run_is_ended_with_all_that_it_started(host: Host, slurm: Slurm, tmp_path: Path) -> None:
    held_back(host, tmp_path, stubborn=True)
    run = submit(host)
    host.wait_for(run.id, RunState.RUNNING)
    wait_until(lambda: host.starts() == 1, 20, "the command does not start")
    host.client.cancel(run.id, "ada")
    host.wait_for(run.id, RunState.CANCELLED, seconds=30)
    wait_until(lambda: not host.processes() and not at_work(slurm), 20, "something is left")


def test_a_daemon_that_is_killed_finds_its_jobs_again(host: Host, slurm: Slurm, tmp_path: Path) -> None:
    go = held_back(host, tmp_path)
    running = submit(host, "running")
    host.wait_for(running.id, RunState.RUNNING)
    partition(slurm, "DOWN")
    waiting = submit(host, "waiting")
    job = waits_in_slurm(host, waiting).job
    host.kill()
    host.start()

    assert waits_in_slurm(host, waiting).job == job
    host.wait_for(running.id, RunState.RUNNING)
    partition(slurm, "UP")
    go.touch()
    for run in (running, waiting):
        succeeded(host, run)
    assert host.starts() == 2


def test_a_run_that_ends_while_no_daemon_lives_is_told_rightly(host: Host, tmp_path: Path) -> None:
    go = held_back(host, tmp_path, exit=7)
    run = submit(host)
    host.wait_for(run.id, RunState.RUNNING)
    host.kill()
    go.touch()
    wait_until(lambda: (host.run_folder(run.id) / "exit.json").exists(), 30, "it does not end")
    host.start()
    assert host.wait_for(run.id, RunState.FAILED, seconds=30).exit_code == 7


def test_runs_outlive_the_controller(host: Host, slurm: Slurm, tmp_path: Path) -> None:
    go = held_back(host, tmp_path)
    running = submit(host, "running")
    host.wait_for(running.id, RunState.RUNNING)
    slurm.kill_controller()
    try:
        late = submit(host, "late")
        wait_until(
            lambda: "Slurm" in host.client.run(late.id).reason, 60, f"it does not say so: {host.client.run(late.id)}"
        )
        assert not host.client.run(late.id).state.ended
        assert host.state_of(running.id) is RunState.RUNNING
    finally:
        slurm.start_controller()
    go.touch()
    succeeded(host, running)
    host.wait_for(late.id, RunState.SUCCEEDED, seconds=120)
    assert host.starts() == 2


def test_a_job_that_slurm_forgot_is_handed_in_again_and_runs_once(host: Host, slurm: Slurm) -> None:
    partition(slurm, "DOWN")
    run = submit(host)
    first = number_of(waits_in_slurm(host, run))
    wait_until(lambda: slurm.jobs()[-1] == (first, "PENDING"), 20, "it is not the last job")
    slurm.forget_everything()
    slurm.start_controller()
    # Whoever comes first gets the numbers again: the run's own new job, or another's with the number of its old one.
    ended = succeeded(host, run)
    assert host.starts() == 1
    assert number_of(ended) <= first
    wait_until(lambda: not at_work(slurm), 20, "a job is left")


def test_a_foreign_job_with_the_number_of_a_forgotten_one_is_left_alone(host: Host, slurm: Slurm) -> None:
    partition(slurm, "DOWN")
    run = submit(host)
    first = number_of(waits_in_slurm(host, run))
    host.kill()
    slurm.forget_everything()
    slurm.start_controller()
    foreign = 0
    while foreign < first:
        foreign = int(slurm.call("sbatch", "--parsable", "--hold", "--wrap=true"))
    host.start()

    succeeded(host, run)
    assert (first, "PENDING") in slurm.jobs(), "the job of somebody else was taken for the run's"
    slurm.call("scancel", "--state=PENDING", "--user=root")
    wait_until(lambda: not at_work(slurm), 20, "a job is left")


def test_a_daemon_that_fell_while_it_asked_finds_its_job_by_the_comment(host: Host, slurm: Slurm) -> None:
    partition(slurm, "DOWN")
    run = submit(host)
    job = waits_in_slurm(host, run).job
    host.kill()
    record = host.run_folder(run.id) / "job.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "number": None}))
    host.start()

    assert waits_in_slurm(host, run).job == job
    partition(slurm, "UP")
    succeeded(host, run)
    assert host.starts() == 1
    assert len([number for number, _ in slurm.jobs() if number >= number_of(host.client.run(run.id))]) <= 2


@pytest.mark.parametrize("number", range(2))
def test_a_controller_that_falls_right_after_it_took_a_job_loses_no_run(host: Host, slurm: Slurm, number: int) -> None:
    run = submit(host)
    record = host.run_folder(run.id) / "job.json"
    wait_until(lambda: record.exists() and json.loads(record.read_text())["number"], 30, f"round {number}: no job")
    slurm.kill_controller()
    slurm.start_controller()
    # What the controller believes of the job afterwards is its own affair: it may hold it for running for minutes.
    host.wait_for(run.id, RunState.SUCCEEDED, seconds=120)
    assert host.starts() == 1


def test_a_job_that_is_not_the_latest_of_its_run_starts_nothing(host: Host, slurm: Slurm) -> None:
    partition(slurm, "DOWN")
    run = submit(host)
    first = number_of(waits_in_slurm(host, run))
    host.kill()
    record = host.run_folder(run.id) / "job.json"
    record.write_text(json.dumps({"token": "0" * 32, "at": 0.0, "number": None, "forgotten": 0}))
    host.start()
    wait_until(lambda: len([one for one in at_work(slurm) if one[0] >= first]) == 2, 30, "it is not handed in again")
    partition(slurm, "UP")
    succeeded(host, run)
    wait_until(lambda: (first, "FAILED") in slurm.jobs(), 30, f"the older job goes on: {slurm.jobs()}")
    assert host.starts() == 1


def test_what_slurm_refuses_is_said(host: Host) -> None:
    host.kill()
    host.configure(slurm={"partition": "no-such", "look_seconds": 0.2})
    host.start()
    failed = host.wait_for(submit(host).id, RunState.FAILED, seconds=30)
    assert "invalid partition" in failed.reason.lower(), failed.reason
    assert failed.code == "not_started"
