"""The clauses of a sentence, by what they speak of.

A clause reads at the cursor, tells what it found and gives True; or it gives False, having told nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from bot.conversation.words.cursor import Cursor
from bot.conversation.words.gathered import Gathered

Clause = Callable[[Cursor, Gathered], bool]
