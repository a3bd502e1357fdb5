"""Where a run computes and which program runs it."""

from __future__ import annotations

from dataclasses import dataclass

from runner.planning.datasets import is_file
from runner.planning.host_view import HostView
from runner.planning.recommend import Source
from schemas.artifacts.plan import Device, EntryPointChoice, ModelExport
from schemas.catalog import Catalogue


@dataclass(frozen=True)
class Placement:
    """A device or an entry point, why, and where the reason comes from."""

    value: str
    reason: str
    source: Source


def is_cpu_build(catalogue: Catalogue) -> bool:
    """Whether the quantization interpreter's torch can only use the CPU."""
    return (catalogue.versions.torch_build or "").lower().startswith("cpu")


def choose_device(catalogue: Catalogue, host: HostView) -> Placement:
    """The torch device. ROCm is spelled `cuda` too. Without evidence for or against a GPU, torch's build decides."""
    if is_cpu_build(catalogue):
        return Placement("cpu", "The installed torch is a build for the CPU.", "host")
    if host.accelerator == "cpu":
        return Placement("cpu", "This host has no GPU.", "host")
    if host.has_gpu:
        spelled = "; torch spells ROCm devices cuda too" if host.accelerator == "amd-rocm" else ""
        return Placement("cuda", f"{host.gpu_model or 'A GPU'} was found{spelled}.", "host")
    return Placement(
        "cuda", "Whether this host has a GPU is not known; the installed torch is a build for one.", "host"
    )


def choose_entry_point(
    asked: EntryPointChoice | None, device: Device, dataset: str, model_export: ModelExport, host: HostView
) -> Placement:
    """The program that quantizes: what was asked for, else what runner.yaml names, else the one that can do it."""
    if asked is not None and asked != "auto":
        return Placement(asked, "Requested.", "request")
    if asked is None and host.default_entry_point != "auto":
        return Placement(host.default_entry_point, "runner.yaml names it.", "host")
    script = "quantize_quark" in host.entry_points
    if script and "own" not in host.entry_points:
        return Placement("quantize_quark", "It is the only entry point here.", "host")
    if model_export != "hf_format":
        where = "Only quantize_quark.py writes" if script else "No Quark checkout was found, which could write"
        return Placement("quantize_quark" if script else "own", f"{where} {model_export}.", "host")
    if is_file(dataset):
        return Placement("own", "quantize_quark.py takes only named datasets, and this one is a file.", "engine")
    if device == "cpu":
        return Placement("own", "Without a GPU our own script runs, which evaluates on few windows.", "host")
    if not script:
        return Placement("own", "No Quark checkout with quantize_quark.py was found.", "host")
    return Placement("quantize_quark", "Quark's published script, found in the configured checkout.", "published")
