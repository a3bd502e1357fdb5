"""A run from the moment it is handed over until it ends."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType

from bot.cards import amounts
from bot.cards.blocks import fields, make_card, meter, note, notes, paragraph, trouble_notes
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Button, Card, Fields, Meter, Tone
from bot.cards.texts import cut, last_part, line, plain, who
from bot.conversation.state import Base, Running, Submitting, Trouble
from schemas.artifacts.plan import Severity
from schemas.runs import Phase, Progress, Run, RunState

PHASES = MappingProxyType(
    {
        Phase.PREPARING: "preparing",
        Phase.LOADING_MODEL: "loading the model",
        Phase.CHECKING_COMPATIBILITY: "checking compatibility",
        Phase.EVALUATING_ORIGINAL: "evaluating the original",
        Phase.LOADING_DATASET: "loading the calibration data",
        Phase.REPLACING_MODULES: "replacing layers",
        Phase.OPTIMIZING: "running the algorithm",
        Phase.CALIBRATING: "calibrating",
        Phase.FREEZING: "freezing",
        Phase.EXPORTING: "exporting",
        Phase.EVALUATING: "evaluating the quantized model",
        Phase.RELOADING: "loading the result again",
        Phase.DONE: "done",
    }
)
"""What a run does, in words."""

_BEYOND = {
    RunState.STARTING: "starting",
    RunState.VERIFYING: "verifying the result",
    **{state: "it has ended; its result is being read" for state in RunState if state.ended},
}
"""What a run does where its phase does not say it."""

_STALE = "since {}: "
_CANCEL = "This ends the run for good. What it computed so far is lost."


def handing_over_card(conversation: int, state: Submitting) -> Card:
    """The approved command is on its way to the runner."""
    cancelled = state.cancelled_by
    buttons = () if cancelled else (Buttons.of(conversation, state).cancel(_CANCEL),)
    name = _what(state, state.plan.scheme)
    body: list[Block] = [
        _facts(state, None, state.manifest.output_dir),
        *trouble_notes(state.delayed, "The runner does not answer. It is asked again; the command runs once at most."),
    ]
    if cancelled:
        told = f"{who(cancelled)} cancelled it. The runner is told as soon as it answers."
        body.append(paragraph(told))
    delayed = f" Delayed: {line(state.delayed.message, 120)}" if state.delayed else ""
    title = "Cancelling" if cancelled else "Handing the command to the runner"
    return make_card(title, Tone.WORKING, body, f"{title}: {name}.{delayed}", buttons=buttons)


def run_card(conversation: int, state: Running, quiet_since: str = "") -> Card:
    """The run as it is known. `quiet_since` is the moment, in words, from which on there was no news."""
    if state.run.state is RunState.UNKNOWN:
        return _unknown(conversation, state)
    if state.cancelled_by is not None or state.run.state is RunState.CANCELLING:
        return _cancelling(state, quiet_since)
    if state.run.state is RunState.QUEUED:
        return _queued(conversation, state, quiet_since)
    return _progress(conversation, state, quiet_since)


def turn_card(state: Running) -> Card:
    """The run waited, and has begun: for who turned to other things meanwhile."""
    run = state.run
    where = f" on {', '.join(run.gpus)}" if run.gpus else f" as {run.job}" if run.job else ""
    told = f"{_what(state, run.scheme)} has begun on {state.request.runner}{where}."
    return make_card("Its turn has come", Tone.WORKING, [paragraph(told)], f"Its turn has come: {told}")


def run_closed_card(state: Base, run: Run) -> Card:
    """The last words of the run's message: how it ended and after what time. The result has a message of its own."""
    ended = _last_words(run)
    when = f"{ended}, {amounts.moment(run.ended_at)}" if run.ended_at else ended
    return make_card(
        f"Run {ended}" if run.state.ended else "Run: outcome not known",
        Tone.CLOSED,
        [
            _facts(
                state,
                run,
                run.output_dir,
                ("Took", took(run)),
                ("GPUs", ", ".join(run.gpus)),
                ("Job", run.job),
                ("Reached", f"{run.progress.percent:.0f} %, {PHASES[run.progress.phase]}"),
                ("Set apart", set_apart(run)),
                *_perplexities(run.progress),
            )
        ],
        f"Run of {_what(state, run.scheme)}: {when}.",
        outcome=f"{when[0].upper()}{when[1:]}",
    )


def took(run: Run) -> str | None:
    """How long a run computed; None where that is not known."""
    if run.started_at is None or run.ended_at is None:
        return None
    return amounts.duration((run.ended_at - run.started_at).total_seconds())


def set_apart(run: Run) -> str | None:
    """Where that lies now which an unfinished run had written; None where nothing was set apart."""
    return f"{plain(run.partial_output)} (no finished model)" if run.partial_output else None


def quiet_since(before: Card | None, silent: Trouble | None, at: datetime) -> str:
    """Since when there is no news: what the card said already, else now. Empty while there is news."""
    if silent is None:
        return ""
    for block in before.body if before else ():
        if isinstance(block, Meter) and block.stale.startswith(_STALE.split("{}")[0]):
            return block.stale.split(": ", 1)[0].removeprefix(_STALE.split("{}")[0])
    return amounts.moment(at)


