"""What a failed run offers to plan instead, and which of it somebody means."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from bot.conversation.changes import change
from bot.conversation.commands import Change, TakeOffer
from bot.conversation.decision import Decision
from bot.conversation.policy import Policy
from bot.conversation.request import Changes
from bot.conversation.seen import means
from bot.conversation.sentences import refuse, sayable, standing
from bot.conversation.state import Failed, Stage, State
from bot.conversation.words.orders import Order
from schemas.artifacts.plan import PlanChoices
from schemas.artifacts.report import Offer
from schemas.digest import digest


def offers_of(state: State) -> Sequence[Offer]:
    """The offers that stand: those of the run that failed, the smallest change first. One that no plan can take, as
    from a runner of another release, is none."""
    if not isinstance(state, Failed) or state.stage is not Stage.RUN or state.run is None or state.run.report is None:
        return ()
    return [one for one in state.run.report.offers if _fits(one)]


def offer_digest(offer: Offer) -> str:
    """What names an offer on its button."""
    return digest(offer)


def take(state: State, command: TakeOffer, policy: Policy) -> Decision:
    """An offer that is taken is a change of what was asked for: a new plan, which needs the same approvals as any."""
    taken = next((one for one in offers_of(state) if means(command.offer, offer_digest(one))), None)
    if taken is None:
        return refuse("no_offer", f"This is not offered any more. {standing(state)}", sayable(state))
    return change(state, Change(command.by, command.at, command.where, Changes(choices=taken.choices)), policy)


def offered(order: Order, offers: Sequence[Offer]) -> Offer | None:
    """The offer that is meant: by its number, or the only one that is described with all of these words."""
    if not order.about:
        return offers[order.offer - 1] if 0 < order.offer <= len(offers) else None
    words = order.about.split()
    found = [one for one in offers if {*words} <= {*f"{one.label} {one.reason}".lower().replace(",", " ").split()}]
    return found[0] if len(found) == 1 else None


def _fits(offer: Offer) -> bool:
    try:
        PlanChoices.model_validate(offer.choices)
    except ValidationError:
        return False
    return bool(offer.choices)
