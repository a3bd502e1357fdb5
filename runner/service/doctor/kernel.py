"""The kernel's bounds and the clock."""

from __future__ import annotations

import os
from collections.abc import Iterator

from runner.host.memory import max_map_count
from runner.service import terminal
from runner.service.doctor.subject import Subject, informs, warns
from schemas.artifacts.plan import Finding

_SHARED = 1 << 30  # bytes of /dev/shm; containers have 64 MiB by default
# Below the first one, models with tens of thousands of layers over several GPUs end with an error that blames GPU
# memory; the second one is what then helps. Source: the model loader of amd-quark 0.13.
_SAFE_MAPS, _RECOMMENDED_MAPS = 1_048_576, 4_194_304
_FIRST_YEAR = 2024  # this program is younger


def kernel(subject: Subject) -> Iterator[Finding]:
    """/dev/shm, memory mappings and the time."""
    yield from _shared_memory(subject)
    maps = max_map_count(subject.root)
    if maps is not None and maps < _SAFE_MAPS:
        several = len(subject.hardware.gpus) > 1
        yield (warns if several else informs)(
            "memory_maps_few",
            f"vm.max_map_count is {maps:,}: models with very many experts over several GPUs need {_SAFE_MAPS:,}.",
            f"Let an administrator run: sudo sysctl -w vm.max_map_count={_RECOMMENDED_MAPS}, and put the same into "
            "/etc/sysctl.d.",
        )
    if subject.now.year < _FIRST_YEAR:
        message = f"The clock of this host says {subject.now:%Y-%m-%d %H:%M} UTC, which is long past."
        yield warns("clock", message, "Set it, best by an NTP service: certificates and approvals need the time.")


def _shared_memory(subject: Subject) -> Iterator[Finding]:
    place = subject.root / "dev/shm"
    fix = "Start the container with --shm-size=8g." if subject.container else "Run: mount -o remount,size=50% /dev/shm"
    try:
        found = os.statvfs(place)
    except OSError as error:
        yield warns("no_shared_memory", f"/dev/shm cannot be used: {error.strerror}.", fix)
        return
    if not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        yield warns("no_shared_memory", "The runner's user may not write into /dev/shm.", "Run: chmod 1777 /dev/shm")
    elif (size := found.f_blocks * found.f_frsize) < _SHARED:
        message = f"/dev/shm has {terminal.size(size)}, which loaders of data and several GPUs use up."
        yield warns("little_shared_memory", message, fix)
