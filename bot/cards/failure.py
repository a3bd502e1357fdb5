"""A step or the run failed: why, and what a person can do. Nothing is tried again by itself."""

from __future__ import annotations

import re

from bot.cards import amounts
from bot.cards.blocks import fields, log_part, make_card, note, notes, paragraph
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Button, Card, Note, Tone
from bot.cards.run import PHASES, set_apart, took
from bot.cards.texts import last_part, line
from bot.conversation.offered import offers_of
from bot.conversation.person import Person
from bot.conversation.sentences import about_output, what_failed
from bot.conversation.state import Failed, Stage
from schemas.artifacts.plan import Severity
from schemas.artifacts.report import FailureClass
from schemas.runs import Run

_CHECKS = 6
_OFFERED = 2  # as buttons, beside three others; all stand on the card with the number that takes them
_SENTENCE = 20  # letters from which on a text stands for itself

_AGAIN = {
    Stage.INTAKE: "Try again reads the model once more. To take another model or runner, press Edit or say so.",
    Stage.PLAN: "Try again asks for the plan once more.",
    Stage.MANIFEST: "Try again prepares the command once more.",
    Stage.SUBMISSION: "Try again offers the command again; it needs a new yes.",
    Stage.RUN: "Nothing is run again by itself. Try again offers the command again; it needs a new yes.",
}
_OTHER_FOLDER = "Press Edit to name another folder, or say so: output my-folder. Try again takes the same folder."
_CHANGE_FIRST = (
    "Nothing is run again by itself. Back to the plan keeps the analysis and lets you change what stopped the run. "
    "Try again offers the same command again; it needs a new yes."
)
_OFFERS = (
    "Nothing is run again by itself. What is offered makes a new plan, by its button or by words: take offer 1. "
    "Try again offers the same command again. Each needs a new yes."
)
_UNKNOWN = (
    "Its outcome is not known. It is not run again by itself: look at its output first. "
    "If the runner finds the run again, it is taken up here."
)

_NEEDS_CHANGE = frozenset(
    {FailureClass.MEMORY, FailureClass.CONFIGURATION, FailureClass.COMPATIBILITY, FailureClass.QUANTIZATION}
)
"""Failures that the same command would meet again: something has to be different."""

_PROTOCOL = re.compile(r'\s*\{\s*"ptq"\s*:')
"""What the run's program tells the runner, line by line, on the same output. It says nothing to people."""


def failure_card(conversation: int, state: Failed, mention: Person | None = None) -> Card:
    """What failed, its class and cause, the evidence, and what to do next. Nothing is said twice."""
    title = what_failed(state)
    name = last_part(state.request.model)
    told = _Told()
    return make_card(
        f"{title}: {name}",
        Tone.BAD,
        [
            paragraph(told.first(state.trouble.message)),
            *(_run_facts(state.run, told, unknown=state.unresolved) if state.run else [_facts(state)]),
            *_evidence(state, told),
            *notes("What to do next", _actions(state, told)),
            *notes("What may help, with a new plan and a new yes", _offers(state)),
            paragraph(_what_buttons_do(state)),
        ],
        f"{title}: {name}. {line(state.trouble.sentence().removeprefix(f'{title}: '), 180)}",
        buttons=_buttons(conversation, state),
        mention=mention,
    )


class _Told:
    """What the card says already."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def first(self, text: str) -> str:
        """The text, which counts as said from now on."""
        self._said.append(_bare(text))
        return text

    def has(self, text: str) -> bool:
        """Whether it was said already; a few letters are a part of anything, so those count only where they are all."""
        bare = _bare(text)
        return not bare or any(bare == said or (len(bare) >= _SENTENCE and bare in said) for said in self._said)


def _bare(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")


def _buttons(conversation: int, state: Failed) -> tuple[Button, ...]:
    """What most likely helps comes first."""
    buttons = Buttons.of(conversation, state)
    if about_output(state):
        return (buttons.edit("primary"), buttons.retry("plain"), buttons.cancel())
    if state.analysis is None:
        # There is no plan to go back to: only the request itself can be changed.
        return (buttons.retry(), buttons.edit(), buttons.cancel())
    if offers := offers_of(state)[:_OFFERED]:
        first, *others = offers
        offered = (buttons.offer(first, "primary"), *(buttons.offer(one) for one in others))
        return (*offered, buttons.revise(), buttons.retry("plain"), buttons.cancel())
    if _needs_change(state):
        return (buttons.revise(style="primary"), buttons.retry("plain"), buttons.cancel())
    return (buttons.retry(), buttons.revise(), buttons.cancel())


def _needs_change(state: Failed) -> bool:
    report = state.run.report if state.run else None
    return report is not None and report.failure in _NEEDS_CHANGE


def _what_buttons_do(state: Failed) -> str:
    if about_output(state):
        return _OTHER_FOLDER
    if offers_of(state):
        return _OFFERS
    if _needs_change(state):
        return _CHANGE_FIRST
    back = " Back to the plan keeps the analysis." if state.analysis is not None else ""
    return f"{_AGAIN[state.stage]}{back}"


def _facts(state: Failed) -> Block:
    return fields(
        ("Model", state.request.model),
        ("Revision", state.request.revision),
        ("Runner", state.request.runner),
        ("Output folder", state.manifest.output_dir if state.manifest else state.request.output_dir),
        ("Code", state.trouble.code),
    )


def _run_facts(run: Run, told: _Told, *, unknown: bool) -> list[Block]:
    report, progress = run.report, run.progress
    cause = report.cause if report else run.reason
    return [
        *([paragraph(_UNKNOWN)] if unknown else ()),
        fields(
            ("Class", report.failure if report else None),
            ("Cause", None if told.has(cause) else told.first(cause)),
            ("Exit status", _exit_status(run.exit_code)),
            ("Reached", f"{progress.percent:.0f} %, {PHASES[progress.phase]}"),
            ("Took", took(run)),
            ("Run", run.id),
            ("GPUs", ", ".join(run.gpus)),
            ("Job", run.job),
            ("Output folder", run.output_dir),
            ("Set apart", set_apart(run)),
            ("Code", run.code),
        ),
    ]


def _offers(state: Failed) -> list[Note]:
    return [
        note(Severity.INFORMS, f"{number}. {one.label}", one.reason) for number, one in enumerate(offers_of(state), 1)
    ]


def _exit_status(code: int | None) -> str | None:
    if code is None:
        return None
    return f"{code} (signal {-code})" if code < 0 else str(code)


def _evidence(state: Failed, told: _Told) -> tuple[Block, ...]:
    """The output as it was, without what was said already and without the program's own protocol."""
    report = state.run.report if state.run else None
    if report is None:
        return ()
    told_below = {f"{one.name}: {one.detail}" for one in report.checks}
    lines = [one for one in report.evidence if not _PROTOCOL.match(one) and one not in told_below]
    return log_part([one for one in lines if not one.strip() or not told.has(one)])


def _actions(state: Failed, told: _Told) -> list[Note]:
    report = state.run.report if state.run else None
    hints = [state.trouble.hint, *(report.next_actions if report else ())]
    failed = [one for one in report.checks if one.outcome == "failed" and not told.has(one.detail)] if report else []
    checks = [note(Severity.WARNS, f"{one.name}: {told.first(one.detail)}") for one in failed]
    actions = [note(Severity.INFORMS, told.first(action)) for action in hints if not told.has(action)]
    left = len(checks) - _CHECKS
    more = [note(Severity.WARNS, f"{amounts.count(left, 'more check')} failed.")] if left > 0 else []
    return [*checks[:_CHECKS], *more, *actions]
