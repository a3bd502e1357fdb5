"""Artifacts, decisions and the audit are only ever added to, whoever asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from bot.conversation.decision import Verb, Verdict
from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint
from bot.errors import BotError
from bot.store.entries import AuditEntry, KeptArtifact, KeptVerdict
from bot.store.unit import Reader, Unit
from schemas.digest import digest
from tests import samples
from tests.bot.store.opening import opened
from tests.bot.store.samples import ADA, BOB, NOON, PLAN, THREAD, said, state

YES = Verdict(Verb.APPROVED, BOB, Checkpoint.PLAN, PLAN)
CHANGED = Verdict(Verb.CHANGED, ADA, changes=Changes(model="Qwen/Qwen3-4B", choices={"kv_cache_scheme": None}))


def _fill(unit: Unit) -> None:
    there = unit.begin(THREAD, ADA, state("reviewing_plan"), NOON)
    event = unit.receive(said("yes"), NOON)
    unit.add_artifact(there.id, "plan", 1, PLAN, samples.plan(), NOON)
    unit.record(there.id, YES, event.id, "slack C1", NOON)
    unit.record(there.id, CHANGED, None, "web thread 1", NOON)
    unit.audit(BOB.id, "approved", there.id, {"step": 3, "of": ["a", None]}, NOON)
    unit.audit("bot", "started", None, {}, NOON)


def _after(path: Path, read: Callable[[Reader], Any], *work: Callable[[Unit], Any]) -> Any:
    async def go() -> Any:
        async with opened(path) as store:
            for one in (_fill, *work):
                await store.write(one)
            return await store.read(read)

    return asyncio.run(go())


def test_decisions_and_the_audit_come_back_in_order(tmp_path: Path) -> None:
    verdicts, audit = _after(tmp_path / "bot.db", lambda reader: (reader.verdicts(1), reader.audit(1)))
    assert verdicts == [
        KeptVerdict(1, 1, YES, 1, "slack C1", NOON),
        KeptVerdict(2, 1, CHANGED, None, "web thread 1", NOON),
    ]
    assert audit == [AuditEntry(1, 1, BOB.id, "approved", {"step": 3, "of": ["a", None]}, NOON)]


@pytest.mark.parametrize("make", [samples.analysis, samples.plan, samples.manifest, samples.report])
def test_a_document_comes_back_with_the_digest_it_had(tmp_path: Path, make: Callable[[], Any]) -> None:
    document = make()
    found, absent, listed = _after(
        tmp_path / "bot.db",
        lambda reader: (reader.artifact(1, "it", 2), reader.artifact(1, "it", 1), reader.artifacts(1)),
        lambda unit: unit.add_artifact(1, "it", 2, digest(document), document, NOON),
    )
    assert type(document).model_validate(found) == document
    assert digest(found) == digest(document)
    assert absent is None
    assert listed == [KeptArtifact("it", 2, digest(document), NOON), KeptArtifact("plan", 1, PLAN, NOON)]


def test_a_number_is_one_document_for_good(tmp_path: Path) -> None:
    other = samples.plan(global_scheme="int8")
    with pytest.raises(BotError) as refused:
        _after(tmp_path / "bot.db", print, lambda unit: unit.add_artifact(1, "plan", 1, PLAN, other, NOON))
    assert refused.value.code == "store_conflict"


def test_an_event_is_one_decision(tmp_path: Path) -> None:
    with pytest.raises(BotError) as refused:
        _after(tmp_path / "bot.db", print, lambda unit: unit.record(1, YES, 1, "slack C1", NOON))
    assert refused.value.code == "store_conflict"


@pytest.mark.parametrize(
    "work",
    [
        lambda unit: unit.add_artifact(9, "plan", 1, PLAN, samples.plan(), NOON),
        lambda unit: unit.record(9, YES, None, "slack C1", NOON),
        lambda unit: unit.record(1, YES, 9, "slack C1", NOON),
        lambda unit: unit.audit(BOB.id, "approved", 9, {}, NOON),
    ],
)
def test_nothing_is_kept_of_what_is_not_there(tmp_path: Path, work: Callable[[Unit], None]) -> None:
    with pytest.raises(BotError) as refused:
        _after(tmp_path / "bot.db", print, work)
    assert refused.value.code == "store_conflict"


@pytest.mark.parametrize("table", ["artifacts", "verdicts", "audit"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {table} SET at = at + 1",
        "UPDATE OR REPLACE {table} SET at = 0 WHERE rowid = 1",
        "DELETE FROM {table}",
        "DELETE FROM {table} WHERE conversation_id IS NULL OR conversation_id = 1",
        "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
    ],
)
def test_no_statement_changes_what_was_written(tmp_path: Path, table: str, statement: str) -> None:
    path = tmp_path / "bot.db"

    async def rows() -> list[Any]:
        async with opened(path) as store:
            return await store.read(lambda reader: list(reader._session.execute(text(f"SELECT * FROM {table}"))))

    _after(path, print)
    before = asyncio.run(rows())
    assert before

    async def change() -> None:
        async with opened(path) as store:
            await store.write(lambda unit: unit._session.execute(text(statement.format(table=table))))

    with pytest.raises(BotError, match=f"rows of {table} are never changed"):
        asyncio.run(change())
    assert asyncio.run(rows()) == before


def test_no_text_of_a_decision_can_stop_the_store(tmp_path: Path) -> None:
    strange = "half \ud800, NUL \0"
    verdict = Verdict(Verb.CHANGED, ADA, digest=strange, changes=Changes(output_dir=strange))
    verdicts, audit = _after(
        tmp_path / "bot.db",
        lambda reader: (reader.verdicts(1), reader.audit(1)),
        lambda unit: unit.record(1, verdict, None, strange, NOON),
        lambda unit: unit.audit(strange, strange, 1, {strange: [strange]}, NOON),
    )
    kept = "half \ufffd, NUL \0"
    assert (verdicts[-1].where, verdicts[-1].verdict.changes.output_dir) == (kept, kept)
    assert (audit[-1].actor, audit[-1].detail) == (kept, {kept: [kept]})
