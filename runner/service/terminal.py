"""What a person sees in the terminal: tables for the workflow's documents and a bar for a run."""

from __future__ import annotations

import codecs
import io
import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
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
_UNSEEN = {"Cc", "Cf", "Cs"}  # control and format characters, and halves of pairs

NARROW = 70  # columns: below, a list has a block for each line
_TIGHT = 50  # columns: below, two columns of text leave no room for words
_LONGEST_NAME = 34  # columns of a field's name: a file of the model in several parts


def plain(text: object) -> str:
    """Text from outside without control and bidirectional characters: it can neither move the cursor nor hide."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in _UNSEEN else "\N{REPLACEMENT CHARACTER}" for c in str(text)
    )


def log_writer(stream: TextIO) -> Callable[[bytes], None]:
    """Writes the pieces of a log: as they are to a file, and to a terminal without what would command it."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)

    def to_terminal(piece: bytes) -> None:
        stream.write(plain(decoder.decode(piece)))
        stream.flush()

    def to_file(piece: bytes) -> None:
        stream.buffer.write(piece)
        stream.buffer.flush()

    return to_terminal if stream.isatty() else to_file


@dataclass(frozen=True)
class _ByWidth:
    """A table, or the same as lines where the terminal has fewer columns than it needs."""

    table: Table
    lines: list[Text]
    columns: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Called by rich with the width that there is."""
        if options.max_width >= self.columns:
            yield self.table
        else:
            yield from self.lines


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
    kind = (
        f"yes, {model.experts} experts per layer" if model.is_moe and model.experts else "yes" if model.is_moe else "no"
    )
    about = "about " if targets.provisional else ""
    rows: dict[str, object] = {
        "Model path": model.model_path,
        "Model type": model.model_type,
        "Hidden layers": model.hidden_layers if model.hidden_layers is not None else "unknown",
        "Linear layers": f"{about}{targets.linear_layer_count} (quantization targets)",
        "MoE": kind,
        "Exclude defaults": ", ".join(targets.exclude_defaults) or "none",
        "Size": f"{size(analysis.size.weight_bytes)}, {analysis.size.parameters / 1e9:.2f} G parameters",
        "Compatibility": f"{analysis.compatibility.status}: {analysis.compatibility.message}",
    }
    risks = [(f"Risk ({risk.severity})", f"{risk.message} {risk.recovery_hint}".strip()) for risk in analysis.risks]
    found = [*rows.items(), *(risks or [("Risks", "none found")])]
    return _fields(f"Model analysis  [{short(digest(analysis))}]", found)


def plan_view(plan: QuantPlan) -> RenderableType:
    """Checkpoint 2: every decision with its reason, then the findings."""
    title = f"Quantization plan  [{short(digest(plan))}]"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    lines = [Text(title, style="bold")]
    for column in ("Decision", "Value", "Reason"):
        table.add_column(column, overflow="fold")
    for row in plan.decisions:
        value = Text(plain(_value(row.value)), style="bold")
        table.add_row(Text(plain(row.decision)), value, Text(plain(row.reason)))
        lines.append(Text.assemble(plain(row.decision), ": ", value, f" ({plain(row.reason)})"))
    parts: list[RenderableType] = [_ByWidth(table, lines, _TIGHT), *map(finding_view, plan.findings)]
    estimate = plan.estimates
    if estimate.output_bytes is not None:
        parts.append(f"Expected output: {size(estimate.output_bytes)} from {size(estimate.source_bytes)}")
    return Group(*parts)


def finding_view(finding: Finding) -> RenderableType:
    """One finding in one line."""
    word, style = _MARKS[finding.severity]
    return Text.assemble((f" {word:>6} ", style), plain(finding.message), " ", (plain(finding.hint), "dim"))


def manifest_view(manifest: RunManifest) -> RenderableType:
    """Checkpoint 3: the exact command and what it is bound to."""
    v = manifest.versions
    rows: dict[str, object] = {
        "Entry point": f"{manifest.entry_point.name}: {manifest.entry_point.reason}".rstrip(": "),
        "Runs with": f"Python {v.python}, torch {v.torch}, transformers {v.transformers}, Quark {v.quark}",
        "Variables": " ".join(f"{key}={value}" for key, value in manifest.environment.items()),
        "Writes": f"{', '.join(manifest.outputs.expected_files)} under {manifest.outputs.output_dir}/",
        "Placement": "the runner chooses GPU and working directory at the start",
    }
    table = _fields(f"Manifest  [{short(digest(manifest))}]", list(rows.items()))
    return Group(_command(plain(manifest.command)), table)


def report_view(report: ValidationReport) -> RenderableType:
    """Checkpoint 4: what was produced, beside the original's numbers."""
    sizes = f"{size(report.size_bytes)} (original {size(report.original_size_bytes)})"
    rows: list[tuple[str, object]] = [("Output", f"{report.output_dir}  {sizes}")]
    if report.perplexity is not None and report.perplexity.quantized is not None:
        p = report.perplexity
        change = f" ({p.change:+.1%})" if p.change is not None else ""
        original = f"{p.original:.4f}" if p.original is not None else "not measured"
        rows.append(("Perplexity", f"{p.quantized:.4f}{change}, original {original}, on {p.dataset}"))
    rows += [(part.dtype, f"{part.tensors} tensors, {size(part.size_bytes)}") for part in report.tensors]
    rows += [(file.name, f"{size(file.size_bytes)}  {file.mode}") for file in report.files]
    checks = (
        Text.assemble((f"{check.outcome:>8} ", _OUTCOMES[check.outcome]), plain(f"{check.name}: {check.detail}"))
        for check in report.checks
    )
    actions = [Text(plain(f"    next {action}")) for action in report.next_actions]
    actions += [Text(plain(f"   offer {offer.label}: {offer.reason}")) for offer in report.offers]
    return Group(Text(plain(report.summary), style="bold"), _fields("Result", rows), *checks, *actions)