def _queued(conversation: int, state: Running, since: str) -> Card:
    run = state.run
    place = f", position {run.position:,}" if run.position is not None else ""
    return make_card(
        f"Waiting in the queue{place}",
        Tone.WORKING,
        [
            meter(f"waiting in the queue{place}", 0.0, stale=_stale(state.silent, since)),
            *([paragraph(plain(run.reason))] if run.reason else []),
            _facts(
                state,
                run,
                run.output_dir,
                ("Position", run.position),
                ("Priority", run.priority if run.priority != "normal" else None),
                ("Its turn may come", amounts.moment(run.expected_start) if run.expected_start else None),
                ("Submitted", amounts.moment(run.submitted_at)),
            ),
        ],
        f"Run of {_what(state, run.scheme)} waits in the queue{place}. {line(run.reason, 150)}{_quiet(state)}".strip(),
        buttons=_cancel(conversation, state),
    )


def _progress(conversation: int, state: Running, since: str) -> Card:
    run, progress = state.run, state.run.progress
    phase = _BEYOND.get(run.state, PHASES[progress.phase])
    detail = "" if run.state in _BEYOND else _detail(progress)
    return make_card(
        f"Quantizing {_what(state, run.scheme)}",
        Tone.WORKING,
        [
            meter(phase, progress.percent, detail, _stale(state.silent, since)),
            *([paragraph(plain(run.reason))] if run.reason else []),
            _facts(
                state,
                run,
                run.output_dir,
                ("GPUs", ", ".join(run.gpus)),
                ("Job", run.job),
                ("Started", amounts.moment(run.started_at) if run.started_at else None),
                *_perplexities(progress),
            ),
        ],
        f"Run of {_what(state, run.scheme)}: {progress.percent:.0f} %, {phase}.{_quiet(state)}",
        buttons=() if run.state.ended else _cancel(conversation, state),
    )


def _cancelling(state: Running, since: str) -> Card:
    run = state.run
    by = f"{who(state.cancelled_by)} cancelled it. " if state.cancelled_by else ""
    until = "It counts as running until everything that it started has ended and its GPU is free."
    return make_card(
        "Cancelling the run",
        Tone.WORKING,
        [
            meter("cancelling", run.progress.percent, stale=_stale(state.silent, since)),
            paragraph(f"{by}{until}"),
            _facts(state, run, run.output_dir),
        ],
        f"Run of {_what(state, run.scheme)} is being cancelled. {by}{line(_quiet(state), 150)}",
    )


def _unknown(conversation: int, state: Running) -> Card:
    run = state.run
    reason = plain(run.reason).strip() or "The runner cannot tell what became of it."
    if state.cancelled_by is None:
        hint = f"Look on the runner with `ptq-runner show {run.id}`. If it is over, Cancel closes it here."
    else:
        hint = f"{who(state.cancelled_by)} cancelled it. Look on the runner with `ptq-runner show {run.id}`."
    return make_card(
        "Not known: what became of this run",
        Tone.BAD,
        [
            paragraph("Nobody knows whether this run still computes. It is never run again by itself."),
            *notes("", [note(Severity.WARNS, reason, hint)]),
            *trouble_notes(state.silent, "There is no news"),
            _facts(state, run, run.output_dir, ("Not known since", amounts.moment(run.since))),
        ],
        f"What became of the run of {_what(state, run.scheme)} is not known: {line(reason, 150)}",
        buttons=() if state.cancelled_by else _cancel(conversation, state),
    )


def _cancel(conversation: int, state: Running) -> tuple[Button, ...]:
    return (Buttons.of(conversation, state).cancel(_CANCEL),)


def _facts(state: Base, run: Run | None, output_dir: str, *more: tuple[str, object]) -> Fields:
    return fields(
        ("Run", run.id if run else None), ("Runner", state.request.runner), ("Output folder", output_dir), *more
    )


def _what(state: Base, scheme: str) -> str:
    return f"{last_part(state.request.model)} to {line(scheme, 60)}"


def _perplexities(progress: Progress) -> tuple[tuple[str, object], ...]:
    measured = (
        ("Perplexity of the original", progress.original_perplexity),
        ("Perplexity quantized", progress.perplexity),
    )
    return tuple((name, amounts.number(value)) for name, value in measured if value is not None)


def _detail(progress: Progress) -> str:
    told = []
    if progress.done is not None and progress.total:
        told.append(f"{progress.done:,} of {progress.total:,}")
    elif progress.done:
        told.append(f"{progress.done:,} done")
    told.append(amounts.rate(progress.rate))
    if progress.seconds_left is not None:
        told.append(f"{amounts.duration(progress.seconds_left)} left in this phase")
    return ", ".join(filter(None, told))


def _stale(silent: Trouble | None, since: str) -> str:
    return f"{_STALE.format(since)}{plain(silent.sentence())}" if silent else ""


def _quiet(state: Running) -> str:
    return cut(f" No news: {plain(state.silent.message)}", 150) if state.silent else ""


def _last_words(run: Run) -> str:
    after = took(run)
    words = {
        RunState.SUCCEEDED: "finished",
        RunState.FAILED: "failed",
        RunState.CANCELLED: "cancelled",
        RunState.LOST: "lost",
    }.get(run.state, "outcome not known")
    lost = ": its outcome is not known" if run.state is RunState.LOST else ""
    return f"{words} after {after}{lost}" if after else f"{words}{lost}"
