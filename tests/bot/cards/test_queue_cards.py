"""A run in the queue, when its turn comes, what it leaves, and what is offered where it failed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bot.cards.card import ActionKind, Card
from bot.cards.drawing import WORTH_A_NOTICE
from bot.cards.ending import ending_card
from bot.cards.failure import failure_card
from bot.cards.run import run_card, run_closed_card
from bot.conversation.state import Ending, Failed, Running, State
from schemas.artifacts.report import Offer
from schemas.runs import Run, RunState
from tests import samples
from tests.bot.cards.board import Board, board_at
from tests.bot.cards.documents import ended_run
from tests.bot.cards.reading import fields_of, kinds_of, read
from tests.bot.conversation import samples as states

GPUS = ["0 (0000:05:00.0)", "3 (0000:c1:00.0)"]
PARTIAL = "/out/qwen3-8b-fp8.partial-run-0123456789abcdef"
LATER = states.NOON + WORTH_A_NOTICE + timedelta(seconds=1)


def waiting(**changes: Any) -> Run:
    """A run in the queue."""
    values = {"state": RunState.QUEUED, "started_at": None, "position": 2, "reason": "It waits for 2 GPUs; 1 free."}
    return states.run(**{**values, **changes})


def begun(**changes: Any) -> Run:
    """The same run, computing since a moment that is worth a notice."""
    return states.run(**{"started_at": LATER, "gpus": GPUS, "last_event": 5, **changes})


def test_a_run_that_waits_says_why_where_and_until_when() -> None:
    run = waiting(expected_start=states.NOON + timedelta(hours=1), priority="high")
    card = run_card(7, states.running(run=run))
    said = fields_of(card)
    assert (said["Position"], said["Priority"]) == ("2", "high")
    assert said["Its turn may come"] == "2026-03-02 13:00 UTC"
    assert "It waits for 2 GPUs; 1 free." in read(card)
    assert "It waits for 2 GPUs; 1 free." in card.alternative


def test_what_is_usual_or_not_known_is_left_out() -> None:
    said = fields_of(run_card(7, states.running(run=waiting(position=None, reason=""))))
    assert not {"Position", "Priority", "Its turn may come"} & said.keys()


@pytest.mark.parametrize(
    "changes",
    [
        {"reason": "Ada paused this runner's queue."},
        {"position": 1},
        {"priority": "low"},
        {"expected_start": states.NOON},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_card_follows_what_the_runner_says_of_the_queue(changes: dict[str, Any]) -> None:
    board = board_at(states.running(run=waiting()))
    (drawn,) = board.go(states.running(run=waiting(last_event=4, **changes)))
    assert drawn.slot == "run:4"


def test_where_it_computes_stands_on_its_card_also_when_it_has_ended() -> None:
    on_gpus = states.running(run=begun())
    assert fields_of(run_card(7, on_gpus))["GPUs"] == ", ".join(GPUS)
    in_slurm = states.running(run=begun(gpus=[], job="Slurm job 42", reason="Slurm job 42 waits: Resources."))
    card = run_card(7, in_slurm)
    assert fields_of(card)["Job"] == "Slurm job 42"
    assert "GPUs" not in fields_of(card)
    assert "Slurm job 42 waits: Resources." in read(card)
    ended = ended_run(RunState.SUCCEEDED, gpus=GPUS, job="Slurm job 42")
    said = fields_of(run_closed_card(states.running(), ended))
    assert (said["GPUs"], said["Job"]) == (", ".join(GPUS), "Slurm job 42")


def all_of(run: Run) -> list[Card]:
    """Every card that is left of a run which did not succeed."""
    return [
        run_closed_card(states.running(), run),
        failure_card(7, states.failed(run=run)),
        ending_card(7, states.ended(ending=Ending.CANCELLED, run=run)),
        ending_card(7, states.ended(ending=Ending.EXPIRED, by=None, run=run), timedelta(days=7)),
    ]


def test_what_an_unfinished_run_left_is_named_wherever_it_ended() -> None:
    for card in all_of(ended_run(RunState.FAILED, partial_output=PARTIAL)):
        assert fields_of(card)["Set apart"] == f"{PARTIAL} (no finished model)"
        assert "stay in the output folder" not in read(card)
    for card in all_of(ended_run(RunState.FAILED)):
        assert "Set apart" not in fields_of(card)


def turn_of(board: Board) -> Card | None:
    return board.shown("turn:4")


@pytest.mark.parametrize(
    "before",
    [
        states.running(run=waiting()),
        states.running(run=waiting(state=RunState.STARTING, job="Slurm job 42")),
        states.running(run=waiting(state=RunState.UNKNOWN)),
        states.submitting(),
    ],
    ids=["queued", "starting", "unknown", "handed over"],
)
def test_the_requester_is_called_once_when_a_run_that_waited_begins(before: State) -> None:
    board = board_at(before)
    assert turn_of(board) is None
    board.go(states.running(run=begun()))
    card = turn_of(board)
    assert card is not None
    assert card.mention == states.ADA
    assert card.alternative == f"Its turn has come: Qwen3-8B to fp8 has begun on local on {', '.join(GPUS)}."
    assert not card.buttons
    assert board.card("run:4").mention is None, "only the new message calls"
    again = [
        *board.go(states.running(run=begun(last_event=6, gpus=[]))),
        *board.go(states.running(run=waiting(last_event=7, state=RunState.UNKNOWN))),
        *board.go(states.running(run=begun(last_event=8))),
    ]
    assert "turn:4" not in {one.slot for one in again}
    assert turn_of(board) == card


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (states.running(run=waiting()), states.running(run=begun(started_at=states.NOON + WORTH_A_NOTICE))),
        (states.running(run=waiting()), states.running(run=begun(), cancelled_by=states.ADA)),
        (states.running(run=waiting()), states.running(run=begun(state=RunState.STARTING, started_at=None))),
        (states.running(run=begun()), states.running(run=begun(last_event=6))),
        (states.failed(run=waiting(state=RunState.UNKNOWN)), states.running(run=begun(), step=5)),
    ],
    ids=["did not wait long", "is being cancelled", "not yet", "has begun before", "found again"],
)
def test_nobody_is_called_for_what_is_no_turn(before: State, after: Running) -> None:
    board = board_at(before)
    board.go(after, at=LATER + timedelta(hours=1))
    assert not [slot for slot in board.slots if slot.startswith("turn:")]


OFFERS = [
    Offer(label=f"Plan with {count} samples", reason=f"{count} need less.", choices={"calibration": {"batch_size": 1}})
    for count in (128, 64, 32)
]


def failed_with(*offers: Offer) -> Failed:
    """A run that failed, with what may help."""
    report = samples.report().model_copy(update={"status": "failed", "offers": list(offers)})
    return states.failed(run=states.run(state=RunState.FAILED, report=report))


def test_what_may_help_comes_first_and_says_how_it_is_taken() -> None:
    card = failure_card(7, failed_with(*OFFERS))
    assert kinds_of(card) == [
        *(ActionKind.OFFER, ActionKind.OFFER),
        *(ActionKind.REVISE, ActionKind.RETRY, ActionKind.CANCEL),
    ]
    assert [one.label for one in card.buttons if one.style == "primary"] == ["Plan with 128 samples"]
    for number, offer in enumerate(OFFERS, 1):
        assert f"informs: {number}. {offer.label} {offer.reason}" in " ".join(read(card).split())
    assert "take offer 1" in read(card)


def test_each_offer_has_a_button_of_its_own_that_fits_every_platform() -> None:
    first, second = (one.action for one in failure_card(7, failed_with(*OFFERS)).buttons[:2])
    assert first.encoded() != second.encoded()
    assert {first.step, second.step} == {4}
    assert max(len(first.encoded()), len(second.encoded())) < 100
