"""Hosts that plans are made for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from runner.planning import HostView

CPU = HostView(
    accelerator="cpu",
    entry_points={"own": "/opt/runner/quantize.py"},
    datasets=["pileval", "wikitext", "calibration.txt"],
    offline=True,
    disk_free_bytes=10**13,
)
BOTH = {"own": "/opt/runner/quantize.py", "quantize_quark": "/opt/quark/quantize_quark.py"}
MI300X = replace(CPU, accelerator="amd-rocm", gpu_arch="gfx942", gpu_model="MI300X", entry_points=BOTH)
MI355X = replace(MI300X, gpu_arch="gfx950", gpu_model="MI355X")
H100 = replace(MI300X, accelerator="nvidia-cuda", gpu_arch="sm_90", gpu_model="NVIDIA H100 80GB HBM3")


def but(host: HostView, **changes: Any) -> HostView:
    """The host with changes."""
    return replace(host, **changes)
