"""How much a message may still hold."""

from __future__ import annotations

from bot.cards.texts import plain as visible
from bot.platforms.slack import limits
from bot.platforms.slack.escape import cut, enough, length, single


class Room:
    """Counts what is put into a message. `cut` says whether something had no room."""

    def __init__(self, characters: int, blocks: int, tables: int = limits.TABLES) -> None:
        self.left = characters
        self.blocks = blocks
        self.tables = tables
        self.cut = False

    def take(self, text: str, most: int = limits.SECTION) -> str:
        """The text as far as there is room for it, made visible and counted."""
        return self._taken(visible(enough(text, most)), most)

    def take_single(self, text: str, most: int = limits.SECTION) -> str:
        """The same for a place that takes one string."""
        return self._taken(single(enough(text, most)), most)

    def part(self, characters: int, blocks: int) -> Room:
        """Room for one block of a card; `close` it afterwards."""
        return Room(max(min(characters, self.left), 0), blocks, self.tables)

    def close(self, part: Room, characters: int, blocks: int) -> None:
        """Take back what a part has left of what it was given."""
        self.left -= max(min(characters, self.left), 0) - part.left
        self.blocks -= blocks
        self.tables = part.tables
        self.cut = self.cut or part.cut

    def _taken(self, text: str, most: int) -> str:
        fitting = min(most, self.left)
        taken = cut(text, fitting)
        self.cut = self.cut or taken != text
        self.left -= length(taken)
        return taken
