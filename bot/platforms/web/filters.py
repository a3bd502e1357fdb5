"""The filters of the list of all threads, as they stand in an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from bot.platforms.web.standing import STANDING
from bot.store.records import HistoryQuery

PAGE_ROWS = 50
_LONGEST = 200
_FIRST_YEAR, _LAST_YEAR = 1000, 9998
_NAMES = ("text", "model", "scheme", "person", "state", "since", "until")
OPEN = "open"
STATES = (OPEN, *(kind for kind in STANDING if kind != "ended"))
"""What `state` may say: all that are open, a kind of state, or an ending."""


@dataclass(frozen=True)
class Filters:
    """What was typed, the query that it means, and why it means none. The query asks for one row more than is shown."""

    typed: Mapping[str, str]
    query: HistoryQuery | None
    problem: str = ""
    shown: int = PAGE_ROWS

    @property
    def any(self) -> bool:
        """Whether the list is restricted at all."""
        return any(self.typed.values())

    @property
    def first(self) -> str:
        """The address of the first page."""
        return f"/runs?{urlencode({k: v for k, v in self.typed.items() if v})}"

    def older(self, before: int) -> str:
        """The address of the page that goes on after a row."""
        return f"/runs?{urlencode({**{k: v for k, v in self.typed.items() if v}, 'before': before})}"


class _Unfit(Exception):
    """A filter that means nothing, with the sentence that says so."""


def read_filters(given: Mapping[str, str]) -> Filters:
    """Filters of an address. Anything may stand in one."""
    typed = {name: given.get(name, "").strip() for name in _NAMES}
    typed["state"] = typed["state"].lower()
    try:
        _known(given)
        for name, value in typed.items():
            _fits(name, value)
        before = _row(given.get("before", ""))
        since = _day("since", typed["since"])
        until = _day("until", typed["until"])
    except _Unfit as unfit:
        return Filters({name: value[:_LONGEST] for name, value in typed.items()}, None, str(unfit))
    texts = {name: typed[name] for name in ("text", "model", "scheme", "person", "state")}
    end = until + timedelta(days=1) if until is not None else None  # the last day is meant whole
    query = HistoryQuery(**texts, since=since, until=end, before=before, limit=PAGE_ROWS + 1)
    if since is not None and until is not None and since > until:
        return Filters(typed, None, "The first day is after the last: nothing lies between them.")
    return Filters(typed, query)


def _known(given: Mapping[str, str]) -> None:
    for name in given:
        if name not in _NAMES and name != "before":
            raise _Unfit(f"There is no filter {name[:40]}. There are: {', '.join(_NAMES)}.")


def _fits(name: str, value: str) -> None:
    if len(value) > _LONGEST:
        raise _Unfit(f"{name} is longer than the {_LONGEST} characters that are searched for. Shorten it.")
    if name == "state" and value and value not in STATES:
        raise _Unfit(f"There is no state {value[:40]}. There are: {', '.join(STATES)}.")


def _row(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 15):
        raise _Unfit("The address of this page is damaged. Start again from the first page.")
    return int(text)


def _day(name: str, text: str) -> datetime | None:
    """The first moment of a day in UTC."""
    if not text:
        return None
    try:
        day = datetime.combine(date.fromisoformat(text), time.min, UTC)
    except ValueError:
        day = None
    if day is None or not _FIRST_YEAR <= day.year <= _LAST_YEAR:
        raise _Unfit(f"{text[:40]} is not a day: {name} is written like 2026-01-31.")
    return day
