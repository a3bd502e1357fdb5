"""What a run really took and brought, beside what was predicted."""

from __future__ import annotations

from bot.conversation.explaining.amounts import change, duration, number, size
from bot.conversation.explaining.known import Known
from bot.conversation.reached import reached
from schemas.artifacts.plan import Estimates
from schemas.artifacts.report import Measured, Perplexity
from schemas.runs import Run, RunState

_NO_RESULT = {
    RunState.FAILED: "The run failed, so there is no verified result.",
    RunState.CANCELLED: "The run was cancelled, so there is no result.",
    RunState.LOST: "The run was lost, so whether there is a result is not known.",
}


def ended_run(known: Known) -> Run | None:
    """The run that a conversation is about, once nothing more happens to it."""
    run = reached(known.state).run
    return run if run is not None and run.state.ended else None


def outcome(run: Run, parts: list[str], known: Known) -> str:
    """What the run says to these parts of a question; to all of them where none is named. Never the plan's promise."""
    estimates = known.plan.estimates if known.plan is not None else Estimates()
    if not parts and run.state is not RunState.SUCCEEDED:
        parts = ["time", "memory", "size"]
    told = [_TELL[part](run, estimates) for part in parts or ("time", "size", "memory", "quality")]
    return " ".join(dict.fromkeys(told))


def _time(run: Run, estimates: Estimates) -> str:
    seconds = _measured(run).seconds
    if seconds is None and run.started_at is not None and run.ended_at is not None:
        seconds = (run.ended_at - run.started_at).total_seconds()
    if seconds is None:
        never = run.started_at is None and run.state is RunState.CANCELLED
        return "The run never started." if never else "How long the run took is not known."
    took = f"The run {_ENDED.get(run.state, 'took')} {duration(seconds)}"
    least, most = estimates.seconds_least, estimates.seconds_most
    if least is None or most is None:
        return f"{took}."
    span = duration(least) if duration(least) == duration(most) else f"{duration(least)} to {duration(most)}"
    return f"{took}; predicted: {span}."


def _size(run: Run, estimates: Estimates) -> str:
    report = run.report
    if report is None or report.size_bytes is None:
        return _NO_RESULT.get(run.state, "The size of the result was not measured.")
    original = report.original_size_bytes
    before = f", from {size(original)}" if original else ""
    told = f"The result has {size(report.size_bytes)}{before}"
    return f"{told}{_predicted(estimates.output_bytes)}."


def _memory(run: Run, estimates: Estimates) -> str:
    measured = _measured(run)
    pairs = (
        ("GPU memory", measured.gpu_memory_bytes, estimates.gpu_memory_bytes),
        ("main memory", measured.host_memory_bytes, estimates.host_memory_bytes),
    )
    told = [f"Peak of {what}: {size(used)}{_predicted(before)}." for what, used, before in pairs if used is not None]
    return " ".join(told) or "How much memory the run took was not measured."


def _quality(run: Run, estimates: Estimates) -> str:
    del estimates  # nobody predicts it
    measured = run.report.perplexity if run.report is not None else None
    if measured is None or measured.quantized is None:
        return _NO_RESULT.get(run.state, "The perplexity of the result was not measured.")
    before = f", {number(measured.original)} for the original" if measured.original is not None else ""
    by = f" ({change(measured.change)})" if measured.change is not None else ""
    return f"Perplexity{_scored(measured)}: {number(measured.quantized)}{before}{by}. Lower is better."


def _scored(measured: Perplexity) -> str:
    tokens = f"{measured.tokens:,} tokens of " if measured.tokens else ""
    return f" on {tokens}{measured.dataset}" if measured.dataset else ""


def _predicted(number_of_bytes: int | None) -> str:
    return f"; predicted: {size(number_of_bytes)}" if number_of_bytes is not None else ""


def _measured(run: Run) -> Measured:
    return (run.report.measured if run.report is not None else None) or Measured()


_ENDED = {RunState.FAILED: "failed after", RunState.CANCELLED: "was cancelled after", RunState.LOST: "was lost after"}
_TELL = {"time": _time, "size": _size, "disk": _size, "memory": _memory, "quality": _quality}
