"""What a sentence means at a checkpoint."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import JsonValue

from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint
from bot.conversation.words import answers, questions
from bot.conversation.words.orders import NO_PAUSE, Order, pauses_a_run, read_order
from bot.conversation.words.sentences import Reading, begins_quantizing, read_clauses
from bot.conversation.words.text import Sentence, read
from bot.conversation.words.vocabulary import PUBLISHED, Vocabulary
from schemas.base import Document


class Intent(StrEnum):
    """What a person wants with a sentence."""

    REQUEST = "request"
    APPROVE = "approve"
    CHANGE = "change"
    REJECT = "reject"
    CANCEL = "cancel"
    QUESTION = "question"
    UNCLEAR = "unclear"


class Understood(Document):
    """A sentence as it was understood. Only a request and a change have `changes`; those of a request name a model, or
    else the person has to be asked for it. `unread` is the first part that was not understood, as typed, where that
    is why there are no changes.

    An `order` changes nothing of what the conversation is about, and agrees to nothing: its intent is unclear, so that
    whoever knows no orders does nothing.
    """

    intent: Intent
    changes: Changes = Changes()
    unread: str = ""
    hint: str = ""
    order: Order | None = None

    @property
    def flat(self) -> dict[str, JsonValue]:
        """Field to value, for showing."""
        return self.changes.flat()


_UNCLEAR = Understood(intent=Intent.UNCLEAR)


def understand(sentence: str, checkpoint: Checkpoint | None, vocabulary: Vocabulary = PUBLISHED) -> Understood:
    """What a sentence means while `checkpoint` waits for a person; None: nothing does, as in a channel or while a
    runner works.

    Nobody agrees by accident: a sentence that has anything else in it than agreement is no agreement. Nothing is half
    understood: a request or a change of which one word is not understood is unclear. Any text is understood somehow.
    """
    said = read(sentence)
    if said is None or not said.tokens:
        return _UNCLEAR
    if answers.cancels(said):
        return Understood(intent=Intent.CANCEL)
    if answers.rejects(said):
        return Understood(intent=Intent.REJECT)
    if answers.agrees(said, checkpoint):
        return Understood(intent=Intent.APPROVE)
    if questions.is_question(said):
        return _asked(said, checkpoint, vocabulary)
    if (order := read_order(said.tokens, vocabulary)) is not None:
        return Understood(intent=Intent.UNCLEAR, order=order)
    reading = read_clauses(said.tokens, vocabulary, in_thread=checkpoint is not None)
    if isinstance(reading, Reading):
        return _meant(reading, checkpoint)
    if answers.rejects_with_reason(said):
        return Understood(intent=Intent.REJECT)
    hint = NO_PAUSE if pauses_a_run(said.tokens) else reading.hint
    return Understood(intent=Intent.UNCLEAR, unread=reading.text, hint=hint)


def as_json(understood: Understood) -> dict[str, Any]:
    """The intent, and the changes as field to value. `relative` names the fields of which only a part is changed;
    `unread` and `hint` stand there where a part was not understood, and `order` where it is an order to a queue."""
    told: dict[str, Any] = {"intent": understood.intent.value, "changes": understood.flat}
    if relative := understood.changes.relative:
        told["relative"] = list(relative)
    if understood.order is not None:
        told["order"] = understood.order.model_dump(exclude_defaults=True)
    beside = {"unread": understood.unread, "hint": understood.hint}
    return told | {name: text for name, text in beside.items() if text}


def _asked(said: Sentence, checkpoint: Checkpoint | None, vocabulary: Vocabulary) -> Understood:
    """A question; "could you use awq?" is a change in polite words, and "could you quantize ...?" a request."""
    deed = questions.politely_asked(said)
    if deed and questions.asks_for_a_deed(said) and (order := read_order(deed, vocabulary)) is not None:
        return Understood(intent=Intent.UNCLEAR, order=order)
    reading = read_clauses(deed, vocabulary, in_thread=checkpoint is not None) if deed else None
    if isinstance(reading, Reading):
        meant = _meant(reading, checkpoint)
        named = reading.to_quantize and meant.changes.model is not None
        if (checkpoint is None and named) or (questions.asks_for_a_deed(said) and _changes(meant, checkpoint)):
            return meant
    elif reading is not None and checkpoint is None and begins_quantizing(deed):
        return Understood(intent=Intent.QUESTION, unread=reading.text, hint=reading.hint)
    return Understood(intent=Intent.QUESTION)


def _changes(meant: Understood, checkpoint: Checkpoint | None) -> bool:
    """Whether it changes what is there already: that is safe to do for whoever only wondered, as it needs a new yes."""
    return meant.intent is Intent.CHANGE or (checkpoint is not None and meant.intent is Intent.REQUEST)


def _meant(reading: Reading, checkpoint: Checkpoint | None) -> Understood:
    named = reading.changes.model is not None
    # Where no thread has a model, whoever names one wants it: "I'd like Qwen/Qwen3-8B in fp8".
    if (reading.to_quantize and (named or checkpoint is None)) or (named and checkpoint is None):
        return Understood(intent=Intent.REQUEST, changes=reading.changes)
    if reading.model_alone:
        return _UNCLEAR  # in a thread it could be praise of the model as well as the wish for another one
    return _UNCLEAR if reading.changes.nothing else Understood(intent=Intent.CHANGE, changes=reading.changes)
