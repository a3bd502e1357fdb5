"""What a failed run offers to plan instead, and which of it somebody means."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from bot.conversation.state import Failed, Stage, State
from bot.conversation.words.orders import Order
from schemas.artifacts.plan import PlanChoices
from schemas.artifacts.report import Offer


def offers_of(state: State) -> Sequence[Offer]:
    """The offers that stand: those of the run that failed, the smallest change first. One that no plan can take, as
    from a runner of another release, is none."""
    if not isinstance(state, Failed) or state.stage is not Stage.RUN or state.run is None or state.run.report is None:
        return ()
    return [one for one in state.run.report.offers if _fits(one)]


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
