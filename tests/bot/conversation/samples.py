"""A conversation in every state, and every command, for tests that need any.

Ada asks; Bob reads along; Grace approves commands where approvers are named; Root is an admin; Robo is a bot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.conversation.commands import (
    Analysed,
    Approve,
    BetterAnalysis,
    Cancel,
    Change,
    Command,
    Delayed,
    Expire,
    GiveOrder,
    NoBetterAnalysis,
    Planned,
    Prepared,
    Reject,
    Remark,
    Retry,
    Revise,
    RunMissing,
    RunNews,
    RunSilent,
    StepFailed,
    Submitted,
    TakeOffer,
)
from bot.conversation.decide import decide
from bot.conversation.decision import Decision, Proceed
from bot.conversation.person import Person, Place
from bot.conversation.policy import Policy
from bot.conversation.request import Changes, Request
from bot.conversation.state import (
    Analysing,
    AnalysisRevision,
    Checkpoint,
    Ended,
    Ending,
    Failed,
    ManifestRevision,
    Planning,
    PlanRevision,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Running,
    Stage,
    State,
    Submitting,
    Trouble,
    asked_at,
)
from bot.conversation.words.orders import Order
from schemas.api import Approval, ApprovedCheckpoint
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import Finding, Severity
from schemas.runs import Progress, Run, RunState
from tests import samples

ADA = Person(id="web:ada", name="Ada")
BOB = Person(id="web:bob", name="Bob")
GRACE = Person(id="web:grace", name="Grace")
ROOT = Person(id="web:root", name="Root")
ROBO = Person(id="web:robo", name="Robo", is_bot=True)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PLACE = Place(platform="web", channel="quantize", thread="12")
WHERE = "web quantize 12"
RUNNERS = ("local", "mi300")
POLICY = Policy(admins=(ROOT.id,), runners=RUNNERS)
REQUEST = Request(
    text="quantize Qwen/Qwen3-8B to fp8", model="Qwen/Qwen3-8B", runner="local", choices={"global_scheme": "fp8"}
)


def digest_of(text: str) -> str:
    """A whole digest, the same for the same text."""
    return hashlib.sha256(text.encode()).hexdigest()


ANALYSIS = AnalysisRevision(
    number=1, digest=digest_of("analysis 1"), proposed_output="/out/qwen3-8b-quantized", better="wanted"
)
PLAN = PlanRevision(number=1, digest=digest_of("plan 1"), scheme="fp8")
MANIFEST = ManifestRevision(number=1, digest=digest_of("manifest 1"), output_dir="/out/qwen3-8b-fp8")
TROUBLE = Trouble(code="model_missing", message="There is no model there.", hint="Name another.")
AWAY = Trouble(code="runner_away", message="The runner does not answer.", hint="It is asked again.")


def approval(checkpoint: ApprovedCheckpoint, digest: str, by: Person = ADA) -> Approval:
    """A person's yes, as a conversation keeps it."""
    return Approval(checkpoint=checkpoint, digest=digest, by=f"{by.name} ({by.id})", at=NOON, where=WHERE)


ANALYSIS_YES = approval("analysis", ANALYSIS.digest)
PLAN_YES = approval("plan", PLAN.digest)
COMMAND_YES = approval("command", MANIFEST.digest)


def run(**changes: Any) -> Run:
    """A run of the sample manifest, computing."""
    values: dict[str, Any] = {
        "id": "run-0123456789abcdef",
        "key": "key-1",
        "state": RunState.RUNNING,
        "since": NOON,
        "submitted_at": NOON,
        "started_at": NOON,
        "model": "/models/qwen3-8b",
        "scheme": "fp8",
        "output_dir": MANIFEST.output_dir,
        "manifest_digest": MANIFEST.digest,
        "progress": Progress(percent=10.0),
        "last_event": 3,
    }
    return Run(**{**values, **changes})


def _common(step: int, *kinds: str) -> dict[str, Any]:
    return {"request": REQUEST, "requester": ADA, "step": step, "revisions": dict.fromkeys(kinds, 1)}


def analysing(**changes: Any) -> Analysing:
    """Just asked."""
    return Analysing(**{**_common(1), **changes})


def reviewing_analysis(**changes: Any) -> ReviewingAnalysis:
    """Checkpoint 1."""
    return ReviewingAnalysis(**{**_common(1, "analysis"), "analysis": ANALYSIS, **changes})


def planning(**changes: Any) -> Planning:
    """The analysis was approved."""
    own = {"analysis": ANALYSIS, "approvals": (ANALYSIS_YES,)}
    return Planning(**{**_common(2, "analysis"), **own, **changes})


