"""Cards as messages of Slack: within its limits whatever stands in them, and nothing that pings or looks otherwise."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.card import (
    Action,
    ActionKind,
    Button,
    Card,
    CommandLine,
    Fields,
    LogPart,
    Meter,
    Note,
    Notes,
    Table,
    Text,
    Tone,
    decode_action,
)
from bot.conversation.person import Person
from bot.platforms.slack import limits
from bot.platforms.slack.render import Message, fallback, render
from schemas.artifacts.plan import Severity

ORACLES = os.environ.get("PTQ_ORACLES", "")
DRAWINGS: list[Callable[[Card], Message]] = [render, fallback]
PIECES = ("<!channel>", "<@U123>", "`x` <http://a|b>", "*a*", "\n```\n", "a" * 9_000, "", " ", "🙂" * 400)
NASTY = st.integers(0, len(PIECES) - 1).map(PIECES.__getitem__)
TEXT = st.one_of(st.text(max_size=400), NASTY, st.lists(NASTY, max_size=4).map("".join))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    width = draw(st.integers(1, 25))
    row = st.lists(TEXT, min_size=width, max_size=width).map(tuple)
    count = draw(st.sampled_from([0, 1, 3, 150]))
    rows = draw(st.lists(row, min_size=1, max_size=3))
    return Table(
        caption=draw(TEXT),
        head=draw(row),
        rows=tuple(rows[number % len(rows)] for number in range(count)),
        numeric=(0,),
    )


NOTES = st.builds(Note, severity=st.sampled_from(Severity), message=TEXT, hint=TEXT)
BLOCKS = st.one_of(
    st.builds(Text, text=TEXT),
    st.builds(Fields, fields=st.lists(st.tuples(TEXT, TEXT), max_size=30).map(tuple)),
    tables(),
    st.builds(Notes, title=TEXT, notes=st.lists(NOTES, max_size=40).map(tuple)),
    st.builds(CommandLine, command=TEXT, digest=st.text("0123456789abcdef", min_size=12, max_size=64)),
    st.builds(Meter, phase=TEXT, percent=st.floats(0, 100), detail=TEXT, stale=TEXT),
    st.builds(
        LogPart,
        head=st.lists(TEXT, max_size=30).map(tuple),
        left_out=st.integers(0, 10**6),
        tail=st.lists(TEXT, max_size=30).map(tuple),
    ),
)
ACTIONS = st.builds(
    Action,
    kind=st.sampled_from(ActionKind),
    conversation=st.integers(0, 10**14),
    digest=st.text("0123456789abcdef", min_size=12, max_size=64),
    step=st.integers(0, 10**9),
)
BUTTONS = st.builds(
    Button, label=TEXT, action=ACTIONS, style=st.sampled_from(["primary", "danger", "plain"]), confirm=TEXT
)
PEOPLE = st.builds(
    Person, id=st.sampled_from(["slack:U012AB3CD", "web:ada", "slack:<!here>"]), name=st.text(max_size=200)
)
CARDS = st.builds(
    Card,
    title=TEXT,
    tone=st.sampled_from(Tone),
    body=st.lists(BLOCKS, max_size=20).map(tuple),
    buttons=st.lists(BUTTONS, max_size=30).map(tuple),
    outcome=TEXT,
    alternative=TEXT,
    mention=st.none() | PEOPLE,
)


def checker() -> ModuleType:
    if not ORACLES:
        pytest.skip("PTQ_ORACLES does not name a folder with the platforms' own descriptions")
    spec = importlib.util.spec_from_file_location("check_payloads", Path(ORACLES) / "check_payloads.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def strings(node: Any, key: str) -> Iterator[str]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key and isinstance(value, str):
                yield value
            yield from strings(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value, key)


@given(CARDS)
@settings(max_examples=60, deadline=None)
def test_every_card_is_taken_by_slack(card: Card) -> None:
    check = checker()
    for drawn in DRAWINGS:
        message = drawn(card)
        body = {"channel": "C1", "text": message.text or "-", "blocks": message.blocks}
        assert list(check.check_slack("chat.postMessage", body)) == []


@given(CARDS)
@settings(max_examples=60, deadline=None)
def test_every_card_stays_within_the_limits(card: Card) -> None:
    for drawn in DRAWINGS:
        message = drawn(card)
        assert len(message.blocks) <= limits.BLOCKS
        assert len(message.text) <= limits.ALTERNATIVE
        shown = sum(map(len, strings(message.blocks, "text")))
        labels = sum(
            len(text) for block in message.blocks if block["type"] == "actions" for text in strings(block, "text")
        )
        assert shown - labels <= limits.MESSAGE + 2_000  # marks, digests and what says that something is missing
        assert all(len(table["rows"]) <= limits.ROWS for table in message.blocks if table["type"] == "table")
        assert sum(block["type"] == "table" for block in message.blocks) <= 1


@given(CARDS)
@settings(max_examples=60, deadline=None)
def test_nothing_from_outside_is_parsed_and_one_person_at_most_is_pinged(card: Card) -> None:
    for drawn in DRAWINGS:
        blocks = drawn(card).blocks
        assert '"mrkdwn"' not in json.dumps([block["type"] for block in blocks])
        assert "mrkdwn" not in set(strings(blocks, "type"))
        pinged = list(strings(blocks, "user_id"))
        assert pinged == (["U012AB3CD"] if card.mention and card.mention.id == "slack:U012AB3CD" else [])


@given(st.lists(BUTTONS, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_every_button_carries_its_action(buttons: list[Button]) -> None:
    card = Card(title="t", tone=Tone.WAITING, buttons=tuple(buttons), alternative="t")
    elements = render(card).blocks[-1]["elements"]
    assert [decode_action(one["value"]) for one in elements] == [
        button.action.model_copy(update={"digest": button.action.digest[:12]}) for button in buttons
    ]
    assert len({one["action_id"] for one in elements}) == len(buttons)


def test_a_command_is_shown_letter_by_letter_with_its_digest() -> None:
    command = "python quantize.py --model_dir '/m/`x` <http://evil|safe>' *bold* <!channel> &amp;"
    card = Card(
        title="t", tone=Tone.WAITING, body=(CommandLine(command=command, digest="ab" * 32),), alternative="Run it?"
    )
    for drawn in DRAWINGS:
        block = drawn(card).blocks[1]
        shown = block["elements"][0]
        assert shown["type"] == "rich_text_preformatted"
        assert "".join(strings(shown, "text")) == command
        assert "ab" * 32 in set(strings(block, "text"))


def test_what_has_no_room_is_said() -> None:
    long = Card(title="t", tone=Tone.WORKING, body=(Text(text="x" * 9_000),) * 9, alternative="t")
    assert any("Not all of it has room here" in text for text in strings(render(long).blocks, "text"))
    short = Card(title="t", tone=Tone.WORKING, body=(Text(text="x"),), alternative="t")
    assert not any("Not all of it has room here" in text for text in strings(render(short).blocks, "text"))


def test_a_progress_is_a_plan_and_without_it_a_line() -> None:
    card = Card(
        title="t",
        tone=Tone.WORKING,
        body=(Meter(phase="calibrating", percent=43.2, detail="12 of 128", stale=""),),
        alternative="t",
    )
    assert render(card).blocks[1]["tasks"][0]["title"] == "43 %, calibrating"
    assert list(strings(fallback(card).blocks[1], "text")) == ["calibrating  43 %  12 of 128"]
