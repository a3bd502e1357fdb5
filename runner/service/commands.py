"""`ptq-runner`: the daemon, and the four steps of the workflow for one person at a terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from runner import __version__
from runner.errors import BadRequest, Refused, RunnerError
from runner.service import asking, terminal
from runner.service.documents import read_file, write_file
from runner.service.following import follow
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
_PATH = click.Path(path_type=Path)


class Program(click.Group):
    """Turns every error of the runner into one sentence on standard error and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RunnerError as error:
            problem = terminal.plain(f"{error.message}\n  {error.hint}".rstrip())
            click.echo(f"ptq-runner: {problem}", err=True)
            ctx.exit(1)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", type=_PATH, envvar="PTQ_RUNNER_CONFIG", help="runner.yaml; variables PTQ_RUNNER_* win over it."
)
@click.version_option(__version__, prog_name="ptq-runner")
@click.pass_context
def main(ctx: click.Context, config: Path | None) -> None:
    """Quantize language models with AMD Quark: analysis, plan, exact command, verified run."""
    ctx.obj = Shell(config)
    ctx.call_on_close(ctx.obj.close)


@main.command()
@click.pass_obj
def serve(shell: Shell) -> None:
    """Run the daemon in the foreground."""
    from runner.service.daemon import run_daemon  # the other commands need not load the server

    run_daemon(shell.settings)


@main.command()
@click.option("--state", type=_PATH, help="Folder for model, runs and results.", show_default="the user's data folder")
@click.option("--scheme", default="fp8", show_default=True, help="Quantization scheme.")
@click.pass_obj
def demo(shell: Shell, state: Path | None, scheme: str) -> None:
    """Quantize a small real model here and now, with you at every checkpoint."""
    from runner.service.demo import default_state, play  # nobody else needs it

    play(shell, state or default_state(), scheme)


@main.command()
@_JSON
@click.pass_obj
def doctor(shell: Shell, as_json: bool) -> None:
    """Say what is missing, wrong or risky on this host, each with its fix."""
    from runner.service.doctor import examine, findings_view, is_fit  # the daemon's parts, without a daemon

    findings = examine(shell.settings)
    if as_json:
        terminal.show_json(shell.out, json.dumps([finding.model_dump(mode="json") for finding in findings], indent=2))
    else:
        shell.out.print(findings_view(findings))
    sys.exit(0 if is_fit(findings) else 1)


@main.command()
@click.argument("model")
@click.option("--revision", help="Commit, tag or branch of a Hub model.")
@click.option("--trust-remote-code", is_flag=True, help="Ask for code of the model's own to be run.")
@click.option("--output-dir", help="Where the quantized model shall go.")
@click.option("--into", type=_PATH, default=Path(), help="Folder for the documents.", show_default="here")
@_JSON
@click.pass_obj
def intake(
    shell: Shell,
    model: str,
    revision: str | None,
    trust_remote_code: bool,
    output_dir: str | None,
    into: Path,
    as_json: bool,
) -> None:
    """Step 1: analyse MODEL and write model_analysis.json and workspace_context.json."""
    request = IntakeRequest(
        model=_local(model), revision=revision, trust_remote_code=trust_remote_code, output_dir=_absolute(output_dir)
    )
    answer = shell.client.intake(request)
    write_file(into / "workspace_context.json", answer.workspace_context)
    write_file(into / "model_analysis.json", answer.model_analysis)
    if as_json:
        terminal.show_json(shell.out, answer)
        return
    shell.out.print(terminal.analysis_view(answer.model_analysis))
    _next(shell, f"If it is right, plan: ptq-runner plan {into / 'model_analysis.json'}")


@main.command()
@click.argument("analysis", type=_PATH)
@click.option("--scheme", help="Quantization scheme, such as fp8 or int4_wo_128.")
@click.option("--kv-cache", help="KV cache scheme, or none.")
@click.option("--algorithm", help="awq, gptq, smoothquant, ...; several joined by commas; or none.")
@click.option("--exclude", multiple=True, help="Layer pattern that stays as it is; replaces the defaults. Repeatable.")
@click.option("--layer", multiple=True, nargs=2, metavar="PATTERN SCHEME", help="Another scheme for some layers.")
@click.option("--dataset", help="Calibration dataset: a name, or a file of the dataset mirror.")
@click.option("--samples", type=int, help="Calibration samples.")
@click.option("--seq-len", type=int, help="Tokens of one sample.")
@click.option("--batch-size", type=int, help="Samples at once.")
@click.option("--evaluation", type=click.Choice(["none", "smoke", "full"]), help="How much to evaluate afterwards.")
@click.option("--priority", type=click.Choice(["accuracy", "size", "speed", "cpu", "gguf"]), help="Recommend for this.")
@click.option("--hardware", help="The GPU that will serve the model, such as MI300X.")
@click.option("--entry-point", type=click.Choice(["auto", "quantize_quark", "quark_cli", "own"]))
@click.option("--request", "request_json", help="The whole request as JSON, as POST /v1/plan takes it.")
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
        shell.out.print(terminal.plan_view(answer.quant_plan))
    if blocked := answer.quant_plan.blocked_by:
        raise Refused("plan_blocked", f"This plan cannot run: {blocked[0].message}", blocked[0].hint)
    _next(shell, f"If that is the plan, make the command: ptq-runner manifest {target}", as_json)


