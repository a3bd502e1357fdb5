"""Operating system, processor, memory and container of this host."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from runner.host.evidence import text_of
from schemas.artifacts.environment import Software

# Files that container runtimes leave, the surest sign first.
_MARKS = (
    ("var/run/secrets/kubernetes.io/serviceaccount", "kubernetes"),
    (".singularity.d", "apptainer"),
    ("run/.containerenv", "podman"),
    (".dockerenv", "docker"),
)
_VARIABLES = (("KUBERNETES_SERVICE_HOST", "kubernetes"), ("APPTAINER_CONTAINER", "apptainer"), ("container", ""))
_CGROUP_WORDS = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)


def software(
    python: str, python_executable: str, root: Path = Path("/"), environment: Mapping[str, str] = os.environ
) -> Software:
    """Facts of the operating system. `python` is the version of the quantization interpreter, not of this process."""
    runtime = container_runtime(root, environment)
    return Software(
        os=_operating_system(root),
        python=python,
        containerized=runtime is not None,
        container_runtime=runtime,
        python_executable=python_executable,
        kernel=platform.release(),
        cpu_count=len(os.sched_getaffinity(0)),
        cpu_model=_field(root / "proc/cpuinfo", "model name"),
        memory_bytes=_memory(root),
    )


def container_runtime(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> str | None:
    """The container runtime that this process runs under as it calls itself, or None."""
    for variable, runtime in _VARIABLES:
        if value := environment.get(variable):
            return runtime or value
    for mark, runtime in _MARKS:
        if (root / mark).exists():
            return runtime
    if named := (text_of(root / "run/systemd/container") or "").strip():
        return named
    cgroup = text_of(root / "proc/1/cgroup") or ""
    return next((runtime for word, runtime in _CGROUP_WORDS if word in cgroup), None)


def _operating_system(root: Path) -> str:
    for place in ("etc/os-release", "usr/lib/os-release"):
        found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', text_of(root / place) or "", re.MULTILINE)
        if found:
            return found.group(1)
    return platform.system() or "unknown"


def _field(path: Path, name: str) -> str | None:
    found = re.search(rf"^{re.escape(name)}\s*:\s*(\S.*?)\s*$", text_of(path) or "", re.MULTILINE)
    return found.group(1)[:200] if found else None


def _memory(root: Path) -> int | None:
    found = re.fullmatch(r"(\d+) kB", _field(root / "proc/meminfo", "MemTotal") or "")
    return int(found.group(1)) * 1024 if found else None
