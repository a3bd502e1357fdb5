"""What a plan has to know about the host, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.artifacts.environment import Accelerator
from schemas.artifacts.plan import EntryPointChoice


@dataclass(frozen=True)
class HostView:
    """The host that will quantize.

    `gpu_arch` is the vendor's name ("gfx942", "sm_90"). `entry_points` maps the usable ones to where they were found.
    `datasets` are the names that the mirror holds: named datasets and files relative to its folder. `offline` says that
    the hub is switched off. Disk values are bytes; `disk_free_bytes` is free where the output goes, None when unknown,
    and `disk_reserve_bytes` must stay free. `num_calib_data` (samples) and `seq_len` (tokens) are what this
    host's owner wants taken when nobody says otherwise.
    """

    accelerator: Accelerator = "unknown"
    gpu_arch: str | None = None
    gpu_model: str | None = None
    entry_points: dict[str, str] = field(default_factory=dict)
    datasets: list[str] = field(default_factory=list)
    offline: bool = True
    disk_free_bytes: int | None = None
    disk_reserve_bytes: int = 0
    remote_code: bool = False
    default_entry_point: EntryPointChoice = "auto"
    num_calib_data: int | None = None
    seq_len: int | None = None

    @property
    def has_gpu(self) -> bool:
        """Whether a GPU was found for sure."""
        return self.accelerator in ("amd-rocm", "nvidia-cuda")
