"""The app's home: what waits for a person, the queues, and the last runs, each with a way to its thread. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.platforms.slack import limits
from bot.platforms.slack.escape import Part, cut, plain
from bot.platforms.slack.rich import line, link, rich, words

NEW_REQUEST = "ptq-home-request"
"""The action_id of the button that asks for a new request."""

_MOST, _TITLE, _DETAIL, _QUEUE = 15, 150, 300, 1_500
_ADDRESS = re.compile(r"https?://[^\s<>|]{1,500}")


@dataclass(frozen=True)
class HomeRow:
    """One conversation: its model, where it stands, and the address of its thread, empty where that is not known."""

    title: str
    detail: str
    url: str = ""


def home_view(
    waiting: Sequence[HomeRow],
    queues: Sequence[str],
    runs: Sequence[HomeRow],
    *,
    problem: str = "",
    as_of: str = "",
) -> Part:
    """The home of one person: open checkpoints, each queue in words, and the last runs.

    `problem` says what is not known at the moment, such as a runner that does not answer; `as_of` when this was so.
    """
    button = {"type": "button", "text": plain("New request", limits.BUTTON), "action_id": NEW_REQUEST}
    blocks: list[Part] = [
        *([{"type": "section", "text": plain(problem, limits.SECTION)}] if problem.strip() else []),
        {"type": "actions", "elements": [{**button, "style": "primary"}]},
        _head("Waiting for you"),
        *_rows(waiting, "Nothing waits for you."),
        _head("Queue"),
        *(_paragraph(queue) for queue in queues[:_MOST]),
        *([] if queues else [_paragraph("No runner has told of its queue.")]),
        _head("Last runs"),
        *_rows(runs, "There was no run yet."),
    ]
    if as_of.strip():
        blocks.append({"type": "context", "elements": [plain(f"As of {as_of}", _DETAIL)]})
    return {"type": "home", "blocks": blocks}


def _head(text: str) -> Part:
    return {"type": "header", "text": plain(text, limits.HEADER)}


def _paragraph(text: str) -> Part:
    return rich(line(words(cut(text, _QUEUE))))


def _rows(rows: Sequence[HomeRow], none: str) -> list[Part]:
    if not rows:
        return [_paragraph(none)]
    more = [_paragraph(f"and {len(rows) - _MOST:,} more: /quantize history lists them")] if len(rows) > _MOST else []
    return [*(_row(row) for row in rows[:_MOST]), *more]


def _row(row: HomeRow) -> Part:
    detail = words(f"\n{cut(row.detail, _DETAIL)}") if row.detail.strip() else []
    return rich(line(_title(row), detail))


def _title(row: HomeRow) -> list[Part]:
    title = words(cut(row.title, _TITLE).strip() or "A model", bold=True)
    # A link's text is one string: one that would have to come in two parts stands beside its link instead.
    if not _ADDRESS.fullmatch(row.url):
        return title
    if len(title) == 1:
        return link(title[0]["text"], row.url)
    return [*title, *words("  "), *link("open the thread", row.url)]
