"""`python -m tests.bench.clicks [CONVERSATIONS]`: what a click costs in a new database and in one with much history.

A click is an event that is kept (one commit) and then acted upon (another): the state is saved, the decision recorded,
the old card closed and the next one put up.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from bot.clock import SystemClock
from bot.conversation.decision import Verb, Verdict
from bot.conversation.state import Checkpoint
from bot.platforms.contract import Event
from bot.store.records import HistoryQuery, Outcome
from bot.store.store import Store
from bot.store.unit import Unit
from tests import samples
from tests.bot.store.samples import (
    ADA,
    ANALYSIS,
    BOB,
    MANIFEST,
    NOON,
    PLAN,
    REQUEST,
    THREAD,
    card,
    clicked,
    said,
    state,
)

_PATTERN = 10  # conversations that are made one by one; all others are copies of them
_WORDS = (
    "accuracy matters",
    "it has to fit on one GPU",
    "as small as it gets",
    "for the demo on Friday",
    "量化这个模型",
)
# Every table whose rows belong to a conversation, with the columns that name rows and what tells two copies apart.
_COPIED = {
    "conversations": {"id": "conversations", "thread": "text"},
    "states": {"conversation_id": "conversations"},
    "artifacts": {"conversation_id": "conversations"},
    "inbox": {"id": "inbox", "key": "text", "conversation_id": "conversations"},
    "verdicts": {"id": "verdicts", "conversation_id": "conversations", "inbox_id": "inbox"},
    "audit": {"id": "audit", "conversation_id": "conversations"},
    "outbox": {"id": "outbox", "conversation_id": "conversations", "after_event": "inbox"},
}

QUERIES = {
    "newest": HistoryQuery(),
    "a page far back": HistoryQuery(before=200),
    "open": HistoryQuery(state="open"),
    "accepted": HistoryQuery(state="accepted"),
    "common word": HistoryQuery(text="accuracy"),
    "rare word": HistoryQuery(text="model-00123"),
    "common letters, no such words": HistoryQuery(text="accuracy has to fit on Friday"),
    "no such word": HistoryQuery(text="xyzzy plugh"),
    "common model and person": HistoryQuery(model="model-", person="ada"),
    "common word, rare state": HistoryQuery(text="accuracy", state="open"),
    "two letters, common": HistoryQuery(text="量化"),
    "two letters, nowhere": HistoryQuery(text="qq"),
    "short person, nowhere": HistoryQuery(person="zz"),
    "until long ago": HistoryQuery(until=NOON + timedelta(minutes=100)),
}


@dataclass(frozen=True)
class Clicks:
    """Seconds that clicks took in each database, taken in turns."""

    few: list[float]
    many: list[float]
    conversations: int

    @property
    def ratio(self) -> float:
        """How many times slower the usual click is with much history."""
        return statistics.median(self.many) / statistics.median(self.few)

    def __str__(self) -> str:
        """Both medians and 99th percentiles, and the ratio."""
        return (
            f"click with {_PATTERN} conversations {_times(self.few)}, with {self.conversations:,} {_times(self.many)}: "
            f"ratio {self.ratio:.2f}"
        )


async def compare(folder: Path, conversations: int = 100_000, rounds: int = 300) -> tuple[Clicks, dict[str, float]]:
    """Clicks in both databases in turns, and the median seconds of each history query in the large one."""
    async with AsyncExitStack() as stack:
        stores = []
        for name, number in (("few.db", _PATTERN), ("many.db", conversations)):
            await build(folder / name, number)
            store = await Store.open(f"sqlite:///{folder / name}", SystemClock())
            stack.push_async_callback(store.close)
            stores.append(store)
        seconds: list[list[float]] = [[], []]
        for turn in range(rounds + 1):
            for store, taken in zip(stores, seconds, strict=True):
                ready = await store.write(lambda unit, turn=turn: _ready(unit, turn))  # type: ignore[misc]
                taken.append(await _click(store, ready))
        clicks = Clicks(seconds[0][1:], seconds[1][1:], conversations)  # the first one of each warms what is kept
        queries = {name: await _asked(stores[1], query) for name, query in QUERIES.items()}
    return clicks, queries


async def build(path: Path, conversations: int) -> None:
    """A database of so many conversations (a multiple of ten): a few made as the bot makes them, the others copied."""
    store = await Store.open(f"sqlite:///{path}", SystemClock())
    for number in range(_PATTERN):
        await store.write(lambda unit, number=number: _whole_thread(unit, number))  # type: ignore[misc]
    await store.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    connection.execute("BEGIN")
    copies = conversations // _PATTERN
    steps = {table: connection.execute(f"SELECT max(id) FROM {table}").fetchone()[0] for table in _NUMBERED}
    for table, changed in _COPIED.items():
        _copy(connection, table, changed, steps, copies)
    connection.execute(
        "UPDATE conversations SET model = printf('org/model-%05d', id % 2000), created_at = created_at + id * 60000000"
    )
    connection.execute(
        "INSERT INTO conversation_search (rowid, words, model, scheme, person, output_dir) "
        "SELECT id, asked, model, scheme, requester_name || char(10) || requester_id, output_dir FROM conversations "
        f"WHERE id > {_PATTERN}"
    )
    connection.execute("COMMIT")
    connection.close()


_NUMBERED = ("conversations", "inbox", "verdicts", "audit", "outbox")


def _copy(
    connection: sqlite3.Connection, table: str, changed: dict[str, str], steps: dict[str, int], copies: int
) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = [_copied(name, changed.get(name), steps) for name in columns]
    names = ", ".join(f'"{name}"' for name in columns)
    connection.execute(
        f"WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {copies - 1}) "
        f"INSERT INTO {table} ({names}) SELECT {', '.join(values)} FROM copy CROSS JOIN {table} AS old "
        f"WHERE {copies} > 1 AND old.rowid <= (SELECT max(rowid) FROM {table}) ORDER BY n, old.rowid"
    )


def _copied(name: str, kind: str | None, steps: dict[str, int]) -> str:
    if kind is None:
        return f'old."{name}"'
    return f"old.\"{name}\" || '-' || n" if kind == "text" else f'old."{name}" + n * {steps[kind]}'


def _whole_thread(unit: Unit, number: int) -> None:
    """A conversation from its request to its end."""
    place = THREAD.model_copy(update={"thread": f"t{number}"})
    request = REQUEST.model_copy(update={"text": f"quantize this to fp8, {_WORDS[number % len(_WORDS)]}"})
    asked = unit.receive(said(request.text, place, key=f"first-{number}"), NOON)
    there = unit.begin(place, ADA, state("analysing", request=request), NOON)
    unit.settle(asked.id, Outcome(verdict="proceeded"), there.id, NOON)
    path = (("reviewing_analysis", ANALYSIS), ("reviewing_plan", PLAN), ("reviewing_command", MANIFEST))
    for step, (kind, digest) in enumerate(path):
        unit.add_artifact(there.id, kind, 1, digest, samples.plan(), NOON)
        there = unit.save(there.id, state(kind, request=request), there.version, NOON)
        unit.show(there.id, f"{kind}:{step}", card(kind, digest), NOON, digest)
        event = unit.receive(clicked(there.id, Checkpoint.PLAN, digest, key=f"yes-{number}-{step}"), NOON)
        unit.record(there.id, Verdict(Verb.APPROVED, BOB, Checkpoint.PLAN, digest), event.id, "slack C1", NOON)
        unit.audit(BOB.id, "approved", there.id, {"step": step}, NOON)
        unit.settle(event.id, Outcome(verdict="proceeded"), there.id, NOON)
        shown = unit.shown(there.id, f"{kind}:{step}")
        assert shown is not None
        unit.delivered(shown.id, shown.wanted, f"m{number}.{step}", NOON)
    unit.save(there.id, state("accepted" if number else "failed", request=request), there.version, NOON)


def _ready(unit: Unit, turn: int) -> tuple[int, Event]:
    """The conversation that waits for a yes to its plan, in every round the same one, and that yes."""
    place = THREAD.model_copy(update={"thread": "ready"})
    there = unit.conversation_at(place)
    if there is None:
        there = unit.begin(place, ADA, state("reviewing_plan"), NOON)
    else:
        there = unit.save(there.id, state("reviewing_plan"), there.version, NOON)
    unit.show(there.id, "plan:3", card(conversation=there.id), NOON, PLAN)
    unit.show(there.id, "command:4", card("Nothing is asked here"), NOON)
    return there.id, clicked(there.id, Checkpoint.PLAN, PLAN[:12], key=f"ready-{turn}")


async def _click(store: Store, ready: tuple[int, Event]) -> float:
    """Seconds from the click until the next card waits to be delivered."""
    conversation, event = ready
    began = time.perf_counter()
    receipt = await store.write(lambda unit: unit.receive(event, NOON))
    await store.write(lambda unit: _approve(unit, conversation, receipt.id))
    return time.perf_counter() - began


def _approve(unit: Unit, conversation: int, inbox_id: int) -> None:
    there = unit.conversation(conversation)
    assert there is not None
    unit.save(conversation, state("preparing"), there.version, NOON)
    unit.record(conversation, Verdict(Verb.APPROVED, BOB, Checkpoint.PLAN, PLAN), inbox_id, "slack C1", NOON)
    unit.audit(BOB.id, "approved", conversation, {"state": "preparing", "step": 4}, NOON)
    unit.show(conversation, "plan:3", card(outcome="Confirmed by Bob.", buttons=()), NOON)
    unit.show(conversation, "command:4", card("The command is made"), NOON)
    unit.settle(inbox_id, Outcome(verdict="proceeded"), conversation, NOON)


async def _asked(store: Store, query: HistoryQuery, rounds: int = 5) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        await store.read(lambda reader: reader.history(query))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _times(seconds: list[float]) -> str:
    tail = statistics.quantiles(seconds, n=100)[98]
    return f"{statistics.median(seconds) * 1000:.1f} ms (99th percentile {tail * 1000:.1f} ms)"


def main(arguments: list[str]) -> None:
    """Print the comparison, and one line for each query."""
    conversations = int(arguments[0]) if arguments else 100_000
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        clicks, queries = asyncio.run(compare(Path(folder), conversations))
        size = (Path(folder) / "many.db").stat().st_size
        print(f"{clicks} (database {size / 1e6:.0f} MB, all of it took {time.perf_counter() - began:.0f} s)")
        for name, seconds in queries.items():
            print(f"history, {name}: {seconds * 1000:.1f} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
