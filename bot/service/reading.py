"""What a person's event means: words, clicks and forms become commands. Pure."""

from __future__ import annotations

from bot.cards.card import Action, ActionKind
from bot.conversation.commands import Approve, Cancel, Change, Command, Reject, Remark, Retry, Revise
from bot.conversation.person import Place
from bot.conversation.state import Failed, State, asked_at
from bot.conversation.words.understand import Intent, understand
from bot.conversation.words.vocabulary import Vocabulary
from bot.platforms.contract import Clicked, Edited, Event, Said

_LONGEST_REMARK = 2000


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
            return Approve(*actor, action.checkpoint, action.digest)
        case ActionKind.REJECT:
            return Reject(*actor, action.checkpoint, action.digest)
        case ActionKind.CANCEL:
            return Cancel(*actor)
        case ActionKind.RETRY:
            return Retry(*actor)
        case ActionKind.REVISE:
            return Revise(*actor)
        case _:
            return None  # opening the edit form is the platform's own


def _words(event: Event, text: str, state: State, seen: str, vocabulary: Vocabulary) -> Command:
    actor = (event.person, event.at, where(event.place))
    asked = asked_at(state)
    checkpoint = asked[0] if asked else None
    understood = understand(text, checkpoint, vocabulary)
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
            again = _again(text, state)
            if again is not None:
                return again(*actor)
            return Remark(*actor, text[:_LONGEST_REMARK], intent is Intent.QUESTION)


_RETRY = frozenset({"retry", "try again", "again", "once more", "please retry", "please try again"})
_REVISE = frozenset({"back to the plan", "back to plan", "go back to the plan", "back", "revise"})


def _again(text: str, state: State) -> type[Retry] | type[Revise] | None:
    """Words that only mean something after a failure or an end."""
    said = " ".join(text.lower().split()).strip(" .!")
    if said in _RETRY and isinstance(state, Failed):
        return Retry
    return Revise if said in _REVISE else None
