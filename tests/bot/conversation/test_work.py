"""What has to be asked of a runner follows from the state alone."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.state import STATES, Stage, State
from bot.conversation.work import AskIntake, AskManifest, AskPlan, Submit, Task, Watch, work
from schemas.runs import RunState
from tests.bot.conversation.samples import (
    ADA,
    REQUEST,
    all_states,
    analysing,
    failed,
    failed_at,
    run,
    running,
)

RUN = run().id
TASKS: dict[str, Task | None] = {
    "analysing": AskIntake(runner="local", step=1, model="Qwen/Qwen3-8B", revision=None, trust_remote_code=False),
    "reviewing_analysis": None,
    "planning": AskPlan(runner="local", step=2),
    "reviewing_plan": None,
    "preparing": AskManifest(runner="local", step=3),
    "reviewing_command": None,
    "submitting": Submit(runner="local", step=4, key="key-1"),
    "running": Watch(runner="local", run=RUN, cancel=False),
    "reviewing_result": None,
    "failed": None,
    "ended": None,
}


def test_every_state_has_its_task() -> None:
    assert {kind: work(state) for kind, state in all_states().items()} == TASKS


@pytest.mark.parametrize("state", all_states().values(), ids=lambda state: state.kind)
def test_a_restart_asks_the_same_again(state: State) -> None:
    assert work(STATES.validate_json(STATES.dump_json(state))) == work(state)


@pytest.mark.parametrize(
    ("said", "trusts"), [(True, True), ("yes", True), (False, False), ("no", False), (None, False)]
)
def test_the_intake_is_told_what_was_asked(said: Any, trusts: bool) -> None:
    asked = REQUEST.model_copy(
        update={"runner": "mi300", "revision": "v2", "choices": {"trust_remote_code": said}, "model": "odd/model"}
    )
    assert work(analysing(request=asked, step=7)) == AskIntake(
        runner="mi300", step=7, model="odd/model", revision="v2", trust_remote_code=trusts
    )


@pytest.mark.parametrize("state", RunState)
def test_a_cancel_is_sent_until_the_runner_ends_the_run(state: RunState) -> None:
    at_work = not state.ended and state is not RunState.CANCELLING
    cancelled = running(run=run(state=state), cancelled_by=ADA)
    assert work(cancelled) == Watch(runner="local", run=RUN, cancel=at_work)
    assert work(running(run=run(state=state))) == Watch(runner="local", run=RUN, cancel=False)


@pytest.mark.parametrize("state", RunState)
def test_a_run_that_was_given_up_is_watched_and_never_cancelled(state: RunState) -> None:
    known = state.ended and state is not RunState.LOST
    given_up = failed(run=run(state=state), cancelled_by=ADA)
    assert work(given_up) == (None if known else Watch(runner="local", run=RUN, cancel=False))


def test_other_failures_ask_nothing_of_a_runner() -> None:
    assert [work(failed_at(stage)) for stage in Stage] == [None] * len(Stage)
