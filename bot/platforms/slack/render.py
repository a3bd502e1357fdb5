"""A card as a message of Slack. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from bot.cards.card import Block as CardBlock
from bot.cards.card import Card, CommandLine, Tone
from bot.conversation.state import Checkpoint
from bot.platforms.slack import limits
from bot.platforms.slack.blocks import in_rich_blocks, in_sections, reserve
from bot.platforms.slack.buttons import buttons_row
from bot.platforms.slack.escape import Part, escaped, length, plain, slack_id
from bot.platforms.slack.rich import line, rich, user, words
from bot.platforms.slack.room import Room

_Draw = Callable[[CardBlock, Room], list[Part]]

_MARKS = {
    Tone.WAITING: "\N{LARGE YELLOW CIRCLE}",
    Tone.WORKING: "\N{LARGE BLUE CIRCLE}",
    Tone.GOOD: "\N{LARGE GREEN CIRCLE}",
    Tone.BAD: "\N{LARGE RED CIRCLE}",
    Tone.CLOSED: "\N{MEDIUM WHITE CIRCLE}",
}
_FILES = {
    Checkpoint.ANALYSIS: "model_analysis.json in this thread holds",
    Checkpoint.PLAN: "quant_plan.json in this thread holds",
    Checkpoint.COMMAND: "run_manifest.yaml in this thread holds",
}
_ALL_FILES = "the files of this thread hold"
_LEFT_OUT = "Not all of it has room in a message of Slack: {} the whole."
_OUTCOME, _NAME = 600, 200


@dataclass(frozen=True)
class Message:
    """What goes to chat.postMessage: blocks, and the text for notifications and screen readers."""

    blocks: list[Part]
    text: str


def render(card: Card, whole: str = "") -> Message:
    """The card in Slack's own blocks.

    `whole` says where the whole of what has no room is ("`ptq-bot history` tells"), for cards beside any thread.
    """
    return _message(card, in_rich_blocks, _Frame(), whole)


def fallback(card: Card, whole: str = "") -> Message:
    """The same in sections alone, for a workspace that refuses newer blocks. Here too nothing of outside is parsed."""
    return _message(card, in_sections, _PlainFrame(), whole)


class _Frame:
    """What stands around a card's body."""

    def title(self, text: str) -> Part:
        return {"type": "header", "text": plain(text, limits.HEADER)}

    def decided(self, text: str) -> Part:
        return rich(line(words(text, bold=True)))

    def told(self, text: str) -> Part:
        return rich(line(words(text, italic=True)))

    def mention(self, person: str) -> Part:
        return rich(line(user(person)))


class _PlainFrame(_Frame):
    """The same in sections."""

    def title(self, text: str) -> Part:
        return self.told(text)

    def decided(self, text: str) -> Part:
        return self.told(text)

    def told(self, text: str) -> Part:
        return {"type": "section", "text": plain(text, limits.SECTION)}

    def mention(self, person: str) -> Part:
        # The one text that Slack parses: an id that Slack gave, and nothing else.
        return {"type": "section", "text": {"type": "mrkdwn", "text": f"<@{person}>", "verbatim": True}}


def _message(card: Card, draw: _Draw, frame: _Frame, whole: str) -> Message:
    text = escaped(card.alternative.strip() or card.title.strip() or "A card", limits.ALTERNATIVE)
    end = [buttons_row(card.buttons)] if card.buttons else []
    missing = _LEFT_OUT.format(whole or _where(card))[: limits.SECTION]
    room = Room(limits.MESSAGE - length(text) - shown_length(end) - length(missing), limits.BLOCKS - 5)
    start = [frame.title(f"{_MARKS[card.tone]} {room.take_single(card.title, limits.HEADER - 3)}")]
    room.left -= 3  # the mark and its blank
    if card.mention is not None:
        person = slack_id(card.mention.id)
        name = "" if person else room.take_single(card.mention.name or card.mention.id, _NAME)
        start.append(frame.mention(person) if person else frame.told(name))
        room.left -= len(person or "") + 3
    if card.outcome.strip():
        end.insert(0, frame.decided(room.take_single(card.outcome, _OUTCOME)))
    rest = length(text) + shown_length(start) + shown_length(end) + length(missing)
    body = _kept(_drawn(card.body, draw, room), limits.MESSAGE - rest, room)
    if room.cut:
        body.append(frame.told(missing))
    return Message([*start, *body, *end], text)


def _kept(drawn: list[tuple[CardBlock, list[Part]]], most: int, room: Room) -> list[Part]:
    """Blocks of these many characters at most. Parts that may not be empty hold a letter that nothing counted before:
    where many of them add up to too much, the last ones go, and the command never.
    """
    sizes = [shown_length(parts) for _, parts in drawn]
    over, kept = sum(sizes) - most, list(drawn)
    for number in reversed(range(len(drawn))):
        if over > 0 and not isinstance(drawn[number][0], CommandLine):
            over -= sizes[number]
            del kept[number]
            room.cut = True
    return [part for _, parts in kept for part in parts]


def _drawn(blocks: tuple[CardBlock, ...], draw: _Draw, room: Room) -> list[tuple[CardBlock, list[Part]]]:
    """The card's blocks, none of which takes the room that later ones surely get."""
    room.cut = room.cut or len(blocks) > room.blocks
    kept = blocks[: room.blocks]
    reserves = [reserve(block) for block in kept]
    total = sum(reserves)
    if total > room.left:  # the command is what people approve: others share what it leaves
        command = sum(one for block, one in zip(kept, reserves, strict=True) if isinstance(block, CommandLine))
        left = max(room.left - command, 0)
        reserves = [
            one * room.left // total
            if command >= room.left or command == total
            else one
            if isinstance(block, CommandLine)
            else one * left // (total - command)
            for block, one in zip(kept, reserves, strict=True)
        ]
    after = [*reversed(list(accumulate(reversed(reserves)))), 0][1:]
    drawn: list[tuple[CardBlock, list[Part]]] = []
    for number, block in enumerate(kept):
        characters = room.left - after[number]
        part = room.part(characters, max(room.blocks - (len(kept) - number - 1), 1))
        parts = draw(block, part)
        room.close(part, characters, len(parts))
        drawn.append((block, parts))
    return drawn


def _where(card: Card) -> str:
    asked = next((button.action.checkpoint for button in card.buttons if button.action.checkpoint), None)
    return _FILES.get(asked, _ALL_FILES) if asked else _ALL_FILES


def shown_length(parts: object) -> int:
    """The characters of everything that people read in blocks."""
    match parts:
        case dict():
            return sum(
                length(value) if name in _READ and isinstance(value, str) else shown_length(value)
                for name, value in parts.items()
            )
        case list():
            return sum(map(shown_length, parts))
        case _:
            return 0


_READ = frozenset({"text", "title", "user_id"})
