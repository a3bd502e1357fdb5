"""A real daemon, its supervisors and their commands are killed at random moments, round after round.

PTQ_CHAOS_ROUNDS says how many rounds, PTQ_CHAOS_SEED repeats those of an earlier test: the seed stands in its failure.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.runs.folder import BEGUN, EXIT
from schemas.api import GpuStanding
from schemas.runs import Run, RunState
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until

pytestmark = pytest.mark.chaos

ROUNDS = int(os.environ.get("PTQ_CHAOS_ROUNDS", "10"))
SEED = int(os.environ.get("PTQ_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
RUNS = 2
"""Runs at the same time, each on a GPU of its own."""
_SECONDS = 60
_ENDED = (RunState.SUCCEEDED, RunState.FAILED, RunState.LOST)


@dataclass(frozen=True)
class Round:
    """What one round does; moments are seconds after the submission."""

    name: str
    exit_code: int
    stubborn: bool
    victims: tuple[str, ...]
    strikes_after: float
    released_first: bool
    """Whether the command may end before the strike, or only after it."""

    @classmethod
    def drawn(cls, number: int, dice: random.Random) -> Round:
        """A round, as the dice say."""
        victims = [name for name in ("daemon", "supervisor", "command") if dice.random() < 0.5] or ["daemon"]
        dice.shuffle(victims)
        return cls(
            f"round-{number}",
            dice.choice([0, 0, 3]),
            dice.random() < 0.3,
            tuple(victims),
            dice.random() * dice.choice([0.1, 0.5, 1.5]),
            dice.random() < 0.5,
        )


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("chaos")
    host = Host(
        folder / "host", pretended=PretendGpus(folder / "root", RUNS), gpus={"lease_dir": str(folder / "leases")}
    )
    try:
        host.start()
        yield host
    finally:
        host.stop()


@pytest.mark.parametrize("number", range(ROUNDS))
def test_whatever_is_killed_no_run_is_lost_from_sight_or_run_twice(host: Host, number: int) -> None:
    # Each round has dice of its own, so that one of them can be repeated alone.
    dealt = Round.drawn(number, random.Random(SEED + number))
    told = f"{dealt}, PTQ_CHAOS_SEED={SEED}"
    before = host.starts()
    go = host.folder / f"go-{dealt.name}"
    if dealt.released_first:
        go.touch()
    interpreter.tell(host.engine, wait_for=str(go), exit=dealt.exit_code, stubborn=dealt.stubborn)
    names = [f"{dealt.name}-{number}" for number in range(RUNS)]
    manifests = [host.manifest(name) for name in names]
    runs = [host.submit(manifest, name).id for manifest, name in zip(manifests, names, strict=True)]
    threading.Event().wait(dealt.strikes_after)  # the moment is what is drawn here; nothing is waited for
    hit = _strike(host, dealt)
    if host.daemon is None:
        host.start()
    go.touch()
    for run in runs:
        _is_told_right(host, host.wait_for(run, *_ENDED, seconds=_SECONDS), dealt, hit, told)
    assert host.starts() - before <= RUNS, f"one ran more than once: {told}"
    wait_until(lambda: not host.processes(), _SECONDS, f"something is left: {told}")
    gpus = wait_until(_free_gpus(host), _SECONDS, f"a GPU is still leased: {told}")
    assert len(gpus) == RUNS
    later = host.submit(host.manifest(f"{dealt.name}-again"), f"{dealt.name}-again").id
    again = host.wait_for(later, *_ENDED, seconds=_SECONDS)
    assert again.exit_code == dealt.exit_code, f"the next run does not work: {again.reason} {told}"


def _free_gpus(host: Host) -> Callable[[], list[GpuStanding]]:
    """All GPUs once none of them is leased, and none before."""

    def free() -> list[GpuStanding]:
        gpus = host.client.queue().gpus
        return gpus if not any(gpu.busy or gpu.run for gpu in gpus) else []

    return free


def _strike(host: Host, dealt: Round) -> set[str]:
    """Kill the victims that are there, of every run; what was hit."""
    hit: set[str] = set()
    for victim in dealt.victims:
        if victim == "daemon":
            host.kill()
            hit.add(victim)
            continue
        everything = host.processes()  # first: a supervisor that begins only now must not be taken for a command
        supervisors = host.supervisors()
        pids = supervisors if victim == "supervisor" else sorted({*everything} - {*supervisors})
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                hit.add(victim)
    return hit


def _is_told_right(host: Host, ended: Run, dealt: Round, hit: set[str], told: str) -> None:
    if ended.state is RunState.LOST:
        assert "supervisor" in hit, f"lost, although its supervisor lived: {ended.reason} {told}"
        assert not (Path(host.run_folder(ended.id)) / EXIT).exists(), told
        return
    if ended.code == "not_started":
        assert "supervisor" in hit, f"not started, although nobody killed its supervisor: {ended.reason} {told}"
        assert not (Path(host.run_folder(ended.id)) / BEGUN).exists(), told
        return
    # A supervisor that was killed had told the outcome before. A command that was killed may have ended before.
    allowed = {dealt.exit_code, -signal.SIGKILL} if "command" in hit else {dealt.exit_code}
    assert ended.exit_code in allowed, f"{ended.exit_code}, {ended.reason} {told}"
    if ended.exit_code != 0:
        assert ended.state is RunState.FAILED, told
    elif "command" not in hit:
        assert ended.state is RunState.SUCCEEDED, f"{ended.reason} {told}"
