"""`ptq-bot history`: conversations as lines, read beside a running bot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bot.cards.amounts import size
from bot.cards.texts import line
from bot.settings import BotSettings
from bot.store.records import HistoryQuery, HistoryRow
from bot.store.store import look


def history_lines(settings: BotSettings, filters: Mapping[str, Any], *, as_json: bool) -> list[str]:
    """The conversations that fit, newest first; or one JSON document. Raises StoreError."""
    utc: dict[str, Any] = {
        name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for name, value in filters.items()
    }
    query = HistoryQuery(**utc)
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
