"""Documents as JSON text, and back.

Python strings may hold halves of characters (lone surrogates), which platforms do send and UTF-8 cannot hold. What is
kept has U+FFFD in their place, so that nothing that a person writes can stop the store.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from sqlalchemy.orm import Session

from bot.errors import RowUnreadable

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_Row = TypeVar("_Row")
Version = tuple[int, int]
"""A row's id, and the version of what it holds: new content may be understood again."""


def clean(text: str) -> str:
    """The text as UTF-8 can hold it: pairs of surrogates joined, lone ones replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def written(document: BaseModel) -> str:
    """The document as JSON text."""
    try:
        return document.model_dump_json()
    except PydanticSerializationError:
        return as_json(document.model_dump(mode="json"))


def as_json(value: Any) -> str:
    """Plain values as JSON text."""
    return json.dumps(_cleaned(value), ensure_ascii=False, separators=(",", ":"))


def read(kind: TypeAdapter[_T], text: str, where: str) -> _T:
    """The document of a row. Raises RowUnreadable, naming the row by `where`, when this release cannot read it."""
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise RowUnreadable(
            "row_unreadable",
            f"{where} in the database cannot be read by this release: {place}: {first['msg']}.",
            "Install the release that wrote it, or restore a copy.",
        ) from None


class Unreadable:
    """Rows of one table that this release cannot understand. They stay as they are, and hold up no others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.known: frozenset[Version] = frozenset()
        """Those that were met since the database was opened."""

    def others(
        self, fetch: Callable[[], Iterable[_Row]], version: Callable[[_Row], Version], read_row: Callable[[_Row], _T]
    ) -> list[_T]:
        """All fetched rows that can be read. Each that cannot is logged once.

        `fetch` is asked again when it gave some that were not known, so that leaving out the known ones is enough to
        let none of them take the place of a readable one.
        """
        while True:
            before, found = len(self.known), []
            for row in fetch():
                try:
                    found.append(read_row(row))
                except RowUnreadable as error:
                    self._leave_out(version(row), error)
            if len(self.known) == before:
                return found

    def _leave_out(self, version: Version, error: RowUnreadable) -> None:
        with self._lock:
            if version in self.known:
                return
            self.known |= {version}
        log.error("left out: %s", error.sentence())


_UNREADABLE: WeakKeyDictionary[Any, dict[str, Unreadable]] = WeakKeyDictionary()
_UNREADABLE_LOCK = Lock()


def unreadable(session: Session, table: str) -> Unreadable:
    """What is known of a table's rows, as long as the database of this session is open."""
    with _UNREADABLE_LOCK:
        return _UNREADABLE.setdefault(session.get_bind(), {}).setdefault(table, Unreadable())


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(name)): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value
