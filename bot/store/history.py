"""Lists of conversations, and whole threads."""

from __future__ import annotations

import itertools
from typing import Any

from sqlalchemy import ColumnElement, Select, column, func, literal_column, or_, select, table, text

from bot.store import search
from bot.store.conversations import place_of, requester_of
from bot.store.entries import ThreadEntry
from bot.store.inbox import Inbox
from bot.store.outbox import Outbox
from bot.store.records import HistoryQuery, HistoryRow
from bot.store.tables import LARGEST_ID, SEARCH, ConversationRow

OPEN = "open"
MOST_ROWS = 1_000

_ROW = ConversationRow
_SEARCH = table(SEARCH, column("rowid"))
# Short texts are looked for in these alone: they are in every row of the list and cost little to read.
_TEXTS = (_ROW.asked, _ROW.model, _ROW.output_dir)


class History(Inbox, Outbox):
    """Reads what was."""

    def history(self, query: HistoryQuery) -> list[HistoryRow]:
        """The newest conversations that the query asks for, newest first."""
        rows = self._session.scalars(_statement(query))
        return [_as_read(row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many conversations stand where: by kind of state, and by ending for those that ended."""
        statement = select(_ROW.kind, func.count()).group_by(_ROW.kind)
        return dict(self._session.execute(statement).all())

    def thread(self, conversation: int) -> list[ThreadEntry]:
        """What was said and shown in a conversation, in order. Times do not decide it: clocks are set back."""
        said = [((event.id, 0, 0), event) for event in self.events_of(conversation)]
        shown = [((after, 1, one.id), one) for after, one in self.shown_in(conversation)]
        entries: list[tuple[tuple[int, int, int], ThreadEntry]] = [*said, *shown]
        return [entry for _, entry in sorted(entries, key=lambda item: item[0])]


def _statement(query: HistoryQuery) -> Select[ConversationRow]:
    before = LARGEST_ID if query.before is None else query.before
    where = [*_short_texts(query), *_facts(query)]
    limit = max(0, min(query.limit, MOST_ROWS))
    if not (expression := search.expression(query)):
        return select(_ROW).where(_ROW.id < before, *where).order_by(_ROW.id.desc()).limit(limit)
    # The index gives its matches newest first, and only as many as are taken from it.
    matches = text(f"{SEARCH} MATCH :expression AND {SEARCH}.rowid < :before").bindparams(
        expression=expression, before=max(-LARGEST_ID, min(before, LARGEST_ID))
    )
    return (
        select(_ROW)
        .select_from(_SEARCH.join(_ROW, _ROW.id == _SEARCH.c.rowid))
        .where(matches, *where)
        .order_by(_SEARCH.c.rowid.desc())
        .limit(limit)
    )


def _facts(query: HistoryQuery) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if query.state == OPEN:
        found.append(_ROW.ended == literal_column("0"))
    elif query.state:
        found.append(_ROW.kind == query.state)
    if query.since is not None:
        found.append(_ROW.created_at >= query.since)
    if query.until is not None:
        found.append(_ROW.created_at < query.until)
    return found


def _short_texts(query: HistoryQuery) -> list[ColumnElement[bool]]:
    """What the index of three letters cannot look for."""
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (search.plain(query.text), _TEXTS),
        (search.plain(query.model), (_ROW.model,)),
        (search.plain(query.scheme), (_ROW.scheme,)),
        (search.plain(query.person), (_ROW.requester_name, _ROW.requester_id)),
    ]
    return [
        or_(*(one.contains(spelt, autoescape=True) for one in columns for spelt in _spellings(wanted)))
        for wanted, columns in asked
        if 0 < len(wanted) < search.SHORTEST_LETTERS
    ]


def _spellings(wanted: str) -> set[str]:
    """The ways to write a short text in large and small letters; SQLite itself knows those of ASCII alone."""
    if wanted.isascii():
        return {wanted}
    return {"".join(letters) for letters in itertools.product(*({one.lower(), one.upper()} for one in wanted))}


def _as_read(row: ConversationRow) -> HistoryRow:
    return HistoryRow(
        id=row.id,
        place=place_of(row),
        requester=requester_of(row),
        model=row.model,
        scheme=row.scheme,
        runner=row.runner,
        state=row.kind,
        created_at=row.created_at,
        changed_at=row.changed_at,
        run=row.run,
        output_dir=row.output_dir,
        size_bytes=row.size_bytes,
        original_size_bytes=row.original_size_bytes,
        perplexity=row.perplexity,
        original_perplexity=row.original_perplexity,
    )
