"""What a plan has to know about the host, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.artifacts.environment import Accelerator
from schemas.artifacts.plan import EntryPointChoice, QuantPlan


@dataclass(frozen=True)
class PastRun:
    """A run that this host finished: what it was, and how many seconds its command took."""

    plan: QuantPlan
    parameters: int
    seconds: float
    gpu_arch: str | None = None


@dataclass(frozen=True)
class HostView:
    """The host that will quantize.

    `gpu_arch` is the vendor's name ("gfx942", "sm_90"). `entry_points` maps those that are there to where they were
    found, and `unfit` those of them that the installed engine cannot serve to why, as the end of a sentence.
    `datasets` are the names that the mirror holds: named datasets and files relative to its folder, and `dataset_bytes`
    the sizes of those files. `offline` says that the hub is switched off. Disk values are bytes; `disk_free_bytes` is
    free where the output goes, None when unknown, and `disk_reserve_bytes` must stay free. `num_calib_data` (samples)
    and `seq_len` (tokens) are what this host's owner wants taken when nobody says otherwise. `gpu_memory` and
    `gpu_free` are bytes of each GPU that a run may use; `gpus_per_run` says how many of them one run gets. `history`
    are finished runs of this host, newest first. `algorithm_configs` are the engine's built-in ones, model type ->
    algorithm -> content. `max_map_count` is the kernel's bound on memory mappings of a process.
    """

    accelerator: Accelerator = "unknown"
    gpu_arch: str | None = None
    gpu_model: str | None = None
    entry_points: dict[str, str] = field(default_factory=dict)
    unfit: Mapping[str, str] = field(default_factory=dict)
    datasets: list[str] = field(default_factory=list)
    dataset_bytes: Mapping[str, int] = field(default_factory=dict)
    offline: bool = True
    disk_free_bytes: int | None = None
    disk_reserve_bytes: int = 0
    remote_code: bool = False
    default_entry_point: EntryPointChoice = "auto"
    num_calib_data: int | None = None
    seq_len: int | None = None
    gpu_memory: tuple[int, ...] = ()
    gpu_free: tuple[int, ...] = ()
    gpus_per_run: int = 1
    host_memory_bytes: int | None = None
    host_memory_free_bytes: int | None = None
    max_map_count: int | None = None
    history: tuple[PastRun, ...] = ()
    algorithm_configs: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def has_gpu(self) -> bool:
        """Whether a GPU was found for sure."""
        return self.accelerator in ("amd-rocm", "nvidia-cuda")
