"""What has to be shown is shown in order, the newest only, as often as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from bot.cards.card import Attachment, Text
from bot.errors import NotFound, StoreForeign
from bot.store.documents import clean
from bot.store.outbox import AT_ONCE
from bot.store.records import Shown
from bot.store.unit import Unit
from tests.bot.store.opening import opened
from tests.bot.store.samples import ADA, NOON, THREAD, HeldClock, card, state

LATER = NOON + timedelta(minutes=1)


def _with(path: Path, clock: HeldClock | None = None) -> Callable[..., Any]:
    """Runs work in a transaction of its own, in the database of this path."""

    def run(work: Callable[[Unit], Any]) -> Any:
        async def go() -> Any:
            async with opened(path, clock) as store:
                return await store.write(work)

        return asyncio.run(go())

    return run


def _conversation(unit: Unit, platform: str = "slack") -> int:
    place = THREAD.model_copy(update={"platform": platform, "thread": ""})
    return unit.begin(place, ADA, state("analysing"), NOON).id


def _id(unit: Unit, conversation: int, slot: str) -> int:
    return _shown(unit, conversation, slot).id


def _shown(unit: Unit, conversation: int, slot: str) -> Shown:
    shown = unit.shown(conversation, slot)
    assert shown is not None
    return shown


def _due(unit: Unit, platform: str = "slack", limit: int = 50) -> list[tuple[int, str]]:
    return [(one.shown.conversation, one.shown.slot) for one in unit.due(platform, unit.now, limit)]


def test_a_card_and_a_file_come_back_as_they_were(tmp_path: Path) -> None:
    attachment = Attachment(name="quant_plan.json", artifact="plan", number=1, alternative="the plan")

    def follow(unit: Unit) -> list[Shown]:
        _conversation(unit)
        unit.show(1, "plan:3", card(), NOON, "d")
        unit.show(1, "file:3", attachment, NOON)
        assert unit.shown(1, "plan:4") is None
        return [_shown(unit, 1, "plan:3"), _shown(unit, 1, "file:3")]

    first, second = _with(tmp_path / "bot.db")(follow)
    assert first == Shown(1, 1, "plan:3", card(), 1, 0, None, NOON)
    assert second == Shown(2, 1, "file:3", attachment, 1, 0, None, NOON)


def test_only_another_content_is_another_version(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[int]:
        _conversation(unit)
        versions = []
        for what, asks in ((card(), "d"), (card(), "d"), (card("other"), "d"), (card("other"), ""), (card(), "")):
            unit.show(1, "plan:3", what, NOON, asks)
            versions.append(_shown(unit, 1, "plan:3").wanted)
        return versions

    assert _with(tmp_path / "bot.db")(follow) == [1, 1, 2, 3, 4]


def test_the_messages_of_a_thread_are_posted_in_order_and_drawn_again_at_any_time(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[list[tuple[int, str]]]:
        for _ in range(3):
            _conversation(unit)
        for slot in ("a", "b", "c"):
            for conversation in (2, 1):
                unit.show(conversation, slot, card(slot), NOON)
        seen = [_due(unit)]
        unit.delivered(_id(unit, 1, "a"), 1, "m1", NOON)
        seen.append(_due(unit))
        unit.show(1, "a", card("a once more"), NOON)
        seen.append(_due(unit))
        unit.postponed(_id(unit, 1, "b"), "later", LATER)
        seen.append(_due(unit))
        unit.undeliverable(_id(unit, 2, "a"), "never")
        seen.append(_due(unit))
        seen.append(_due(unit, limit=1))
        return seen

    assert _with(tmp_path / "bot.db")(follow) == [
        [(1, "a"), (2, "a")],
        [(1, "b"), (2, "a")],
        [(1, "a"), (1, "b"), (2, "a")],
        [(1, "a"), (2, "a")],
        [(1, "a"), (2, "b")],
        [(1, "a")],
    ]


def test_platforms_do_not_see_each_others_messages(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[Any]:
        unit.show(_conversation(unit, "discord"), "a", card(), NOON)
        unit.show(_conversation(unit, "slack"), "a", card(), NOON)
        places = [one.place.platform for one in unit.due("discord", NOON, 9)]
        return [_due(unit), places, unit.due_count("slack"), unit.due_count("web"), unit.next_due("web")]

    assert _with(tmp_path / "bot.db")(follow) == [[(2, "a")], ["discord"], 1, 0, None]


def test_an_attempt_that_may_have_arrived_is_known_after_a_restart(tmp_path: Path) -> None:
    run = _with(tmp_path / "bot.db")
    run(lambda unit: unit.show(_conversation(unit), "a", card(), NOON))

    def attempt(unit: Unit) -> Any:
        (delivery,) = unit.due("slack", NOON, 9)
        return delivery.tried, delivery.failures, delivery.key

    assert run(attempt) == (False, 0, "ptq-1-a")
    run(lambda unit: unit.trying(1, NOON))
    assert run(attempt) == (True, 0, "ptq-1-a")
    run(lambda unit: unit.postponed(1, "no answer", NOON))
    assert run(attempt) == (True, 1, "ptq-1-a")
    run(lambda unit: (unit.delivered(1, 1, "m1", NOON), unit.show(1, "a", card("new"), NOON)))
    assert run(attempt) == (False, 0, "ptq-1-a")


def test_what_changed_on_its_way_is_delivered_once_more(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[Any]:
        unit.show(_conversation(unit), "a", card("one"), NOON)
        unit.show(1, "a", card("two"), LATER)
        unit.delivered(1, 1, "m1", LATER)
        between = _shown(unit, 1, "a")
        still = _due(unit)
        unit.delivered(1, 2, "m2", LATER)
        unit.delivered(1, 1, "m2", LATER)  # an older answer that comes late takes nothing back
        after = _shown(unit, 1, "a")
        return [
            (between.wanted, between.delivered, between.message),
            still,
            (after.delivered, after.message),
            _due(unit),
        ]

    assert _with(tmp_path / "bot.db")(follow) == [(2, 1, "m1"), [(1, "a")], (2, "m2"), []]


def test_what_is_postponed_waits_for_its_time_even_with_new_content(tmp_path: Path) -> None:
    clock = HeldClock()
    run = _with(tmp_path / "bot.db", clock)
    run(lambda unit: unit.show(_conversation(unit), "a", card(), NOON))
    assert run(lambda unit: unit.next_due("slack")) == AT_ONCE
    run(lambda unit: unit.postponed(1, "rate limited", LATER))
    run(lambda unit: unit.show(1, "a", card("new"), NOON))
    run(lambda unit: unit.show(1, "b", card("behind it"), NOON))
    assert run(_due) == []
    assert run(lambda unit: unit.next_due("slack")) == LATER
    shown = run(lambda unit: _shown(unit, 1, "a"))
    assert (shown.error, shown.given_up) == ("rate limited", False)
    clock.move(seconds=60)
    assert run(_due) == [(1, "a")]
    assert run(lambda unit: unit.next_due("slack")) == AT_ONCE
    run(lambda unit: unit.delivered(1, 2, "m", clock.now()))
    assert run(lambda unit: _shown(unit, 1, "a").error) == ""
    assert run(_due) == [(1, "b")]


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=400)])
def test_a_clock_that_is_set_back_does_not_hold_deliveries(tmp_path: Path, back: timedelta) -> None:
    clock = HeldClock()
    run = _with(tmp_path / "bot.db", clock)
    run(lambda unit: unit.show(_conversation(unit), "a", card(), clock.now()))
    run(lambda unit: unit.postponed(1, "away", clock.now() + timedelta(minutes=5)))
    run(lambda unit: unit.show(_conversation(unit), "a", card(), clock.now()))
    assert run(_due) == [(2, "a")]
    clock.at -= back
    assert run(_due) == [(1, "a"), (2, "a")]
    assert run(lambda unit: unit.next_due("slack")) == AT_ONCE
    run(lambda unit: unit.postponed(1, "away", clock.now() + timedelta(minutes=5)))
    assert run(_due) == [(2, "a")]


def test_what_was_given_up_stays_so_until_it_has_something_new_to_show(tmp_path: Path) -> None:
    run = _with(tmp_path / "bot.db")
    run(lambda unit: unit.show(_conversation(unit), "a", card(), NOON))
    run(lambda unit: unit.undeliverable(1, "the channel is archived"))
    shown = run(lambda unit: _shown(unit, 1, "a"))
    assert (shown.wanted, shown.delivered, shown.error, shown.given_up) == (1, 0, "the channel is archived", True)
    assert run(_due) == []
    assert run(lambda unit: (unit.next_due("slack"), unit.due_count("slack"))) == (None, 0)
    run(lambda unit: unit.show(1, "a", card(), NOON))
    assert run(_due) == []
    run(lambda unit: unit.show(1, "a", card("new"), NOON))
    assert run(_due) == [(1, "a")]


def test_a_message_that_is_gone_is_posted_anew(tmp_path: Path) -> None:
    def follow(unit: Unit) -> Any:
        unit.show(_conversation(unit), "a", card(), NOON, "d")
        unit.trying(1, NOON)
        unit.delivered(1, 1, "m1", NOON)
        unit.show(1, "a", card("new"), NOON, "d")
        unit.forget_message(1)
        (delivery,) = unit.due("slack", NOON, 9)
        return delivery.shown.message, delivery.shown.delivered, delivery.shown.wanted, delivery.tried

    assert _with(tmp_path / "bot.db")(follow) == (None, 0, 2, False)


def test_a_thread_that_was_opened_is_where_its_messages_go(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[str]:
        unit.show(_conversation(unit), "a", card(), NOON)
        before = unit.due("slack", NOON, 9)
        unit.set_thread(1, "17.42")
        return [one.place.thread for one in (*before, *unit.due("slack", NOON, 9))]

    assert _with(tmp_path / "bot.db")(follow) == ["", "17.42"]


@pytest.mark.parametrize(
    "work",
    [
        lambda unit: unit.show(7, "a", card(), NOON),
        lambda unit: unit.trying(7, NOON),
        lambda unit: unit.delivered(7, 1, "m", NOON),
        lambda unit: unit.postponed(7, "e", NOON),
        lambda unit: unit.undeliverable(10**30, "e"),
        lambda unit: unit.forget_message(7),
    ],
)
def test_what_is_not_there_cannot_be_shown(tmp_path: Path, work: Callable[[Unit], None]) -> None:
    with pytest.raises(NotFound):
        _with(tmp_path / "bot.db")(work)


@pytest.mark.parametrize("words", ["half \ud800", "a\0b", "y" * 100_000])
def test_no_text_of_a_card_can_stop_the_store(tmp_path: Path, words: str) -> None:
    def follow(unit: Unit) -> Shown:
        _conversation(unit)
        what = card(words, body=(Text(text=words),))
        for _ in range(2):
            unit.show(1, "a", what, NOON)
        unit.delivered(1, 1, words, NOON)
        unit.postponed(1, words, NOON)
        return _shown(unit, 1, "a")

    shown = _with(tmp_path / "bot.db")(follow)
    assert shown.wanted == 1
    assert shown.what.body[0].text == clean(words)
    again = _with(tmp_path / "bot.db")(lambda unit: _shown(unit, 1, "a"))
    assert (again.message, again.error) == (clean(words), clean(words))


def test_a_message_that_cannot_be_read_holds_up_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def make(unit: Unit) -> None:
        for conversation in (_conversation(unit), _conversation(unit)):
            for slot in ("a", "b"):
                unit.show(conversation, slot, card(slot), NOON)

    def damage(unit: Unit) -> None:
        unit._session.execute(text("UPDATE outbox SET what = '{}' WHERE conversation_id = 1 AND slot = 'a'"))

    def look(unit: Unit) -> list[tuple[int, str]]:
        return _due(unit, limit=1)

    def deliver_all(unit: Unit) -> None:
        for conversation, slot in ((1, "b"), (2, "a"), (2, "b")):
            unit.delivered(_id(unit, conversation, slot), 1, f"m{conversation}{slot}", NOON)

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(make)
            await store.write(damage)
            for _ in range(2):
                assert await store.write(_due) == [(1, "b"), (2, "a")]
                assert await store.write(look) == [(1, "b")]
            await store.write(deliver_all)
            # Nobody is woken for it, yet it counts as what is not shown as it should be.
            assert await store.write(lambda unit: (_due(unit), unit.next_due("slack"))) == ([], None)
            assert await store.write(lambda unit: unit.due_count("slack")) == 1
            with pytest.raises(StoreForeign):
                await store.write(lambda unit: unit.shown(1, "a"))
            # New content is another matter.
            await store.write(lambda unit: unit.show(1, "a", card("new"), NOON))
            assert await store.write(lambda unit: unit.next_due("slack")) == AT_ONCE
            assert await store.write(_due) == [(1, "a")]

    asyncio.run(go())
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(told) == 1
    assert told[0].startswith("left out: The message a of thread 1 in the database cannot be read")
