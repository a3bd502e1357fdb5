"""Finding conversations by words: an index of every three letters, so that a text is found anywhere, whatever its case.

What is indexed of one conversation is bounded, so that the cost of one more sentence is, too.
"""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session

from bot.store.documents import clean
from bot.store.records import HistoryQuery
from bot.store.tables import SEARCH, ConversationRow

SHORTEST_LETTERS = 3  # shorter texts are in no index of three letters
_SAYING_LETTERS = 4_000
_THREAD_LETTERS = 32_000

_INSERT = text(
    f"INSERT INTO {SEARCH} (rowid, words, model, scheme, person, output_dir) "
    "VALUES (:id, :words, :model, :scheme, :person, :output_dir)"
)
_RENEW = text(f"UPDATE {SEARCH} SET model = :model, scheme = :scheme, output_dir = :output_dir WHERE rowid = :id")
_WORDS = text(f"SELECT words FROM {SEARCH} WHERE rowid = :id")
_SET_WORDS = text(f"UPDATE {SEARCH} SET words = :words WHERE rowid = :id")


def facts(row: ConversationRow) -> dict[str, str]:
    """What is indexed of a conversation and may change with its state."""
    return {
        "model": plain(row.model),
        "scheme": plain(row.scheme),
        "output_dir": plain(row.output_dir or ""),
    }


def begin(session: Session, row: ConversationRow, words: str) -> None:
    """Index a new conversation."""
    person = f"{plain(row.requester_name)}\n{plain(row.requester_id)}"
    values = {"id": row.id, "words": plain(words)[:_SAYING_LETTERS], "person": person, **facts(row)}
    session.execute(_INSERT, values)


def renew(session: Session, row: ConversationRow) -> None:
    """Index a conversation's new facts."""
    session.execute(_RENEW, {"id": row.id, **facts(row)})


def add_words(session: Session, conversation: int, said: str) -> None:
    """Index what somebody said in a conversation. The request, which is there already, is not indexed twice."""
    words = session.execute(_WORDS, {"id": conversation}).scalar()
    more = plain(said)[:_SAYING_LETTERS].strip()
    if words is None or not more or more in words or len(words) + len(more) > _THREAD_LETTERS:
        return
    session.execute(_SET_WORDS, {"id": conversation, "words": f"{words}\n{more}"})


def expression(query: HistoryQuery) -> str:
    """The query's texts in the index's own language; empty when none of them is long enough for it."""
    asked = {
        "words model output_dir": query.text,
        "model": query.model,
        "scheme": query.scheme,
        "person": query.person,
    }
    parts = []
    for columns, wanted in asked.items():
        letters = plain(wanted)
        if len(letters) >= SHORTEST_LETTERS:
            quoted = letters.replace('"', '""')
            parts.append(f'{{{columns}}} : "{quoted}"')
    return " AND ".join(parts)


def plain(words: str) -> str:
    """The words as the index can hold them: it would end at a NUL."""
    return clean(words).replace("\0", " ")
