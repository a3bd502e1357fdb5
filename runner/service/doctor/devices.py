"""The device files of GPUs: whether they are there, and whether this user may open them."""

from __future__ import annotations

import grp
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from runner.service.doctor.subject import Subject, blocks, warns
from schemas.artifacts.plan import Finding

_NODES = "sys/class/kfd/kfd/topology/nodes"


def devices(subject: Subject) -> Iterator[Finding]:
    """Device files that are absent or closed. Nothing where this host shows no GPU."""
    yield from _amd(subject)
    yield from _nvidia(subject)


def _amd(subject: Subject) -> Iterator[Finding]:
    root, kfd = subject.root, subject.root / "dev/kfd"
    if not kfd.exists():
        if _lists_gpus(root):
            yield _say(subject, "rocm")(
                "devices_absent",
                "The kernel lists AMD GPUs, but /dev/kfd is not there" + _within(subject),
                "Start the container with --device /dev/kfd --device /dev/dri."
                if subject.container
                else "Load the driver: modprobe amdgpu.",
            )
        return
    yield from _closed(subject, "rocm", [kfd, *sorted((root / "dev/dri").glob("renderD*"))])


def _nvidia(subject: Subject) -> Iterator[Finding]:
    root = subject.root
    if not (root / "proc/driver/nvidia").exists():
        return
    if not (root / "dev/nvidiactl").exists():
        yield _say(subject, "cuda")(
            "devices_absent",
            "The NVIDIA driver is loaded, but /dev/nvidiactl is not there" + _within(subject),
            "Start the container with --gpus all." if subject.container else "Run: nvidia-modprobe -u -c 0",
        )
        return
    if not (root / "dev/nvidia-uvm").exists():
        yield _say(subject, "cuda")(
            "devices_absent",
            "/dev/nvidia-uvm is not there, without which CUDA does not start.",
            "nvidia-modprobe -u -c 0",
        )
    cards = sorted((root / "dev").glob("nvidia[0-9]*"))
    yield from _closed(subject, "cuda", [root / "dev/nvidiactl", root / "dev/nvidia-uvm", *cards])


def _closed(subject: Subject, backend: str, paths: Sequence[Path]) -> Iterator[Finding]:
    """Files that this user may not read and write. One finding for all of them."""
    closed = [path for path in paths if path.is_file() or path.is_char_device()]
    closed = [path for path in closed if not os.access(path, os.R_OK | os.W_OK, effective_ids=True)]
    if not closed:
        return
    shown = ", ".join(f"/{path.relative_to(subject.root)}" for path in closed[:3])
    more = f" and {len(closed) - 3} more" if len(closed) > 3 else ""
    message = f"{subject.user} may not open {shown}{more}, so that runs do not see the GPUs."
    yield _say(subject, backend)("devices_closed", message, _fix(subject, closed))


def _fix(subject: Subject, closed: Sequence[Path]) -> str:
    numbers = sorted({path.stat().st_gid for path in closed})
    if subject.container:
        given = " ".join(f"--group-add {number}" for number in numbers)
        return f"Start the container with {given}, the groups that these files belong to."
    if 0 in numbers or any(path.stat().st_mode & 0o060 != 0o060 for path in closed):
        return "Their group may not use them: reinstall the driver's udev rules, or run chgrp and chmod g+rw on them."
    names = [_group(number) for number in numbers]
    # The new session is what has the groups: those of a running one stay as they are.
    return f"Run: sudo usermod -aG {','.join(names)} {subject.user}; then log in again, or restart the service."


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _say(subject: Subject, backend: str) -> Callable[[str, str, str], Finding]:
    """It blocks where torch was built for these GPUs; with another build, runs take the CPU anyway."""
    return blocks if subject.backend == backend else warns


def _within(subject: Subject) -> str:
    return f": this container ({subject.container}) was not given the devices." if subject.container else "."


def _lists_gpus(root: Path) -> bool:
    for properties in (root / _NODES).glob("*/properties"):
        try:
            lines = properties.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue  # a container may see nodes of GPUs that it was not given, and not read them
        if any(
            name == "gfx_target_version" and value.strip("0 ") for name, _, value in (x.partition(" ") for x in lines)
        ):
            return True
    return False
