"""The environment variables that show a run its GPUs and no others, and how an inherited one is read.

There is exactly one visibility mask: two on ROCm can leave no device at all, since the second counts what the first
left. On AMD it is HIP_VISIBLE_DEVICES with indexes, as the published workflow says. Where this process inherited a mask
itself (from a container or a scheduler), runs get only GPUs of it; the variable itself is not passed on to them, so
that indexes are those of all GPUs that this process sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from runner.host.gpus.identity import is_named
from runner.host.gpus.use import Vendor
from schemas.artifacts.environment import Gpu

Chosen = Literal["auto", "ROCR_VISIBLE_DEVICES"]


def mask(chosen: Sequence[Gpu], vendor: Vendor, how: Chosen = "auto") -> dict[str, str]:
    """The variables for these GPUs; without any, those that hide all of them.

    With ROCR_VISIBLE_DEVICES, which takes UUIDs, CUDA_VISIBLE_DEVICES names the same devices by what is left to count:
    quantize_quark.py shows itself GPU 0 alone where that variable is not set. Beside HIP_VISIBLE_DEVICES that does no
    harm, since HIP prefers it. Partitions of a card share a UUID: they are masked by index all the same.
    """
    if vendor == "nvidia":
        if not chosen:
            return {"CUDA_VISIBLE_DEVICES": "-1"}
        names = ",".join(gpu.uuid or str(gpu.index) for gpu in chosen)
        # The order of nvidia-smi, whose indexes these are where a GPU has no UUID.
        return {"CUDA_VISIBLE_DEVICES": names, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if not chosen:
        return {"HIP_VISIBLE_DEVICES": "-1"}
    uuids = [gpu.uuid for gpu in chosen if gpu.uuid and not gpu.partition]
    if how == "ROCR_VISIBLE_DEVICES" and len(set(uuids)) == len(chosen):
        return {"ROCR_VISIBLE_DEVICES": ",".join(uuids), "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(len(chosen))))}
    return {"HIP_VISIBLE_DEVICES": ",".join(str(gpu.index) for gpu in chosen)}


def inherited(gpus: Sequence[Gpu], vendor: Vendor, environment: Mapping[str, str]) -> list[Gpu]:
    """The GPUs that masks in this environment leave, in their order; all where it has none."""
    left = list(gpus)
    for value in _masks(vendor, environment):
        left = _shown(left, vendor, value)
    return left


def _masks(vendor: Vendor, environment: Mapping[str, str]) -> list[str]:
    """The masks in the order in which they take effect.

    ROCR hides devices from the runtime below HIP, whose indexes count what is left. HIP reads CUDA's variable where its
    own is not set. Slurm sets ROCR's and CUDA's alike and means one mask: a second one that says the same is left out.
    """
    if vendor == "nvidia":
        return [environment["CUDA_VISIBLE_DEVICES"]] if "CUDA_VISIBLE_DEVICES" in environment else []
    below = environment.get("ROCR_VISIBLE_DEVICES")
    above = environment.get("HIP_VISIBLE_DEVICES", environment.get("CUDA_VISIBLE_DEVICES"))
    return [value for value in (below, None if above == below else above) if value is not None]


def _shown(gpus: Sequence[Gpu], vendor: Vendor, value: str) -> list[Gpu]:
    """As the drivers read a mask: by index or UUID, and at the first that is neither they stop."""
    shown: list[Gpu] = []
    for word in (word.strip() for word in value.split(",")):
        found = _meant(gpus, vendor, word)
        if not found or any(gpu in shown for gpu in found):
            break
        shown += found
    return shown


def _meant(gpus: Sequence[Gpu], vendor: Vendor, word: str) -> list[Gpu]:
    if word.isascii() and word.isdigit():
        number = int(word[:9])
        if vendor == "amd":
            return list(gpus[number : number + 1])
        return [gpu for gpu in gpus if gpu.index == number][:1]  # of a card in instances CUDA shows the first
    if len(word) <= len("GPU-"):
        return []
    return [gpu for gpu in gpus if gpu.uuid and gpu.uuid.startswith(word)]


def allowed(gpus: Sequence[Gpu], visible: Sequence[str] | None) -> tuple[list[Gpu], list[str]]:
    """The GPUs that a setting names, in its order, and the names that no GPU has; all GPUs without a setting."""
    if visible is None:
        return list(gpus), []
    found: list[Gpu] = []
    unknown: list[str] = []
    for name in visible:
        meant = [gpu for gpu in gpus if is_named(gpu, name)]
        found += [gpu for gpu in meant if gpu not in found]
        if not meant:
            unknown.append(name)
    return found, unknown
