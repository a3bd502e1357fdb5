"""The queue of a runner in words and as a card."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given

from bot.cards.card import ActionKind, Table
from bot.cards.queue import queue_card, queue_in_words, queue_listed
from schemas.api import GpuStanding, Queue, QueueMode
from schemas.runs import Progress, Run, RunState
from tests.bot.cards.hostile import TEXTS
from tests.bot.cards.reading import fields_of, kinds_of, read, texts_in
from tests.bot.conversation import samples as states

COMPUTING = states.run(gpus=["0 (0000:05:00.0)"], progress=Progress(percent=43.2))
GPUS = [
    GpuStanding(name="0 (0000:05:00.0)", run=COMPUTING.id),
    GpuStanding(name="1 (0000:06:00.0)", busy="Another process holds 3 GB of it."),
    GpuStanding(name="2 (0000:07:00.0)"),
]


def waiting(number: int) -> Run:
    """One that waits, of some other model."""
    return states.run(
        id=f"run-{number}",
        model=f"/models/model-{number}",
        state=RunState.QUEUED,
        started_at=None,
        position=number,
        priority="high" if number == 1 else "normal",
        expected_start=states.NOON + timedelta(hours=number) if number == 1 else None,
        reason="It waits for 1 GPU; 0 free." if number == 1 else "",
    )


def queue(mode: QueueMode = "open", waits: int = 2) -> Queue:
    """One run computes, and so many wait."""
    told = {"by": "Ada", "at": states.NOON, "reason": "The driver is exchanged."} if mode != "open" else {}
    return Queue(
        mode=mode, waiting=[waiting(number) for number in range(1, waits + 1)], active=[COMPUTING], gpus=GPUS, **told
    )


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (Queue(), "The queue of box is open. No run waits, and none is at work."),
        (queue(waits=1), "The queue of box is open. 1 run waits, and 1 is at work."),
        (
            queue("paused"),
            "The queue of box is paused: runs are taken and none starts. 2 runs wait, and 1 is at work.",
        ),
        (
            queue("draining", 0).model_copy(update={"active": [COMPUTING, COMPUTING]}),
            "The queue of box drains: no run is taken, and those that wait still run. No run waits, and 2 are at work.",
        ),
    ],
)
def test_how_it_stands_is_a_sentence(there: Queue, said: str) -> None:
    assert queue_in_words("box", there) == said


def test_asked_for_it_names_runs_reasons_and_free_gpus() -> None:
    assert queue_listed("box", queue("paused")) == (
        "The queue of box is paused: runs are taken and none starts. 2 runs wait, and 1 is at work. "
        "So since 2026-03-02 12:00 UTC by Ada: The driver is exchanged. "
        "At work: qwen3-8b to fp8, 43 %, preparing, on 0 (0000:05:00.0). "
        "In line: 1. model-1 to fp8, high priority, may start 2026-03-02 13:00 UTC (It waits for 1 GPU; 0 free.); "
        "2. model-2 to fp8. GPUs: 1 of 3 free."
    )
    assert "In line: 1. model-1" in queue_listed("box", queue(waits=12))
    assert "5. model-5 to fp8; and 7 more." in queue_listed("box", queue(waits=12))
    assert queue_listed("box", Queue()) == queue_in_words("box", Queue())


@pytest.mark.parametrize(
    ("mode", "button"),
    [
        ("open", ActionKind.PAUSE_QUEUE),
        ("paused", ActionKind.OPEN_QUEUE),
        ("draining", ActionKind.OPEN_QUEUE),
    ],
)
def test_its_button_does_what_is_not_so_yet(mode: QueueMode, button: ActionKind) -> None:
    card = queue_card(7, states.running(), "box", queue(mode), states.NOON)
    assert kinds_of(card) == [button]
    assert [one.action.step for one in card.buttons] == [4]
    assert fields_of(card) == {"GPUs": "1 of 3 free", "As of": "2026-03-02 12:00 UTC"}
    assert card.alternative == queue_in_words("box", queue(mode))
    assert ("by Ada" in read(card)) == (mode != "open")


def test_many_runs_are_cut_and_none_makes_no_table() -> None:
    many = queue_card(7, states.running(), "box", queue(waits=40), states.NOON)
    assert [len(block.rows) for block in many.body if isinstance(block, Table)] == [1, 16]
    empty = queue_card(7, states.running(), "box", Queue(), states.NOON)
    assert not [block for block in empty.body if isinstance(block, Table)]


@given(TEXTS)
def test_names_and_reasons_of_others_hide_nothing(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()  # as a runner can send it
    strange = states.run(model=text, scheme=text, reason=text, state=RunState.QUEUED, gpus=[text], job=text)
    there = Queue(mode="paused", by=text, reason=text, waiting=[strange], active=[strange], gpus=GPUS)
    card = queue_card(7, states.running(), text, there, states.NOON)
    for shown in [queue_listed(text, there), *texts_in(card)]:
        assert all(letter == "\n" or letter.isprintable() for letter in shown)
        assert len(shown) < 3000
