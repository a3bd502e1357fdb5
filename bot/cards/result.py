"""Checkpoint 4: what was produced, beside the original's numbers."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import fields, make_card, note, notes, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Card, Note, Tone
from bot.cards.estimates import predicted_and_actual
from bot.cards.run import took
from bot.cards.texts import last_part, line, plain, some
from bot.conversation.person import Person
from bot.conversation.state import ReviewingResult
from schemas.artifacts.plan import ModelExport, QuantPlan, Severity
from schemas.artifacts.report import Check, OutputFile, ValidationReport
from schemas.runs import Run

FILE = "validation_report.json"
"""The name under which the whole document is attached."""

_CHECKS, _FILES = 24, 16
_OUTCOMES = ("failed", "skipped", "ok")
_FORMATS: dict[ModelExport, str] = {"hf_format": "HuggingFace SafeTensors", "onnx": "ONNX", "gguf": "GGUF"}


def result_card(
    conversation: int, state: ReviewingResult, plan: QuantPlan | None, mention: Person | None = None
) -> Card:
    """The verified result, with the question whether to accept it. `plan` is what was predicted, when it is at hand."""
    buttons = Buttons.of(conversation, state)
    run, report = state.run, state.run.report
    name = last_part(state.request.model)
    scheme = line(run.scheme, 60)
    return make_card(
        f"Quantization complete: {name} to {scheme}",
        Tone.WAITING,
        [
            *(_report(run, report, plan) if report else _no_report()),
            paragraph("Checkpoint 4 of 4: do you accept this result? Its files stay where they are either way."),
        ],
        f"{name} to {scheme}: {_essence(report)}. Accept or reject it. Output: {line(run.output_dir, 100)}",
        buttons=(buttons.approve("Accept"), buttons.reject()),
        mention=mention,
    )


def readers(mode: str) -> str:
    """Who may read a file, from its mode as `ls -l` writes it: "its owner and group" for -rw-r-----."""
    if len(mode) < 10:
        return "not known"
    group, others = mode[4] == "r", mode[7] == "r"
    if others:
        return "everybody on the host"
    return "its owner and group" if group else "its owner only"


def _no_report() -> list[Block]:
    return [paragraph("The runner gave no report, so nothing was verified. Look at the files before you accept them.")]


def _report(run: Run, report: ValidationReport, plan: QuantPlan | None) -> list[Block]:
    return [
        paragraph(report.summary),
        *notes("Before you accept it", _doubts(report)),
        _numbers(report),
        *(predicted_and_actual(plan.estimates, report) if plan else ()),
        fields(
            ("Output folder", report.output_dir or run.output_dir),
            ("Format", _format(report, plan)),
            ("Took", _took(run, report)),
            ("Run", run.id),
        ),
        *_checks(report.checks),
        *_files(report.files),
    ]


def _took(run: Run, report: ValidationReport) -> str | None:
    """The whole run. Beside the command's own time, which was predicted, it has the verification in it."""
    whole = took(run)
    if whole is None or report.measured is None or report.measured.seconds is None:
        return whole
    return f"{whole} with verification; the command alone {amounts.duration(report.measured.seconds)}"


def _doubts(report: ValidationReport) -> list[Note]:
    """What is not as it should be, and what to do. A check that was only skipped is told by the table."""
    found = [note(Severity.WARNS, f"{one.name}: {one.detail}") for one in report.checks if one.outcome == "failed"]
    return [*found, *(note(Severity.INFORMS, action) for action in report.next_actions)]


def _numbers(report: ValidationReport) -> Block:
    measured = report.perplexity
    where = f" ({plain(measured.dataset)})" if measured and measured.dataset else ""
    perplexity = (
        f"Perplexity{where}",
        amounts.number(measured.original if measured else None),
        amounts.number(measured.quantized if measured else None),
        amounts.change(measured.change) if measured and measured.change is not None else "",
    )
    before, after = report.original_size_bytes, report.size_bytes
    shrunk = amounts.change(after / before - 1) if after is not None and before else ""
    size = ("Size of all files", amounts.size(before), amounts.size(after), shrunk)
    return table(("", "Original", "Quantized", "Change"), (perplexity, size), numeric=(1, 2, 3))


def _format(report: ValidationReport, plan: QuantPlan | None) -> str | None:
    export = plan.model_export if plan else None
    if export is None and any(file.name.endswith(".safetensors") for file in report.files):
        export = "hf_format"
    dtypes = some((f"{amounts.count(one.tensors, f'{one.dtype} tensor')}" for one in report.tensors), 10)
    return ": ".join(filter(None, (_FORMATS[export] if export else "", dtypes))) or None


def _checks(checks: list[Check]) -> tuple[Block, ...]:
    if not checks:
        return ()
    worst_first = sorted(checks, key=lambda one: _OUTCOMES.index(one.outcome))
    rows = [(one.name, one.outcome, one.detail) for one in worst_first]
    return (table(("Check", "Outcome", "Detail"), rows, caption="What was verified", at_most=_CHECKS),)


def _files(files: list[OutputFile]) -> tuple[Block, ...]:
    if not files:
        return ()
    largest_first = sorted(files, key=lambda one: -one.size_bytes)
    rows = [
        (one.name, amounts.size(one.size_bytes), f"{readers(one.mode)} ({plain(one.mode)})") for one in largest_first
    ]
    caption = amounts.count(len(files), "file") + (f"; all of them are in {FILE}" if len(files) > _FILES else "")
    return (table(("File", "Size", "Who can read it"), rows, caption=caption, numeric=(1,), at_most=_FILES),)


def _essence(report: ValidationReport | None) -> str:
    if report is None:
        return "finished without a report"
    told = []
    measured = report.perplexity
    if measured is not None and measured.quantized is not None:
        by = f" ({amounts.change(measured.change)})" if measured.change is not None else ""
        told.append(f"perplexity {amounts.number(measured.quantized)}{by}")
    if report.size_bytes is not None:
        told.append(f"{amounts.size(report.size_bytes)} of {amounts.size(report.original_size_bytes)}")
    failed = sum(one.outcome == "failed" for one in report.checks)
    told.append(f"{amounts.count(failed, 'check')} failed" if failed else "no check failed")
    return ", ".join(told)
