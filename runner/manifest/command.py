"""A plan to the exact argument list of its entry point. No shell ever sees it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from runner.errors import NotHere, Refused
from runner.host.datasets import dataset_path
from runner.host.entry_points import EntryPointName
from runner.manifest.content import digest_of
from runner.manifest.context import ManifestContext
from runner.manifest.entry_points import own, quantize_quark, quark_cli
from runner.manifest.entry_points.flags import Job
from runner.planning import datasets, placement
from runner.planning.values import check_plan, check_value
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import EntryPoint
from schemas.artifacts.plan import QuantPlan

_PROGRAMS: dict[str, Callable[[Job], list[str]]] = {
    "own": own.arguments,
    "quantize_quark": quantize_quark.arguments,
    "quark_cli": quark_cli.arguments,
}


def find_entry_point(plan: QuantPlan, context: ManifestContext) -> EntryPoint:
    """The program of the plan, with the digest of its file.

    Ours is kept under its digest; quantize_quark.py and quark-cli need what lies beside them and run where they are.
    Raises NotHere [entry_point_missing].
    """
    chosen = chosen_entry_point(plan, context)
    found = context.host.entry_points.get(chosen.value)
    if found is None:
        raise NotHere(
            "entry_point_missing",
            f"The entry point {chosen.value} of the plan is not on this host any more.",
            "Plan again with this runner, or put the entry point back.",
        )
    reason = next((row.reason for row in plan.decisions if row.decision == "entry_point"), chosen.reason)
    if chosen.value == "own":
        kept = context.content.keep(Path(found))
        return EntryPoint(name="own", path=str(kept.path), sha256=kept.sha256, reason=reason)
    if chosen.value == "quark_cli":
        reason = f"{reason} Not tried by this project."
    path = Path(os.path.abspath(found))  # noqa: PTH100 - a link is kept: what lies beside it is found by it
    name = cast(EntryPointName, chosen.value)
    return EntryPoint(name=name, path=str(path), sha256=digest_of(path), reason=reason)


def argument_list(
    plan: QuantPlan, analysis: ModelAnalysis, output_dir: str, entry: EntryPoint, context: ManifestContext
) -> list[str]:
    """The whole argument list, the program first.

    Raises BadRequest for a value that would be read as an option or cannot be seen, Refused for a path that is not
    absolute, NotHere for a calibration file that is not in the mirror.
    """
    check_plan(plan)
    job = Job(
        plan=plan,
        model=_absolute(analysis.model.model_path, "model", "Download it to this host and name its folder."),
        output_dir=_absolute(output_dir, "output folder", "Write its whole path."),
        dataset=_dataset(plan.calibration.dataset, context),
    )
    _keep_apart(Path(job.model), Path(job.output_dir))
    program = [entry.path] if entry.name == "quark_cli" else [str(context.settings.quark.python), entry.path]
    return program + _PROGRAMS[entry.name](job)


def chosen_entry_point(plan: QuantPlan, context: ManifestContext) -> placement.Placement:
    """The entry point that the plan names, or the one that it leaves to this runner."""
    if plan.entry_point != "auto":
        return placement.Placement(plan.entry_point, "As the plan says.", "request")
    return placement.choose_entry_point(None, plan.device, plan.calibration.dataset, plan.model_export, context.host)


def _dataset(name: str, context: ManifestContext) -> str:
    if not datasets.is_file(name):
        return name
    path = dataset_path(context.settings.datasets.mirror, name)
    if path is None:
        raise NotHere(
            "dataset_missing",
            f"The calibration file {name} is not in this runner's dataset mirror.",
            "Put it there, or plan with another dataset.",
        )
    return check_value(str(path), "the path of the dataset")


def _absolute(path: str, what: str, hint: str) -> str:
    check_value(path, f"the path of the {what}")
    if not Path(path).is_absolute():
        raise Refused("path_not_absolute", f"The {what} {path} is not a whole path.", hint)
    return os.path.normpath(path)


def _keep_apart(model: Path, output: Path) -> None:
    """The last line against writing over a model; what stands at the output is the workspace check's affair."""
    if model == output or model in output.parents or output in model.parents:
        raise Refused(
            "output_touches_model",
            f"The output folder {output} and the model folder {model} lie in one another.",
            "Choose an output folder elsewhere.",
        )
