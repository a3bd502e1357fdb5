"""Where a run is, why it waits, and what became of it: the runner's own words."""

from __future__ import annotations

from bot.conversation.explaining.asked import Asked
from bot.conversation.explaining.known import Known
from bot.conversation.offered import offers_of
from bot.conversation.reached import reached
from bot.conversation.sentences import moment, what_failed
from bot.conversation.state import Failed, Stage
from bot.conversation.words.phrases import PhraseBook
from schemas.runs import Run, RunState

_IT = ("it", "this", "that", "the run", "my run", "the job")
_RUNNER = PhraseBook(
    *("which runner", "what runner", "why this runner", "why that runner", "which machine", "which host", "why runner"),
    *(f"where {be} {it}" for be in ("is", "does", "will", "did", "was") for it in _IT),
    *("where do you run", "where would it", "where are we"),
)
_WHERE = PhraseBook(
    "run", "running", "runs", "runner", "machine", "host", "compute", "computing", "quantized", "it", "at"
)
_GPU = PhraseBook("which gpu", "what gpu", "which gpus", "what gpus", "which card", "which cards", "how many gpus")
_NEEDS = PhraseBook("need", "needs", "needed", "require", "requires", "fit", "fits", "enough", "want", "take", "takes")
_WAITS = PhraseBook(
    *("wait", "waits", "waiting", "queued", "stuck", "blocked by", "holding it up", "hold up", "not started"),
    *("not running", "not start", "not run", "isnt it running", "isnt it started", "isnt running", "isnt started"),
)
_STARTS = PhraseBook(
    *(f"when {does} {it} start" for does in ("does", "will", "would", "can", "did") for it in _IT),
    *(f"when {does} {it} run" for does in ("does", "will", "would", "can") for it in _IT),
    *("my turn", "its turn", "expected start", "start time", "has it started", "did it start", "is it started"),
    *("has it begun", "started yet", "running yet", "how long until it starts", "how soon does it start"),
)
_PLACE = PhraseBook(
    *("my position", "position", "place in the queue", "place in line", "my place", "its place", "ahead of me"),
    *("before me", "in front of me", "before it", "ahead of it", "in front of it", "how long is the queue"),
)
_HOW_LONG = PhraseBook("how long", "how much longer", "until when", "when")
_WHY = PhraseBook("why", "how come", "what is it", "whats it", "what does it", "what are we", "for what", "reason")
_FAILED = PhraseBook(
    *("what failed", "why did it fail", "why did this fail", "why did the run fail", "what went wrong", "what broke"),
    *(
        "why has it failed",
        "what was wrong",
        "what is wrong",
        "whats wrong",
        "what happened",
        "why failed",
        "the cause",
    ),
    *("why did it crash", "why did it stop", "what is the error", "whats the error", "what error", "which error"),
    *("what was the error", "how did it fail", "why was it killed", "why is it lost", "what is the cause"),
)
_HELPS = PhraseBook(
    *("what can i do", "what can we do", "what should i do", "what should we do", "what could i do", "what helps"),
    *("what would help", "what may help", "how can i fix", "how do i fix", "how to fix", "any suggestions", "what now"),
    *(
        "any suggestion",
        "what do you suggest",
        "suggestions",
        "the suggestion",
        "what offers",
        "which offers",
        "offers",
    ),
    *("what next", "how can it be fixed", "what do you offer", "what do you recommend", "what is offered"),
)
_LEFT = PhraseBook("partial", "left over", "left behind", "leftovers", "what is left", "half finished", "unfinished")


def failure(asked: Asked, known: Known) -> str | None:
    """ "What failed?", "what can I do?": the cause as the runner found it, and what it offers instead."""
    state = known.state
    if not isinstance(state, Failed):
        return None
    if asked.says(_HELPS):
        return _offers(state)
    if not asked.says(_FAILED):
        return None
    run = state.run if state.stage is Stage.RUN else None
    cause = run.report.cause if run is not None and run.report is not None else ""
    told = cause or state.trouble.message
    return f"{what_failed(state)}: {told}" if told else f"{what_failed(state)}."


def leftover(asked: Asked, known: Known) -> str | None:
    """ "Where is the partial output?"."""
    run = reached(known.state).run
    if run is None or not asked.says(_LEFT):
        return None
    if run.partial_output:
        return f"What the run left was set apart in {run.partial_output}; it is no finished model."
    return "Nothing of the run was set apart." if run.state.ended else "The run has not ended."


def waiting(asked: Asked, known: Known) -> str | None:
    """ "Why does it wait?", "when does it start?", "what is my position?"."""
    waits = asked.says(_WAITS) and (asked.says(_WHY) or asked.says(_HOW_LONG))
    when = asked.says(_STARTS) or asked.says(_PLACE)
    if not waits and not when:
        return None
    run = reached(known.state).run
    if run is None:
        return "It has no run yet: that begins once its command is approved." if when else None
    if run.state is RunState.QUEUED:
        why = run.reason or "The runner has not said why it waits."
        return f"{_turn(run)} {why}" if when or asked.says(_HOW_LONG) else f"{why} {_turn(run)}"
    if run.state is RunState.STARTING:
        return run.reason or "The run is being started."
    if run.started_at is None:
        return "The run never started." if run.state.ended else "When the run started is not known."
    return f"The run does not wait: it started at {moment(run.started_at)}."


def place(asked: Asked, known: Known) -> str | None:
    """ "Where does it run?", "which GPU?", "why this runner?"."""
    run = reached(known.state).run
    if asked.says(_GPU) and not asked.says(_NEEDS):
        if run is None:
            return None
        return _gpus(run)
    if not asked.says(_RUNNER) or not asked.says(_WHERE):
        return None
    request = known.state.request
    because = f", since {request.runner_reason}" if request.runner_reason else ""
    if run is None:
        return f"The runner is {request.runner}{because}."
    job = f", as {run.job}" if run.job else ""
    where = f"{_BEING.get(run.state, 'It ran')} on {request.runner}{job}{because}."
    return f"{where} {_gpus(run) if run.gpus else run.reason}".strip()


def _gpus(run: Run) -> str | None:
    if run.gpus:
        several = "GPUs" if len(run.gpus) > 1 else "GPU"
        return f"It {'had' if run.state.ended else 'has'} the {several} {', '.join(run.gpus)}."
    return f"It waits, and has no GPU. {run.reason}".strip() if run.state is RunState.QUEUED else None


def _turn(run: Run) -> str:
    place_of_it = f"It has place {run.position} in the queue" if run.position is not None else "It waits in the queue"
    if run.expected_start is None:
        return f"{place_of_it}; when its turn comes is not known."
    return f"{place_of_it}; its turn may come at {moment(run.expected_start)}."


def _offers(state: Failed) -> str | None:
    told = [f"{number}. {one.label}: {one.reason}" for number, one in enumerate(offers_of(state), 1)]
    return f"This may help, with a new plan and a new yes. {' '.join(told)}" if told else None


_BEING = {
    RunState.QUEUED: "It waits",
    RunState.STARTING: "It is being started",
    RunState.RUNNING: "It runs",
    RunState.VERIFYING: "It is being verified",
    RunState.CANCELLING: "It is being cancelled",
    RunState.UNKNOWN: "It was handed over",
    RunState.LOST: "It was",
}
