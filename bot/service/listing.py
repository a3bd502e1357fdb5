"""`ptq-bot history`: conversations as lines, read beside a running bot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, get_args

from bot.cards.amounts import size
from bot.cards.texts import line
from bot.conversation.state import Ended, Ending, State
from bot.errors import BotError, NotFound
from bot.settings import BotSettings
from bot.store.records import HistoryQuery, HistoryRow
from bot.store.sqlite import location
from bot.store.store import look

STATES = (
    "open",
    *(kind.model_fields["kind"].default for kind in get_args(State) if kind is not Ended),
    *(ending.value for ending in Ending),
)
"""What a conversation can be asked for by."""


def history_lines(settings: BotSettings, filters: Mapping[str, Any], *, as_json: bool) -> list[str]:
    """The conversations that fit, newest first; or one JSON document. Raises StoreError."""
    utc: dict[str, Any] = {
        name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for name, value in filters.items()
    }
    query = HistoryQuery(**utc)
    if query.state and query.state not in STATES:
        raise BotError("no_such_state", f"There is no state {query.state[:80]!r}.", f"There is {', '.join(STATES)}.")
    path = location(settings.database_url)
    if not path.exists():
        raise NotFound("no_database", f"There is no database {path} yet.", "It is made when the bot starts.")
    rows = look(settings.database_url, lambda reader: reader.history(query))
    if as_json:
        return [json.dumps([asdict(row) for row in rows], indent=2, default=_plain)]
    return [_line(row) for row in rows] or ["No conversation fits."]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value.model_dump(mode="json")


def _line(row: HistoryRow) -> str:
    numbers = []
    if row.perplexity is not None and row.original_perplexity is not None:
        numbers.append(f"perplexity {row.original_perplexity:.2f} -> {row.perplexity:.2f}")
    if row.size_bytes is not None:
        numbers.append(size(row.size_bytes))
    said = [
        f"{row.id:>5}",
        f"{row.created_at:%Y-%m-%d %H:%M}",
        f"{row.state:<18}",
        f"{row.model} {row.scheme}".strip(),
        f"for {row.requester.name}",
        *numbers,
    ]
    return line("  ".join(said))
