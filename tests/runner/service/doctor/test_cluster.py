"""What several daemons and a cluster share: leases, Slurm, and the limits that need the kernel's help."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from runner.errors import BadRequest
from runner.host.tools import ToolAnswer
from runner.service.doctor.leases import leases
from runner.service.doctor.memory import memory
from runner.service.doctor.slurm import slurm
from runner.service.doctor.state import state
from runner.settings import load_settings
from schemas.artifacts.plan import Severity
from tests.runner.host.tools_on_path import fails, tools, write
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.service.doctor.hosts import found, gpus, host

PING = "Slurmctld(primary) at ctl is UP\n"
PARTITIONS = "gpu up\nold down\n"


def cluster(folder: Path, *, partition: str | None = None, **answers: str | ToolAnswer) -> Any:
    given: dict[str, Any] = dict.fromkeys(("sbatch", "squeue", "scancel"), "slurm 22.05.8\n")
    given |= {"scontrol": PING, "sinfo": PARTITIONS, **answers}
    settings = {"engine": "slurm", "slurm": {"partition": partition}}
    return host(folder, settings=settings, run=tools(**{name: answer for name, answer in given.items() if answer}))


@pytest.mark.parametrize(
    ("change", "code", "severity", "words"),
    [
        ({}, "slurm", Severity.INFORMS, "default partition of gpu, old"),
        ({"partition": "gpu"}, "slurm", Severity.INFORMS, "its partition gpu is up"),
        ({"partition": "cpu"}, "slurm_partition", Severity.BLOCKS, "no partition cpu"),
        ({"partition": "old"}, "slurm_partition_down", Severity.WARNS, "is down"),
        ({"sbatch": ""}, "slurm_missing", Severity.BLOCKS, "sbatch cannot be found"),
        ({"scontrol": "Slurmctld(primary) at ctl is DOWN\n"}, "slurm_down", Severity.BLOCKS, "is DOWN"),
        (
            {"scontrol": fails("did not answer within 15 s")},
            "slurm_down",
            Severity.BLOCKS,
            "did not answer within 15 s",
        ),
        ({"sinfo": fails("failed with exit status 1: x")}, "slurm_partitions_unknown", Severity.WARNS, "exit status 1"),
    ],
)
def test_slurm(change: dict[str, Any], code: str, severity: Severity, words: str, tmp_path: Path) -> None:
    said = found(slurm, cluster(tmp_path, **change))
    assert set(said) == {code}
    assert (said[code].severity, words in said[code].message) == (severity, True), said[code]
    assert found(slurm, host(tmp_path)) == {}


def test_a_controller_in_reserve_is_enough(tmp_path: Path) -> None:
    both = "Slurmctld(primary) at a is DOWN\nSlurmctld(backup) at b is UP\n"
    assert set(found(slurm, cluster(tmp_path, scontrol=both))) == {"slurm"}


def test_the_state_folder_of_a_cluster_is_shared(tmp_path: Path) -> None:
    subject = cluster(tmp_path)
    for kind, codes in (("ext4", {"state_dir_not_shared"}), ("nfs4", set())):
        write(subject.root, "proc/self/mountinfo", f"36 22 0:52 / / rw - {kind} x rw\n")
        assert set(found(state, subject)) == codes


def leased(folder: Path, lease_dir: Path) -> Any:
    return host(folder, settings={"gpus": {"lease_dir": lease_dir}}, hardware=gpus(2))


@pytest.mark.parametrize(
    ("mode", "codes"),
    [(0o1777, set()), (0o777, {"leases_open"}), (0o755, {"leases_closed"}), (0o1770, {"leases_closed"})],
)
def test_leases_that_all_daemons_can_have(mode: int, codes: set[str], tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    assert found(leases, leased(tmp_path, folder)) == {}, "the daemon makes it"
    folder.mkdir()
    folder.chmod(mode)
    assert set(found(leases, leased(tmp_path, folder))) == codes
    assert found(leases, host(tmp_path, settings={"gpus": {"lease_dir": folder}})) == {}, "without GPUs nobody leases"


def test_leases_that_this_user_cannot_have(tmp_path: Path) -> None:
    folder = tmp_path / "leases"
    folder.mkdir(mode=0o555)
    subject = leased(tmp_path, folder)
    open_to_all(tmp_path)
    with unprivileged():
        said = found(leases, subject)["no_leases"]
    assert (said.severity, f"install -d -m 1777 {folder}" in said.hint) == (Severity.BLOCKS, True)


def test_a_memory_limit_that_can_only_be_watched_warns(tmp_path: Path) -> None:
    said = found(memory, host(tmp_path, settings={"limits": {"run_memory_bytes": 2 * 10**9}}))["memory_watched"]
    assert (said.severity, "is 2.0 GB, and can only be watched" in said.message) == (Severity.WARNS, True)


def test_a_delegated_group_enforces_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = host(tmp_path)
    write(subject.root, "proc/self/cgroup", "0::/system.slice/ptq-runner.service/daemon\n")
    place = "sys/fs/cgroup/system.slice/ptq-runner.service"
    monkeypatch.setattr(os, "getxattr", lambda _, name: b"1" if name == "user.delegate" else b"")
    write(subject.root, f"{place}/cgroup.controllers", "cpu pids\n")
    assert set(found(memory, subject)) == {"memory_watched"}
    write(subject.root, f"{place}/cgroup.controllers", "cpu memory pids\n")
    assert place in found(memory, subject)["memory_enforced"].message


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("[mi300x, team-a]", None),
        ("[two words]", "a label is"),
        ("[a, A]", "stands there twice"),
        ("['']", "a label is"),
    ],
)
def test_labels_can_be_said(labels: str, words: str | None, tmp_path: Path) -> None:
    config = tmp_path / "runner.yaml"
    config.write_text(f"labels: {labels}\n")
    if words is None:
        assert load_settings(config).labels == ["mi300x", "team-a"]
        return
    with pytest.raises(BadRequest, match=words):
        load_settings(config)
