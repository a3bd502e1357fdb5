"""What has to be asked of a runner in a state. It follows from the state alone, so a restart asks again."""

from __future__ import annotations

from dataclasses import dataclass

from bot.conversation import remote_code
from bot.conversation.better import improvable
from bot.conversation.state import Analysing, Failed, Planning, Preparing, Running, State, Submitting
from schemas.runs import RunState


@dataclass(frozen=True, kw_only=True)
class AskIntake:
    """Ask for the analysis. An answer counts for the step only."""

    runner: str
    step: int
    model: str
    revision: str | None
    trust_remote_code: bool


@dataclass(frozen=True, kw_only=True)
class AskPlan:
    """Ask for a plan from the state's analysis and choices."""

    runner: str
    step: int


@dataclass(frozen=True, kw_only=True)
class AskManifest:
    """Ask for the exact command of the state's plan."""

    runner: str
    step: int


@dataclass(frozen=True, kw_only=True)
class Submit:
    """Hand over the state's manifest with its approvals. The same key is the same run, however often it is sent."""

    runner: str
    step: int
    key: str


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Follow the run; where `cancel` is True, first ask the runner to end it."""

    runner: str
    run: str
    cancel: bool


@dataclass(frozen=True, kw_only=True)
class AskBetterAnalysis:
    """Ask for the engine's own list of layers, beside everything else. `of` is the digest of the analysis that it would
    improve, and `number` its revision."""

    runner: str
    of: str
    number: int
    model: str
    revision: str | None
    trust_remote_code: bool


Task = AskIntake | AskPlan | AskManifest | Submit | Watch


def work(state: State) -> Task | None:
    """What a runner has to be asked in this state; None where only a person is asked, or nobody."""
    request = state.request
    match state:
        case Analysing():
            return AskIntake(
                runner=request.runner,
                step=state.step,
                model=request.model,
                revision=request.revision,
                trust_remote_code=remote_code.asked(request.choices),
            )
        case Planning():
            return AskPlan(runner=request.runner, step=state.step)
        case Preparing():
            return AskManifest(runner=request.runner, step=state.step)
        case Submitting():
            return Submit(runner=request.runner, step=state.step, key=state.key)
        case Running():
            going = state.run.state is not RunState.CANCELLING and not state.run.state.ended
            return Watch(runner=request.runner, run=state.run.id, cancel=state.cancelled_by is not None and going)
        case Failed() if state.run is not None and state.unresolved:
            return Watch(runner=request.runner, run=state.run.id, cancel=False)
        case _:
            return None


def background(state: State) -> AskBetterAnalysis | None:
    """What a runner is asked beside that, while nobody waits for it; None where there is nothing to improve."""
    known, request = improvable(state), state.request
    if known is None:
        return None
    return AskBetterAnalysis(
        runner=request.runner,
        of=known.digest,
        number=known.number,
        model=request.model,
        revision=request.revision,
        trust_remote_code=remote_code.asked(request.choices),
    )
