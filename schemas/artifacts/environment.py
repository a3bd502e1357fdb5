"""env_context: facts of the machine. It carries no installation actions and no intent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document

Accelerator = Literal["amd-rocm", "nvidia-cuda", "cpu", "unknown"]


class Software(Document):
    """Operating system and Python of the quantization interpreter."""

    os: str
    python: str
    containerized: bool
    container_runtime: str | None = None
    python_executable: str = ""
    kernel: str = ""
    cpu_count: int | None = None
    cpu_model: str | None = None
    memory_bytes: int | None = Field(None, description="Main memory of the host in bytes.")


class Gpu(Document):
    """One GPU, known by its bus address; tools that share an identity between partitions cannot confuse it."""

    index: int
    bus_address: str | None = None
    uuid: str | None = None
    model: str | None = None
    arch: str | None = Field(None, description='"gfx942", "sm_90", ...')
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    partition: str | None = Field(
        None, description='The part of a card that this is: "CPX 3", "MIG 1g.10gb"; null: all.'
    )


class Hardware(Document):
    """The accelerator and the evidence for it. Missing evidence is "unknown", never "cpu"."""

    accelerator: Accelerator
    cuda_version: str | None = None
    rocm_version: str | None = None
    gpu_count: Annotated[int, Field(ge=0)] = 0
    gpu_model: str | None = None
    gpu_arch: str | None = None
    memory_gb: Annotated[float, Field(ge=0)] = Field(
        0.0, description="Memory of one GPU in GB (10^9 bytes); 0 without."
    )
    gpus: list[Gpu] = []
    evidence: list[str] = Field([], description="What was looked at and what it said.")
    contradictions: list[str] = []


class EnvContext(Document):
    """The published env_context."""

    environment: Software
    hardware: Hardware
