"""What a click costs does not depend on how much history there is."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from bot.clock import SystemClock
from bot.store.records import HistoryQuery
from bot.store.store import Store
from bot.store.unit import Reader, Unit
from tests.bench import clicks
from tests.bot.store.opening import opened
from tests.bot.store.samples import NOON, THREAD, said

READY = THREAD.model_copy(update={"thread": "ready"})


def _read_all(reader: Reader) -> None:
    reader.working()
    reader.overdue(NOON, ("reviewing_plan", "failed"))
    reader.output_taken("gpu-1", "/out", 3)
    reader.due("slack", NOON, 50)
    reader.next_due("slack")
    reader.due_count("slack")
    reader.waiting_events(50)
    reader.thread(1)
    reader.event(1)
    reader.verdicts(1)
    reader.audit(1)
    reader.artifact(1, "plan", 1)
    reader.artifacts(1)
    reader.conversation(1)
    reader.conversation_at(THREAD)
    for query in (HistoryQuery(), HistoryQuery(state="open"), HistoryQuery(state="failed"), HistoryQuery(text="fp8")):
        reader.history(query)


def _write_all(unit: Unit) -> None:
    unit.receive(said("yes", READY), NOON)
    shown = unit.due("slack", NOON, 1)[0].shown.id
    unit.trying(shown, NOON)
    unit.postponed(shown, "away", NOON)
    unit.forget_message(shown)
    unit.delivered(shown, 1, "m", NOON)
    unit.undeliverable(shown, "never")
    unit.set_thread(1, "another")


async def _statements(path: Path) -> set[tuple[str, Any]]:
    """Every statement of the bot's daily work, each with the values it had first."""
    seen: dict[str, Any] = {}

    def note(_: object, __: object, statement: str, values: Any, *___: object) -> None:
        seen.setdefault(statement, values)

    async with opened(path, SystemClock()) as store:
        for engine in (store._writing, store._reading):
            event.listen(engine, "before_cursor_execute", note)
        await store.write(lambda unit: clicks._whole_thread(unit, 0))
        await clicks._click(store, await store.write(lambda unit: clicks._ready(unit, 0)))
        await store.write(_write_all)
        await store.read(_read_all)
    return {(statement, values) for statement, values in seen.items() if not statement.startswith("BEGIN")}


def test_no_statement_of_the_daily_work_reads_a_whole_table(tmp_path: Path) -> None:
    statements = asyncio.run(_statements(tmp_path / "bot.db"))
    assert len(statements) > 40
    connection = sqlite3.connect(tmp_path / "bot.db")
    whole = []
    for statement, values in statements:
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        whole += [(step, statement) for step in steps if step.startswith("SCAN") and not _bounded(step)]
    connection.close()
    assert whole == []


def _bounded(step: str) -> bool:
    """Whether only what waits is read, or only as many matches as are asked for."""
    return "ix_inbox_waiting" in step or "conversation_search VIRTUAL TABLE INDEX" in step


@pytest.mark.bench
def test_a_click_costs_the_same_with_much_history(tmp_path: Path) -> None:
    measured, queries = asyncio.run(clicks.compare(tmp_path, conversations=20_000, rounds=60))
    print(measured, queries)
    assert measured.ratio < 1.5, measured


def test_the_copies_that_the_benchmark_measures_are_whole_conversations(tmp_path: Path) -> None:
    async def go(ask: Callable[[Reader], Any]) -> Any:
        await clicks.build(tmp_path / "bot.db", 100)
        store = await Store.open(f"sqlite:///{tmp_path / 'bot.db'}", SystemClock())
        try:
            return await store.read(ask)
        finally:
            await store.close()

    def ask(reader: Reader) -> list[tuple[int, ...]]:
        return [
            (len(reader.thread(one)), len(reader.verdicts(one)), len(reader.artifacts(one)), len(reader.audit(one)))
            for one in (2, 57, 100)
        ] + [(len(reader.history(HistoryQuery(text="fp8", limit=1000))), sum(reader.counts().values()))]

    assert asyncio.run(go(ask)) == [(7, 3, 3, 3), (7, 3, 3, 3), (7, 3, 3, 3), (100, 100)]
    connection = sqlite3.connect(tmp_path / "bot.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
