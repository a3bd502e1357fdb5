"""Orders to queues, of priority and of offers: whole sentences, which agree to nothing and change no plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from bot.conversation.words import PUBLISHED, Intent, Vocabulary, as_json, understand
from bot.conversation.words.orders import NO_PAUSE
from tests.bot.conversation.words.sentences import CHANGES, CHECKPOINTS, COMMAND, EVERY_AGREEMENT, PLAN

NAMES = Vocabulary(
    **{**PUBLISHED.model_dump(), "runners": frozenset({"a", "mi300-a"}), "labels": frozenset({"h100", "MI300X"})}
)


def queue(order: str, runner: str = "", reason: str = "") -> dict[str, Any]:
    told = {"kind": "queue", "queue": order, "runner": runner, "reason": reason}
    return {name: value for name, value in told.items() if value}


def priority(level: str, reason: str = "") -> dict[str, Any]:
    return {"kind": "priority", "priority": level} | ({"reason": reason} if reason else {})


def offer(number: int = 1, about: str = "") -> dict[str, Any]:
    return {"kind": "offer"} | ({"offer": number} if number > 1 else {}) | ({"about": about} if about else {})


ORDERS: dict[str, dict[str, Any]] = {
    "pause the queue": queue("pause"),
    "Please pause the queue, thanks!": queue("pause"),
    "pause h100": queue("pause", "h100"),
    "pause mi300x": queue("pause", "MI300X"),
    "pause runner a": queue("pause", "a"),
    "pause runner new-one": queue("pause", "new-one"),
    "please stop starting runs on h100, maintenance": queue("pause", "h100", "maintenance"),
    "pause mi300-a, it is too hot": queue("pause", "mi300-a", "it is too hot"),
    "pause the queue of h100 for maintenance": queue("pause", "h100", "maintenance"),
    "pause the queue for maintenance": queue("pause", "", "maintenance"),
    "drain mi300x because of the driver update": queue("drain", "MI300X", "driver update"),
    "drain the queue on runner a now": queue("drain", "a"),
    "don't take any more runs": queue("drain"),
    "don't start any new runs": queue("pause"),
    "resume the queue": queue("open"),
    "open the queue": queue("open"),
    "unpause h100 please": queue("open", "h100"),
    "can you resume the queue?": queue("open"),
    "@ptq-bot pause the queue": queue("pause"),
    "high priority": priority("high"),
    "priority: high": priority("high"),
    "run this first": priority("high"),
    "move it to the front": priority("high"),
    "move this run to the top of the queue": priority("high"),
    "high priority, we have a demo at noon": priority("high", "we have a demo at noon"),
    "low priority please": priority("low"),
    "no hurry": priority("low"),
    "put it at the end of the queue": priority("low"),
    "back to normal priority": priority("normal"),
    "take the first offer": offer(),
    "use the suggestion": offer(),
    "take the second suggestion": offer(2),
    "take offer 3": offer(3),
    "do as suggested": offer(),
    "try with fewer samples as suggested": offer(about="fewer samples"),
}

NO_ORDERS = (
    *("don't pause the queue", "do not drain h100", "never pause h100", "not high priority", "don't run it first"),
    *("pause the queue unless it is empty", "pause the queue until tomorrow", "pause the queue, no wait"),
    *("maybe pause the queue", "should we pause the queue?", "is the queue paused?", "would you drain h100?"),
    *("pause nope", "pause fp8", "start h100", "stop h100", '"pause the queue"', "high priority?", "top priority: fp8"),
    *("yes, high priority", "ok, run it first", "take the first", "take offer", "at the end", "pause the queue and go"),
    *("don't take the offer", "take the offer unless it is slow", "cancel", "stop the run", "priority accuracy"),
)


@pytest.mark.parametrize("sentence", ORDERS)
def test_an_order_is_read_anywhere_and_is_nothing_else(sentence: str) -> None:
    for checkpoint in (*CHECKPOINTS, None):
        told = as_json(understand(sentence, checkpoint, NAMES))
        assert told == {"intent": "unclear", "changes": {}, "order": ORDERS[sentence]}


@pytest.mark.parametrize("sentence", NO_ORDERS)
def test_what_is_no_order(sentence: str) -> None:
    if sentence != "take offer":
        for checkpoint in (*CHECKPOINTS, None):
            assert understand(sentence, checkpoint, NAMES).order is None


@pytest.mark.parametrize(
    "sentence", ["pause", "pause it", "please pause the run", "suspend this run", "unpause it now"]
)
def test_nobody_can_pause_a_run(sentence: str) -> None:
    understood = understand(sentence, COMMAND, NAMES)
    assert (understood.intent, understood.order, understood.hint) == (Intent.UNCLEAR, None, NO_PAUSE)


@settings(max_examples=300)
@given(some.sampled_from(sorted(ORDERS)), some.sampled_from(sorted(CHANGES)), some.sampled_from([", ", " and ", ". "]))
def test_no_order_swallows_a_change(order: str, change: str, link: str) -> None:
    for sentence in (f"{order.rstrip('?!')}{link}{change}", f"{change}{link}{order}"):
        found = understand(sentence, PLAN, NAMES).order
        assert found is None, (sentence, found)


@given(
    some.sampled_from(sorted(ORDERS)), some.sampled_from(EVERY_AGREEMENT), some.sampled_from([", ", " and ", ". ", " "])
)
def test_no_order_is_agreement_or_swallows_one(order: str, yes: str, link: str) -> None:
    for sentence in (f"{order}{link}{yes}", f"{yes}{link}{order}"):
        for checkpoint in CHECKPOINTS:
            assert understand(sentence, checkpoint, NAMES).intent is not Intent.APPROVE, sentence


@given(some.sampled_from(sorted(ORDERS)), some.sampled_from(["don't ", "do not ", "never ", "not "]))
def test_a_negation_is_no_order(order: str, no: str) -> None:
    found = understand(f"{no}{order}", PLAN, NAMES).order
    # "Don't start ..." and "don't take ..." are orders of their own; their contrary is none.
    assert found is None, (order, found)


def test_labels_are_read_where_runners_are() -> None:
    for sentence, expected in {
        "on h100": {"runner": "h100"},
        "on mi300x": {"runner": "MI300X"},
        "on an H100": {"runner": "h100"},
        "run it on any h100": {"runner": "h100"},
        "use runner h100": {"runner": "h100"},
        "on the mi300x machine": {"runner": "MI300X"},
        "on MI300-A": {"runner": "mi300-a"},
        "for h100": {"hardware": "H100"},
        "for serving on h100": {"hardware": "H100"},
        "on mi355x": {"hardware": "MI355X"},
        "any runner": {"runner": None},
        "on h100, fp8": {"runner": "h100", "global_scheme": "fp8"},
    }.items():
        assert understand(sentence, PLAN, NAMES).flat == expected, sentence
    assert understand("on h100 on mi300x", PLAN, NAMES).flat == {}
    assert understand("quantize Qwen/Qwen3-8B on h100", None, NAMES).flat == {
        "model": "Qwen/Qwen3-8B",
        "runner": "h100",
    }


def test_a_label_that_a_runner_is_called_means_that_runner() -> None:
    names = Vocabulary(runners=frozenset({"H100", "b"}), labels=frozenset({"h100"}))
    assert understand("on h100", PLAN, names).flat == {"runner": "H100"}
