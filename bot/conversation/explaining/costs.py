"""What a plan will take, or its run took: bytes, memory and time, as far as they could be computed or measured."""

from __future__ import annotations

from bot.conversation.explaining.amounts import duration, size
from bot.conversation.explaining.asked import Asked
from bot.conversation.explaining.known import Known
from bot.conversation.explaining.outcome import ended_run, outcome
from bot.conversation.state import Running
from bot.conversation.words.phrases import PhraseBook
from schemas.artifacts.plan import QuantPlan

_ALL = PhraseBook(
    "cost", "costs", "take", "need", "needs", "require", "requires", "estimate", "estimates", "resources", "took"
)
_TIME = PhraseBook(
    *("how long", "time", "duration", "when will", "when is it", "hours", "minutes", "how fast", "how soon", "eta"),
    "take long",
)
_SIZE = PhraseBook(
    *("how big", "how large", "how small", "size", "how many gb", "gigabytes", "smaller", "compression", "bigger"),
    *("how much space", "how much smaller"),
)
_DISK = PhraseBook("disk", "storage", "space", "download", "downloads", "downloaded")
_MEMORY = PhraseBook(
    *("memory", "vram", "ram", "fit", "fits", "oom", "out of memory", "gpu memory", "host memory"),
    *("which gpu", "what gpu", "what gpus", "which gpus", "how many gpus", "one gpu", "a gpu", "my gpu", "gpu"),
)
_QUALITY = PhraseBook(
    *("how good", "how well", "how accurate", "how bad", "how much worse", "perplexity", "ppl", "quality", "accuracy"),
    *("accuracy loss", "degradation", "worse", "any good"),
)
_HOW_MUCH = PhraseBook("how much", "what does", "what will", "what would", "how many", "does it", "will it", "what")


def cost(asked: Asked, known: Known) -> str | None:
    """What it will take, or took; only the part that is asked for, where one is. None where nothing of it is asked."""
    named = [part for part, book in _PARTS.items() if asked.says(book)]
    in_all = asked.says(_ALL) and asked.says(_HOW_MUCH)
    if (run := ended_run(known)) is not None:
        parts = [*named, "quality"] if asked.says(_QUALITY) else named
        return outcome(run, parts, known) if parts or in_all else None
    if not named and not in_all:
        return None
    if isinstance(known.state, Running) and named == ["time"]:
        return _left(known.state)
    if known.plan is None:
        return _of_the_model(named, known)
    told = [_TELL[part](known.plan) for part in named or _PARTS]
    return " ".join(dict.fromkeys(told))


def _left(state: Running) -> str:
    """How far the run is, in the runner's own numbers."""
    progress = state.run.progress
    if progress.seconds_left is None:
        return f"The run is at {progress.percent:.0f} %; how long the rest takes is not known."
    left, phase = duration(progress.seconds_left), progress.phase.value.replace("_", " ")
    return f"The run is at {progress.percent:.0f} %; its phase {phase} ends in about {left}."


def _of_the_model(named: list[str], known: Known) -> str | None:
    if known.analysis is None:
        return None
    weights = f"The model has {size(known.analysis.size.weight_bytes)} of weights"
    parameters = f"{known.analysis.size.parameters:,} parameters"
    if named == ["size"]:
        return f"{weights} and {parameters}. How big the result will be is computed with the plan."
    return f"{weights} and {parameters}. What quantizing it takes is computed with the plan."


def _time(plan: QuantPlan) -> str:
    estimates = plan.estimates
    least, most, runs = estimates.seconds_least, estimates.seconds_most, estimates.runs_of_this_kind
    if least is None or most is None or not runs:
        return "No run of this kind has finished on this runner yet, so how long it takes is not known."
    took = duration(least) if duration(least) == duration(most) else f"{duration(least)} to {duration(most)}"
    return f"Time: {took}, as {runs} finished run{'s' if runs > 1 else ''} of this kind took here."


def _size(plan: QuantPlan) -> str:
    estimates = plan.estimates
    if estimates.output_bytes is None:
        return "The size of the result could not be computed."
    before = f", from {size(estimates.source_bytes)}" if estimates.source_bytes else ""
    return f"The result will have about {size(estimates.output_bytes)}{before}."


def _disk(plan: QuantPlan) -> str:
    estimates = plan.estimates
    if estimates.disk_bytes_needed is None:
        return "How much disk it needs could not be computed."
    free = f", and {size(estimates.disk_bytes_free)} are free" if estimates.disk_bytes_free is not None else ""
    parts = {"model": estimates.download_bytes, "datasets": estimates.dataset_bytes}
    fetched = [f"{size(number)} for the {what}" for what, number in parts.items() if number]
    download = f" It downloads {' and '.join(fetched)} first." if fetched else ""
    return f"It needs {size(estimates.disk_bytes_needed)} of disk{free}.{download}"


def _memory(plan: QuantPlan) -> str:
    estimates = plan.estimates
    told = [
        "It runs on the CPU." if plan.device == "cpu" else "",
        _peak("GPU memory", estimates.gpu_memory_bytes, estimates.gpu_memory_bytes_there),
        _peak("main memory", estimates.host_memory_bytes, estimates.host_memory_bytes_there),
    ]
    return " ".join(part for part in told if part) or "How much memory it needs is not known."


def _peak(what: str, needed: int | None, there: int | None) -> str:
    if needed is None:
        return ""
    return f"Peak of {what}: {size(needed)}{f' of {size(there)}' if there else ''}."


_PARTS = {"size": _SIZE, "time": _TIME, "disk": _DISK, "memory": _MEMORY}
_TELL = {"size": _size, "time": _time, "disk": _disk, "memory": _memory}
