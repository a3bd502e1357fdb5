"""How a table of sentences agrees with what the grammar reads.

    python -m tests.agreement words FILE.tsv

A table is tab-separated, with a head. `sentence` is there, and either `checkpoint` and `intent`, with `changes` or
without - one checkpoint or several with commas between, `*` for all four, `channel` (or `none`, or `-`) where nothing
waits for anybody - or columns of checkpoints (analysis, plan, command, result, channel), each of which holds an intent,
and behind it the changes; an empty one says nothing of that place. Changes are JSON, field to value; where a change or
request names none, they are not compared. `hint`, where there is one, has to be part of what the person is told to
write instead.

A row has a cell for every column; only those of `changes` and `hint` may be missing at its end. What does not fit is
told with its line, and nothing of the table is compared. A line that begins with "# " names a section of the table, and
empty lines are left out. In a sentence \\n, \\t, \\r, \\xNN, \\uNNNN and \\UNNNNNNNN are the characters, and
two backslashes are one.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, Understood, understand

CHANNEL = "channel"
PLACES: dict[str, Checkpoint | None] = {**{point.value: point for point in Checkpoint}, CHANNEL: None}
_ALL = tuple(point.value for point in Checkpoint)
_ESCAPED = re.compile(r"\\(?:n|t|r|\\|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
_BROKEN = re.compile(r"\\[xuU].{0,8}")
_OPTIONAL = ("changes", "hint")
_LETTERS = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\\\": "\\"}
_SHOWN = 60


class TableError(Exception):
    """A table that cannot be read: which line, and why."""


@dataclass(frozen=True)
class Meaning:
    """What a sentence means at one place; `changes` is None where they are not compared."""

    sentence: str
    place: str
    intent: str
    changes: dict[str, Any] | None
    hint: str = ""
    section: str = ""

    def read(self) -> Understood:
        """What the grammar reads."""
        return understand(self.sentence, PLACES[self.place])

    def against(self, understood: Understood) -> str:
        """In what the two disagree; empty where they agree."""
        if understood.intent.value != self.intent:
            told = f" {_json(understood.flat)}" if understood.flat else ""
            return f"read as {understood.intent.value}{told}"
        if self.changes is not None and _flat(understood.flat) != _flat(self.changes):
            return f"read as {_json(understood.flat)}, not {_json(self.changes)}"
        if self.hint and self.hint not in understood.hint:
            return f"hint is {understood.hint!r}, not {self.hint!r}"
        return ""


def read_table(path: Path) -> list[Meaning]:
    """All meanings that a table tells. Raises TableError."""
    head: list[str] | None = None
    found: list[Meaning] = []
    section = ""
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        fields = [_plain(field) for field in line.removesuffix("\r").split("\t")]
        if line.startswith("# "):
            section = line[2:].strip()
        elif not any(fields):
            continue
        elif head is None:
            head = _head(fields, number)
        else:
            found += _row(_by_name(head, fields, number), section, number)
    if head is None:
        raise TableError("the table is empty")
    if not found:
        raise TableError("the table has no sentences")
    return found


def _head(fields: list[str], number: int) -> list[str]:
    head = [name.strip().lower() for name in fields]
    if "sentence" not in head:
        raise TableError(f"line {number}: there is no column called sentence")
    if "intent" not in head and not set(head) & set(PLACES):
        raise TableError(f"line {number}: there is neither a column intent nor one of a checkpoint")
    if "intent" in head and "checkpoint" not in head:
        raise TableError(f"line {number}: there is a column intent, but none called checkpoint")
    known = {"sentence", "hint", *(("checkpoint", "intent", "changes") if "intent" in head else PLACES)}
    if unknown := [name for name in head if name not in known]:
        raise TableError(f"line {number}: no column is called {unknown[0]!r} here; known: {', '.join(sorted(known))}")
    if twice := [name for name in head if head.count(name) > 1]:
        raise TableError(f"line {number}: there are two columns called {twice[0]}")
    return head


def _by_name(head: list[str], fields: list[str], number: int) -> dict[str, str]:
    """The cells of a row by their columns. Raises TableError for a cell too many or too few."""
    if surplus := [field for field in fields[len(head) :] if field.strip()]:
        raise TableError(f"line {number}: {surplus[0]!r} stands behind the last column")
    row = dict(zip(head, fields, strict=False))
    if missing := [name for name in head if name not in row and name not in _OPTIONAL]:
        raise TableError(f"line {number}: the row ends before its column {missing[0]}")
    return row


def _row(row: dict[str, str], section: str, number: int) -> list[Meaning]:
    try:
        told = _by_row(row) if "intent" in row else _by_columns(row)
        return [replace(one, section=section) for one in told]
    except (OverflowError, ValueError) as error:
        raise TableError(f"line {number}: {error}") from error


def disagreements(meanings: Iterable[Meaning]) -> Iterator[tuple[Meaning, str]]:
    """Those that are read otherwise, with what was read."""
    for meaning in meanings:
        if said := meaning.against(meaning.read()):
            yield meaning, said


def main(path: Path) -> int:
    """Print how the table agrees. 0: all of it is read right; 1: some of it is not; 2: it cannot be read."""
    try:
        meanings = read_table(path)
    except (OSError, UnicodeDecodeError, TableError) as error:
        print(f"{path} cannot be read: {error}", file=sys.stderr)
        return 2
    wrong = list(disagreements(meanings))
    sentences = len({meaning.sentence for meaning in meanings})
    print(
        f"{sentences} sentences with {len(meanings)} meanings: {len(meanings) - len(wrong)} right, {len(wrong)} wrong"
    )
    _print_counts(meanings, [meaning for meaning, _ in wrong])
    for meaning, said in wrong:
        print(f"{meaning.place}: {_shown(meaning.sentence)} is {meaning.intent}, {said}")
    return 1 if wrong else 0


def _print_counts(meanings: list[Meaning], wrong: list[Meaning]) -> None:
    """Right and wrong, by checkpoint and intent."""
    all_of, wrong_of = (Counter((one.place, one.intent) for one in some) for some in (meanings, wrong))
    print(f"\n{'':10}" + "".join(f"{intent.value:>16}" for intent in Intent))
    for place in PLACES:
        cells = []
        for intent in Intent:
            count, bad = all_of[place, intent.value], wrong_of[place, intent.value]
            cells.append(f"{count - bad} right, {bad} wrong" if bad else f"{count} right" if count else "-")
        print(f"{place:10}" + "".join(f"{cell:>16}" for cell in cells))
    print()


def _by_row(row: dict[str, str]) -> list[Meaning]:
    named = [name.strip().lower() for name in row["checkpoint"].split(",")]
    places = list(dict.fromkeys(place for name in named for place in (_ALL if name == "*" else (_place(name),))))
    intent = Intent(row["intent"].strip().lower()).value
    changes = _changes(intent, row.get("changes", ""))
    return [Meaning(_unescaped(row["sentence"]), place, intent, changes, row.get("hint", "")) for place in places]


def _by_columns(row: dict[str, str]) -> list[Meaning]:
    found = []
    for name in PLACES:
        if cell := row.get(name, "").strip():
            word, _, rest = cell.partition(" ")
            intent = Intent(word.lower()).value
            found.append(
                Meaning(_unescaped(row["sentence"]), name, intent, _changes(intent, rest), row.get("hint", ""))
            )
    if not found:
        raise ValueError("no checkpoint is named")
    return found


def _place(name: str) -> str:
    if name in ("none", "-"):
        return CHANNEL
    if name not in PLACES:
        raise ValueError(f"there is no checkpoint called {name!r}")
    return name


def _changes(intent: str, text: str) -> dict[str, Any] | None:
    if not text.strip():
        return None if intent in (Intent.CHANGE, Intent.REQUEST) else {}
    changes = json.loads(text)
    if not isinstance(changes, dict):
        raise ValueError(f"changes are no object: {text}")
    return changes


def _flat(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes with those of the calibration beside the others, so that a table may name them either way."""
    calibration = changes.get("calibration")
    if not isinstance(calibration, dict):
        return changes
    return {**{name: value for name, value in changes.items() if name != "calibration"}, **calibration}


def _plain(field: str) -> str:
    """A field as it is, or as a spreadsheet wrote it: between quotes, with the quotes in it doubled."""
    inner = field[1:-1]
    if len(field) > 2 and field[0] == field[-1] == '"' and '""' in inner and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return field


def _unescaped(text: str) -> str:
    """A sentence with its characters for their numbers. Raises ValueError for a number that is none."""
    if broken := _BROKEN.search(_ESCAPED.sub("", text)):
        raise ValueError(f"{broken[0]!r} is no character; a backslash itself is written twice".replace("\\\\", "\\"))
    return _ESCAPED.sub(lambda found: _LETTERS.get(found[0]) or chr(int(found[0][2:], 16)), text)


def _json(changes: dict[str, Any]) -> str:
    return json.dumps(changes, ensure_ascii=False)


def _shown(sentence: str) -> str:
    text = ascii(sentence) if not sentence.isprintable() else repr(sentence)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
