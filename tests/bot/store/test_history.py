"""Finding conversations, and reading threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from bot.cards.card import Card
from bot.conversation.person import Person, Place
from bot.errors import RowUnreadable
from bot.platforms.contract import Clicked, Said
from bot.store.documents import clean
from bot.store.records import HistoryQuery, HistoryRow, Outcome, Shown, StoredEvent
from bot.store.store import look
from bot.store.unit import Reader, Unit
from tests.bot.store.opening import opened, url
from tests.bot.store.samples import ADA, BOB, KINDS, NOON, REQUEST, THREAD, HeldClock, card, clicked, said, state

PROCEEDED = Outcome(verdict="proceeded")


def _written(path: Path, *work: Callable[[Unit], Any]) -> None:
    async def go() -> None:
        async with opened(path, HeldClock()) as store:
            for one in work:
                await store.write(one)

    asyncio.run(go())


def _read(path: Path, read: Callable[[Reader], Any]) -> Any:
    return look(url(path), read)


def _ids(path: Path, **query: Any) -> list[int]:
    return [row.id for row in _read(path, lambda reader: reader.history(HistoryQuery(**query)))]


def _ask(
    words: str, model: str, person: Person = ADA, kind: str = "analysing", **request: Any
) -> Callable[[Unit], None]:
    """A request, as the bot takes it."""

    def begin(unit: Unit) -> None:
        asked = REQUEST.model_copy(update={"text": words, "model": model, **request})
        event = unit.receive(said(words, Place(platform="slack", channel="C1"), person=person), NOON)
        there = unit.begin(Place(platform="slack", channel="C1"), person, state(kind, request=asked), NOON)
        unit.settle(event.id, PROCEEDED, there.id, NOON)

    return begin


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three conversations that differ in everything."""
    path = tmp_path / "bot.db"
    grete = Person(id="discord:77", name="Grete Müller")
    _written(
        path,
        _ask("Please make 100% of it SMALL, it's for _me_", "meta-llama/Llama-3.1-8B"),
        _ask("so klein wie möglich, Größe zählt", "Qwen/Qwen3-8B", grete, "accepted"),
        _ask("量化这个模型 ДА", "/models/фи-3", BOB, "reviewing_plan", output_dir="/out/phi_3"),
    )
    return path


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [3, 2, 1]),
        ({"text": "small"}, [1]),
        ({"text": "LLAMA"}, [1]),
        ({"text": "8b"}, [2, 1]),
        ({"text": "8b", "state": "accepted"}, [2]),
        ({"text": "GRÖSSE"}, []),
        ({"text": "MÖGLICH"}, [2]),
        ({"text": "量化这个"}, [3]),
        ({"text": "化这"}, [3]),
        ({"text": "да"}, [3]),
        ({"text": "Ф"}, [3]),
        ({"text": "100%"}, [1]),
        ({"text": "0%"}, [1]),
        ({"text": "%"}, [1]),
        ({"text": "_m"}, [1]),
        ({"text": "_"}, [3, 1]),
        ({"text": "it's for _me_"}, [1]),
        ({"text": '"'}, []),
        ({"text": '" OR "'}, []),
        ({"text": "small OR klein"}, []),
        ({"text": "/out/phi"}, [3]),
        ({"text": "ada"}, []),
        ({"model": "qwen"}, [2]),
        ({"model": "фи-"}, [3]),
        ({"model": "/"}, [3, 2, 1]),
        ({"model": "klein"}, []),
        ({"scheme": "fp8"}, [3, 2]),
        ({"scheme": "p8", "person": "bo"}, [3]),
        ({"scheme": "int4"}, []),
        ({"person": "müller"}, [2]),
        ({"person": "discord:77"}, [2]),
        ({"person": "slack:"}, [3, 1]),
        ({"person": "ad"}, [1]),
        ({"state": "open"}, [3, 1]),
        ({"state": "accepted"}, [2]),
        ({"state": "ended"}, []),
        ({"limit": 2}, [3, 2]),
        ({"limit": 0}, []),
        ({"before": 3}, [2, 1]),
        ({"before": 3, "text": "8B"}, [2, 1]),
        ({"before": 2, "text": "llama"}, [1]),
        ({"before": 1}, []),
        ({"before": 10**30, "text": "llama"}, [1]),
        ({"before": -(10**30)}, []),
        ({"since": NOON, "until": NOON + timedelta(microseconds=1)}, [3, 2, 1]),
        ({"until": NOON}, []),
        ({"since": NOON + timedelta(microseconds=1)}, []),
    ],
    ids=str,
)
def test_conversations_are_found_by_what_is_asked(three: Path, query: dict[str, Any], found: list[int]) -> None:
    assert _ids(three, **query) == found


