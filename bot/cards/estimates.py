"""What a run will need beside what is there, and after it what it really took."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import table
from bot.cards.card import Table
from schemas.artifacts.plan import Estimates
from schemas.artifacts.report import ValidationReport

_Field = tuple[str, str | None]


def estimate_fields(estimates: Estimates) -> tuple[_Field, ...]:
    """Output, memory, disk and time. What was not computed has no line, but for the output and the time."""
    return (
        ("Expected output", output_in_words(estimates) or "not predicted"),
        (
            "GPU memory",
            _beside(estimates.gpu_memory_bytes, estimates.gpu_memory_bytes_there, estimates.gpu_memory_bytes_free),
        ),
        (
            "Main memory",
            _beside(estimates.host_memory_bytes, estimates.host_memory_bytes_there, estimates.host_memory_bytes_free),
        ),
        ("Weights", "read and written file by file" if estimates.flow == "file2file" else None),
        ("Disk", _disk(estimates)),
        ("Time", time_in_words(estimates) or "no history: no run of this kind has finished on this runner"),
    )


def output_in_words(estimates: Estimates) -> str | None:
    """The output beside the original, and what is counted of each; None when nothing was predicted.

    A plan knows the original's weights only, not the files beside them, which the output has as well.
    """
    output, source = estimates.output_bytes, estimates.source_bytes
    if output is None:
        return None
    if not source:
        return f"{amounts.size(output)} for all files"
    share = amounts.share(output / source)
    return f"{amounts.size(output)} for all files, {share} of the {amounts.size(source)} of the original's weights"


def time_in_words(estimates: Estimates) -> str | None:
    """From the quickest to the slowest of the finished runs of the kind; None without any."""
    between = _between(estimates)
    if between is None:
        return None
    runs = amounts.count(estimates.runs_of_this_kind, "finished run")
    return f"{between} for the command alone, from {runs} of this kind"


def predicted_and_actual(estimates: Estimates, report: ValidationReport) -> tuple[Table, ...]:
    """What was predicted beside what it became; only what at least one side knows, and nothing without a prediction."""
    measured = report.measured
    took = measured.seconds if measured else None
    rows = [
        _sizes("Size of all files", estimates.output_bytes, report.size_bytes),
        _sizes("GPU memory", estimates.gpu_memory_bytes, measured.gpu_memory_bytes if measured else None),
        _sizes("Main memory", estimates.host_memory_bytes, measured.host_memory_bytes if measured else None),
        _times(estimates, took),
    ]
    known = [row for row in rows if row[1] or row[2]]
    if not any(row[1] for row in known):
        return ()
    told = [(name, before or "not predicted", after or "not measured", off) for name, before, after, off in known]
    head = ("", "Predicted", "Actual", "Difference")
    return (table(head, told, caption="What was predicted, and what it became", numeric=(1, 2, 3)),)


_Row = tuple[str, str, str, str]


def _sizes(name: str, predicted: int | None, actual: int | None) -> _Row:
    before = "" if predicted is None else amounts.size(predicted)
    after = "" if actual is None else amounts.size(actual)
    off = amounts.change(actual / predicted - 1) if predicted and actual is not None else ""
    return name, before, after, off


def _times(estimates: Estimates, actual: float | None) -> _Row:
    after = "" if actual is None else amounts.duration(actual)
    least, most = estimates.seconds_least, estimates.seconds_most
    off = ""
    if actual is not None and least is not None and most is not None:
        nearest = min(max(actual, least), most)  # within what was said, nothing is off
        off = amounts.change(actual / nearest - 1) if nearest > 0 else ""
    return "Time of the command", _between(estimates) or "", after, off


def _between(estimates: Estimates) -> str | None:
    if estimates.seconds_least is None or estimates.seconds_most is None:
        return None
    least, most = amounts.duration(estimates.seconds_least), amounts.duration(estimates.seconds_most)
    return least if least == most else f"{least} to {most}"


def _beside(needed: int | None, there: int | None, free: int | None) -> str | None:
    """What is needed at the peak, what there is, and how much of that was free."""
    if needed is None:
        return None
    told = f"needs about {amounts.size(needed)}"
    if there is None:
        return f"{told}; how much there is, is not known"
    told = f"{told} of {amounts.size(there)}"
    return told if free is None else f"{told}, {amounts.size(free)} of it free now"


def _disk(estimates: Estimates) -> str | None:
    needed, free = estimates.disk_bytes_needed, estimates.disk_bytes_free
    if needed is None:
        return None
    parts = [
        f"{amounts.size(number)} {what}"
        for number, what in (
            (estimates.output_bytes, "for the output"),
            (estimates.download_bytes, "of the model to download"),
            (estimates.dataset_bytes, "of datasets to download"),
        )
        if number
    ]
    told = f"needs {amounts.size(needed)}" if free is not None or len(parts) > 1 else amounts.size(needed)
    told = f"{told}, {amounts.size(free)} free" if free is not None else told
    return f"{told}: {', '.join(parts)}" if len(parts) > 1 else told
