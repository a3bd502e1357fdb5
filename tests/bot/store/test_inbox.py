"""What people did is kept once, in order, with what they can have seen, and settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from bot.cards.card import Action, ActionKind
from bot.conversation.person import Place
from bot.conversation.state import Checkpoint
from bot.errors import BotError, NotFound, StoreForeign
from bot.platforms.contract import Clicked, Event, Said
from bot.store.documents import clean
from bot.store.records import Outcome
from bot.store.unit import Unit
from tests.bot.store.opening import opened
from tests.bot.store.samples import ADA, MANIFEST, NOON, PLAN, THREAD, card, clicked, edited, said, state

PROCEEDED = Outcome(verdict="proceeded")


def _settled(path: Path, *work: Callable[[Unit], Any]) -> list[Any]:
    async def go() -> list[Any]:
        async with opened(path) as store:
            return [await store.write(one) for one in work]

    return asyncio.run(go())


def _waiting_for_a_yes(unit: Unit, number: int = 1) -> int:
    """A conversation at checkpoint 2; the id of the message with its card, which is not delivered."""
    there = unit.begin(THREAD, ADA, state("reviewing_plan"), NOON)
    assert there.id == number
    unit.show(there.id, "plan:1", card(), NOON, PLAN)
    shown = unit.shown(there.id, "plan:1")
    assert shown is not None
    return shown.id


def _seen(unit: Unit, event: Event) -> str:
    stored = unit.event(unit.receive(event, NOON).id)
    assert stored is not None
    return stored.seen


def test_an_event_is_kept_once_however_often_it_comes(tmp_path: Path) -> None:
    event = said("hello", key="k")
    again = said("something else", key="k")

    def all_of_them(unit: Unit) -> list[tuple[int, bool]]:
        receipts = [unit.receive(one, NOON) for one in (event, said("other"), again, event)]
        return [(receipt.id, receipt.new) for receipt in receipts]

    (within,) = _settled(tmp_path / "bot.db", all_of_them)
    assert within == [(1, True), (2, True), (1, False), (1, False)]
    later, waiting = _settled(
        tmp_path / "bot.db", lambda unit: unit.receive(again, NOON), lambda unit: unit.waiting_events(9)
    )
    assert (later.id, later.new) == (1, False)
    assert [one.event for one in waiting] == [event, waiting[1].event]


@pytest.mark.parametrize(
    "make",
    [lambda: said("please"), lambda: clicked(1, Checkpoint.PLAN, PLAN), lambda: edited(1)],
    ids=["words", "click", "form"],
)
def test_every_kind_of_event_comes_back_as_it_was(tmp_path: Path, make: Callable[[], Event]) -> None:
    event = make()
    receipt, stored = _settled(tmp_path / "bot.db", lambda unit: unit.receive(event, NOON), lambda unit: unit.event(1))
    assert stored.event == event
    assert (stored.id, stored.received_at, stored.outcome) == (receipt.id, NOON, None)


def test_what_waits_comes_in_its_order_until_it_is_settled_once(tmp_path: Path) -> None:
    def receive(unit: Unit) -> None:
        for number in range(5):
            unit.receive(said(f"word {number}"), NOON)

    def settle(unit: Unit) -> None:
        there = unit.begin(THREAD, ADA, state("analysing"), NOON)
        unit.settle(2, Outcome(verdict="refused", text="No."), None, NOON)
        unit.settle(4, PROCEEDED, there.id, NOON)

    _, _, waiting, first_two, two, four = _settled(
        tmp_path / "bot.db",
        receive,
        settle,
        lambda unit: [one.id for one in unit.waiting_events(9)],
        lambda unit: [one.id for one in unit.waiting_events(2)],
        lambda unit: unit.event(2),
        lambda unit: unit.event(4),
    )
    assert (waiting, first_two) == ([1, 3, 5], [1, 3])
    assert (two.outcome, two.conversation) == (Outcome(verdict="refused", text="No."), None)
    assert (four.outcome, four.conversation) == (PROCEEDED, 1)
    with pytest.raises(BotError) as refused:
        _settled(tmp_path / "bot.db", lambda unit: unit.settle(2, PROCEEDED, None, NOON))
    assert refused.value.code == "settled_before"
    with pytest.raises(NotFound):
        _settled(tmp_path / "bot.db", lambda unit: unit.settle(6, PROCEEDED, None, NOON))
    with pytest.raises(BotError) as refused:
        _settled(tmp_path / "bot.db", lambda unit: unit.settle(1, PROCEEDED, 99, NOON))
    assert refused.value.code == "store_conflict"


def test_words_have_seen_the_card_that_was_delivered_before_them(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[str]:
        shown, seen = _waiting_for_a_yes(unit), []
        seen.append(_seen(unit, said("yes, before it is there")))
        unit.delivered(shown, 1, "m1", NOON)
        seen.append(_seen(unit, said("yes")))
        seen.append(_seen(unit, said("yes, in another thread", THREAD.model_copy(update={"thread": "else"}))))
        seen.append(_seen(unit, said("yes, outside any", Place(platform="slack", channel="C1"))))
        seen.append(_seen(unit, clicked(1, Checkpoint.PLAN, PLAN)))
        seen.append(_seen(unit, edited(1)))
        return seen

    assert _settled(tmp_path / "bot.db", follow) == [["", PLAN, "", "", "", ""]]


def test_words_after_an_edit_have_not_seen_the_new_card_until_it_is_there(tmp_path: Path) -> None:
    new = "f" * 64

    def follow(unit: Unit) -> list[str]:
        shown, seen = _waiting_for_a_yes(unit), []
        unit.delivered(shown, 1, "m1", NOON)
        there = unit.conversation(1)
        assert there is not None
        changed = there.state.model_copy(update={"plan": there.state.plan.model_copy(update={"digest": new})})  # type: ignore[union-attr]
        unit.save(1, changed, there.version, NOON)
        unit.show(1, "plan:1", card("changed", new), NOON, new)
        seen.append(_seen(unit, said("yes")))
        unit.delivered(shown, 1, "m1", NOON)  # the old card arrives once more
        seen.append(_seen(unit, said("yes")))
        unit.show(1, "plan:1", card("changed, with a note", new), NOON, new)
        unit.delivered(shown, 2, "m1", NOON)  # not the newest, but it asks about the same plan
        seen.append(_seen(unit, said("yes")))
        unit.show(1, "plan:1", card("closed", new, buttons=()), NOON)
        seen.append(_seen(unit, said("yes")))
        unit.delivered(shown, 4, "m1", NOON)
        seen.append(_seen(unit, said("yes")))
        return seen

    assert _settled(tmp_path / "bot.db", follow) == [["", "", new, new, ""]]


@pytest.mark.parametrize("kind", ["planning", "running", "failed", "accepted"])
def test_where_nothing_is_asked_nothing_was_seen(tmp_path: Path, kind: str) -> None:
    def follow(unit: Unit) -> str:
        shown = _waiting_for_a_yes(unit)
        unit.delivered(shown, 1, "m1", NOON)
        unit.save(1, state(kind), 1, NOON)
        return _seen(unit, said("yes"))

    assert _settled(tmp_path / "bot.db", follow) == [""]


def test_a_card_of_another_conversation_is_not_what_was_seen(tmp_path: Path) -> None:
    def follow(unit: Unit) -> str:
        other = THREAD.model_copy(update={"thread": "other"})
        unit.begin(other, ADA, state("reviewing_plan"), NOON)
        unit.delivered(_waiting_for_a_yes(unit, 2), 1, "m1", NOON)
        return _seen(unit, said("yes", other))

    assert _settled(tmp_path / "bot.db", follow) == [""]


def test_words_in_a_thread_belong_to_it_before_anything_acts_upon_them(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[int]:
        _waiting_for_a_yes(unit)
        unit.receive(said("is this right?"), NOON)
        unit.receive(said("quantize something else", Place(platform="slack", channel="C1")), NOON)
        return [one.id for one in unit.events_of(1)]

    assert _settled(tmp_path / "bot.db", follow) == [[1]]


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.sampled_from(
    ["\0", "a\0b", "x" * 100_000]
)
_ANY = _WORDS | st.text(max_size=50) | st.sampled_from(["\ud800", "\udfff tail", "\ud83d\ude00"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=_WORDS, name=_WORDS.map(lambda one: one[:200]), thread=_ANY, reply=_ANY, digest=st.text(max_size=64))
def test_whatever_people_send_is_kept_and_comes_back(
    tmp_path: Path, words: str, name: str, thread: str, reply: str, digest: str
) -> None:
    person = ADA.model_copy(update={"name": name})
    place = Place.model_construct(platform="slack", channel="C1", thread=thread)
    action = Action.model_construct(kind=ActionKind.APPROVE, conversation=1, checkpoint=None, digest=digest)
    for what in (Said(text=words), Clicked.model_construct(kind="clicked", action=action)):
        event = Event.model_construct(key=said("").key, person=person, place=place, at=NOON, what=what, reply_to=reply)

        def receive(unit: Unit, event: Event = event) -> Any:
            return unit.event(unit.receive(event, NOON).id)

        (stored,) = _settled(tmp_path / "bot.db", receive)
        assert stored.event.person.name == name
        assert stored.event.place.thread == clean(thread)
        assert stored.event.reply_to == clean(reply)
        if isinstance(what, Said):
            assert stored.event.what.text == words
        else:
            assert stored.event.what.action.digest == clean(digest)


def test_a_digest_at_the_last_checkpoint_is_that_of_the_command(tmp_path: Path) -> None:
    def follow(unit: Unit) -> str:
        unit.begin(THREAD, ADA, state("reviewing_result"), NOON)
        unit.show(1, "result:1", card("Accept?", MANIFEST), NOON, MANIFEST)
        shown = unit.shown(1, "result:1")
        assert shown is not None
        unit.delivered(shown.id, 1, "m", NOON)
        return _seen(unit, said("yes"))

    assert _settled(tmp_path / "bot.db", follow) == [MANIFEST]


def test_a_result_whose_card_has_not_come_yet_was_not_seen_though_its_command_was(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[str]:
        unit.begin(THREAD, ADA, state("reviewing_result"), NOON)
        unit.show(1, "command:1", card("Run it?", MANIFEST), NOON, MANIFEST)
        command = unit.shown(1, "command:1")
        assert command is not None
        unit.delivered(command.id, 1, "m1", NOON)
        unit.show(1, "result:1", card("Accept?", MANIFEST), NOON, MANIFEST)
        before = _seen(unit, said("yes"))
        result = unit.shown(1, "result:1")
        assert result is not None
        unit.delivered(result.id, 1, "m2", NOON)
        return [before, _seen(unit, said("yes"))]

    assert _settled(tmp_path / "bot.db", follow) == [["", MANIFEST]]


def test_words_written_while_something_else_was_asked_have_not_seen_what_is_asked_now(tmp_path: Path) -> None:
    def follow(unit: Unit) -> list[str]:
        unit.delivered(_waiting_for_a_yes(unit), 1, "m1", NOON)
        late, right = said("yes"), said("yes")
        written = [
            event.model_copy(update={"what": event.what.model_copy(update={"asked": asked})})
            for event, asked in ((late, "e" * 64), (right, PLAN))
        ]
        return [_seen(unit, event) for event in written]

    assert _settled(tmp_path / "bot.db", follow) == [["", PLAN]]


def test_an_event_that_cannot_be_read_waits_and_keeps_no_other_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def receive(unit: Unit) -> None:
        for number in range(5):
            unit.receive(said(f"word {number}"), NOON)

    def damage(unit: Unit) -> None:
        unit._session.execute(
            text("UPDATE inbox SET event = replace(event, '\"said\"', '\"sung\"') WHERE id IN (1, 2, 4)")
        )

    async def go() -> None:
        async with opened(tmp_path / "bot.db") as store:
            await store.write(receive)
            await store.write(damage)
            for _ in range(2):
                assert [one.id for one in await store.read(lambda reader: reader.waiting_events(9))] == [3, 5]
                assert [one.id for one in await store.read(lambda reader: reader.waiting_events(1))] == [3]
            await store.write(lambda unit: unit.settle(3, PROCEEDED, None, NOON))
            assert [one.id for one in await store.read(lambda reader: reader.waiting_events(1))] == [5]
            with pytest.raises(StoreForeign):
                await store.read(lambda reader: reader.event(1))

    asyncio.run(go())
    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [message.split(" in the database")[0] for message in told] == [
        f"left out: Event {number}" for number in (1, 2, 4)
    ]
    # Nothing of it is lost: whoever opens the database with the release that wrote it finds it unsettled.
    (unsettled,) = _settled(
        tmp_path / "bot.db",
        lambda unit: unit._session.scalar(text("SELECT count(*) FROM inbox WHERE outcome IS NULL")),
    )
    assert unsettled == 4


def test_an_event_that_can_be_read_again_after_a_restart_comes_in_its_order(tmp_path: Path) -> None:
    def change(old: str, new: str) -> Callable[[Unit], Any]:
        statement = text("UPDATE inbox SET event = replace(event, :old, :new) WHERE id = 1")
        return lambda unit: unit._session.execute(statement, {"old": old, "new": new}) and None

    def waiting(unit: Unit) -> list[int]:
        return [one.id for one in unit.waiting_events(9)]

    path = tmp_path / "bot.db"
    _settled(path, lambda unit: unit.receive(said("a"), NOON), lambda unit: unit.receive(said("b"), NOON))
    assert _settled(path, change('"said"', '"sung"'), waiting)[1] == [2]
    assert _settled(path, change('"sung"', '"said"'), waiting)[1] == [1, 2]
