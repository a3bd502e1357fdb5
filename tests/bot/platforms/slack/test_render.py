"""What a message of Slack shows of a card: the exact command, the actions of its buttons, and what has no room."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.card import Button, Card, CommandLine, LogPart, Meter, Text, Tone, decode_action
from bot.platforms.slack.render import Message, fallback, render
from tests.bot.platforms.slack.anything import BUTTONS, CARDS, Held
from tests.bot.platforms.slack.oracle import blocks_of, read, strings
from tests.bot.platforms.slack.test_any_card import QUICK

DIGEST = "ab" * 32
TRICKY = (
    "python quantize.py --model_dir '/m/`x` <http://evil|safe>' *bold* <!channel> &amp;",
    "python q.py --output_dir '/out/```' --model_dir <@U123> --exclude '*lm_head' ~x~",
    "python q.py " + " ".join(f"--exclude_layers model.layers.{number}.mlp" for number in range(100)),
    "a" * 4_000,
)


def card_of(*body: object, **more: object) -> Card:
    """A card with these blocks."""
    return Card.model_validate({"title": "t", "tone": Tone.WAITING, "body": body, "alternative": "t", **more})


def preformatted(message: Message) -> str:
    """What stands in a fixed width."""
    rich = blocks_of(message.blocks, "rich_text")
    return "".join(read(one) for block in rich for one in block["elements"] if one["type"] == "rich_text_preformatted")


@pytest.mark.parametrize("command", TRICKY, ids=range(len(TRICKY)))
def test_a_command_is_shown_letter_by_letter_with_its_digest(command: str) -> None:
    card = card_of(CommandLine(command=command, digest=DIGEST))
    message = render(card)
    assert preformatted(message) == command
    assert DIGEST in set(strings(message.blocks, "text"))
    old = fallback(card)
    sections = [block["text"]["text"] for block in blocks_of(old.blocks, "section")]
    assert "".join(sections[1:-1]) == command  # between the title and the digest
    assert DIGEST in sections[-1]


@settings(max_examples=60, deadline=None)
@given(command=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=3_000))
def test_any_command_in_plain_letters_is_shown_exactly(command: str) -> None:
    message = render(card_of(CommandLine(command=command, digest=DIGEST)))
    assert preformatted(message) == command


def test_a_command_that_has_no_room_says_where_the_whole_is() -> None:
    for drawn in (render, fallback):
        message = drawn(card_of(CommandLine(command="x" * 9_000, digest=DIGEST)))
        assert any("the beginning of the command only" in text for text in strings(message.blocks, "text"))
        assert any(DIGEST in text for text in strings(message.blocks, "text"))


@given(st.lists(BUTTONS, min_size=1, max_size=25))
@settings(max_examples=30, deadline=None, phases=QUICK)
def test_every_button_carries_its_action(buttons: list[Button]) -> None:
    elements = render(card_of(buttons=tuple(buttons))).blocks[-1]["elements"]
    assert [decode_action(one["value"]) for one in elements] == [
        button.action.model_copy(update={"digest": button.action.digest[:12]}) for button in buttons
    ]
    assert len({one["action_id"] for one in elements}) == len(buttons)


@given(held=CARDS)
@settings(max_examples=30, deadline=None, phases=QUICK)
def test_no_button_is_lost_however_long_the_card_is(held: Held) -> None:
    card = held.card
    for drawn in (render, fallback):
        shown = blocks_of(drawn(card).blocks, "actions")
        assert sum(len(block["elements"]) for block in shown) == min(len(card.buttons), 25)


def test_what_has_no_room_is_said() -> None:
    for drawn in (render, fallback):
        long = drawn(card_of(*[Text(text="x" * 9_000)] * 9)).blocks
        assert any("Not all of it has room in a message of Slack" in text for text in strings(long, "text"))
        short = drawn(card_of(Text(text="x"))).blocks
        assert not any("Not all of it" in text for text in strings(short, "text"))


def test_a_log_keeps_its_ends_and_says_how_much_is_left_out() -> None:
    log = LogPart(head=tuple(f"first {n}" for n in range(90)), left_out=7, tail=tuple(f"last {n}" for n in range(90)))
    for drawn in (render, fallback):
        shown = read(drawn(card_of(log)).blocks)
        assert "first 0" in shown
        assert "last 89" in shown
        assert "lines left out" in shown


def test_a_progress_is_a_plan_and_without_it_a_line() -> None:
    meter = Meter(phase="calibrating", percent=43.2, detail="12 of 128", stale="")
    plan = blocks_of(render(card_of(meter)).blocks, "plan")[0]
    assert plan["title"] == "43 % of the run"
    (task,) = plan["tasks"]
    assert task["title"] == "calibrating"
    assert task["status"] == "in_progress"
    assert "12 of 128" in read(task["details"])
    assert "43 % of the run: calibrating" in read(fallback(card_of(meter)).blocks)


def test_text_of_others_is_shown_as_it_is() -> None:
    told = "<!channel> <@U123> `x` *a* <http://evil|safe>"
    shown = json.dumps(render(card_of(Text(text=told))).blocks)
    assert "mrkdwn" not in shown
    assert read(render(card_of(Text(text=told))).blocks).endswith(told)
