"""pytorch_install_result and quark_install_result: whether the runtime is ready. This project installs nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document

Status = Literal["ok", "failed", "skipped"]


class PytorchVerification(Document):
    """What was seen of torch in the quantization interpreter."""

    import_ok: bool
    cuda_available: bool = False
    gpu_count: Annotated[int, Field(ge=0)] = 0


class PytorchInstallResult(Document):
    """The published pytorch_install_result; `accelerator_tag` is the wheel tag, such as cpu, cu126 or rocm7.1."""

    status: Status
    pytorch_version: str | None
    accelerator_tag: str | None
    torchvision_version: str | None = None
    torchaudio_version: str | None = None
    verification: PytorchVerification
    failure_reason: str | None = None


class QuarkExtras(Document):
    """Which optional parts of Quark's environment are present."""

    onnxruntime: bool = False
    llm_ptq_deps: bool = Field(False, description="transformers, accelerate and datasets are all there.")


class QuarkVerification(Document):
    """What was seen of Quark; null where it was not looked at."""

    import_ok: bool
    kernel_ok: bool | None = None
    onnx_ops_ok: bool | None = None
    torch_gpu_ok: bool | None = None
    cli_ok: bool | None = None
    pip_check_ok: bool | None = None


class QuarkEnvironment(Document):
    """The interpreter that quantizes."""

    python_executable: str
    python_version: str
    quark_module_path: str | None = None
    torch_version: str | None = None
    torch_backend: Literal["cpu", "cuda", "rocm", "unknown"] = "unknown"
    transformers_version: str | None = None


class QuarkInstallResult(Document):
    """The published quark_install_result."""

    status: Status
    quark_version: str | None
    environment: QuarkEnvironment
    extras_installed: QuarkExtras = QuarkExtras()
    verification: QuarkVerification
    entry_points: dict[str, str] = Field({}, description="Entry point to the path it was found at.")
    failure_reason: str | None = None
