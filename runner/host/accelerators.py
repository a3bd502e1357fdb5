"""The accelerator of this host, with the evidence for it.

"cpu" is a finding like any other: it needs to be shown. It is said only when both vendors' GPUs were looked for and are
shown absent, and the torch of the quantization interpreter agrees. Whatever was not found out is "unknown".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.host.amd import amd_gpus, rocm_version
from runner.host.evidence import VendorEvidence
from runner.host.nvidia import nvidia_gpus
from runner.host.tools import ToolRunner, run_tool
from schemas.artifacts.environment import Accelerator, Gpu, Hardware

Backend = Literal["cpu", "cuda", "rocm", "unknown"]


@dataclass(frozen=True)
class TorchWitness:
    """What the torch of the quantization interpreter was built for.

    `gpu_count` is what torch itself sees, where it was asked; None where it was not.
    """

    tag: str | None = None
    cuda: str | None = None
    hip: str | None = None
    gpu_count: int | None = None

    @property
    def backend(self) -> Backend:
        """One of cuda, rocm, cpu, unknown."""
        if self.hip:
            return "rocm"
        if self.cuda:
            return "cuda"
        return "cpu" if self.tag == "cpu" else "unknown"


def hardware(torch: TorchWitness | None, root: Path = Path("/"), run: ToolRunner = run_tool) -> Hardware:
    """What GPUs this host has. Takes up to a minute where the vendors' tools hang; never raises.

    `root` is the file system that is looked at, `run` starts the tools: tests put their own in place.
    """
    amd, nvidia = amd_gpus(root, run), nvidia_gpus(root, run)
    accelerator, contradictions = _judged(amd, nvidia, torch)
    gpus = _numbered(amd.gpus, nvidia.gpus)
    memory = [gpu.memory_bytes for gpu in gpus if gpu.memory_bytes]
    witness = f"torch is a {torch.tag or torch.backend} build" if torch else "torch was not looked at"
    return Hardware(
        accelerator=accelerator,
        cuda_version=torch.cuda if torch else None,
        rocm_version=rocm_version(root) or (torch.hip if torch else None),
        gpu_count=len(gpus),
        gpu_model=_common([gpu.model for gpu in gpus]),
        gpu_arch=_common([gpu.arch for gpu in gpus]),
        memory_gb=round(min(memory) / 1e9, 1) if memory else 0.0,
        gpus=gpus,
        evidence=[*amd.seen, *nvidia.seen, witness],
        contradictions=[*amd.contradictions, *nvidia.contradictions, *contradictions],
    )


def _judged(
    amd: VendorEvidence, nvidia: VendorEvidence, torch: TorchWitness | None
) -> tuple[Accelerator, tuple[str, ...]]:
    """The accelerator, and where the witnesses contradict each other."""
    backend = torch.backend if torch else "unknown"
    if amd.gpus and nvidia.gpus:
        return "unknown", ("This host has AMD and NVIDIA GPUs; nothing says which of them shall be used.",)
    if amd.gpus:
        return "amd-rocm", _against("AMD", "rocm", backend)
    if nvidia.gpus:
        return "nvidia-cuda", _against("NVIDIA", "cuda", backend)
    if not (amd.absent and nvidia.absent) or torch is None:
        return "unknown", ()
    if torch.gpu_count:
        return "unknown", (f"torch sees {torch.gpu_count} GPUs, but this host shows none.",)
    return ("cpu" if backend == "cpu" or torch.gpu_count == 0 else "unknown"), ()


def _against(vendor: str, wanted: str, backend: str) -> tuple[str, ...]:
    if backend in {wanted, "unknown"}:
        return ()
    return (f"This host has {vendor} GPUs, but torch is built for {backend} and cannot use them.",)


def _common(values: list[str | None]) -> str | None:
    """The one value of all GPUs, or several joined."""
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _numbered(amd: tuple[Gpu, ...], nvidia: tuple[Gpu, ...]) -> list[Gpu]:
    """All GPUs. Each vendor numbers its own, as its mask does; only a host with both needs new numbers."""
    if not (amd and nvidia):
        return [*amd, *nvidia]
    return [gpu.model_copy(update={"index": index}) for index, gpu in enumerate((*amd, *nvidia))]