def reviewing_plan(**changes: Any) -> ReviewingPlan:
    """Checkpoint 2."""
    own = {"analysis": ANALYSIS, "approvals": (ANALYSIS_YES,), "plan": PLAN}
    return ReviewingPlan(**{**_common(2, "analysis", "plan"), **own, **changes})


def preparing(**changes: Any) -> Preparing:
    """The plan was approved."""
    own = {"analysis": ANALYSIS, "approvals": (ANALYSIS_YES, PLAN_YES), "plan": PLAN}
    return Preparing(**{**_common(3, "analysis", "plan"), **own, **changes})


def _with_manifest(step: int, *approvals: Approval) -> dict[str, Any]:
    own = {"analysis": ANALYSIS, "approvals": approvals, "plan": PLAN, "manifest": MANIFEST}
    return {**_common(step, "analysis", "plan", "manifest"), **own}


def reviewing_command(**changes: Any) -> ReviewingCommand:
    """Checkpoint 3."""
    return ReviewingCommand(**{**_with_manifest(3, ANALYSIS_YES, PLAN_YES), **changes})


def submitting(**changes: Any) -> Submitting:
    """The command was approved."""
    own = {**_with_manifest(4, ANALYSIS_YES, PLAN_YES, COMMAND_YES), "key": "key-1"}
    return Submitting(**{**own, **changes})


def _with_run(number: Run) -> dict[str, Any]:
    own = _with_manifest(4, ANALYSIS_YES, PLAN_YES, COMMAND_YES)
    return {**own, "revisions": {**own["revisions"], "run": 1}, "run": number}


def running(**changes: Any) -> Running:
    """The runner has the run."""
    return Running(**{**_with_run(run()), **changes})


def reviewing_result(**changes: Any) -> ReviewingResult:
    """Checkpoint 4."""
    ended = run(state=RunState.SUCCEEDED, ended_at=NOON, report=samples.report(), last_event=9)
    return ReviewingResult(**{**_with_run(ended), **changes})


def failed(**changes: Any) -> Failed:
    """The run failed. `failed_at` gives the other stages."""
    ended = run(state=RunState.FAILED, code="exit_code", reason="Quantization failed: out of memory.", last_event=9)
    trouble = Trouble(code="exit_code", message="Quantization failed: out of memory.")
    return Failed(**{**_with_run(ended), "stage": Stage.RUN, "trouble": trouble, **changes})


def failed_at(stage: Stage) -> Failed:
    """A failure of a stage, with what was reached by then."""
    match stage:
        case Stage.INTAKE:
            base: State = analysing()
        case Stage.PLAN:
            base = planning()
        case Stage.MANIFEST:
            base = preparing()
        case Stage.SUBMISSION:
            base = submitting()
        case Stage.RUN:
            return failed()
    kept = {name: getattr(base, name) for name in type(base).model_fields if name in Failed.model_fields}
    return Failed(**{**kept, "kind": "failed", "stage": stage, "trouble": TROUBLE})


def ended(**changes: Any) -> Ended:
    """The result was accepted."""
    have = reviewing_result()
    return Ended(**{**_with_run(have.run), "ending": Ending.ACCEPTED, "by": ADA, "at": NOON, **changes})


def all_states() -> dict[str, State]:
    """One state of every kind, in the order of the workflow."""
    states: tuple[State, ...] = (
        analysing(),
        reviewing_analysis(),
        planning(),
        reviewing_plan(),
        preparing(),
        reviewing_command(),
        submitting(),
        running(),
        reviewing_result(),
        failed(),
        ended(),
    )
    return {state.kind: state for state in states}


BLOCKED = samples.plan(
    findings=[
        Finding(severity=Severity.BLOCKS, code="group_size", message="576 is no multiple of 128.", hint="Take g32."),
        Finding(severity=Severity.WARNS, code="slow", message="This is slow."),
        Finding(severity=Severity.BLOCKS, code="disk", message="The disk is too small."),
    ]
)


def yes(state: State, by: Person = ADA, at: datetime = NOON) -> Approve:
    """A yes to what the state asks; where it asks nothing, to a plan that nobody knows."""
    checkpoint, digest = asked_at(state) or (Checkpoint.PLAN, digest_of("another plan"))
    return Approve(by, at, WHERE, checkpoint, digest)


