"""What a runner answers to the question of a step. An answer to another step is late, and counts for nothing."""

from __future__ import annotations

from bot.conversation.commands import Analysed, Delayed, Planned, Prepared, StepFailed, Submitted
from bot.conversation.decision import Decision, Ignore, Proceed
from bot.conversation.endings import ended
from bot.conversation.reached import Stop, going_back, reached
from bot.conversation.state import (
    Analysing,
    AnalysisRevision,
    Ending,
    Failed,
    ManifestRevision,
    Planning,
    PlanRevision,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    Running,
    Stage,
    State,
    Submitting,
    Trouble,
    Working,
)
from schemas.artifacts.analysis import ModelAnalysis

BACK_TO = {
    "analysis_changed": Stop.ANALYSIS,
    "model_changed": Stop.ANALYSIS,
    "analysis_mismatch": Stop.PLAN,
    "plan_blocked": Stop.PLAN,
    "plan_inconsistent": Stop.PLAN,
    "plan_changed": Stop.COMMAND,
    "command_changed": Stop.COMMAND,
    "dataset_changed": Stop.COMMAND,
    "manifest_changed": Stop.COMMAND,
    "runner_changed": Stop.COMMAND,
    "script_changed": Stop.COMMAND,
}
"""The step whose artifact a runner finds outdated, by the code of its refusal. That step is taken again by itself: each
of them ends at a checkpoint, so a person sees what changed before anything else happens."""

BACK_FROM_RUN = {**BACK_TO, "model_changed": Stop.COMMAND}
"""The same where a command was approved already. A changed model is offered as a new command; where the runner cannot
derive one, its next answer leads to a new analysis."""


def answer(state: State, command: Analysed | Planned | Prepared | Submitted | StepFailed | Delayed) -> Decision:
    """The next state, where the state waits for just this answer."""
    if not isinstance(state, Working) or state.step != command.step:
        return Ignore(f"an answer to step {command.step} came in {state.kind} {state.step}")
    match state, command:
        case Analysing(), Analysed():
            return Proceed(_analysed(state, command))
        case Planning(), Planned():
            return Proceed(_planned(state, command))
        case Preparing(), Prepared():
            return Proceed(_prepared(state, command))
        case Submitting(), Submitted():
            return Proceed(_submitted(state, command))
        case _, StepFailed():
            return Proceed(_step_failed(state, command))
        case _, Delayed():
            if command.trouble == state.delayed:
                return Ignore("people know already why it takes longer")
            return Proceed(state.model_copy(update={"delayed": command.trouble}))
        case _:
            return Ignore(f"{type(command).__name__} is no answer to {state.kind}")


def failed(state: State, stage: Stage, trouble: Trouble) -> Failed:
    """A failure, with all that was reached."""
    have = reached(state)
    return Failed(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=state.revisions,
        stage=stage,
        trouble=trouble,
        analysis=have.analysis,
        approvals=have.approvals,
        plan=have.plan,
        manifest=have.manifest,
        run=have.run,
        cancelled_by=getattr(state, "cancelled_by", None),
    )


def analysis_revision(document: ModelAnalysis, digest: str, number: int, proposed_output: str) -> AnalysisRevision:
    """What a conversation keeps of an analysis. One from headers alone may be followed by a better one."""
    model, targets = document.model, document.quantization_targets
    exact = targets.method == "modules"
    return AnalysisRevision(
        number=number,
        digest=digest,
        remote_code=model.trust_remote_code or bool(model.remote_code),
        proposed_output=proposed_output,
        exclude_defaults=tuple(targets.exclude_defaults),
        exact=exact,
        better="none" if exact else "wanted",
    )


def _analysed(state: Analysing, answer: Analysed) -> ReviewingAnalysis:
    number, revisions = counted(state, "analysis")
    return ReviewingAnalysis(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=revisions,
        because=state.because,
        analysis=analysis_revision(answer.document, answer.digest, number, answer.proposed_output),
    )


def _planned(state: Planning, answer: Planned) -> ReviewingPlan:
    number, revisions = counted(state, "plan")
    plan = answer.document
    return ReviewingPlan(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=revisions,
        because=state.because,
        analysis=state.analysis,
        approvals=state.approvals,
        plan=PlanRevision(
            number=number,
            digest=answer.digest,
            scheme=plan.global_scheme,
            remote_code=plan.trust_remote_code,
            blocked_by=tuple(f"{finding.message} {finding.hint}".strip() for finding in plan.blocked_by),
            risks=tuple(plan.risks),
        ),
    )


def _prepared(state: Preparing, answer: Prepared) -> ReviewingCommand:
    number, revisions = counted(state, "manifest")
    return ReviewingCommand(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=revisions,
        because=state.because,
        analysis=state.analysis,
        approvals=state.approvals,
        plan=state.plan,
        manifest=ManifestRevision(number=number, digest=answer.digest, output_dir=answer.document.outputs.output_dir),
    )


def _submitted(state: Submitting, answer: Submitted) -> Running:
    """The run, as the runner has it. Also one that has ended: its own news carry the report, and come next."""
    _, revisions = counted(state, "run")
    return Running(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=revisions,
        analysis=state.analysis,
        approvals=state.approvals,
        plan=state.plan,
        manifest=state.manifest,
        run=answer.run,
        cancelled_by=state.cancelled_by,
    )


def _step_failed(state: Analysing | Planning | Preparing | Submitting, answer: StepFailed) -> State:
    trouble = answer.trouble
    if isinstance(state, Submitting):
        if state.cancelled_by is not None:
            return ended(state, Ending.CANCELLED, answer.at, state.cancelled_by)
        back = BACK_FROM_RUN.get(trouble.code)
        if back is not None:
            return going_back(state, state.request, back, because=trouble.message)
        return failed(state, Stage.SUBMISSION, trouble)
    stage, own = _OF[state.kind]
    back = BACK_TO.get(trouble.code, own)
    # Only ever to an earlier step: the same question would get the same answer.
    return (
        going_back(state, state.request, back, because=trouble.message) if back < own else failed(state, stage, trouble)
    )


_OF = {
    "analysing": (Stage.INTAKE, Stop.ANALYSIS),
    "planning": (Stage.PLAN, Stop.PLAN),
    "preparing": (Stage.MANIFEST, Stop.COMMAND),
}


def counted(state: State, kind: str) -> tuple[int, dict[str, int]]:
    """The number of the next artifact of a kind, and the counts with it."""
    number = state.revisions.get(kind, 0) + 1
    return number, {**state.revisions, kind: number}
