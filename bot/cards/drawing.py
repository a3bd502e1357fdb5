"""Which messages of a thread have to be drawn when a conversation moves. Pure: nothing is read but what is given.

Slots are named "{analysis|plan|command|run|result}:{step}"; a file of the same step adds ":file", and one of a later
revision that was made in the same step ":{revision}:file". That a run begins which had waited is told in "turn:{step}".
Where somebody other than the requester, or time, ends a request, the requester is told in "result:{step}:end". At any
time only the front slot of the state has buttons; where a request has ended, its last card offers the way back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.cards import analysis, command, plan, result
from bot.cards.absent import absent_card
from bot.cards.analysis import analysis_card
from bot.cards.blocks import mentioned
from bot.cards.card import Attachment, Card
from bot.cards.command import command_card
from bot.cards.ending import ending_buttons, ending_card
from bot.cards.failure import failure_card
from bot.cards.outcome import accepted_risks, decided, outcome_in_words
from bot.cards.plan import plan_card
from bot.cards.result import result_card
from bot.cards.run import handing_over_card, quiet_since, run_card, run_closed_card, turn_card
from bot.cards.working import working_card
from bot.conversation.decision import Verdict
from bot.conversation.state import (
    Analysing,
    Ended,
    Failed,
    Planning,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Revision,
    Running,
    Stage,
    State,
    Submitting,
    asked_at,
)
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.digest import short
from schemas.runs import Run, RunState

WORTH_A_NOTICE = timedelta(seconds=60)
"""A run that waited longer is told of when it begins: nobody looks at the thread any more."""

Look = Callable[[str], Card | None]
"""The card that a slot has to show until now."""


@dataclass(frozen=True)
class Documents:
    """The documents that the caller has at hand; a report is part of its run."""

    analysis: ModelAnalysis | None = None
    plan: QuantPlan | None = None
    manifest: RunManifest | None = None


@dataclass(frozen=True)
class Drawn:
    """A slot and what it has to show from now on. `asks` is the whole digest that the card asks a person about."""

    slot: str
    what: Card | Attachment
    asks: str = ""


@dataclass(frozen=True)
class _Move:
    """One transition, as `draw` got it."""

    conversation: int
    before: State | None
    after: State
    verdict: Verdict | None
    documents: Documents
    shown: Look
    at: datetime
    patience: timedelta | None
    approvers: str


def draw(
    conversation_id: int,
    before: State | None,
    after: State,
    verdict: Verdict | None,
    documents: Documents,
    shown: Look,
    at: datetime,
    patience: timedelta | None = None,
    approvers: str = "",
) -> list[Drawn]:
    """All slots that this transition changes: the card it left first, then the new ones, then files.

    A card that would look as before is left out. A new card mentions the requester when somebody else decided, when
    the run ended, or when time ended the request. `patience` is how long a card waits for people, where it is known;
    `approvers` the sentence of who may approve the command that `after` asks about, empty where it needs no saying.
    """
    move = _Move(conversation_id, before, after, verdict, documents, shown, at, patience, approvers)
    cards = _cards(move)
    left = _left(move, {slot for slot, _ in cards})
    asked = asked_at(after)
    drawn = []
    for slot, card in [*left, *_with_mention(move, cards)]:
        asks = asked[1] if asked and slot == front_slot(after) and _can_be_decided(move) else ""
        if card != shown(slot):
            drawn.append(Drawn(slot, card, asks))
    return [*drawn, *_files(move)]


def front_slot(state: State) -> str | None:
    """Where a state shows its current card, the only one with buttons; None when it is over."""
    match state:
        case Analysing() | ReviewingAnalysis():
            kind = "analysis"
        case Planning() | ReviewingPlan():
            kind = "plan"
        case Preparing() | ReviewingCommand():
            kind = "command"
        case Submitting() | Running():
            kind = "run"
        case ReviewingResult():
            kind = "result"
        case Failed():
            kind = _FAILED_AT[state.stage]
        case Ended():
            return None
    return f"{kind}:{state.step}"


_FAILED_AT = {
    Stage.INTAKE: "analysis",
    Stage.PLAN: "plan",
    Stage.MANIFEST: "command",
    Stage.SUBMISSION: "run",
    Stage.RUN: "result",
}


def _cards(move: _Move) -> list[tuple[str, Card]]:
    """The cards of the new state."""
    state, number = move.after, move.conversation
    front = front_slot(state)
    match state:
        case Analysing() | Planning() | Preparing():
            card = working_card(number, state)
        case ReviewingAnalysis() | ReviewingPlan() | ReviewingCommand():
            card = _review(move, state)
        case Submitting():
            card = handing_over_card(number, state)
        case Running():
            since = quiet_since(move.shown(f"run:{state.step}"), state.silent, move.at)
            card = run_card(number, state, since)
        case ReviewingResult():
            card = result_card(number, state, _plan(move.documents))
        case Failed():
            card = failure_card(number, state)
        case Ended():
            return _ending(move, state)
    assert front is not None  # only what is over has none
    return [*_closed_run(move), (front, card), *_turn(move)]


def _review(move: _Move, state: ReviewingAnalysis | ReviewingPlan | ReviewingCommand) -> Card:
    number, documents = move.conversation, move.documents
    match state:
        case ReviewingAnalysis() if documents.analysis is not None:
            return analysis_card(number, state, documents.analysis)
        case ReviewingPlan() if documents.plan is not None:
            return plan_card(number, state, documents.plan)
        case ReviewingCommand() if documents.manifest is not None:
            return command_card(number, state, documents.manifest, move.approvers)
        case _:
            return absent_card(number, state)


def _can_be_decided(move: _Move) -> bool:
    match move.after:
        case ReviewingAnalysis():
            return move.documents.analysis is not None
        case ReviewingPlan():
            return move.documents.plan is not None
        case ReviewingCommand():
            return move.documents.manifest is not None
        case _:
            return True


def _plan(documents: Documents) -> QuantPlan | None:
    return documents.plan or (documents.manifest.inputs.quant_plan if documents.manifest else None)


def _run_that_ended(move: _Move) -> Run | None:
    """The run that this transition ends, whether or not it is known how; None for all other transitions."""
    state = move.after
    over = isinstance(state, ReviewingResult | Ended) or (isinstance(state, Failed) and state.stage is Stage.RUN)
    entered = move.before is None or isinstance(move.before, Submitting | Running) or _found_again(move)
    return state.run if over and entered and isinstance(state, ReviewingResult | Ended | Failed) else None


def _found_again(move: _Move) -> bool:
    """Whether a run that was given up is taken up: nobody did that, and it is a step of its own."""
    return isinstance(move.before, Failed) and move.verdict is None and move.after.step > move.before.step


def _closed_run(move: _Move) -> list[tuple[str, Card]]:
    run = _run_that_ended(move)
    if run is None:
        return []
    # What was found again has its message since it was handed over.
    step = move.before.step if move.before and _found_again(move) else move.after.step
    return [(f"run:{step}", run_closed_card(move.after, run))]


def _turn(move: _Move) -> list[tuple[str, Card]]:
    """A message of its own when a run begins that had waited. It stays as it is."""
    state, slot = move.after, f"turn:{move.after.step}"
    if not isinstance(state, Running) or state.run.state is not RunState.RUNNING or state.cancelled_by is not None:
        return []
    # One that was given up and found again began long ago: a notice of it would come late, or a second time.
    if not _had_not_begun(move.before) or move.shown(slot) is not None:
        return []
    run = state.run
    waited = (run.started_at or move.at) - run.submitted_at
    return [(slot, turn_card(state))] if waited > WORTH_A_NOTICE else []


def _had_not_begun(before: State | None) -> bool:
    if isinstance(before, Running):
        run = before.run
        waited = run.state in (RunState.QUEUED, RunState.STARTING)
        return waited or (run.state is RunState.UNKNOWN and run.started_at is None)
    return isinstance(before, Submitting)


def _ending(move: _Move, state: Ended) -> list[tuple[str, Card]]:
    """The end as a message of its own: after a run, and for a requester who did not end it. Else the card says it."""
    card = ending_card(move.conversation, state, move.patience)
    if _run_that_ended(move) is not None:
        return [*_closed_run(move), (f"result:{state.step}", card)]
    if move.before is None or state.by is None or state.by.id != state.requester.id:
        return [(f"result:{state.step}:end", card)]
    return []


def _left(move: _Move, drawn: set[str]) -> list[tuple[str, Card]]:
    """The card that the transition leaves behind, without its buttons and with what became of it."""
    slot = _slot_with_buttons(move)
    card = move.shown(slot) if slot and slot not in drawn else None
    if slot is None or card is None or (card.outcome and not card.buttons):
        return []
    # Where no message of its own tells the end, this card is the last one, and leads back.
    last = isinstance(move.after, Ended) and not any(one.startswith("result:") for one in drawn)
    buttons = ending_buttons(move.conversation, move.after) if last and isinstance(move.after, Ended) else ()
    outcome = outcome_in_words(move.verdict, move.after, move.at, move.patience)
    return [(slot, decided(card, f"{outcome}{accepted_risks(move.before, move.verdict)}", buttons))]


def _slot_with_buttons(move: _Move) -> str | None:
    """Where the state that is left shows its buttons. An end shows them on its last card, whichever that was."""
    before = move.before
    if not isinstance(before, Ended):
        return front_slot(before) if before else None
    kinds = (f"result:{before.step}:end", *(f"{kind}:{before.step}" for kind in _KINDS))
    return next((slot for slot in kinds if (card := move.shown(slot)) is not None and card.buttons), None)


_KINDS = ("result", "run", "command", "plan", "analysis")
"""What slots show, the last step first."""


def _with_mention(move: _Move, cards: list[tuple[str, Card]]) -> list[tuple[str, Card]]:
    """The cards with those whom they ping: who was pinged stays, and the newest card of all pings when it has to."""
    ended_by_time = isinstance(move.after, Ended) and move.after.by is None
    by_another = move.verdict is not None and move.verdict.by.id != move.after.requester.id
    after_run = isinstance(move.before, Running) and not isinstance(move.after, Running)
    after_run = after_run or _found_again(move)
    ping = by_another or ended_by_time or after_run or _run_that_ended(move) is not None
    ping = ping or any(slot.startswith("turn:") for slot, _ in cards)
    told = []
    for slot, card in cards:
        there = move.shown(slot)
        if there is not None:
            told.append((slot, card.model_copy(update={"mention": there.mention})))
        elif ping and slot == cards[-1][0]:
            told.append((slot, card.model_copy(update={"mention": mentioned(move.after.requester)})))
        else:
            told.append((slot, card))
    return told


def _files(move: _Move) -> list[Drawn]:
    """The documents that the new state is about, once each."""
    state, front = move.after, front_slot(move.after)
    match state:
        case ReviewingAnalysis():
            found = _file(move, "analysis", state.analysis, analysis.FILE)
        case ReviewingPlan():
            found = _file(move, "plan", state.plan, plan.FILE)
        case ReviewingCommand():
            found = _file(move, "manifest", state.manifest, command.FILE)
        case _:
            return _report_file(move)
    if found is None:
        return []
    # What was posted is never replaced: a revision that took the place of another in one step has a file of its own.
    again = move.before is not None and front == front_slot(move.before) and move.before.kind == state.kind
    return [Drawn(f"{front}:{found.number}:file" if again else f"{front}:file", found)]


def _file(move: _Move, kind: str, revision: Revision, name: str) -> Attachment | None:
    before = move.before
    if before is not None and before.kind == move.after.kind and getattr(before, kind, None) == revision:
        return None  # it was posted when this revision came
    told = f"{name}, revision {revision.number}, digest {short(revision.digest)}"
    return Attachment(name=name, artifact=kind, number=revision.number, alternative=told)


def _report_file(move: _Move) -> list[Drawn]:
    run = _run_that_ended(move)
    if run is None or run.report is None:
        return []
    # There is one report for each run, so it has the number of its run.
    number = move.after.revisions.get("run", 1)
    told = f"{result.FILE}: {_about_report(move.after, run)}"
    found = Attachment(name=result.FILE, artifact="report", number=number, alternative=told)
    return [Drawn(f"result:{move.after.step}:file", found)]


def _about_report(state: State, run: Run) -> str:
    if isinstance(state, Failed) and not state.unresolved:
        return f"why the run {run.id} failed"
    return (
        f"how the result of run {run.id} was verified"
        if isinstance(state, ReviewingResult)
        else f"what is known of run {run.id}"
    )