def no(state: State, by: Person = ADA, at: datetime = NOON) -> Reject:
    """A no to what the state asks; where it asks nothing, to a plan that nobody knows."""
    checkpoint, digest = asked_at(state) or (Checkpoint.PLAN, digest_of("another plan"))
    return Reject(by, at, WHERE, checkpoint, digest)


def changing(by: Person = ADA, digest: str = "", **changes: Any) -> Change:
    """A change: fields of `Changes` by name, all others are choices of the plan."""
    own = {name: value for name, value in changes.items() if name in Changes.model_fields}
    choices = {name: value for name, value in changes.items() if name not in own}
    return Change(by, NOON, WHERE, Changes(**{**own, "choices": choices}), digest)


def better_analysis(state: State, document: ModelAnalysis, digest: str = "") -> BetterAnalysis:
    """The engine's own list for the analysis of a state; for one that nobody knows where it has none."""
    return BetterAnalysis(_known(state), NOON, samples.analysis(), document, digest or digest_of("analysis 2"))


def _known(state: State) -> str:
    analysis = getattr(state, "analysis", None)
    return analysis.digest if analysis is not None else digest_of("another analysis")


def all_commands(state: State, by: Person = ADA) -> dict[str, Command]:
    """One command of every kind, each as it fits this state best."""
    step = state.step
    commands: Iterable[Command] = (
        yes(state, by),
        changing(by, global_scheme="int4_wo_128"),
        no(state, by),
        Cancel(by, NOON, WHERE),
        Retry(by, NOON, WHERE),
        Revise(by, NOON, WHERE),
        TakeOffer(by, NOON, WHERE, digest_of("offer")),
        GiveOrder(by, NOON, WHERE, Order(kind="priority", priority="low")),
        Remark(by, NOON, WHERE, "hm"),
        Analysed(step, NOON, samples.analysis(), digest_of("analysis 2"), "/out/model"),
        Planned(step, NOON, samples.plan(), digest_of("plan 2")),
        Prepared(step, NOON, samples.manifest(), digest_of("manifest 2")),
        Submitted(step, NOON, run()),
        StepFailed(step, NOON, TROUBLE),
        Delayed(step, NOON, AWAY),
        better_analysis(state, samples.exact_analysis(count=144)),
        NoBetterAnalysis(_known(state), NOON, TROUBLE),
        RunNews(run(last_event=4, progress=Progress(percent=20.0)), NOON),
        RunSilent(run().id, AWAY, NOON),
        RunMissing(run().id, TROUBLE, NOON),
        Expire(step, state.kind, NOON),
    )
    return {type(command).__name__: command for command in commands}


@dataclass
class Talk:
    """A conversation that goes on by what `decide` says, with a new digest for every document."""

    state: State = field(default_factory=analysing)
    policy: Policy = POLICY
    now: datetime = NOON
    documents: int = 0

    def say(self, command: Command) -> Decision:
        """Decide a command, and go on in the state that it leads to."""
        decision = decide(self.state, command, self.policy)
        if isinstance(decision, Proceed):
            self.state = decision.state
        return decision

    def answer(self, **plan: Any) -> Decision:
        """The runner's answer to the question of the state; keywords change the plan's document."""
        return self.say(self.fitting_answer(**plan))

    def fitting_answer(self, **plan: Any) -> Command:
        """The same, not yet said. Where no runner is asked, an answer that is late."""
        self.documents += 1
        self.now += timedelta(seconds=1)
        digest, step = digest_of(f"document {self.documents}"), self.state.step
        match self.state:
            case Planning():
                return Planned(step, self.now, samples.plan(**plan), digest)
            case Preparing():
                return Prepared(step, self.now, samples.manifest(), digest)
            case Submitting():
                key = self.state.key
                handed = run(id=f"run-{digest_of(key)[:16]}", key=key, manifest_digest=self.state.manifest.digest)
                return Submitted(step, self.now, handed)
            case Running():
                last = self.state.run.last_event + 1
                done = self.state.run.model_copy(update={"state": RunState.SUCCEEDED, "last_event": last})
                return RunNews(done, self.now)
            case _:
                return Analysed(step, self.now, samples.analysis(), digest, "/out/model")

    def approve(self, by: Person = ADA) -> Decision:
        """A yes to what is asked now."""
        return self.say(yes(self.state, by, self.now))

    def until(self, kind: str) -> State:
        """Answer and approve until the conversation is in a state of this kind."""
        for _ in range(20):
            if self.state.kind == kind:
                return self.state
            self.approve() if asked_at(self.state) else self.answer()
        raise AssertionError(f"{kind} was not reached: {self.state.kind}")
