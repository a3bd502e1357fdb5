"""Finds what the conversation's own documents say to a question, before it is decided upon."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from bot.conversation.commands import Command, Remark
from bot.conversation.explaining import Known, explain, queues_asked
from bot.conversation.reached import reached
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import Revision
from bot.store.records import Conversation
from bot.store.unit import Unit
from schemas.api import Capabilities
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan

log = logging.getLogger(__name__)

Offers = Callable[[str], Capabilities | None]
"""What a runner, by its name, is known to offer; nothing where it could not be asked yet."""

Kept = TypeVar("Kept", bound=BaseModel)


def nothing_known(_runner: str) -> Capabilities | None:
    """The offers of runners that nobody has asked."""
    return None


def answered(
    command: Command, unit: Unit, conversation: Conversation, offers: Offers, runners: Sequence[KnownRunner] = ()
) -> Command:
    """A question with its answer, where there is one; any other command as it is."""
    if not isinstance(command, Remark) or not command.is_question:
        return command
    state = conversation.state
    have = reached(state)
    known = Known(
        state=state,
        plan=_kept(unit, conversation.id, "plan", have.plan, QuantPlan),
        analysis=_kept(unit, conversation.id, "analysis", have.analysis, ModelAnalysis),
        offer=offers(state.request.runner),
        runners=runners,
    )
    return replace(command, answer=explain(command.text, known) or "", queues=queues_asked(command.text, known))


def _kept(unit: Unit, conversation: int, kind: str, revision: Revision | None, model: type[Kept]) -> Kept | None:
    document: Any = unit.artifact(conversation, kind, revision.number) if revision is not None else None
    if document is None:
        return None
    try:
        return model.model_validate(document)
    except ValidationError:
        # Kept by another release. A question is answered without it: nothing depends on the answer.
        log.warning(
            "the %s of conversation %s cannot be read, so a question is answered without it", kind, conversation
        )
        return None
