"""A database that was brought here by revisions is what the models describe."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from bot.errors import StoreForeign
from bot.store import database
from bot.store.database import REVISIONS, upgrade
from bot.store.sqlite import migrating_engine
from bot.store.tables import SEARCH, Base
from tests.bot.store.opening import url

_PACKAGE = Path(database.__file__).parent


def _schema(path: Path) -> dict[str, str]:
    """Everything that the file's schema says, without regard to spaces."""
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE name != 'alembic_version'").fetchall()
    connection.close()
    return {name: re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql or "")) for name, sql in rows}


def test_the_revisions_make_exactly_the_tables_indexes_triggers_and_search_of_the_models(tmp_path: Path) -> None:
    upgrade(url(tmp_path / "migrated.db"))
    engine = create_engine(f"sqlite:///{tmp_path / 'models.db'}")
    Base.metadata.create_all(engine)
    engine.dispose()
    migrated, models = _schema(tmp_path / "migrated.db"), _schema(tmp_path / "models.db")
    assert {"conversations", "ix_inbox_waiting", "audit_no_delete", SEARCH} <= models.keys()
    migrated.pop("sqlite_autoindex_alembic_version_1")
    assert migrated == models


def test_comparing_the_models_with_the_database_finds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bot.db"
    upgrade(url(path))
    engine = migrating_engine(path)

    def ours(_: object, name: str | None, kind: str, *__: object) -> bool:
        return not (kind == "table" and (name or "").startswith(SEARCH))

    with engine.connect() as connection:
        options = {"compare_type": True, "include_object": ours}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)
    engine.dispose()
    assert found == []


def test_the_known_revisions_are_those_that_are_there() -> None:
    config = Config()
    config.set_main_option("script_location", str(_PACKAGE / "migrations"))
    script = ScriptDirectory.from_config(config)
    assert tuple(reversed([revision.revision for revision in script.walk_revisions()])) == REVISIONS
    assert script.get_heads() == [REVISIONS[-1]]


def test_a_revision_that_fails_leaves_the_database_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bot.db"
    upgrade(url(path))
    before = _schema(path)
    migrations = tmp_path / "migrations"
    (migrations / "versions").mkdir(parents=True)
    for file in ("env.py", "versions/v0001_first.py"):
        (migrations / file).write_text((_PACKAGE / "migrations" / file).read_text())
    (migrations / "versions" / "v0002_second.py").write_text(
        "from alembic import op\n"
        "revision, down_revision, branch_labels, depends_on = '0002', '0001', None, None\n"
        "def upgrade():\n"
        "    op.execute('CREATE TABLE half (id INTEGER)')\n"
        "    op.execute(\"INSERT INTO states VALUES (77, '{}')\")\n"
    )
    monkeypatch.setattr(database, "REVISIONS", ("0001", "0002"))
    monkeypatch.setattr(database, "_MIGRATIONS", migrations)
    with pytest.raises(StoreForeign, match="rows of states belong to no row of conversations"):
        upgrade(url(path))
    assert _schema(path) == before
    monkeypatch.undo()
    assert "already" in upgrade(url(path))
