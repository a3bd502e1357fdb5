"""Ends conversations at which nobody has decided for too long. A person may take them up again."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from bot.clock import Clock
from bot.conversation.commands import Expire
from bot.errors import StoreError
from bot.service.core import Core
from bot.service.pause import pause
from bot.store.records import Conversation
from bot.store.store import Store

log = logging.getLogger(__name__)

_LOOK_SECONDS = 600.0
KINDS = ("reviewing_analysis", "reviewing_plan", "reviewing_command", "failed")


async def expire(store: Store, core: Core, clock: Clock, patience: timedelta) -> None:
    """Look again and again, for ever.

    What is overdue has to be so at two looks: a clock that is corrected, as at the start of a host, ends nothing.
    """
    seen: set[tuple[int, int]] = set()
    while True:
        try:
            overdue = await _overdue(store, clock.now() - patience)
            for conversation in overdue:
                state = conversation.state
                if (conversation.id, conversation.version) in seen:
                    await _expire(core, conversation.id, Expire(state.step, state.kind, clock.now()))
            seen = {(conversation.id, conversation.version) for conversation in overdue}
        except StoreError as error:
            log.error("expiry waits: %s", error.sentence())
        await pause(_LOOK_SECONDS)


async def _expire(core: Core, conversation: int, command: Expire) -> None:
    try:
        await core.answer(conversation, command)
    except StoreError:
        raise
    except Exception:  # one conversation that cannot be ended must not end the daemon
        log.exception("conversation %s could not be expired", conversation)


async def _overdue(store: Store, before: datetime) -> list[Conversation]:
    return await store.read(lambda reader: reader.overdue(before, KINDS))
