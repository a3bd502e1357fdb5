"""The blocks of cards, made of texts from anywhere: everything that a card shows is made plain and kept short here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bot.cards.card import (
    Block,
    Button,
    Card,
    CommandLine,
    Fields,
    LogPart,
    Meter,
    Note,
    Notes,
    Table,
    Text,
    Tone,
)
from bot.cards.texts import cut, line, plain
from bot.conversation.person import Person
from bot.conversation.state import Trouble
from schemas.artifacts.plan import Severity

ALTERNATIVE_LENGTH = 300
"""Characters of the one line that says the whole."""

_PARAGRAPH, _VALUE, _CELL, _NOTE, _LOG_LINE = 2000, 1000, 400, 700, 500  # characters
_WORST_FIRST = tuple(Severity)


def paragraph(text: str) -> Text:
    """Words."""
    return Text(text=cut(plain(text), _PARAGRAPH))


def fields(*pairs: tuple[str, object]) -> Fields:
    """Names and values in order; a value of None or without a letter is left out."""
    shown = ((line(name, 100), line(value, _VALUE)) for name, value in pairs if value is not None)
    return Fields(fields=tuple((name, value) for name, value in shown if value))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: tuple[int, ...] = (),
    at_most: int = 30,
) -> Table:
    """Rows under a head. Of more than `at_most` the first are shown, and a last row says how many there are."""
    kept = [tuple(line(cell, _CELL) for cell in row) for row in rows]
    if len(kept) > at_most:
        more = f"and {len(kept) - at_most:,} more"
        kept = [*kept[:at_most], (more, *("" for _ in head[1:]))]
    return Table(caption=line(caption), head=tuple(head), rows=tuple(kept), numeric=numeric)


def note(severity: Severity, message: str, hint: str = "") -> Note:
    """One finding or risk."""
    return Note(severity=severity, message=line(message, _NOTE), hint=line(hint, _NOTE))


def notes(title: str, found: Iterable[Note], at_most: int = 20) -> tuple[Notes, ...]:
    """Findings, the worst first, or no block when there are none."""
    kept = sorted(found, key=lambda one: _WORST_FIRST.index(one.severity))
    if not kept:
        return ()
    if len(kept) > at_most:
        severity = kept[at_most].severity
        kept = [*kept[:at_most], note(severity, f"and {len(kept) - at_most:,} more")]
    return (Notes(title=line(title), notes=tuple(kept)),)


def trouble_notes(trouble: Trouble | None, title: str = "") -> tuple[Notes, ...]:
    """What is in the way, as a warning."""
    return notes(title, [note(Severity.WARNS, trouble.message, trouble.hint)]) if trouble else ()


def because_notes(because: str) -> tuple[Notes, ...]:
    """Why something is offered again."""
    return notes("Why this is asked again", [note(Severity.WARNS, because)]) if because.strip() else ()


def meter(phase: str, percent: float, detail: str = "", stale: str = "") -> Meter:
    """How far a run is."""
    return Meter(phase=line(phase), percent=min(max(percent, 0.0), 100.0), detail=line(detail), stale=line(stale, 600))


def command_line(text: str, digest: str) -> CommandLine:
    """A command that `texts.exact` has made readable. It is never cut."""
    return CommandLine(command=plain(text), digest=plain(digest))


def log_part(lines: Sequence[str], head: int = 5, tail: int = 15) -> tuple[LogPart, ...]:
    """The beginning and the end of an output, or no block when there is none."""
    shown = [line(one, _LOG_LINE) for one in lines]
    if not shown:
        return ()
    if len(shown) <= head + tail:
        return (LogPart(tail=tuple(shown)),)
    return (LogPart(head=tuple(shown[:head]), left_out=len(shown) - head - tail, tail=tuple(shown[-tail:])),)


def make_card(
    title: str,
    tone: Tone,
    body: Iterable[Block],
    alternative: str,
    *,
    buttons: tuple[Button, ...] = (),
    outcome: str = "",
    mention: Person | None = None,
) -> Card:
    """A card. Blocks without content are left out."""
    kept = tuple(block for block in body if not (isinstance(block, Fields) and not block.fields))
    return Card(
        title=line(title, 150),
        tone=tone,
        body=kept,
        buttons=buttons,
        outcome=line(outcome, 600),
        alternative=line(alternative, ALTERNATIVE_LENGTH),
        mention=mentioned(mention),
    )


def mentioned(person: Person | None) -> Person | None:
    """Who is pinged, with a name that can be shown."""
    return person.model_copy(update={"name": line(person.name, 200)}) if person else None
