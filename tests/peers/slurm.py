"""A real Slurm of two nodes with four pretended GPUs each, on this machine alone. Needs root and Debian's packages."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.waiting import wait_until

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
NODES = ("n1", "n2")
GPUS_OF_A_NODE = 4
_SBIN = "/usr/sbin"


def missing() -> str:
    """Why no Slurm can be started here; empty when one can."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    path = f"{os.environ.get('PATH', '')}:{_SBIN}"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    return f"not installed: {', '.join(absent)} (Debian: slurmctld slurmd slurm-client munge)" if absent else ""


class Slurm:
    """A controller and two nodes. Everything of it lies in one folder; clients need `config` as SLURM_CONF."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "slurm.conf"
        for name in ("run", "log", "state", "dev", *(f"spool/{node}" for node in NODES)):
            (folder / name).mkdir(parents=True)
        for above in (folder, *folder.parents):  # munged refuses a socket that others cannot reach
            if above.stat().st_mode & 0o005 != 0o005:
                above.chmod(stat.S_IMODE(above.stat().st_mode) | 0o055)
        for node in NODES:
            for gpu in range(GPUS_OF_A_NODE):
                os.mknod(folder / "dev" / f"{node}-gpu{gpu}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        controller, *nodes = _free_ports(1 + len(NODES))
        self.config.write_text(_CONFIG.format(base=folder, port=controller, nodes=_node_lines(nodes)))
        (folder / "gres.conf").write_text(_gres(folder))

    @property
    def environment(self) -> dict[str, str]:
        """What a client of this cluster needs."""
        return {"SLURM_CONF": str(self.config)}

    def start(self) -> None:
        """Start everything and wait until both nodes are idle."""
        run = self.folder / "run"
        self._call(
            *("munged", "--force", f"--key-file={self.folder / 'munge.key'}", f"--socket={run / 'munge.sock'}"),
            *(f"--pid-file={run / 'munged.pid'}", f"--log-file={self.folder / 'log/munged.log'}"),
            f"--seed-file={run / 'munged.seed'}",
        )
        self.start_controller()
        for node in NODES:
            self._call("slurmd", "-f", str(self.config), "-N", node)
        wait_until(self._is_idle, 30, "the nodes of Slurm do not become idle")

    def start_controller(self) -> None:
        """Start the controller."""
        self._call("slurmctld", "-f", str(self.config))

    def kill_controller(self) -> None:
        """SIGKILL, as a crash would; jobs go on."""
        pid = self._pid("slurmctld")
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 10, "the controller does not die")

    def forget_everything(self) -> None:
        """Kill the controller and take its memory: the next one knows of no job, and numbers them anew."""
        self.kill_controller()
        shutil.rmtree(self.folder / "state")
        (self.folder / "state").mkdir()

    def stop(self) -> None:
        """End everything."""
        with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
            self.call("scancel", f"--user={os.getuid()}", "--signal=KILL", "--full")
        for name in (*(f"slurmd.{node}" for node in NODES), "slurmctld", "munged"):
            pid = self._pid(name)
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 20, f"{name} does not end")  # type: ignore[misc]

    def call(self, *argv: str) -> str:
        """What a client's command says. Raises CalledProcessError."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True, timeout=30)
        return done.stdout.strip()

    def jobs(self) -> list[tuple[int, str]]:
        """Numbers and states of all jobs that the controller knows, oldest first."""
        lines = self.call("squeue", "--noheader", "--states=all", "--sort=i", "--format=%i %T").splitlines()
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    def _is_idle(self) -> bool:
        with suppress(subprocess.CalledProcessError):
            return set(self.call("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()) == set(NODES)
        return False

    def _pid(self, name: str) -> int | None:
        with suppress(OSError, ValueError):
            pid = int((self.folder / "run" / f"{name}.pid").read_text())
            return pid if Path(f"/proc/{pid}").exists() else None
        return None

    def _call(self, *argv: str) -> None:
        path = f"{os.environ.get('PATH', '')}:{_SBIN}"
        program = shutil.which(argv[0], path=path)
        assert program is not None
        environment = {**os.environ, **self.environment, "PATH": path}
        subprocess.run([program, *argv[1:]], env=environment, check=True, timeout=30)


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _node_lines(ports: list[int]) -> str:
    facts = "CPUs=8 RealMemory=4000 Gres=gpu:mi300x:4 State=UNKNOWN"
    return "\n".join(
        f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} {facts}"
        for node, port in zip(NODES, ports, strict=True)
    )


def _gres(folder: Path) -> str:
    last = GPUS_OF_A_NODE - 1
    first, second = (f"NodeName={node} Name=gpu Type=mi300x File={folder}/dev/{node}-gpu[0-{last}]" for node in NODES)
    return f"{first}\n{second} Flags=amd_gpu_env\n"


_CONFIG = """ClusterName=tests
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={base}/run/munge.sock
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
GresTypes=gpu
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd.%n.pid
SlurmdSpoolDir={base}/spool/%n
StateSaveLocation={base}/state
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
SlurmctldTimeout=30
SlurmdTimeout=30
KillWait=5
MinJobAge=300
InactiveLimit=0
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
{nodes}
PartitionName=gpu Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""
