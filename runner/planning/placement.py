"""Where a run computes and which program runs it."""

from __future__ import annotations

from dataclasses import dataclass

from runner.host.entry_points import EntryPointName
from runner.planning import flags
from runner.planning.datasets import is_file
from runner.planning.flags import CLI, OWN, QQ
from runner.planning.host_view import HostView
from runner.planning.recommend import Source
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import EntryPointChoice, QuantPlan
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
    wanted: EntryPointChoice | None, plan: QuantPlan, analysis: ModelAnalysis, host: HostView
) -> Placement:
    """The program that quantizes: what was asked for, else what runner.yaml names, else the first that can do it.

    The plan's own entry point is not looked at. A site's script is never chosen here: its owner names it.
    """
    if wanted is not None and wanted != "auto":
        return Placement(wanted, "Requested.", "request")
    if wanted is None and host.default_entry_point != "auto":
        return Placement(host.default_entry_point, "runner.yaml names it.", "host")
    order = (OWN, QQ, CLI) if plan.device == "cpu" else (QQ, OWN, CLI)
    here = [name for name in order if name in host.entry_points]
    if not here:
        return Placement(OWN, "No entry point was found on this host.", "host")
    obstacles = {name: obstacle(name, plan, analysis, host) for name in order}
    able = [name for name in here if obstacles[name] is None]
    # Where none can do it, the first one stands in the plan, and the rules say what is wrong with it.
    chosen = able[0] if able else here[0]
    return _reasoned(chosen, plan, host, here, obstacles)


def obstacle(program: EntryPointName, plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> str | None:
    """Why a program cannot do what a plan asks, as the end of a sentence; None when it can, as far as flags tell."""
    if unfit := host.unfit.get(program):
        return unfit
    gap = next(flags.gaps(program, flags.asked(plan, analysis)), None)
    if gap is not None and gap.value is None:
        return f"has no {gap.flag.name}"
    if gap is not None:
        return f"takes no {gap.flag.name} {gap.value}"
    if program in (QQ, CLI) and is_file(plan.calibration.dataset):
        return "takes only named datasets, and this one is a file"
    if program == CLI and plan.device == "cpu":
        return "does not work without a GPU"
    if program == CLI and host.offline:
        return "reads datasets only from the hub, which is off here"
    return None


def _reasoned(
    chosen: EntryPointName,
    plan: QuantPlan,
    host: HostView,
    here: list[EntryPointName],
    obstacles: dict[EntryPointName, str | None],
) -> Placement:
    """Why this program, in one sentence: what the better ones cannot do, else what speaks for it."""
    why = obstacles[chosen]
    if why is not None:
        where = "It is the only entry point here" if len(here) == 1 else "No entry point here can do all of it"
        able = [name for name, problem in obstacles.items() if problem is None and name not in host.entry_points]
        missing = f"; {' or '.join(able)} could, and was not found" if able else ""
        return Placement(chosen, f"{where}, and it {why}{missing}.", "host")
    better = here[: here.index(chosen)]
    passed = [f"{name} {obstacles[name]}" for name in better]
    if passed:
        return Placement(chosen, f"It can do what this plan asks: {'; '.join(passed)}.", "engine")
    if len(here) == 1 and chosen != OWN:
        return Placement(chosen, "It is the only entry point here.", "host")
    if chosen == OWN and plan.device == "cpu":
        return Placement(chosen, "Without a GPU our own script runs, which evaluates on few windows.", "host")
    if chosen == OWN:
        return Placement(chosen, "No Quark checkout with quantize_quark.py was found.", "host")
    if chosen == QQ:
        return Placement(chosen, "Quark's published script, found in the configured checkout.", "published")
    return Placement(chosen, "It is what is left of the entry points here.", "host")
