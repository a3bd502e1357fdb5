"""A step or the run failed: why, and what a person can do. Nothing is tried again by itself."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import fields, log_part, make_card, note, notes, paragraph
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Button, Card, Note, Tone
from bot.cards.run import PHASES, is_unknown, took
from bot.cards.texts import last_part, line, plain
from bot.conversation.person import Person
from bot.conversation.state import Failed, Stage, Trouble
from schemas.artifacts.plan import Severity
from schemas.runs import Run

TITLES = {
    Stage.INTAKE: "The model could not be analysed",
    Stage.PLAN: "No plan could be made",
    Stage.MANIFEST: "The exact command could not be prepared",
    Stage.SUBMISSION: "The runner did not take the run",
    Stage.RUN: "The run failed",
}
"""What failed, in words."""

_CHECKS = 6

_AGAIN = {
    Stage.INTAKE: "Try again reads the model once more. To take another model or runner, press Edit or say so.",
    Stage.PLAN: "Try again asks for the plan once more.",
    Stage.MANIFEST: "Try again prepares the command once more.",
    Stage.SUBMISSION: "Try again offers the command again; it needs a new yes.",
    Stage.RUN: "Nothing is run again by itself. Try again offers the command again; it needs a new yes.",
}


def failure_card(conversation: int, state: Failed, mention: Person | None = None) -> Card:
    """What failed, its class and cause, the evidence, and what to do next."""
    title = TITLES[state.stage]
    unknown = state.stage is Stage.RUN and is_unknown(state)
    if unknown:
        title = "Not known: what became of this run"
    back = " Back to the plan keeps the analysis." if state.plan is not None else ""
    return make_card(
        f"{title}: {last_part(state.request.model)}",
        Tone.BAD,
        [
            paragraph(state.trouble.message),
            *(_run_facts(state.run, state.trouble, unknown=unknown) if state.run else [_facts(state)]),
            *_evidence(state),
            *notes("What to do next", _actions(state)),
            paragraph(f"{_AGAIN[state.stage]}{back}"),
        ],
        f"{title}: {last_part(state.request.model)}. {line(state.trouble.sentence().removeprefix(f'{title}: '), 180)}",
        buttons=_buttons(conversation, state),
        mention=mention,
    )


def _buttons(conversation: int, state: Failed) -> tuple[Button, ...]:
    buttons = Buttons.of(conversation, state)
    # Without an analysis there is no plan to go back to: only the request itself can be changed.
    second = buttons.revise() if state.analysis is not None else buttons.edit()
    return (buttons.retry(), second, buttons.cancel())


def _facts(state: Failed) -> Block:
    return fields(
        ("Model", state.request.model),
        ("Revision", state.request.revision),
        ("Runner", state.request.runner),
        ("Output folder", state.manifest.output_dir if state.manifest else state.request.output_dir),
        ("Code", state.trouble.code),
    )


def _run_facts(run: Run, trouble: Trouble, *, unknown: bool) -> list[Block]:
    report, progress = run.report, run.progress
    cause = report.cause if report else run.reason
    first: list[Block] = []
    if unknown:
        first.append(paragraph("Its outcome is not known. It is not run again by itself: look at its output first."))
    return [
        *first,
        fields(
            ("Class", report.failure if report else None),
            ("Cause", None if cause in trouble.message else cause),
            ("Exit status", _exit_status(run.exit_code)),
            ("Reached", f"{progress.percent:.0f} %, {PHASES[progress.phase]}"),
            ("Took", took(run)),
            ("Run", run.id),
            ("Output folder", f"{plain(run.output_dir)} (what it wrote until then may lie there)"),
            ("Code", run.code),
        ),
    ]


def _exit_status(code: int | None) -> str | None:
    if code is None:
        return None
    return f"{code} (signal {-code})" if code < 0 else str(code)


def _evidence(state: Failed) -> tuple[Block, ...]:
    report = state.run.report if state.run else None
    return log_part(report.evidence) if report else ()


def _actions(state: Failed) -> list[Note]:
    report = state.run.report if state.run else None
    told = [state.trouble.hint, *(report.next_actions if report else ())]
    failed = [one for one in report.checks if one.outcome == "failed"] if report else []
    checks = [note(Severity.WARNS, f"{one.name}: {one.detail}") for one in failed]
    actions = [note(Severity.INFORMS, action) for action in dict.fromkeys(told) if action.strip()]
    left = len(checks) - _CHECKS
    more = [note(Severity.WARNS, f"{amounts.count(left, 'more check')} failed.")] if left > 0 else []
    return [*checks[:_CHECKS], *more, *actions]
