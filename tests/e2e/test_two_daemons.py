"""Two daemons share the GPUs of one host, and each keeps the order of its own queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from schemas.api import PriorityRequest, QueueRequest
from schemas.runs import QueuePriority, RunState
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until

GPUS = 8
RUNS_OF_EACH = 50
_SECONDS = 600
_RANKS: dict[QueuePriority, int] = {"high": 0, "normal": 1, "low": 2}


@dataclass(frozen=True)
class Computed:
    """One run on its GPUs: when, by the host's monotonic clock in ns, and which."""

    output: str
    start: int
    end: int
    gpus: frozenset[str]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    pretended = PretendGpus(tmp_path / "root", GPUS)
    leases = {"lease_dir": str(tmp_path / "leases"), "per_run": 2}
    both = tuple(Host(tmp_path / name, pretended=pretended, gpus=leases) for name in ("left", "right"))
    try:
        for host in both:
            host.start()
        yield both[0], both[1]
    finally:
        for host in both:
            host.stop()


def test_a_hundred_runs_on_eight_gpus_never_share_one_and_keep_their_order(
    hosts: tuple[Host, Host], tmp_path: Path
) -> None:
    diary = tmp_path / "diary"
    for host in hosts:
        interpreter.tell(host.engine, diary=str(diary))
        host.client.set_queue(QueueRequest(mode="paused", by="ada"))
    runs = {host.state: _queued(host) for host in hosts}
    for host in hosts:
        host.client.set_queue(QueueRequest(mode="open", by="ada"))

    for host in hosts:
        wait_until(lambda host=host: _all_ended(host), _SECONDS, "not all runs have ended")  # type: ignore[misc]
        ended = [host.client.run(run) for run in runs[host.state]]
        assert {run.state for run in ended} == {RunState.SUCCEEDED}, [run.reason for run in ended if run.report is None]
        promised = runs[host.state]
        assert sorted(promised, key=lambda run: _placed(host, run)) == promised, "the queue's order was not kept"
        assert host.starts() == RUNS_OF_EACH
    computed = _computed(diary)
    assert len(computed) == 2 * RUNS_OF_EACH
    assert {len(one.gpus) for one in computed} == {1, 2}
    assert set().union(*(one.gpus for one in computed)) == {str(index) for index in range(GPUS)}
    for gpu in range(GPUS):
        on_it = sorted((one for one in computed if str(gpu) in one.gpus), key=lambda one: one.start)
        for before, after in pairwise(on_it):
            assert before.end <= after.start, f"{before} and {after} computed on one GPU"
    for host in hosts:
        assert not any(one.busy or one.run for one in host.client.queue().gpus), "a GPU is still leased"


def _queued(host: Host) -> list[str]:
    """Runs of all priorities, some on two GPUs, in the order in which they have to start."""
    priorities: list[QueuePriority] = ["normal", "low", "high"]
    ranked: list[tuple[int, int, str]] = []
    for number in range(RUNS_OF_EACH):
        choices = {"multi_gpu": "auto"} if number % 10 == 3 else {}
        run = host.submit(host.manifest(f"{host.folder.name}-{number}", **choices), f"key-{number}").id
        priority = priorities[number % 3]
        host.client.set_priority(run, PriorityRequest(priority=priority, by="ada"))
        ranked.append((_RANKS[priority], number, run))
    promised = [run for _, _, run in sorted(ranked)]
    assert [run.id for run in host.client.queue().waiting] == promised
    return promised


def _all_ended(host: Host) -> bool:
    standing = host.client.queue()
    return not standing.waiting and not standing.active


def _placed(host: Host, run: str) -> int:
    return (host.run_folder(run) / "placement.json").stat().st_mtime_ns


def _computed(diary: Path) -> list[Computed]:
    starts: dict[str, tuple[int, frozenset[str]]] = {}
    found = []
    for line in map(json.loads, diary.read_text().splitlines()):
        if line["what"] == "start":
            assert set(line["masks"]) == {"HIP_VISIBLE_DEVICES"}, "exactly one mask"
            starts[line["output"]] = line["at"], frozenset(line["masks"]["HIP_VISIBLE_DEVICES"].split(","))
        else:
            start, gpus = starts.pop(line["output"])
            found.append(Computed(line["output"], start, line["at"], gpus))
    return found
