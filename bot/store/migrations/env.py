"""Runs the revisions on a connection that the caller has opened, inside the transaction that it has begun."""

from __future__ import annotations

from alembic import context

from bot.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
