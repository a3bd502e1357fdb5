"""Where a conversation stands. A state carries what it knows; what it does not have cannot be asked of it.

Order of the steps; every working state is asked of a runner, every reviewing state waits for a person:

    Analysing -> ReviewingAnalysis -> Planning -> ReviewingPlan -> Preparing -> ReviewingCommand
              -> Submitting -> Running -> ReviewingResult -> Ended

`Failed` holds what was reached when a step or the run failed. `step` grows by one with each entry into a working state,
and where a run that was given up is taken up again: an answer or a button that carries another step is late and counts
for nothing.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from bot.conversation.person import Person
from bot.conversation.request import Request
from schemas.api import Approval
from schemas.base import Document
from schemas.runs import Run, RunState


class Checkpoint(StrEnum):
    """The four places where the workflow stops for a person."""

    ANALYSIS = "analysis"
    PLAN = "plan"
    COMMAND = "command"
    RESULT = "result"


class Trouble(Document):
    """What is in the way, for a person: `code` for programs, one sentence, and what to do next."""

    code: str
    message: str
    hint: str = ""

    def sentence(self) -> str:
        """Message and hint together."""
        return f"{self.message} {self.hint}".strip()


class Revision(Document):
    """One numbered, immutable artifact of the conversation; the document itself lies in the store."""

    number: Annotated[int, Field(ge=1)]
    digest: str


class ExactList(Document):
    """The engine's own list of layers, which came once the analysis was approved and names the same targets.

    `number` is the revision that holds it; `risks` are sentences of what only it found.
    """

    number: Annotated[int, Field(ge=1)]
    linear_layers: Annotated[int, Field(ge=0)]
    risks: tuple[str, ...] = ()


class AnalysisRevision(Revision):
    """A model_analysis. `proposed_output` is a free folder on the runner, as the intake found it; `exclude_defaults`
    are the layers that the engine leaves as they are unless somebody says otherwise.

    `exact` says that its layers are the engine's own. While `better` is "wanted", the runner is asked for those beside
    everything else; `no_better` says why there are none, where people should know, and `again_after` is the step in
    which that was found where it may be otherwise later: each later step asks once more. `improves` is the digest of
    the revision whose place it took before anybody approved it; `confirmed` what came later and changed nothing.
    """

    remote_code: bool = False
    proposed_output: str = ""
    exclude_defaults: tuple[str, ...] = ()
    exact: bool = False
    better: Literal["wanted", "none"] = "none"
    no_better: str = ""
    again_after: int | None = None
    improves: str = ""
    confirmed: ExactList | None = None


class PlanRevision(Revision):
    """A quant_plan. `blocked_by` are the sentences of the findings that stop it; `risks` the codes of what a yes to it
    accepts."""

    scheme: str
    remote_code: bool = False
    blocked_by: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


class ManifestRevision(Revision):
    """A run_manifest."""

    output_dir: str


class Base(Document):
    """What every state knows. `revisions` counts the artifacts of each kind so far, and the runs."""

    request: Request
    requester: Person
    step: Annotated[int, Field(ge=1)]
    revisions: dict[str, int] = {}


class Working(Base):
    """A runner was asked and has not answered yet. `delayed` says why it takes longer than it should."""

    delayed: Trouble | None = None


class Analysing(Working):
    """The runner reads the model. `because` says why it is read again, where a runner found that it has to be."""

    kind: Literal["analysing"] = "analysing"
    because: str = ""


class ReviewingAnalysis(Base):
    """Checkpoint 1: is the analysis right?"""

    kind: Literal["reviewing_analysis"] = "reviewing_analysis"
    analysis: AnalysisRevision
    because: str = ""


class Planning(Working):
    """The runner makes a plan. `because` says why it is made again, where a runner found that it has to be."""

    kind: Literal["planning"] = "planning"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    because: str = ""


class ReviewingPlan(Base):
    """Checkpoint 2: confirm or change the plan."""

    kind: Literal["reviewing_plan"] = "reviewing_plan"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    because: str = ""


class Preparing(Working):
    """The runner derives the exact command. `because` says why a command is offered again."""

    kind: Literal["preparing"] = "preparing"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    because: str = ""


class ReviewingCommand(Base):
    """Checkpoint 3: somebody is asked whether to run exactly this command."""

    kind: Literal["reviewing_command"] = "reviewing_command"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    manifest: ManifestRevision
    because: str = ""


class Submitting(Working):
    """The approved command is handed to the runner. `key` makes it one run, however often it is handed over."""

    kind: Literal["submitting"] = "submitting"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    manifest: ManifestRevision
    key: str
    cancelled_by: Person | None = None


class Running(Base):
    """The runner has the run: it waits, computes or is verified. `silent` says why there is no news."""

    kind: Literal["running"] = "running"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    manifest: ManifestRevision
    run: Run
    cancelled_by: Person | None = None
    silent: Trouble | None = None


class ReviewingResult(Base):
    """Checkpoint 4: accept the verified result?"""

    kind: Literal["reviewing_result"] = "reviewing_result"
    analysis: AnalysisRevision
    approvals: tuple[Approval, ...]
    plan: PlanRevision
    manifest: ManifestRevision
    run: Run


class Stage(StrEnum):
    """Which step failed."""

    INTAKE = "intake"
    PLAN = "plan"
    MANIFEST = "manifest"
    SUBMISSION = "submission"
    RUN = "run"


class Failed(Base):
    """A step or the run failed. Nothing happens by itself: a person goes back to the plan, tries again or ends it.

    A run whose outcome is not known is taken up again when its runner finds it; `cancelled_by` holds who wanted it to
    end by then.
    """

    kind: Literal["failed"] = "failed"
    stage: Stage
    trouble: Trouble
    analysis: AnalysisRevision | None = None
    approvals: tuple[Approval, ...] = ()
    plan: PlanRevision | None = None
    manifest: ManifestRevision | None = None
    run: Run | None = None
    cancelled_by: Person | None = None

    @property
    def unresolved(self) -> bool:
        """Whether a run was given up without knowing what became of it."""
        run = self.run if self.stage is Stage.RUN else None
        return run is not None and (run.state is RunState.LOST or not run.state.ended)


class Ending(StrEnum):
    """Why a conversation ended."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Ended(Base):
    """It is over. A person may still go back to the plan, which asks for every later approval again."""

    kind: Literal["ended"] = "ended"
    ending: Ending
    by: Person | None = Field(None, description="Who ended it; nobody when time did.")
    at: datetime
    analysis: AnalysisRevision | None = None
    approvals: tuple[Approval, ...] = ()
    plan: PlanRevision | None = None
    manifest: ManifestRevision | None = None
    run: Run | None = None


State = (
    Analysing
    | ReviewingAnalysis
    | Planning
    | ReviewingPlan
    | Preparing
    | ReviewingCommand
    | Submitting
    | Running
    | ReviewingResult
    | Failed
    | Ended
)

STATES: TypeAdapter[State] = TypeAdapter(Annotated[State, Field(discriminator="kind")])


def asked_at(state: State) -> tuple[Checkpoint, str] | None:
    """The checkpoint at which a state waits for a person, and the digest that is asked about; None elsewhere.

    At the last checkpoint the digest is that of the manifest that ran.
    """
    match state:
        case ReviewingAnalysis():
            return Checkpoint.ANALYSIS, state.analysis.digest
        case ReviewingPlan():
            return Checkpoint.PLAN, state.plan.digest
        case ReviewingCommand():
            return Checkpoint.COMMAND, state.manifest.digest
        case ReviewingResult():
            return Checkpoint.RESULT, state.manifest.digest
        case _:
            return None
