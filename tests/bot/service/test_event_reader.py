"""Server-sent events: the same however the bytes are cut, and nothing that is no event of a runner."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.service.event_reader import LARGEST_EVENT, EventReader, News, StrangeEvent
from schemas.runs import Progress, Progressed, RunEvent, RunState, StateChanged

AT = datetime(2026, 1, 2, tzinfo=UTC)

EVENTS = [
    RunEvent(run="run-1", number=1, at=AT, what=StateChanged(state=RunState.QUEUED, reason="höchstens\u2028so")),
    RunEvent(run="run-2", number=7, at=AT, what=Progressed(progress=Progress(percent=12.5))),
]


def _stream(end: str = "\n") -> bytes:
    parts = [": connected", ""]
    for number, event in enumerate(EVENTS):
        parts += [f"id: e.{number}", "event: run", f"data: {event.model_dump_json()}", ""]
    parts += ["id: e.9", "event: reset", "data: {}", "", "event: other", "data: whatever", "", "retry: 5", "", ""]
    return end.join(parts).encode()


WHOLE = [News("e.0", EVENTS[0]), News("e.1", EVENTS[1]), News("e.9", None)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@settings(deadline=None)
@given(data=st.data())
def test_the_same_however_it_is_cut(end: str, data: st.DataObject) -> None:
    stream = _stream(end) + b": more"  # a carriage return alone ends a line only when something follows
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = EventReader()
    found = [
        news
        for begin, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for news in reader.read(stream[begin:stop])
    ]
    assert found == WHOLE


def test_byte_by_byte() -> None:
    reader = EventReader()
    assert [news for byte in _stream("\r\n") for news in reader.read(bytes([byte]))] == WHOLE


def test_data_of_several_lines_is_joined_and_the_place_stays() -> None:
    event = EVENTS[0].model_dump_json().replace(",", ",\ndata: ", 1)
    reader = EventReader("e.5")
    assert reader.read(f"event: run\ndata: {event}\n\n".encode()) == [News("e.5", EVENTS[0])]


STRANGE = {
    "not json": b"event: run\ndata: {\n\n",
    "not utf-8": b'event: run\ndata: "\xff"\n\n',
    "deep": b"event: run\ndata: " + b"[" * 100_000 + b"\n\n",
    "nothing": b"event: run\n\n",
    "another document": b'event: run\ndata: {"run": "x"}\n\n',
    "a place that cannot be sent": b"id: a b\n",
    "an empty place": b"id:\n",
    "a long place": b"id: " + b"x" * 201 + b"\n",
    "a place with letters": "id: ü\n".encode(),
}


@pytest.mark.parametrize("stream", STRANGE.values(), ids=STRANGE.keys())
def test_what_is_no_event_is_refused(stream: bytes) -> None:
    with pytest.raises(StrangeEvent) as caught:
        EventReader().read(stream)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("piece", [b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"], ids=["a line", "many lines"])
def test_an_endless_event_is_refused(piece: bytes) -> None:
    reader = EventReader()

    def endless() -> None:
        for _ in range(2 * LARGEST_EVENT // len(piece)):
            reader.read(piece)

    with pytest.raises(StrangeEvent, match="larger than"):
        endless()


def test_endless_comments_are_not_kept() -> None:
    reader = EventReader()
    for _ in range(3 * LARGEST_EVENT // 1024):
        assert reader.read(b": " + b"x" * 1020 + b"\n\n") == []
    assert reader.read(b"event: reset\n\n") == [News(None, None)]