def test_a_row_says_what_became_of_the_request(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    _written(path, lambda unit: unit.begin(THREAD, ADA, state("accepted"), NOON))
    assert _read(path, lambda reader: reader.history(HistoryQuery())) == [
        HistoryRow(
            id=1,
            place=THREAD,
            requester=ADA,
            model="Qwen/Qwen3-8B",
            scheme="fp8",
            runner="gpu-1",
            state="accepted",
            created_at=NOON,
            changed_at=NOON,
            run="r-0123456789abcdef",
            output_dir="/out/qwen3-8b-fp8",
            size_bytes=8_000_000_000,
            original_size_bytes=16_000_000_000,
            perplexity=7.3,
            original_perplexity=7.2,
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_state_is_found_by_its_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bot.db"
    _written(
        path,
        *(lambda unit, one=one: unit.begin(Place(platform="web", channel="w"), ADA, state(one), NOON) for one in KINDS),
    )
    assert _ids(path, state=kind) == [KINDS.index(kind) + 1]
    assert _read(path, lambda reader: reader.counts()) == dict.fromkeys(KINDS, 1)
    ended = {"accepted", "rejected", "cancelled", "expired"}
    assert _ids(path, state="open") == [
        number + 1 for number in reversed(range(len(KINDS))) if KINDS[number] not in ended
    ]


def test_what_changes_is_found_as_it_is_now(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    changed = REQUEST.model_copy(update={"model": "google/gemma-3", "output_dir": "/out/elsewhere"})
    _written(
        path,
        _ask("quantize it", "Qwen/Qwen3-8B"),
        lambda unit: unit.save(1, state("analysing", request=changed), 1, NOON),
    )
    assert _ids(path, model="gemma") == [1]
    assert _ids(path, text="elsewhere") == [1]
    assert _ids(path, model="qwen") == []
    assert _ids(path, text="quantize it") == [1]
    _written(path, lambda unit: unit.save(1, state("accepted"), 2, NOON))
    assert _ids(path, model="gemma") == []
    assert _ids(path, scheme="fp8", text="qwen3-8b-fp8") == [1]


def test_words_in_a_thread_are_found_and_their_number_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"

    def say(words: str) -> Callable[[Unit], None]:
        def speak(unit: Unit) -> None:
            event = unit.receive(said(words), NOON)
            unit.settle(event.id, Outcome(verdict="refused", text="why not"), 1, NOON)

        return speak

    _written(path, _ask("quantize it", "Qwen/Qwen3-8B"), say("use the calibration set of Tuesday"), say("yes\0 PLEASE"))
    assert _ids(path, text="of tuesday") == [1]
    assert _ids(path, text="yes  please") == [1]
    assert _ids(path, text="why not") == []
    _written(path, *(say(f"{number} " + "pasted log " * 9_000) for number in range(20)), say("far too late"))
    assert _ids(path, text="pasted log") == [1]
    assert _ids(path, text="far too late") == [1]
    words = _read(
        path,
        lambda reader: (
            reader._session.connection().exec_driver_sql("SELECT sum(length(words)) FROM conversation_search").scalar()
        ),
    )
    assert words < 33_000


_TEXT = (
    st.text(max_size=12)
    | st.text(alphabet="\"*%_\\'(){}:^-+ abÄß\0", max_size=12)
    | st.sampled_from(["\ud800", "NEAR(a b)", "a AND"])
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=_TEXT, cut=st.integers(0, 6), length=st.integers(1, 6))
def test_a_piece_of_what_was_said_finds_it_and_no_query_is_an_error(
    tmp_path: Path, words: str, cut: int, length: int
) -> None:
    path = tmp_path / "bot.db"
    asked = REQUEST.model_copy(update={"text": words})
    _written(
        path, lambda unit: unit.begin(Place(platform="web", channel="w"), ADA, state("analysing", request=asked), NOON)
    )
    newest = _ids(path, limit=1)
    for query in ({"text": words}, {"model": words}, {"scheme": words}, {"person": words}, {"state": words}):
        _ids(path, **query)
    piece = clean(words)[cut : cut + length]
    if piece:
        assert _ids(path, text=piece, limit=1) == newest


def test_pages_follow_each_other_without_gaps(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    _written(path, *(_ask(f"number {number}", "Qwen/Qwen3-8B") for number in range(25)))
    for query in ({}, {"text": "number"}, {"state": "open"}, {"state": "analysing"}, {"text": "r "}):
        seen: list[int] = []
        while page := _ids(path, **query, limit=7, before=seen[-1] if seen else None):
            seen += page
        assert seen == list(range(25, 0, -1))


def test_a_thread_is_read_in_the_order_of_what_happened_whatever_the_clock_says(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    times = iter([NOON, NOON - timedelta(days=2), NOON + timedelta(days=1), NOON - timedelta(days=9), NOON, NOON])

    def ask(unit: Unit) -> None:
        event = unit.receive(said("quantize it"), next(times))
        there = unit.begin(THREAD, ADA, state("analysing"), NOON)
        unit.show(there.id, "analysis:1", card("first"), next(times))
        unit.settle(event.id, PROCEEDED, there.id, NOON)

    def answer(unit: Unit) -> None:
        event = unit.receive(clicked(1, "analysis", "a" * 64), next(times))  # type: ignore[arg-type]
        unit.show(1, "analysis:1", card("first, closed"), next(times))
        unit.show(1, "plan:2", card("second"), next(times))
        unit.settle(event.id, PROCEEDED, 1, NOON)

    def elsewhere(unit: Unit) -> None:
        unit.receive(said("not in this thread", THREAD.model_copy(update={"thread": "other"})), NOON)

    _written(path, ask, elsewhere, answer, lambda unit: unit.receive(said("thanks"), next(times)))
    thread = _read(path, lambda reader: reader.thread(1))
    told: list[str] = []
    for entry in thread:
        match entry:
            case StoredEvent(event=event):
                told.append(event.what.text if isinstance(event.what, Said) else type(event.what).__name__)
            case Shown(what=Card() as what):
                told.append(what.title)
    assert told == ["quantize it", "first, closed", Clicked.__name__, "second", "thanks"]
    assert _read(path, lambda reader: reader.thread(2)) == []


def test_what_cannot_be_read_keeps_nobody_from_reading_the_rest_of_a_thread(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"

    def ask(unit: Unit) -> None:
        unit.begin(THREAD, ADA, state("reviewing_plan"), NOON)
        for words in ("first", "second"):
            event = unit.receive(said(words, key=words), NOON)
            unit.settle(event.id, PROCEEDED, 1, NOON)
            unit.show(1, f"plan:{words}", card(words), NOON)

    def damage(unit: Unit) -> None:
        unit._session.execute(text("UPDATE inbox SET event = '{}' WHERE key = 'first'"))
        unit._session.execute(text("UPDATE outbox SET what = '[]' WHERE slot = 'plan:first'"))

    _written(path, ask, damage)
    entries = _read(path, lambda reader: reader.thread(1))
    assert [type(entry).__name__ for entry in entries] == ["StoredEvent", "Shown"]
    assert [entry.slot for entry in entries if isinstance(entry, Shown)] == ["plan:second"]
    with pytest.raises(RowUnreadable):
        _read(path, lambda reader: reader.event(1))
