"""What a person sees in the terminal: tables for the workflow's documents and a bar for a run."""

from __future__ import annotations

import unicodedata
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import Finding, QuantPlan, Severity
from schemas.artifacts.report import ValidationReport
from schemas.digest import digest, short
from schemas.runs import Run

_MARKS = {
    Severity.BLOCKS: ("stops", "bold red"),
    Severity.WARNS: ("warns", "yellow"),
    Severity.INFORMS: ("tells", "cyan"),
}
_OUTCOMES = {"ok": "green", "failed": "bold red", "skipped": "yellow"}


def plain(text: object) -> str:
    """Text from outside without control and bidirectional characters: it can neither move the cursor nor hide."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else "\N{REPLACEMENT CHARACTER}"
        for c in str(text)
    )


def size(number: int | None) -> str:
    """Bytes in words, in powers of ten as disks are sold."""
    if number is None:
        return "unknown"
    value = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def analysis_view(analysis: ModelAnalysis) -> RenderableType:
    """Checkpoint 1: the published summary, the groups of layers, and the risks."""
    model, targets = analysis.model, analysis.quantization_targets
    table = _fields(f"Model analysis  [{short(digest(analysis))}]")
    kind = (
        f"yes, {model.experts} experts per layer" if model.is_moe and model.experts else "yes" if model.is_moe else "no"
    )
    about = "about " if targets.provisional else ""
    for name, value in {
        "Model path": model.model_path,
        "Model type": model.model_type,
        "Hidden layers": model.hidden_layers if model.hidden_layers is not None else "unknown",
        "Linear layers": f"{about}{targets.linear_layer_count} (quantization targets)",
        "MoE": kind,
        "Exclude defaults": ", ".join(targets.exclude_defaults) or "none",
        "Size": f"{size(analysis.size.weight_bytes)}, {analysis.size.parameters / 1e9:.2f} G parameters",
        "Compatibility": f"{analysis.compatibility.status}: {analysis.compatibility.message}",
    }.items():
        _row(table, name, value)
    for risk in analysis.risks:
        _row(table, f"Risk ({risk.severity})", f"{risk.message} {risk.recovery_hint}".strip())
    if not analysis.risks:
        _row(table, "Risks", "none found")
    return table


def plan_view(plan: QuantPlan) -> RenderableType:
    """Checkpoint 2: every decision with its reason, then the findings."""
    table = Table(title=f"Quantization plan  [{short(digest(plan))}]", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("Decision", "Value", "Reason"):
        table.add_column(column, overflow="fold")
    for row in plan.decisions:
        table.add_row(Text(plain(row.decision)), Text(plain(_value(row.value)), style="bold"), Text(plain(row.reason)))
    grid = Table.grid()
    grid.add_row(table)
    for finding in plan.findings:
        grid.add_row(finding_view(finding))
    estimate = plan.estimates
    if estimate.output_bytes is not None:
        grid.add_row(f"Expected output: {size(estimate.output_bytes)} from {size(estimate.source_bytes)}")
    return grid


def finding_view(finding: Finding) -> RenderableType:
    """One finding in one line."""
    word, style = _MARKS[finding.severity]
    text = Text.assemble((f"{word:>6} ", style), plain(finding.message), " ", (plain(finding.hint), "dim"))
    return Padding(text, (0, 0, 0, 1))


def manifest_view(manifest: RunManifest) -> RenderableType:
    """Checkpoint 3: the exact command and what it is bound to."""
    grid = Table.grid()
    grid.add_row(Panel(Text(plain(manifest.command), overflow="fold"), title="The exact command", title_align="left"))
    table = _fields(f"Manifest  [{short(digest(manifest))}]")
    v = manifest.versions
    _row(table, "Entry point", f"{manifest.entry_point.name}: {manifest.entry_point.reason}".rstrip(": "))
    _row(
        table,
        "Runs with",
        f"Python {v.python}, torch {v.torch}, transformers {v.transformers}, Quark {v.quark}",
    )
    _row(table, "Variables", " ".join(f"{key}={value}" for key, value in manifest.environment.items()))
    _row(table, "Writes", f"{', '.join(manifest.outputs.expected_files)} under {manifest.outputs.output_dir}/")
    _row(table, "Placement", "the runner chooses GPU and working directory at the start")
    grid.add_row(table)
    return grid


def report_view(report: ValidationReport) -> RenderableType:
    """Checkpoint 4: what was produced, beside the original's numbers."""
    grid = Table.grid()
    grid.add_row(Text(plain(report.summary), style="bold"))
    table = _fields("Result")
    _row(
        table, "Output", f"{report.output_dir}  {size(report.size_bytes)} (original {size(report.original_size_bytes)})"
    )
    if report.perplexity is not None and report.perplexity.quantized is not None:
        p = report.perplexity
        change = f" ({p.change:+.1%})" if p.change is not None else ""
        original = f"{p.original:.4f}" if p.original is not None else "not measured"
        _row(table, "Perplexity", f"{p.quantized:.4f}{change}, original {original}, on {p.dataset}")
    for tensors in report.tensors:
        _row(table, tensors.dtype, f"{tensors.tensors} tensors, {size(tensors.size_bytes)}")
    for file in report.files:
        _row(table, file.name, f"{size(file.size_bytes)}  {file.mode}")
    grid.add_row(table)
    for check in report.checks:
        line = Text.assemble((f"{check.outcome:>8} ", _OUTCOMES[check.outcome]), plain(f"{check.name}: {check.detail}"))
        grid.add_row(line)
    for action in report.next_actions:
        grid.add_row(Text(plain(f"    next {action}")))
    return grid


def run_view(run: Run) -> RenderableType:
    """One run."""
    table = _fields(f"Run {plain(run.id)}")
    for name, value in {
        "State": run.state + (f" ({run.reason})" if run.reason else ""),
        "Since": run.since.isoformat(timespec="seconds"),
        "Model": run.model,
        "Scheme": run.scheme,
        "Output": run.output_dir,
        "Place in the queue": run.position,
        "Exit status": run.exit_code,
        "Progress": f"{run.progress.percent:.0f} % ({run.progress.phase.replace('_', ' ')})",
    }.items():
        if value is not None:
            _row(table, name, value)
    grid = Table.grid()
    grid.add_row(table)
    if run.report is not None:
        grid.add_row(report_view(run.report))
    return grid


def runs_view(runs: list[Run]) -> RenderableType:
    """A list of runs. The id stays whole: people copy it into the next command."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("Run", no_wrap=True)
    for column in ("State", "Model", "Scheme", "Submitted (UTC)"):
        table.add_column(column, overflow="fold")
    for run in runs:
        state = f"{run.state} {run.progress.percent:.0f} %" if run.state == "running" else str(run.state)
        model = run.model.rstrip("/").rpartition("/")[2]
        submitted = f"{run.submitted_at:%Y-%m-%d %H:%M}"
        table.add_row(*(Text(plain(cell)) for cell in (run.id, state, model, run.scheme, submitted)))
    return table


def show_json(console: Console, data: Any) -> None:
    """One JSON document on standard output, for programs."""
    console.file.write(data if isinstance(data, str) else data.model_dump_json(indent=2))
    console.file.write("\n")


def _fields(title: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE, show_header=False, title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _row(table: Table, name: str, value: object) -> None:
    table.add_row(Text(plain(name)), Text(plain(value)))


def _value(value: object) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
