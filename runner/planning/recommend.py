"""A scheme and an algorithm for what a person wants, never one that the installed engine cannot run for this model.

The table is the published one:

    best accuracy          fp8 or ptpc_fp8, smoothquant optional
    smallest model         int4_wo_32 with awq or gptq
    CPU deployment         int8
    AMD MI300X, MI355X     fp8 or amdfp4
    NVIDIA H100            fp8
    GGUF export            uint4_wo_32 with awq

Source: AMD Quark's published quantization planning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from runner.planning import algorithm_configs, schemes
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, Priority
from schemas.catalog import Catalogue, Template

Source = Literal["request", "published", "engine", "host", "default"]

_BY_PRIORITY: dict[Priority, tuple[str, ...]] = {
    "accuracy": ("fp8", "ptpc_fp8", "int8"),
    "size": ("int4_wo_32", "fp8"),
    "speed": ("fp8", "ptpc_fp8", "int8"),
    "cpu": ("int8", "fp8"),
    "gguf": ("uint4_wo_32",),
}
_BECAUSE: dict[Priority, str] = {
    "accuracy": "Best accuracy for half the size",
    "size": "Smallest model",
    "speed": "Fast on GPUs that compute in FP8",
    "cpu": "CPU deployment",
    "gguf": "GGUF export takes 4-bit unsigned groups of 32",
}
_ALGORITHMS: dict[Priority, tuple[str, ...]] = {"size": ("awq", "gptq"), "gguf": ("awq",)}
_FOR_GPUS = ("fp8", "ptpc_fp8", "int8")

_NO_NATIVE_FP4 = re.compile(r"mi\s*-?(?:300|308|325)|gfx942", re.IGNORECASE)
_NATIVE_FP4 = re.compile(r"mi\s*-?35\d|gfx950", re.IGNORECASE)
_HOPPER = re.compile(r"\bg?h[12]00\b|sm_90", re.IGNORECASE)


@dataclass(frozen=True)
class Recommendation:
    """A scheme or an algorithm (None: no algorithm), why, and where the reason comes from."""

    value: str | None
    reason: str
    source: Source


def has_no_native_fp4(hardware: str | None) -> bool:
    """Whether a GPU, by its name or architecture, only emulates FP4: MI300 and MI325 (gfx942)."""
    return bool(hardware and _NO_NATIVE_FP4.search(hardware))


def recommend_scheme(choices: PlanChoices, widths: list[int], catalogue: Catalogue, host: HostView) -> Recommendation:
    """The first scheme of the published table that the engine has, can export, and that fits these in_features."""
    names, because, source = _wanted(choices, host)
    passed: list[str] = []
    for name in names:
        fitting, obstacle = _runnable(name, widths, catalogue)
        if fitting is None:
            passed.append(obstacle)
            continue
        reasons = [because, *passed]
        if fitting != name:
            reasons.append(obstacle)
        return Recommendation(fitting, "; ".join(reasons) + ".", source)
    # Nothing of the table can run: the first of it is shown, and the rules say what is wrong with it.
    return Recommendation(names[0], "; ".join([because, *passed]) + ".", source)


def recommend_algorithm(
    choices: PlanChoices, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView
) -> Recommendation:
    """The algorithm that goes with a recommended scheme: one that the engine has a configuration of for this family,
    or may be given one that is written, where the person wants that. Otherwise none, and the reason offers it."""
    wanted = _ALGORITHMS.get(choices.priority, ()) if choices.priority else ()
    if not wanted:
        return Recommendation(None, "RTN baseline (fastest).", "published")
    template = catalogue.templates.get(analysis.compatibility.template or analysis.model.model_type)
    family = template_name(template)
    built_in = template.algorithms if template else []
    for name in wanted:
        if name in built_in and name in catalogue.algorithms:
            return Recommendation(name, f"Recommended with it, and built in for {family}.", "published")
    offers = (algorithm_configs.offer(name, analysis, catalogue, host) for name in wanted)
    offered = next((offer for offer in offers if offer is not None), None)
    engine = f"Quark {catalogue.versions.quark}" if catalogue.versions.quark else "the installed Quark"
    missing = f"{engine} has no built-in {' or '.join(wanted)} for {family}"
    if offered is None:
        return Recommendation(None, f"RTN baseline: {missing}.", "engine")
    if choices.write_algorithm_config:
        reason = f"Recommended with it; {missing}, so its configuration is written after that of {offered.family}."
        return Recommendation(offered.algorithm, reason, "published")
    say = f"say 'use {offered.algorithm} and write its configuration' for one derived from that of {offered.family}"
    return Recommendation(None, f"RTN baseline: {missing}; {say}.", "engine")


def template_name(template: Template | None) -> str:
    """The family's name for a sentence."""
    return template.model_type if template else "this family"


def _wanted(choices: PlanChoices, host: HostView) -> tuple[tuple[str, ...], str, Source]:
    if choices.priority:
        because = _BECAUSE[choices.priority]
        return _BY_PRIORITY[choices.priority], f"{because}, as the published table says", "published"
    if choices.hardware:
        return _FOR_GPUS, _hardware_reason(choices.hardware), "published"
    if host.has_gpu:
        shown = host.gpu_model or host.gpu_arch or "this GPU"
        return _FOR_GPUS, f"Nothing was asked for; {_hardware_reason(shown, host.gpu_arch)}", "host"
    return _BY_PRIORITY["accuracy"], "Nothing was asked for; best accuracy for half the size", "default"


def _hardware_reason(hardware: str, arch: str | None = None) -> str:
    known = f"{hardware} {arch or ''}"
    if has_no_native_fp4(known):
        return f"{hardware} computes FP8 natively but only emulates FP4, so fp8 before amdfp4"
    if _NATIVE_FP4.search(known):
        return f"{hardware} computes FP8 natively; amdfp4 is smaller and less accurate"
    if _HOPPER.search(known):
        return f"{hardware} computes FP8 natively"
    return f"FP8 is the usual choice for GPU inference; nothing more is known of {hardware}"


def _runnable(name: str, widths: list[int], catalogue: Catalogue) -> tuple[str | None, str]:
    """The scheme, or the nearest of its kind that fits, and what was wrong with it."""
    scheme = catalogue.schemes.get(name)
    if scheme is None:
        return None, f"the installed engine has no {name}"
    if schemes.cannot_be_exported(scheme):
        return None, f"{name} cannot be exported"
    misfit = next(_misfits(name, widths, catalogue), None)
    if misfit is None:
        return name, ""
    return schemes.nearest_fitting(scheme, widths, catalogue), misfit


def _misfits(name: str, widths: list[int], catalogue: Catalogue) -> Iterator[str]:
    for width in widths:
        group = schemes.refused_width(catalogue.schemes[name], width)
        if group:
            yield f"{name} needs inputs in multiples of {group} and a layer has {width}"
