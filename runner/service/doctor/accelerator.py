"""What this host computes on, and whether the interpreter's torch was built for it."""

from __future__ import annotations

from collections.abc import Iterator

from runner.service.doctor.subject import Subject, informs, warns
from schemas.artifacts.plan import Finding

_FOR = {"amd-rocm": "rocm", "nvidia-cuda": "cuda"}


def accelerator(subject: Subject) -> Iterator[Finding]:
    """The accelerator with its evidence, and a torch of another build than it needs."""
    found = subject.hardware
    # What /dev forbids has a check of its own, which knows the groups.
    contradictions = [text for text in found.contradictions if "/dev/" not in text]
    if found.accelerator == "unknown":
        seen = "; ".join([*contradictions, *found.evidence]) or "nothing was found"
        hint = "Install the vendor's driver and tools, or a torch build that fits the GPU."
        yield warns("accelerator_unknown", f"It is not clear what this host computes on: {seen}.", hint)
        return
    if found.accelerator == "cpu":
        yield informs("accelerator", "This host has no GPU.", "Runs take the CPU: fit for small models only.")
        return
    what = f"{found.gpu_count} x {found.gpu_model or 'GPU'} ({found.gpu_arch or 'architecture unknown'})"
    yield informs("accelerator", f"This host has {what}, {found.accelerator}.")
    for contradiction in contradictions:
        yield warns("accelerator_contradiction", f"{contradiction.rstrip('.')}.", _build(subject))
    yield from _versions(subject)


def _versions(subject: Subject) -> Iterator[Finding]:
    """A torch for a newer ROCm than is installed finds libraries missing; a torch brings most of CUDA along."""
    found, build = subject.hardware, subject.facts.torch_build if subject.facts else None
    if found.accelerator != "amd-rocm" or build is None or not (build.hip and found.rocm_version):
        return
    if build.hip.split(".")[0] != found.rocm_version.split(".")[0]:
        message = f"torch is built for ROCm {build.hip}, and this host has ROCm {found.rocm_version}."
        yield warns("rocm_differs", message, _build(subject))


def _build(subject: Subject) -> str:
    found = subject.hardware
    tag = "cuVERSION" if found.accelerator == "nvidia-cuda" else "rocmVERSION"
    if found.accelerator == "amd-rocm" and found.rocm_version:
        tag = "rocm" + ".".join(found.rocm_version.split(".")[:2])
    python = subject.settings.quark.python
    return f"Run: {python} -m pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/{tag}"
