"""Analysis and plan to the manifest of a run: the exact command and all that it is bound to."""

from __future__ import annotations

import shlex
from pathlib import Path

from runner.errors import BadRequest, DigestMismatch, Refused
from runner.intake.comparison import check_files
from runner.manifest.command import argument_list, chosen_entry_point, find_entry_point, make_job
from runner.manifest.context import ManifestContext
from runner.manifest.deviations import deviations
from runner.manifest.environment import fixed_variables, secret_names
from runner.planning.consistency import contradiction, outdated
from runner.planning.plan import derived
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import (
    Checkpoint,
    EntryPoint,
    ManifestInputs,
    ManifestOutputs,
    RunManifest,
    Step,
)
from schemas.artifacts.plan import QuantPlan
from schemas.digest import digest, short

CHECKPOINTS = [
    Checkpoint(id="analysis", reason="Is the model what you think it is? Everything else rests on this."),
    Checkpoint(id="plan", reason="Every decision and what is known about it, before time is spent."),
    Checkpoint(id="command", reason="Nothing runs without a yes to exactly this command."),
    Checkpoint(id="result", reason="The verified result is taken over only when somebody accepts it."),
]


def make_manifest(analysis: ModelAnalysis, plan: QuantPlan, output_dir: str, context: ManifestContext) -> RunManifest:
    """The manifest of a run, or a refusal that says why there is none.

    What a person saw has to be what runs: the plan's decision table has to say its fields, and its estimates and
    findings have to be those that are made again now. Raises DigestMismatch [analysis_mismatch] for a plan made from
    another analysis, Changed [model_changed] when the model's files are not those of the analysis, Refused
    [plan_inconsistent, plan_blocked], and what `command` raises. The only things written are scripts and files that the
    command names, under their digest.
    """
    _check_origin(analysis, plan)
    check_files(analysis.size.files, context.model_files)
    _refuse_inconsistent(contradiction(plan))
    _check_derived(analysis, plan, context)
    entry = find_entry_point(plan, analysis, context)
    job = make_job(plan, analysis, output_dir, context)
    argv = argument_list(job, entry, context)
    expected = _expected_files(plan, analysis, entry)
    return RunManifest(
        made_by=context.made_by,
        inputs=ManifestInputs(
            model_path=analysis.model.model_path,
            model_source=analysis.model.source,
            model_revision=analysis.model.revision,
            analysis_digest=digest(analysis),
            plan_digest=digest(plan),
            model_analysis=analysis,
            quant_plan=plan,
        ),
        outputs=ManifestOutputs(output_dir=job.output_dir, expected_files=expected),
        checkpoints=CHECKPOINTS,
        blocked_by=[],
        steps=_steps(analysis, argv, expected),
        argv=argv,
        command=shlex.join(argv),
        environment=fixed_variables(context.settings, entry),
        secrets=secret_names(context.settings),
        entry_point=entry,
        deviations=deviations(job, entry, argv),
        versions=context.versions,
        model_files=context.model_files,
        dataset_files=context.dataset_files,
    )


def _check_origin(analysis: ModelAnalysis, plan: QuantPlan) -> None:
    made_from = digest(analysis)
    if plan.model.analysis_digest != made_from:
        raise DigestMismatch(
            "analysis_mismatch",
            f"The plan was made from analysis {short(plan.model.analysis_digest)}, and this is {short(made_from)}.",
            "Plan again from this analysis.",
        )
    of = (plan.model.model_path, plan.model.model_type)
    if of != (analysis.model.model_path, analysis.model.model_type):
        raise BadRequest(
            "plan_inconsistent", "The plan names another model than the analysis that it was made from.", "Plan again."
        )


def _check_derived(analysis: ModelAnalysis, plan: QuantPlan, context: ManifestContext) -> None:
    """Refuse a plan that is blocked now, or whose estimates and findings are not those that are made now."""
    chosen = plan.model_copy(update={"entry_point": chosen_entry_point(plan, analysis, context).value})
    blocking = derived(chosen, analysis, context.catalogue, context.host).blocked_by
    if blocking:
        first, rest = blocking[0], len(blocking) - 1
        codes = ", ".join(dict.fromkeys(finding.code for finding in blocking[1:]))
        more = f" {rest} more: {codes}." if rest else ""
        raise Refused("plan_blocked", f"This plan cannot run: {first.message}{more}", first.hint)
    # What is free, and which runs have finished, are readings of their moment.
    as_read = derived(chosen, analysis, context.catalogue, context.host, plan.estimates)
    _refuse_inconsistent(outdated(plan, as_read))


def _refuse_inconsistent(sentence: str | None) -> None:
    if sentence is not None:
        raise Refused("plan_inconsistent", sentence, "Plan again.")


def _expected_files(plan: QuantPlan, analysis: ModelAnalysis, entry: EntryPoint) -> list[str]:
    """Files that the run should leave in the output folder, as patterns: large weights come in several files."""
    present = {Path(file.name).name for file in analysis.size.files}
    expected = ["config.json"]
    if plan.model_export == "hf_format":
        expected += ["model*.safetensors", "tokenizer_config.json"]
        expected += [name for name in ("tokenizer.json", "generation_config.json") if name in present]
    else:
        expected = [f"*.{plan.model_export}"]
    return expected + (["quark_profile.yaml"] if entry.name == "quantize_quark" else [])


def _steps(analysis: ModelAnalysis, argv: list[str], expected: list[str]) -> list[Step]:
    """The workflow's steps. Only the run's command is executed from here; the others say how each document is made."""

    def ours(*words: str) -> str:
        return shlex.join(["ptq-runner", *words])

    facts = analysis.model
    pinned = () if facts.downloaded or not facts.revision else ("--revision", facts.revision)
    return [
        Step(
            name="intake",
            kind="analyze",
            command=ours("intake", facts.model_path, *pinned),
            produces=["model_analysis.json"],
        ),
        Step(name="plan", kind="plan", command=ours("plan", "model_analysis.json"), produces=["quant_plan.json"]),
        Step(
            name="manifest",
            kind="generate",
            command=ours("manifest", "quant_plan.json"),
            produces=["run_manifest.yaml"],
        ),
        Step(name="quantize", kind="run", command=shlex.join(argv), argv=argv, produces=expected),
        Step(name="verify", kind="validate", command=ours("show", "RUN"), produces=["validation_report.json"]),
    ]
