"""What a conversation has reached, and how it goes back: to the earliest step that is touched, keeping what stands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from bot.conversation.request import Request
from bot.conversation.state import (
    Analysing,
    AnalysisRevision,
    Checkpoint,
    ManifestRevision,
    Planning,
    PlanRevision,
    Preparing,
    ReviewingAnalysis,
    Revision,
    State,
)
from schemas.api import Approval
from schemas.runs import Run


class Stop(IntEnum):
    """The steps to which a conversation can go back, in their order."""

    ANALYSIS = 1
    PLAN = 2
    COMMAND = 3


@dataclass(frozen=True)
class Reached:
    """The artifacts of a state, whichever state it is."""

    analysis: AnalysisRevision | None = None
    approvals: tuple[Approval, ...] = ()
    plan: PlanRevision | None = None
    manifest: ManifestRevision | None = None
    run: Run | None = None

    def approved(self, checkpoint: Checkpoint, revision: Revision | None) -> tuple[Approval, ...]:
        """The approvals of a checkpoint for exactly this revision; none where there is no revision."""
        if revision is None:
            return ()
        return tuple(
            approval
            for approval in self.approvals
            if approval.checkpoint == checkpoint.value and approval.digest == revision.digest
        )


def reached(state: State) -> Reached:
    """The artifacts that a state carries, and the approvals that stand in it."""
    if isinstance(state, Analysing):
        return Reached()
    if isinstance(state, ReviewingAnalysis):
        return Reached(analysis=state.analysis)
    # From here on the states name what they have alike; what one of them does not have is absent.
    return Reached(
        analysis=state.analysis,
        approvals=state.approvals,
        plan=getattr(state, "plan", None),
        manifest=getattr(state, "manifest", None),
        run=getattr(state, "run", None),
    )


def going_back(state: State, request: Request, stop: Stop, because: str = "") -> Analysing | Planning | Preparing:
    """The working state of `stop`, or of an earlier step where what `stop` needs was never approved.

    It is a new step. Approvals of what comes before it are kept, all others are void.
    """
    have = reached(state)
    step, revisions, requester = state.step + 1, state.revisions, state.requester
    analysis_yes = have.approved(Checkpoint.ANALYSIS, have.analysis)
    if stop is Stop.ANALYSIS or have.analysis is None or not analysis_yes:
        return Analysing(request=request, requester=requester, step=step, revisions=revisions, because=because)
    plan_yes = have.approved(Checkpoint.PLAN, have.plan)
    if stop is Stop.PLAN or have.plan is None or not plan_yes:
        return Planning(
            request=request,
            requester=requester,
            step=step,
            revisions=revisions,
            because=because,
            analysis=have.analysis,
            approvals=analysis_yes,
        )
    return Preparing(
        request=request,
        requester=requester,
        step=step,
        revisions=revisions,
        because=because,
        analysis=have.analysis,
        approvals=analysis_yes + plan_yes,
        plan=have.plan,
    )