@main.command()
@click.argument("plan_file", metavar="PLAN", type=_PATH)
@click.option("--output-dir", help="Where the quantized model shall go.", show_default="from workspace_context.json")
@_JSON
@click.pass_obj
def manifest(shell: Shell, plan_file: Path, output_dir: str | None, as_json: bool) -> None:
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
    shell.out.print(terminal.manifest_view(answer.run_manifest))
    _next(shell, f"Review all three and run: ptq-runner run {target}")


@main.command()
@click.argument("manifest_file", metavar="MANIFEST", type=_PATH)
@click.option("--key", help="Idempotency key; the same key is the same run.", show_default="the manifest's digest")
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
    approvals = []
    shown = shell.err if as_json else shell.out
    for question, view, approved in checkpoints:
        shown.print(view)
        approvals.append(asking.approved(question, digest(approved), shell.listen, shell.clock))
    key = key or f"terminal-{digest(document)}"
    submitted = shell.client.submit(RunSubmission(run_manifest=document, approvals=approvals, key=key))
    shown.print(f"Run {submitted.id} is {submitted.state}. It goes on when this terminal is closed.")
    ended = follow(shell.client, submitted.id, shell.err)
    if as_json:
        terminal.show_json(shell.out, ended)
    else:
        shell.out.print(terminal.run_view(ended))
    if ended.report is not None:
        write_file(manifest_file.parent / "validation_report.json", ended.report)
    if ended.state is not RunState.SUCCEEDED:
        raise Refused("run_failed", f"Run {ended.id} {ended.state}: {ended.reason}", f"See ptq-runner logs {ended.id}")
    asking.ask(asking.RESULT, shell.listen)
    shown.print(f"Accepted: {ended.output_dir}")


@main.command()
@click.option("--state", help="Only runs in this state.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True)
@_JSON
@click.pass_obj
def runs(shell: Shell, state: str | None, limit: int, as_json: bool) -> None:
    """List runs, newest first."""
    found = shell.client.runs(state, limit)
    if as_json:
        terminal.show_json(shell.out, json.dumps([one.model_dump(mode="json") for one in found], indent=2))
    else:
        shell.out.print(terminal.runs_view(found) if found else "No runs.")


@main.command()
@click.argument("run_id", metavar="RUN")
@_JSON
@click.pass_obj
def show(shell: Shell, run_id: str, as_json: bool) -> None:
    """Show RUN and its report."""
    found = shell.client.run(run_id)
    if as_json:
        terminal.show_json(shell.out, found)
    else:
        shell.out.print(terminal.run_view(found))


@main.command()
@click.argument("run_id", metavar="RUN")
@click.option("-f", "--follow", "following", is_flag=True, help="Go on until the run has ended.")
@click.pass_obj
def logs(shell: Shell, run_id: str, following: bool) -> None:
    """Print the log of RUN, without secrets."""
    from runner.service.following import log_pieces  # loads the client only where it is needed

    for piece in log_pieces(shell.client, run_id, following):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


@main.command()
@click.argument("run_id", metavar="RUN")
@_JSON
@click.pass_obj
def cancel(shell: Shell, run_id: str, as_json: bool) -> None:
    """End RUN for good."""
    ended = shell.client.cancel(run_id, asking.who())
    if as_json:
        terminal.show_json(shell.out, ended)
    else:
        shell.out.print(f"Run {ended.id} is {ended.state}.")


@main.command()
@click.argument("log", type=_PATH)
@click.option("--exit-code", type=int, help="Exit status of the command, -N for signal N.")
@_JSON
@click.pass_obj
def diagnose(shell: Shell, log: Path, exit_code: int | None, as_json: bool) -> None:
    """Say why a run failed, from its output in LOG."""
    from runner.runs.diagnosis import diagnose_file

    report = diagnose_file(log, exit_code)
    if as_json:
        terminal.show_json(shell.out, report)
    else:
        shell.out.print(terminal.report_view(report))


def _choices(options: dict[str, Any]) -> PlanChoices:
    if options["request_json"]:
        try:
            return read_document(PlanChoices, json.loads(options["request_json"]), name="request")
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
    return str(Path(model).absolute()) if model.startswith((".", "~")) and Path(model).expanduser().exists() else model


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).expanduser().absolute())


def _next(shell: Shell, sentence: str, quiet: bool = False) -> None:
    if not quiet:
        shell.err.print(f"\n{sentence}")