def diagnosis_view(report: ValidationReport) -> RenderableType:
    """Why a command failed: its class, the lines that say so with the deciding ones first, and what to do."""
    rows: list[tuple[str, object]] = [
        ("Class", report.failure or ("none" if report.status == "success" else "unknown"))
    ]
    said = (Text(plain(f"    said {line}")) for line in report.evidence)
    actions = (Text(plain(f"    next {action}")) for action in report.next_actions)
    return Group(Text(plain(report.summary), style="bold"), _fields("Diagnosis", rows), *said, *actions)


def run_view(run: Run) -> RenderableType:
    """One run."""
    rows: dict[str, object] = {
        "State": run.state + (f" ({run.reason})" if run.reason else ""),
        "Since": run.since.isoformat(timespec="seconds"),
        "Model": run.model,
        "Scheme": run.scheme,
        "Output": run.output_dir,
        "Place in the queue": _place(run),
        "GPUs": ", ".join(run.gpus) or None,
        "Job": run.job or None,
        "Set apart": run.partial_output or None,
        "Exit status": run.exit_code,
        "Progress": f"{run.progress.percent:.0f} % ({run.progress.phase.replace('_', ' ')})",
    }
    table = _fields(f"Run {run.id}", [(name, value) for name, value in rows.items() if value is not None])
    return Group(table, report_view(run.report)) if run.report is not None else table


def runs_view(runs: list[Run]) -> RenderableType:
    """A list of runs. The id stays whole: people copy it into the next command."""
    lines: list[Text] = []
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("Run", no_wrap=True)
    for column in ("State", "Model", "Scheme", "Submitted (UTC)"):
        table.add_column(column, overflow="fold")
    for run in runs:
        state = f"{run.state} {run.progress.percent:.0f} %" if run.state == "running" else str(run.state)
        model = run.model.rstrip("/").rpartition("/")[2]
        submitted = f"{run.submitted_at:%Y-%m-%d %H:%M}"
        cells = [plain(cell) for cell in (run.id, state, model, run.scheme, submitted)]
        table.add_row(*map(Text, cells))
        lines += [Text(cells[0], style="bold"), *(Text(f"  {cell}") for cell in cells[1:])]
    return _ByWidth(table, lines, NARROW)


def show_json(console: Console, data: Any) -> None:
    """One JSON document on standard output, for programs. What would command a terminal is written as an escape."""
    text = data if isinstance(data, str) else data.model_dump_json(indent=2)
    # Outside of strings JSON has no such character but the line's end, and inside it may always be escaped.
    unseen = {c for c in text if c != "\n" and unicodedata.category(c) in _UNSEEN}
    console.file.write(text.translate({ord(c): json.dumps(c)[1:-1] for c in unseen}) + "\n")


def _place(run: Run) -> str | None:
    if run.position is None:
        return None
    priority = "" if run.priority == "normal" else f", priority {run.priority}"
    when = f"; its turn may come at {run.expected_start:%Y-%m-%d %H:%M} UTC" if run.expected_start else ""
    return f"{run.position}{priority}{when}"


def _fields(title: str, rows: list[tuple[str, object]]) -> RenderableType:
    table = Table(title=Text(plain(title), style="bold"), title_justify="left", box=box.SIMPLE, show_header=False)
    table.add_column(style="cyan", overflow="fold", max_width=_LONGEST_NAME)
    table.add_column(overflow="fold")
    lines = [Text(plain(title), style="bold")]
    for name, value in rows:
        table.add_row(Text(plain(name)), Text(plain(value)))
        lines.append(Text.assemble((plain(name), "cyan"), f": {plain(value)}"))
    return _ByWidth(table, lines, _TIGHT)


def _command(command: str) -> RenderableType:
    panel = Table.grid()
    panel.add_row(Panel(Text(command, overflow="fold"), title="The exact command", title_align="left"))
    return _ByWidth(panel, [Text("The exact command", style="bold"), Text(command)], _TIGHT)


def _value(value: object) -> str:
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
