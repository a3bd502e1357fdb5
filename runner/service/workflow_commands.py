"""The four steps of the workflow as commands: intake, plan, manifest and run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal

import click

from runner.errors import BadRequest, Refused, RunnerError
from runner.runs.submission import run_id
from runner.service import asking, terminal
from runner.service.arguments import FilePath, Words, expanded
from runner.service.documents import read_file, write_file
from runner.service.following import follow
from runner.service.plan_options import COUNT, FURTHER, further
from runner.service.shell import Shell
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest, RunSubmission
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import PlanChoices, QuantPlan
from schemas.artifacts.workspace import WorkspaceContext
from schemas.digest import digest
from schemas.documents import InvalidDocument, read_document
from schemas.runs import RunState

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
_LONGEST_KEY = 200  # characters, as the API has it
_LONGEST_REQUEST = 100_000


@click.command()
@click.argument("model", type=Words())
@click.option("--revision", type=Words(), help="Commit, tag or branch of a Hub model.")
@click.option("--trust-remote-code", is_flag=True, help="Ask for code of the model's own to be run.")
@click.option("--output-dir", type=FilePath(), help="Where the quantized model shall go.")
@click.option(
    "--depth",
    type=click.Choice(["headers", "modules"]),
    default="headers",
    help="Layers by the names in the weight files, or as the engine has them, which takes about 20 s once.",
    show_default=True,
)
@click.option("--into", type=FilePath(), default=Path(), help="Folder for the documents.", show_default="here")
@_JSON
@click.pass_obj
def intake(
    shell: Shell,
    model: str,
    revision: str | None,
    trust_remote_code: bool,
    output_dir: Path | None,
    depth: Literal["headers", "modules"],
    into: Path,
    as_json: bool,
) -> None:
    """Step 1: analyse MODEL and write model_analysis.json and workspace_context.json."""
    request = IntakeRequest(
        model=_local(model),
        revision=revision,
        trust_remote_code=trust_remote_code,
        output_dir=_absolute(output_dir),
        depth=depth,
    )
    answer = shell.client.intake(request)
    write_file(into / "workspace_context.json", answer.workspace_context)
    write_file(into / "model_analysis.json", answer.model_analysis)
    if as_json:
        terminal.show_json(shell.out, answer)
        return
    shell.show(terminal.analysis_view(answer.model_analysis))
    _next(shell, f"If it is right, plan: ptq-runner plan {into / 'model_analysis.json'}")


@click.command()
@click.argument("analysis", type=FilePath())
@click.option("--scheme", type=Words(), help="Quantization scheme, such as fp8 or int4_wo_128.")
@click.option("--kv-cache", type=Words(empty=True), help="KV cache scheme, or none.")
@click.option(
    "--algorithm", type=Words(empty=True), help="awq, gptq, smoothquant, ...; several joined by commas; or none."
)
@click.option(
    "--exclude",
    type=Words(),
    multiple=True,
    help="Layer pattern that stays as it is; replaces the defaults. Repeatable.",
)
@click.option(
    "--layer", type=(Words(), Words()), multiple=True, metavar="PATTERN SCHEME", help="Another scheme for some layers."
)
@click.option("--dataset", type=Words(), help="Calibration dataset: a name, or a file of the dataset mirror.")
@click.option("--samples", type=COUNT, help="Calibration samples.")
@click.option("--seq-len", type=COUNT, help="Tokens of one sample.")
@click.option("--batch-size", type=COUNT, help="Samples at once.")
@click.option("--evaluation", type=click.Choice(["none", "smoke", "full"]), help="How much to evaluate afterwards.")
@click.option("--priority", type=click.Choice(["accuracy", "size", "speed", "cpu", "gguf"]), help="Recommend for this.")
@click.option("--hardware", type=Words(), help="The GPU that will serve the model, such as MI300X.")
@click.option(
    "--entry-point",
    type=click.Choice(["auto", "quantize_quark", "quark_cli", "own", "site"]),
    help="The program that quantizes.",
)
@further
@click.option(
    "--request",
    "request_json",
    type=Words(_LONGEST_REQUEST, lines=True),
    help="The whole request as JSON, as POST /v1/plan takes it.",
)
@_JSON
@click.pass_obj
def plan(shell: Shell, /, analysis: Path, as_json: bool, **options: Any) -> None:
    """Step 2: plan the quantization of ANALYSIS and write quant_plan.json beside it."""
    request = PlanRequest(model_analysis=read_file(analysis, ModelAnalysis), request=_choices(options))
    answer = shell.client.plan(request)
    target = analysis.parent / "quant_plan.json"
    write_file(target, answer.quant_plan)
    if as_json:
        terminal.show_json(shell.out, answer)
    else:
        shell.show(terminal.plan_view(answer.quant_plan))
    if blocked := answer.quant_plan.blocked_by:
        raise Refused("plan_blocked", f"This plan cannot run: {blocked[0].message}", blocked[0].hint)
    _next(shell, f"If that is the plan, make the command: ptq-runner manifest {target}", as_json)


@click.command()
@click.argument("plan_file", metavar="PLAN", type=FilePath())
@click.option(
    "--output-dir",
    type=FilePath(),
    help="Where the quantized model shall go.",
    show_default="from workspace_context.json",
)
@_JSON
@click.pass_obj
def manifest(shell: Shell, plan_file: Path, output_dir: Path | None, as_json: bool) -> None:
    """Step 3: turn PLAN into the exact command and write run_manifest.yaml beside it."""
    planned = read_file(plan_file, QuantPlan)
    analysis = read_file(plan_file.parent / planned.model.analysis_ref, ModelAnalysis)
    target_dir = _absolute(output_dir)
    if target_dir is None:
        target_dir = read_file(plan_file.parent / "workspace_context.json", WorkspaceContext).output_dir
    answer = shell.client.manifest(ManifestRequest(model_analysis=analysis, quant_plan=planned, output_dir=target_dir))
    target = plan_file.parent / "run_manifest.yaml"
    write_file(target, answer.run_manifest)
    if as_json:
        terminal.show_json(shell.out, answer)
        return
    shell.show(terminal.manifest_view(answer.run_manifest))
    _next(shell, f"Review all three and run: ptq-runner run {target}")


@click.command()
@click.argument("manifest_file", metavar="MANIFEST", type=FilePath())
@click.option(
    "--key",
    type=Words(_LONGEST_KEY),
    help="Idempotency key; the same key is the same run.",
    show_default="the manifest's digest",
)
@_JSON
@click.pass_obj
def run(shell: Shell, manifest_file: Path, key: str | None, as_json: bool) -> None:
    """Step 4: show analysis, plan and command of MANIFEST, ask for the three approvals, run, and show the result."""
    document = read_file(manifest_file, RunManifest)
    checkpoints = (
        (asking.ANALYSIS, terminal.analysis_view(document.inputs.model_analysis), document.inputs.model_analysis),
        (asking.PLAN, terminal.plan_view(document.inputs.quant_plan), document.inputs.quant_plan),
        (asking.COMMAND, terminal.manifest_view(document), document),
    )
    key = key or f"terminal-{digest(document)}"
    _check_before_asking(shell, document, key)
    approvals = []
    shown = shell.err if as_json else shell.out
    say = shell.tell if as_json else shell.say
    for question, view, approved in checkpoints:
        shell.show(view, shown)
        approvals.append(asking.approved(question, digest(approved), shell.listen, shell.clock))
    submitted = shell.client.submit(RunSubmission(run_manifest=document, approvals=approvals, key=key))
    say(f"Run {submitted.id} is {submitted.state}. It goes on when this terminal is closed.")
    ended = follow(shell.client, submitted.id, shell.err, shell.tell)
    if as_json:
        terminal.show_json(shell.out, ended)
    else:
        shell.show(terminal.run_view(ended))
    if ended.report is not None:
        write_file(manifest_file.parent / "validation_report.json", ended.report)
    if ended.state is not RunState.SUCCEEDED:
        raise Refused("run_failed", f"Run {ended.id} {ended.state}: {ended.reason}", f"See ptq-runner logs {ended.id}")
    asking.ask(asking.RESULT, shell.listen)
    say(f"Accepted: {ended.output_dir}")


def _check_before_asking(shell: Shell, document: RunManifest, key: str) -> None:
    """What would refuse the run afterwards anyway is told before anybody reads and approves three documents."""
    try:
        earlier = shell.client.run(run_id(key))
    except RunnerError as error:
        if error.code != "no_such_run":
            raise
    else:
        raise Refused(
            "ran_before",
            f"This manifest was handed in before: run {earlier.id} {earlier.state}.",
            f"See `ptq-runner show {earlier.id}`; to run it once more, give a --key of its own.",
        )
    inputs = document.inputs
    wanted = {"model_analysis": inputs.model_analysis, "quant_plan": inputs.quant_plan}
    shell.client.manifest(ManifestRequest(**wanted, output_dir=document.outputs.output_dir))


def _choices(options: dict[str, Any]) -> PlanChoices:
    if options["request_json"]:
        try:
            return read_document(PlanChoices, json.loads(options["request_json"]), name="request")
        except RecursionError:
            raise BadRequest("bad_request", "--request is not a valid request: it is nested too deeply.") from None
        except (ValueError, InvalidDocument) as error:
            raise BadRequest("bad_request", f"--request is not a valid request: {error}.") from None
    none = {"none", "null", ""}
    asked: dict[str, Any] = {
        "priority": options["priority"],
        "hardware": options["hardware"],
        "global_scheme": options["scheme"],
        "evaluation_intent": options["evaluation"],
        "entry_point": options["entry_point"],
        "exclude_layers": list(options["exclude"]) or None,
        "layer_quant_config": dict(options["layer"]) or None,
        **{name: options[name] for name, _, _ in FURTHER},
    }
    calibration = {
        "dataset": options["dataset"],
        "num_calib_data": options["samples"],
        "seq_len": options["seq_len"],
        "batch_size": options["batch_size"],
    }
    given = {name: value for name, value in asked.items() if value is not None}
    for name, option in (("kv_cache_scheme", options["kv_cache"]), ("algorithm", options["algorithm"])):
        if option is not None:
            given[name] = None if option.lower() in none else option
    if wanted := {name: value for name, value in calibration.items() if value is not None}:
        given["calibration"] = wanted
    try:
        return read_document(PlanChoices, given, name="request")
    except InvalidDocument as error:
        raise BadRequest("bad_request", f"The options are not valid: {error}.") from None


def _local(model: str) -> str:
    """A path that exists from here is meant from here; everything else is for the daemon to understand."""
    if not model.startswith((".", "~")):
        return model
    path = expanded(model)
    return str(path.absolute()) if os.path.lexists(path) else model


def _absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _next(shell: Shell, sentence: str, quiet: bool = False) -> None:
    if not quiet:
        shell.tell(f"\n{sentence}")


COMMANDS = (intake, plan, manifest, run)
