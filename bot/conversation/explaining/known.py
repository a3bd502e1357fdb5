"""What can be known when a question is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.conversation.reached import reached
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from schemas.api import Capabilities
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue


@dataclass(frozen=True)
class Known:
    """The state of a conversation, the documents that it points to, what its runner offers, and the runners that there
    are, as far as they are known."""

    state: State
    plan: QuantPlan | None = None
    analysis: ModelAnalysis | None = None
    offer: Capabilities | None = None
    runners: Sequence[KnownRunner] = ()

    @property
    def catalogue(self) -> Catalogue | None:
        """What the runner's engine offers."""
        return self.offer.catalogue if self.offer is not None else None

    @property
    def plan_called(self) -> str:
        """The plan, as people find it in the thread: "Plan 2"."""
        revision = reached(self.state).plan
        return f"Plan {revision.number}" if revision is not None else "The plan"
