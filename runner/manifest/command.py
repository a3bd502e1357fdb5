"""A plan to the exact argument list of its entry point. No shell ever sees it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

from runner.errors import BadRequest, NotHere, Refused
from runner.host.datasets import dataset_path
from runner.host.entry_points import EntryPointName
from runner.host.paths import listed, resolved, root_of
from runner.intake.reading import read_object
from runner.manifest.content import digest_of
from runner.manifest.context import ManifestContext
from runner.manifest.entry_points import own, quantize_quark, quark_cli, site
from runner.manifest.site_folder import read_site_folder
from runner.planning import datasets, placement
from runner.planning.algorithm_configs import file_bytes
from runner.planning.flags import Job
from runner.planning.values import check_plan, check_value
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import EntryPoint
from schemas.artifacts.plan import AlgorithmConfig, QuantPlan

_PROGRAMS: dict[str, Callable[[Job], list[str]]] = {
    "own": own.arguments,
    "quantize_quark": quantize_quark.arguments,
    "quark_cli": quark_cli.arguments,
    "site": site.arguments,
}
_LARGEST_TEMPLATE = 1 << 20  # bytes; a template is a page of text


def find_entry_point(plan: QuantPlan, analysis: ModelAnalysis, context: ManifestContext) -> EntryPoint:
    """The program of the plan, with the digest of its file.

    Ours and a site's are kept under their digest; quantize_quark.py and quark-cli need what lies beside them and run
    where they are. Raises NotHere [entry_point_missing], Refused [site_script_unfit].
    """
    chosen = chosen_entry_point(plan, analysis, context)
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
    if chosen.value == "site":
        return _site_script(Path(found), reason, context)
    if chosen.value == "quark_cli":
        reason = f"{reason} Not tried by this project."
    path = Path(os.path.abspath(found))  # noqa: PTH100 - a link is kept: what lies beside it is found by it
    name = cast(EntryPointName, chosen.value)
    return EntryPoint(name=name, path=str(path), sha256=digest_of(path), reason=reason)


def make_job(plan: QuantPlan, analysis: ModelAnalysis, output_dir: str, context: ManifestContext) -> Job:
    """The plan with every path as the command has it. Files that the plan brings along are kept under their digest.

    Raises BadRequest for a value that would be read as an option or cannot be seen, Refused for a path that is not
    absolute, for a file that this runner does not read, and for a model of the Hub where the Hub is off, NotHere for a
    calibration file that is not in the mirror.
    """
    check_plan(plan)
    facts = analysis.model
    output = _absolute(output_dir, "output folder", "Write its whole path.")
    if facts.downloaded:
        model = _absolute(facts.model_path, "model", "Download it to this host and name its folder.")
        _keep_apart(Path(model), Path(output))
    else:
        model = _hub_model(analysis, context)
    return Job(
        plan=plan,
        model=model,
        output_dir=output,
        dataset=_dataset(plan.calibration.dataset, context),
        revision=None if facts.downloaded else facts.revision,
        algorithm_files={config.algorithm: _algorithm_file(config, context) for config in plan.algorithm_configs},
        template_file=None if plan.template_file is None else _template_file(plan.template_file, context),
    )


def argument_list(job: Job, entry: EntryPoint, context: ManifestContext) -> list[str]:
    """The whole argument list, the program first."""
    program = [entry.path] if entry.name == "quark_cli" else [str(context.settings.quark.python), entry.path]
    return program + _PROGRAMS[entry.name](job)


def chosen_entry_point(plan: QuantPlan, analysis: ModelAnalysis, context: ManifestContext) -> placement.Placement:
    """The entry point that the plan names, or the one that it leaves to this runner."""
    if plan.entry_point != "auto":
        return placement.Placement(plan.entry_point, "As the plan says.", "request")
    return placement.choose_entry_point("auto", plan, analysis, context.host)


def _site_script(script: Path, reason: str, context: ManifestContext) -> EntryPoint:
    files = read_site_folder(script)
    kept = context.content.keep_folder(files)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    sha256 = digests.pop(script.name)
    return EntryPoint(name="site", path=str(kept.path / script.name), sha256=sha256, reason=reason, files=digests)


def _algorithm_file(config: AlgorithmConfig, context: ManifestContext) -> str:
    content = file_bytes(config)
    if hashlib.sha256(content).hexdigest() != config.sha256:
        raise BadRequest(
            "plan_inconsistent",
            f"The plan's configuration of {config.algorithm} has another content than its digest says.",
            "Plan again.",
        )
    name = check_value(config.algorithm, "algorithm_configs")
    if not name.isidentifier():
        raise BadRequest("bad_value", f"{ascii(name)[:80]} is not the name of an algorithm.", "Plan again.")
    return str(context.content.keep_bytes(f"{name}.json", content).path)


def _template_file(asked: str, context: ManifestContext) -> str:
    """A copy of the template under its digest: the file that was approved is the one that is read."""
    path = resolved(_absolute(asked, "template file", "Write its whole path."))
    mirror = context.settings.datasets.mirror
    roots = [*context.settings.models.roots, *([mirror] if mirror else [])]
    if root_of(path, roots) is None:
        raise Refused(
            "template_not_allowed",
            f"The template file {asked} is in none of the folders that this runner reads.",
            f"Put it into one of: {listed(roots) or 'none is set'} (models.roots, datasets.mirror).",
        )
    read_object(path, _LARGEST_TEMPLATE, "template_broken")
    return str(context.content.keep(path).path)


def _hub_model(analysis: ModelAnalysis, context: ManifestContext) -> str:
    facts = analysis.model
    if not context.settings.models.hub:
        raise Refused(
            "hub_is_off",
            f"{facts.model_path} is still on the Hub, and this runner may not reach it.",
            "Download it into one of models.roots, or set models.hub in runner.yaml.",
        )
    if not facts.revision:
        raise Refused(
            "no_revision", f"The analysis of {facts.model_path} names no commit of the Hub.", "Analyse it again."
        )
    check_value(facts.revision, "the revision of the model")
    return check_value(facts.model_path, "the id of the model")


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
