"""Slurm: its commands, its controller and the partition, where runs are handed to it."""

from __future__ import annotations

from collections.abc import Iterator

from runner.service.doctor.subject import Subject, blocks, informs, warns
from schemas.artifacts.plan import Finding

_COMMANDS = ("sbatch", "squeue", "scancel", "scontrol")
_INSTALL = "Install Slurm's client commands of the cluster's release here, and its slurm.conf."


def slurm(subject: Subject) -> Iterator[Finding]:
    """Nothing where runs stay on this host. Every command has a time limit."""
    if subject.settings.engine != "slurm":
        return
    missing = [name for name in _COMMANDS if not subject.run((name, "--version")).found]
    if missing:
        yield blocks("slurm_missing", f"engine is slurm, and {', '.join(missing)} cannot be found on PATH.", _INSTALL)
        return
    ping = subject.run(("scontrol", "ping"))
    if not ping.succeeded or "UP" not in ping.output.split():
        said = ping.problem or " ".join(ping.output.split())[:200] or "said nothing"
        hint = "Start slurmctld, or see that this host reaches it; munge has to run on both."
        yield blocks("slurm_down", f"No Slurm controller answers: scontrol ping {said.rstrip('.')}.", hint)
        return
    yield from _partition(subject)


def _partition(subject: Subject) -> Iterator[Finding]:
    wanted = subject.settings.slurm.partition
    answer = subject.run(("sinfo", "--noheader", "--format=%R %a"))
    if not answer.succeeded:
        message = f"The partitions of Slurm cannot be listed: sinfo {answer.problem}."
        yield warns("slurm_partitions_unknown", message, "Look at it by hand.")
        return
    states = dict(line.split()[:2] for line in answer.output.splitlines() if len(line.split()) >= 2)
    known = ", ".join(sorted(states)) or "none"
    if wanted is None:
        yield informs("slurm", f"Slurm answers, and runs take its default partition of {known}.")
    elif wanted not in states:
        yield blocks(
            "slurm_partition", f"Slurm has no partition {wanted}.", f"Correct slurm.partition; there are: {known}."
        )
    elif states[wanted] != "up":
        message = f"The partition {wanted} of Slurm is {states[wanted]}: runs would wait there."
        yield warns(
            "slurm_partition_down",
            message,
            f"Let an administrator run: scontrol update PartitionName={wanted} State=UP",
        )
    else:
        yield informs("slurm", f"Slurm answers, and its partition {wanted} is up.")
