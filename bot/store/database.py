"""Which release a database belongs to, and how it is brought to this one.

Revisions are numbered, "0001" and on. A database of a later revision is refused: this release would lose what it does
not know. A migration is one transaction: it is done whole, or the database stays as it was.
"""

from __future__ import annotations

import logging
from pathlib import Path

from sqlalchemy import Connection

from bot.errors import StoreForeign
from bot.store.failures import damaged, told
from bot.store.files import Claim, check_file, make_file
from bot.store.sqlite import BUSY_SECONDS, connect, keep_log, location, migrating_engine

log = logging.getLogger(__name__)

REVISIONS = ("0001",)
_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(url: str) -> str:
    """Make the database, or bring it to this release; what was done, in a sentence. Raises BotError.

    The bot must not run meanwhile: that is refused.
    """
    path = location(url)
    claim = Claim(path)
    try:
        before = prepare(path, claim, migrate=True)
    finally:
        claim.release()
    if before == REVISIONS[-1]:
        return f"The database {path} is of this release already (revision {before})."
    return f"The database {path} is at revision {REVISIONS[-1]} now{f'; it was at {before}' if before else ''}."


def prepare(path: Path, claim: Claim, *, migrate: bool, busy_seconds: float = BUSY_SECONDS) -> str:
    """See that a database of this release is there, for a process that claimed it; the revision that was found.

    Empty for a new one. Raises StoreError: StoreForeign for a later release, for an earlier one unless `migrate`, for
    another program's database, and for a damaged one.
    """
    claim.keep_log_of_another()
    if migrate:
        make_file(path)
    before = check(path, busy_seconds, older=migrate)
    keep_log(path, busy_seconds)
    if before != REVISIONS[-1]:
        _migrate(path, busy_seconds)
    if not before and claim.worked_before:
        log.warning("the database %s was made anew; an earlier one is gone", path)
    return before


def check(path: Path, busy_seconds: float = BUSY_SECONDS, *, older: bool = False) -> str:
    """The revision of the database that is there; empty for an empty file.

    Raises StoreError when it cannot be used as it is: `older` lets an earlier revision pass, or none.
    """
    check_file(path)
    revision = _revision(path, busy_seconds)
    latest = REVISIONS[-1]
    if revision is None or revision in REVISIONS[:-1]:
        if older:
            return revision or ""
        found = f"is of an older release (revision {revision}; this one needs {latest})" if revision else "is empty"
        hint = "Stop the bot, keep a copy, and run: ptq-bot db upgrade"
        raise StoreForeign("store_older", f"The database {path} {found}.", hint)
    if revision == latest:
        return revision
    if revision.isdecimal() and int(revision) > int(latest):
        raise StoreForeign(
            "store_newer",
            f"The database {path} is of a newer release (revision {revision}; this one knows {latest}).",
            "Install that release again, or restore the copy from before its upgrade.",
        )
    raise _of_others(path)


def _revision(path: Path, busy_seconds: float) -> str | None:
    """What the database says of itself; None for an empty file."""
    with told(path):
        connection = connect(path, writing=False, busy_seconds=busy_seconds)
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                return None
            if not {"alembic_version", "conversations"} <= tables:
                raise _of_others(path)
            rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
        finally:
            connection.close()
    if len(rows) != 1:
        raise damaged(path, "it does not say which revision it is")
    return str(rows[0][0])


def _of_others(path: Path) -> StoreForeign:
    message = f"{path} is the database of another program."
    return StoreForeign("store_not_ours", message, "Name a file of the bot's own in `database`.")


def _migrate(path: Path, busy_seconds: float) -> None:
    # Imported here: a bot that finds its database as it should be has no need of it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    engine = migrating_engine(path, busy_seconds)
    try:
        with told(path), engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            _check_references(connection, path)
    finally:
        engine.dispose()


def _check_references(connection: Connection, path: Path) -> None:
    """Foreign keys are off while tables are rebuilt: what a migration left hanging is found here, and undone."""
    hanging = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if hanging:
        raise damaged(path, f"rows of {hanging[0][0]} belong to no row of {hanging[0][2]}")
