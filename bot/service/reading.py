"""What a person's event means: words, clicks and forms become commands. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.cards.card import Action, ActionKind
from bot.conversation.commands import (
    Approve,
    Cancel,
    Change,
    Command,
    GiveOrder,
    Reject,
    Remark,
    Retry,
    Revise,
    TakeOffer,
)
from bot.conversation.offered import offer_digest, offered, offers_of
from bot.conversation.person import Person, Place
from bot.conversation.state import State, asked_at
from bot.conversation.words.again import Again, wanted_again
from bot.conversation.words.orders import Order
from bot.conversation.words.understand import Intent, understand
from bot.conversation.words.vocabulary import Vocabulary
from bot.platforms.contract import Clicked, Edited, Event, Said

_LONGEST_REMARK = 2000

NO_OFFER = "Nothing is offered here."


def where(place: Place) -> str:
    """The place in words, as approvals keep it."""
    return f"{place.platform} {place.channel} {place.thread}".strip()[:500]


def command_of(event: Event, state: State, seen: str, vocabulary: Vocabulary) -> Command | None:
    """The command that an event gives to a conversation in `state`; None for a button that gives none.

    Words count for the card whose digest is `seen`: what the person can have been looking at.
    """
    match event.what:
        case Clicked(action=action):
            return _click(event, action)
        case Edited(changes=changes, digest=digest):
            return Change(event.person, event.at, where(event.place), changes, digest)
        case Said(text=text):
            return _words(event, text, state, seen, vocabulary)


def _click(event: Event, action: Action) -> Command | None:
    actor = (event.person, event.at, where(event.place))
    match action.kind:
        case ActionKind.APPROVE if action.checkpoint is not None:
            return Approve(*actor, action.checkpoint, action.digest, action.step)
        case ActionKind.REJECT:
            return Reject(*actor, action.checkpoint, action.digest, action.step)
        case ActionKind.CANCEL:
            return Cancel(*actor, action.step)
        case ActionKind.RETRY:
            return Retry(*actor, action.step)
        case ActionKind.REVISE:
            return Revise(*actor, action.step)
        case ActionKind.OFFER:
            return TakeOffer(*actor, action.digest, action.step)
        case ActionKind.PAUSE_QUEUE:
            return GiveOrder(*actor, Order(kind="queue", queue="pause"), action.step)
        case ActionKind.OPEN_QUEUE:
            return GiveOrder(*actor, Order(kind="queue", queue="open"), action.step)
        case _:
            return None  # opening the edit form is the platform's own


def _words(event: Event, text: str, state: State, seen: str, vocabulary: Vocabulary) -> Command:
    actor = (event.person, event.at, where(event.place))
    asked = asked_at(state)
    checkpoint = asked[0] if asked else None
    understood = understand(text, checkpoint, vocabulary)
    if understood.order is not None:
        return _order(understood.order, actor, text, state)
    match understood.intent:
        case Intent.APPROVE if checkpoint is not None:
            return Approve(*actor, checkpoint, seen)
        case Intent.CHANGE | Intent.REQUEST if not understood.changes.nothing:
            return Change(*actor, understood.changes)
        case Intent.REJECT:
            return Reject(*actor, checkpoint, seen)
        case Intent.CANCEL:
            return Cancel(*actor)
        case intent:
            match wanted_again(text):
                case Again.STEP:
                    return Retry(*actor)
                case Again.PLAN:
                    return Revise(*actor)
                case None:
                    is_question = intent is Intent.QUESTION
                    return Remark(*actor, text[:_LONGEST_REMARK], is_question, understood.unread, understood.hint)


def _order(order: Order, actor: tuple[Person, datetime, str], text: str, state: State) -> Command:
    """An offer is taken by its number or its words; any other order is for a runner."""
    if order.kind == "offer":
        offers = offers_of(state)
        if (taken := offered(order, offers)) is not None:
            return TakeOffer(*actor, offer_digest(taken))
        there = "; ".join(f"{number}. {one.label}" for number, one in enumerate(offers, 1))
        return Remark(*actor, text[:_LONGEST_REMARK], hint=f"These are offered: {there}." if there else NO_OFFER)
    return GiveOrder(*actor, order)
