"""The environment variables that show a run its GPUs and no others.

There is exactly one visibility mask: two on ROCm can leave no device at all. On AMD it is HIP_VISIBLE_DEVICES with
indexes, as the published workflow says. Where this process inherited a mask itself (from a container or a scheduler),
runs get only GPUs of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from runner.host.gpus.identity import is_named
from schemas.artifacts.environment import Gpu

VISIBILITY = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")

Chosen = Literal["auto", "ROCR_VISIBLE_DEVICES"]


def is_amd(gpu: Gpu) -> bool:
    """Whether ROCm computes on it."""
    return (gpu.arch or "").startswith("gfx")


def inherited(gpus: Sequence[Gpu], environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that a mask in this environment leaves, in its order; all where it has none."""
    names = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES") if any(map(is_amd, gpus)) else ("CUDA_VISIBLE_DEVICES",)
    left = list(gpus)
    # ROCR hides devices from the runtime below HIP, whose indexes count what ROCR left.
    for name in names:
        if name in environment:
            left = _shown(left, environment[name])
    return left


def _shown(gpus: Sequence[Gpu], mask: str) -> list[Gpu]:
    """As the drivers read a mask: by index or UUID, and at the first that is neither they stop."""
    shown: list[Gpu] = []
    for word in (word.strip() for word in mask.split(",")):
        if word.isdigit():
            found = gpus[int(word)] if int(word) < len(gpus) else None
        else:
            found = next((gpu for gpu in gpus if gpu.uuid and gpu.uuid.startswith(word) and len(word) > 4), None)
        if found is None or found in shown:
            break
        shown.append(found)
    return shown


def mask(chosen: Sequence[Gpu], how: Chosen = "auto") -> dict[str, str]:
    """The variables for these GPUs. What was inherited is not passed on: the indexes are those of the whole host."""
    if not chosen:
        return {}
    if not is_amd(chosen[0]):
        names = ",".join(gpu.uuid or str(gpu.index) for gpu in chosen)
        return {"CUDA_VISIBLE_DEVICES": names, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    uuids = [gpu.uuid for gpu in chosen if gpu.uuid]
    if how == "ROCR_VISIBLE_DEVICES" and len({*uuids}) == len(chosen):
        # quantize_quark.py shows itself GPU 0 alone where CUDA_VISIBLE_DEVICES is not set.
        return {"ROCR_VISIBLE_DEVICES": ",".join(uuids), "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(len(chosen))))}
    return {"HIP_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in chosen)}


def allowed(gpus: Sequence[Gpu], visible: Sequence[str] | None) -> tuple[list[Gpu], list[str]]:
    """The GPUs that a setting names, in its order, and the names that no GPU has; all GPUs without a setting."""
    if visible is None:
        return list(gpus), []
    found: list[Gpu] = []
    unknown: list[str] = []
    for name in visible:
        gpu = next((one for one in gpus if is_named(one, name)), None)
        if gpu is None:
            unknown.append(name)
        elif gpu not in found:
            found.append(gpu)
    return found, unknown
