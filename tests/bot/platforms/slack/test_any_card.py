"""Whatever stands in a card, Slack takes its message, nothing of it pings, and nothing of it is parsed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import Phase, given, settings

from bot.cards.card import Card
from bot.cards.drawing import Documents, draw
from bot.cards.history import history_card
from bot.cards.outcome import decided
from bot.conversation.state import State
from bot.platforms.slack import limits
from bot.platforms.slack.escape import PING, length
from bot.platforms.slack.render import Message, fallback, render
from tests import samples
from tests.bot.cards.hostile import TRICKS, filled
from tests.bot.cards.test_hostile import CARDS as HOUSE
from tests.bot.cards.test_hostile import MANIFEST, MANY, PLAN, Make
from tests.bot.conversation import samples as states
from tests.bot.platforms.slack.anything import ADA, CARDS, TEXT, Held
from tests.bot.platforms.slack.oracle import blocks_of, characters, faults, needs_oracle, strings

# Shrinking cards of hundreds of kilobytes takes minutes: what failed is told as it was drawn.
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)
DRAWINGS: list[Callable[[Card], Message]] = [render, fallback]
drawings = pytest.mark.parametrize("drawn", DRAWINGS, ids=["blocks", "sections"])


def within_limits(message: Message, card: Card) -> None:
    """What has to hold of any message, whatever Slack's types say."""
    assert characters(message) <= limits.MESSAGE
    assert len(message.blocks) <= limits.BLOCKS
    assert 0 < length(message.text) <= limits.ALTERNATIVE
    assert len(blocks_of(message.blocks, "table")) <= limits.TABLES
    for table in blocks_of(message.blocks, "table"):
        assert 0 < len(table["rows"]) <= limits.ROWS
        widths = {len(row) for row in table["rows"]}
        assert widths == {len(table["column_settings"])}
        assert widths.pop() <= limits.COLUMNS
    for block in blocks_of(message.blocks, "section"):
        assert 0 < length(block["text"]["text"]) <= limits.SECTION
    for block in blocks_of(message.blocks, "header"):
        assert length(block["text"]["text"]) <= limits.HEADER
    for block in blocks_of(message.blocks, "actions"):
        assert 0 < len(block["elements"]) <= limits.BUTTONS
        for button in block["elements"]:
            within_button(button)
    assert all(strings(message.blocks, "text", "title"))
    assert card.buttons == () or message.blocks[-1]["type"] == "actions"
    json.dumps(message.blocks, ensure_ascii=False).encode()  # no half of a surrogate pair


def within_button(button: dict[str, dict[str, dict[str, str]]]) -> None:
    """What has to hold of a button."""
    assert 0 < length(str(button["text"]["text"])) <= limits.BUTTON
    assert length(str(button["value"])) <= limits.BUTTON_VALUE
    if "confirm" in button:
        confirm = button["confirm"]
        assert 0 < length(confirm["title"]["text"]) <= limits.CONFIRM_TITLE
        assert 0 < length(confirm["text"]["text"]) <= limits.CONFIRM_TEXT
        assert 0 < length(confirm["confirm"]["text"]) <= limits.CONFIRM_BUTTON
        assert 0 < length(confirm["deny"]["text"]) <= limits.CONFIRM_BUTTON


def says_only_itself(message: Message, card: Card) -> None:
    """Nothing from outside is parsed, and one person at most is pinged."""
    pings = card.mention is not None and card.mention.id == ADA.id
    parsed = [block["text"]["text"] for block in message.blocks if block.get("text", {}).get("type") == "mrkdwn"]
    people = [*strings(message.blocks, "user_id"), *parsed]
    assert people in ([[ADA.id.removeprefix("slack:")], ["<@U012AB3CD>"]] if pings else [[]])
    assert "mrkdwn" not in json.dumps(
        [block for block in message.blocks if block.get("text", {}).get("text") not in parsed]
    )
    assert not any(PING in text for text in strings(message.blocks, "text", "title"))
    assert "<" not in message.text
    assert ">" not in message.text
    kinds = set(strings(message.blocks, "type"))
    assert kinds.isdisjoint({"link", "broadcast", "usergroup", "channel", "emoji", "markdown", "image"})


@drawings
@settings(max_examples=50, deadline=None, phases=QUICK)
@given(held=CARDS)
def test_every_card_stays_within_the_limits_and_says_only_itself(drawn: Callable[[Card], Message], held: Held) -> None:
    message = drawn(held.card)
    within_limits(message, held.card)
    says_only_itself(message, held.card)


@needs_oracle
@drawings
@settings(max_examples=30, deadline=None, phases=QUICK)
@given(held=CARDS)
def test_every_card_is_what_slack_describes(drawn: Callable[[Card], Message], held: Held) -> None:
    assert faults(drawn(held.card)) == []


@drawings
@settings(max_examples=30, deadline=None, phases=QUICK)
@given(held=CARDS)
def test_in_sections_there_is_nothing_that_an_old_workspace_refuses(
    drawn: Callable[[Card], Message], held: Held
) -> None:
    kinds = {block["type"] for block in drawn(held.card).blocks}
    assert kinds <= (
        {"section", "actions"} if drawn is fallback else {"header", "rich_text", "table", "plan", "actions"}
    )


@needs_oracle
@pytest.mark.parametrize("make", HOUSE.values(), ids=HOUSE.keys())
@settings(max_examples=5, deadline=None, phases=QUICK)
@given(texts=MANY, outcome=TEXT)
def test_the_bots_own_cards_stand_any_text(make: Make, texts: list[str], outcome: str) -> None:
    pending = make(texts).model_copy(update={"mention": None})
    for card in (pending, decided(pending, outcome)):
        for drawing in DRAWINGS:
            message = drawing(card)
            within_limits(message, card)
            says_only_itself(message, card)
            assert faults(message) == []


@needs_oracle
@pytest.mark.parametrize("trick", TRICKS, ids=range(len(TRICKS)))
@pytest.mark.parametrize("state", states.all_states().values(), ids=states.all_states().keys())
def test_every_state_is_taken_with_any_text(state: State, trick: str) -> None:
    documents = Documents(filled(samples.analysis(), [trick]), filled(PLAN, [trick]), filled(MANIFEST, [trick]))
    drawn = draw(7, None, filled(state, [trick]), None, documents, lambda _: None, states.NOON)
    for card in (one.what for one in drawn if isinstance(one.what, Card)):
        for drawing in DRAWINGS:
            message = drawing(card)
            within_limits(message, card)
            assert faults(message) == []


@needs_oracle
def test_an_empty_list_is_taken() -> None:
    assert faults(render(history_card([]))) == []
