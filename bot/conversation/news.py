"""What becomes of a run."""

from __future__ import annotations

from datetime import datetime

from bot.conversation.answers import BACK_FROM_RUN, failed
from bot.conversation.commands import RunMissing, RunNews, RunSilent
from bot.conversation.decision import Decision, Ignore, Proceed
from bot.conversation.endings import ended
from bot.conversation.reached import going_back
from bot.conversation.state import Ending, Failed, ReviewingResult, Running, Stage, State, Trouble
from schemas.runs import Run, RunState

_LOOK_FIRST = "Look into its log and its output folder before another run."


def news(state: State, command: RunNews) -> Decision:
    """The run as the runner knows it now."""
    if isinstance(state, Failed):
        return _found_again(state, command)
    if not isinstance(state, Running) or state.run.id != command.run.id:
        return _not_followed(state, command.run.id)
    known, run = state.run, command.run
    if run.state.ended:
        # An end is final, so it counts also where the numbers of a damaged journal fell behind.
        return Proceed(_concluded(state.model_copy(update={"run": run, "silent": None}), command.at))
    if run.last_event < known.last_event:
        return Ignore(f"event {run.last_event} of {run.id} is older than {known.last_event}")
    if run == known and state.silent is None:
        return Ignore(f"{run.id} stands as it did")
    return Proceed(state.model_copy(update={"run": run, "silent": None}))


def _found_again(state: Failed, command: RunNews) -> Decision:
    """A run that was given up is taken up again, as a step of its own: what was shown until now is outdated."""
    known, run = state.run, command.run
    if not state.unresolved or known is None or known.id != run.id:
        return _not_followed(state, run.id)
    if state.analysis is None or state.plan is None or state.manifest is None:
        return Ignore(f"{run.id} lacks what it was made from")
    if known.state is RunState.LOST and run.state is RunState.LOST:
        return Ignore(f"{run.id} is lost, as before")
    # The number of a report is that of its run, and there is one already where the run was called lost.
    again = {"run": state.revisions.get("run", 1) + 1} if known.report is not None else {}
    taken_up = Running(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions={**state.revisions, **again},
        analysis=state.analysis,
        approvals=state.approvals,
        plan=state.plan,
        manifest=state.manifest,
        run=run,
        cancelled_by=state.cancelled_by,
    )
    after = _concluded(taken_up, command.at) if run.state.ended else taken_up
    return Proceed(after.model_copy(update={"step": state.step + 1}))


def silent(state: State, command: RunSilent) -> Decision:
    """There is no news of the run. It is not over for that: it stays what it is until the runner says otherwise."""
    if not isinstance(state, Running) or state.run.id != command.run:
        return _not_followed(state, command.run)
    if command.trouble == state.silent:
        return Ignore("people know already why there is no news")
    return Proceed(state.model_copy(update={"silent": command.trouble}))


def missing(state: State, command: RunMissing) -> Decision:
    """The runner does not know the run. What became of it is not known, so it is never run again by itself."""
    if not isinstance(state, Running) or state.run.id != command.run:
        return _not_followed(state, command.run)
    message = f"The runner {state.request.runner} does not know the run {command.run}, so its outcome is not known."
    return Proceed(failed(state, Stage.RUN, Trouble(code="run_missing", message=message, hint=_LOOK_FIRST)))


def _concluded(state: Running, at: datetime) -> State:
    """What comes after a run that has ended."""
    run = state.run
    match run.state:
        case RunState.SUCCEEDED:
            # Also where somebody cancelled too late: the result is there, and is shown as what it is.
            return _reviewing(state)
        case RunState.CANCELLED:
            return ended(state, Ending.CANCELLED, at, state.cancelled_by)
        case RunState.FAILED if state.cancelled_by is not None:
            return ended(state, Ending.CANCELLED, at, state.cancelled_by)
        case RunState.FAILED if run.started_at is None and run.code in BACK_FROM_RUN:
            # It was refused when its turn came, because something changed while it waited. Nothing has run.
            return going_back(state, state.request, BACK_FROM_RUN[run.code], because=run.reason)
        case _:
            return failed(state, Stage.RUN, _trouble(run))


def _reviewing(state: Running) -> ReviewingResult:
    return ReviewingResult(
        request=state.request,
        requester=state.requester,
        step=state.step,
        revisions=state.revisions,
        analysis=state.analysis,
        approvals=state.approvals,
        plan=state.plan,
        manifest=state.manifest,
        run=state.run,
    )


def _trouble(run: Run) -> Trouble:
    """Why a run failed, and the first thing to do about it: the report knows best, the run itself otherwise."""
    cause = run.report.cause if run.report else ""
    lost = run.state is RunState.LOST
    unexplained = (
        "The run was lost, so its outcome is not known." if lost else "The run failed, and no reason is known."
    )
    actions = run.report.next_actions if run.report else []
    return Trouble(
        code=run.code or f"run_{run.state.value}",
        message=run.reason or cause or unexplained,
        hint=actions[0] if actions else _LOOK_FIRST,
    )


def _not_followed(state: State, run: str) -> Ignore:
    return Ignore(f"{run} is not followed in {state.kind}")
