"""The first revision: everything."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    """
    CREATE TABLE settings (
        "key" TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY ("key")
    )
    """,
    """
    CREATE TABLE conversations (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        platform TEXT NOT NULL,
        channel TEXT NOT NULL,
        thread TEXT NOT NULL,
        requester_id TEXT NOT NULL,
        requester_name TEXT NOT NULL,
        requester_is_bot BOOLEAN NOT NULL,
        kind TEXT NOT NULL,
        ended BOOLEAN NOT NULL,
        version INTEGER NOT NULL,
        asked TEXT NOT NULL,
        model TEXT NOT NULL,
        scheme TEXT NOT NULL,
        runner TEXT NOT NULL,
        output_dir TEXT,
        run TEXT,
        size_bytes INTEGER,
        original_size_bytes INTEGER,
        perplexity DOUBLE,
        original_perplexity DOUBLE,
        created_at INTEGER NOT NULL,
        changed_at INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE states (
        conversation_id INTEGER NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (conversation_id),
        FOREIGN KEY(conversation_id) REFERENCES conversations (id)
    )
    """,
    """
    CREATE TABLE artifacts (
        conversation_id INTEGER NOT NULL,
        kind TEXT NOT NULL,
        number INTEGER NOT NULL,
        digest TEXT NOT NULL,
        at INTEGER NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (conversation_id, kind, number),
        FOREIGN KEY(conversation_id) REFERENCES conversations (id)
    )
    """,
    """
    CREATE TABLE inbox (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        "key" TEXT NOT NULL,
        received_at INTEGER NOT NULL,
        seen TEXT NOT NULL,
        conversation_id INTEGER,
        settled_at INTEGER,
        outcome TEXT,
        event TEXT NOT NULL,
        CONSTRAINT uq_inbox_key UNIQUE ("key"),
        FOREIGN KEY(conversation_id) REFERENCES conversations (id)
    )
    """,
    """
    CREATE TABLE verdicts (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL,
        inbox_id INTEGER,
        verb TEXT NOT NULL,
        checkpoint TEXT,
        digest TEXT NOT NULL,
        "by" TEXT NOT NULL,
        changes TEXT NOT NULL,
        place TEXT NOT NULL,
        at INTEGER NOT NULL,
        CONSTRAINT uq_verdicts_inbox_id UNIQUE (inbox_id),
        FOREIGN KEY(conversation_id) REFERENCES conversations (id),
        FOREIGN KEY(inbox_id) REFERENCES inbox (id)
    )
    """,
    """
    CREATE TABLE audit (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER,
        at INTEGER NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        detail TEXT NOT NULL,
        FOREIGN KEY(conversation_id) REFERENCES conversations (id)
    )
    """,
    """
    CREATE TABLE outbox (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL,
        slot TEXT NOT NULL,
        platform TEXT NOT NULL,
        after_event INTEGER NOT NULL,
        wanted INTEGER NOT NULL,
        delivered INTEGER NOT NULL,
        message TEXT,
        asks TEXT NOT NULL,
        asks_from INTEGER NOT NULL,
        shown_asks TEXT NOT NULL,
        tried_at INTEGER,
        failures INTEGER NOT NULL,
        postponed_at INTEGER,
        next_try_at INTEGER,
        last_error TEXT NOT NULL,
        given_up BOOLEAN NOT NULL,
        changed_at INTEGER NOT NULL,
        form TEXT NOT NULL,
        what TEXT NOT NULL,
        CONSTRAINT uq_outbox_conversation_id_slot UNIQUE (conversation_id, slot),
        FOREIGN KEY(conversation_id) REFERENCES conversations (id)
    )
    """,
    """
    CREATE VIRTUAL TABLE conversation_search USING fts5(
        words, model, scheme, person, output_dir, tokenize = 'trigram', columnsize = 0
    )
    """,
)

_INDEXES = (
    "CREATE UNIQUE INDEX uq_conversations_place ON conversations (platform, channel, thread) WHERE thread != ''",
    "CREATE INDEX ix_conversations_kind ON conversations (kind)",
    "CREATE INDEX ix_conversations_kind_changed ON conversations (kind, changed_at)",
    "CREATE INDEX ix_conversations_open ON conversations (id) WHERE ended = 0",
    "CREATE INDEX ix_conversations_output ON conversations (runner, output_dir, kind)",
    "CREATE INDEX ix_inbox_waiting ON inbox (id) WHERE outcome IS NULL",
    "CREATE INDEX ix_inbox_conversation ON inbox (conversation_id) WHERE conversation_id IS NOT NULL",
    "CREATE INDEX ix_verdicts_conversation ON verdicts (conversation_id)",
    "CREATE INDEX ix_audit_conversation ON audit (conversation_id) WHERE conversation_id IS NOT NULL",
    "CREATE INDEX ix_outbox_waiting ON outbox (platform, conversation_id, id)"
    " WHERE wanted > delivered AND given_up = 0",
)


def upgrade() -> None:
    """Make all tables, and give the database a name of its own."""
    for statement in (*_TABLES, *_INDEXES):
        op.execute(statement)
    for table in ("artifacts", "verdicts", "audit"):
        for name, operation in (("no_update", "UPDATE"), ("no_delete", "DELETE")):
            op.execute(
                f"CREATE TRIGGER {table}_{name} BEFORE {operation} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
            )
    op.execute("INSERT INTO settings VALUES ('name', lower(hex(randomblob(8))))")
