"""Where a conversation stands, in words and in steps."""

from __future__ import annotations

import pytest

from bot.cards.card import Tone
from bot.conversation.decide import decide
from bot.conversation.decision import Proceed
from bot.conversation.endings import ended
from bot.conversation.person import Person
from bot.conversation.state import Ended, Ending, Failed, ReviewingAnalysis, Stage, State, asked_at
from bot.conversation.words.vocabulary import PUBLISHED
from bot.platforms.contract import Event, Said
from bot.platforms.web.standing import BUSY, STANDING, WAITING, sayable, standing, standing_of, steps
from bot.service.reading import command_of
from schemas.runs import RunState
from tests.bot.conversation import samples as talk

DONE, NOW, AHEAD, FAILED, STOPPED = "done", "current", "ahead", "failed", "stopped"


def test_every_state_and_every_ending_has_words() -> None:
    assert {*talk.all_states(), *Ending} == set(STANDING)
    assert {*WAITING, *BUSY, "ended"} == set(talk.all_states())


def test_a_state_of_another_release_is_shown_as_it_is_called() -> None:
    assert standing_of("<b>some_day</b>").label == "<b>some day</b>"
    assert standing_of("some_day").label == "Some day"


@pytest.mark.parametrize("kind", sorted(talk.all_states()))
def test_who_waits_can_be_seen_by_the_tone(kind: str) -> None:
    tone = standing(talk.all_states()[kind]).tone
    assert (tone is Tone.WORKING) == (kind in BUSY)
    assert (tone in {Tone.WAITING, Tone.BAD}) == (kind in WAITING)


def over(state: State, ending: Ending = Ending.CANCELLED, by: Person | None = talk.ADA) -> Ended:
    """How a conversation in that state ends."""
    return ended(state, ending, talk.NOON, by)


def ran(state: RunState) -> State:
    """A run that came to this, while its thread still follows it."""
    return talk.running(run=talk.run(state=state, ended_at=talk.NOON))


@pytest.mark.parametrize(
    ("state", "marks"),
    [
        (talk.analysing(), [NOW, AHEAD, AHEAD, AHEAD, AHEAD]),
        (talk.reviewing_plan(), [DONE, NOW, AHEAD, AHEAD, AHEAD]),
        (talk.preparing(), [DONE, DONE, NOW, AHEAD, AHEAD]),
        (talk.running(), [DONE, DONE, DONE, NOW, AHEAD]),
        (talk.reviewing_result(), [DONE, DONE, DONE, DONE, NOW]),
        (talk.failed_at(Stage.INTAKE), [FAILED, AHEAD, AHEAD, AHEAD, AHEAD]),
        (talk.failed_at(Stage.PLAN), [DONE, FAILED, AHEAD, AHEAD, AHEAD]),
        (talk.failed_at(Stage.MANIFEST), [DONE, DONE, FAILED, AHEAD, AHEAD]),
        (talk.failed_at(Stage.SUBMISSION), [DONE, DONE, DONE, FAILED, AHEAD]),
        (talk.failed(), [DONE, DONE, DONE, FAILED, AHEAD]),
        (talk.ended(), [DONE, DONE, DONE, DONE, DONE]),
        (over(talk.reviewing_result(), Ending.REJECTED), [DONE, DONE, DONE, DONE, STOPPED]),
        (over(talk.analysing()), [STOPPED, AHEAD, AHEAD, AHEAD, AHEAD]),
        (over(talk.reviewing_analysis()), [STOPPED, AHEAD, AHEAD, AHEAD, AHEAD]),
        (over(talk.planning()), [DONE, STOPPED, AHEAD, AHEAD, AHEAD]),
        (over(talk.reviewing_plan()), [DONE, STOPPED, AHEAD, AHEAD, AHEAD]),
        (over(talk.preparing()), [DONE, DONE, STOPPED, AHEAD, AHEAD]),
        (over(talk.reviewing_command()), [DONE, DONE, STOPPED, AHEAD, AHEAD]),
        (over(talk.submitting()), [DONE, DONE, DONE, STOPPED, AHEAD]),
        (over(ran(RunState.CANCELLED)), [DONE, DONE, DONE, STOPPED, AHEAD]),
        (over(ran(RunState.FAILED)), [DONE, DONE, DONE, FAILED, AHEAD]),
        (over(ran(RunState.LOST)), [DONE, DONE, DONE, FAILED, AHEAD]),
        (over(talk.failed()), [DONE, DONE, DONE, FAILED, AHEAD]),
        *(
            (over(talk.failed_at(stage), Ending.EXPIRED, None), [DONE] * done + [STOPPED] + [AHEAD] * (4 - done))
            for done, stage in enumerate((Stage.INTAKE, Stage.PLAN, Stage.MANIFEST, Stage.SUBMISSION))
        ),
        (over(talk.reviewing_analysis(), Ending.EXPIRED, None), [STOPPED, AHEAD, AHEAD, AHEAD, AHEAD]),
        (over(talk.reviewing_plan(), Ending.EXPIRED, None), [DONE, STOPPED, AHEAD, AHEAD, AHEAD]),
        (over(talk.reviewing_command(), Ending.EXPIRED, None), [DONE, DONE, STOPPED, AHEAD, AHEAD]),
        (over(talk.failed(), Ending.EXPIRED, None), [DONE, DONE, DONE, FAILED, AHEAD]),
    ],
)
def test_steps_show_how_far_it_is_or_came(state: State, marks: list[str]) -> None:
    assert [step.state for step in steps(state)] == marks


@pytest.mark.parametrize("ending", [Ending.REJECTED, Ending.CANCELLED, Ending.EXPIRED])
def test_the_step_at_which_it_ended_says_how(ending: Ending) -> None:
    assert [step.said for step in steps(over(talk.reviewing_plan(), ending))] == ["done", ending, *["ahead"] * 3]
    assert steps(over(talk.failed(), ending))[3].said == f"failed, then {ending}"


@pytest.mark.parametrize("state", [talk.submitting(cancelled_by=talk.ADA), talk.running(cancelled_by=talk.ADA)])
def test_a_run_that_is_being_cancelled_says_so_and_asks_for_no_words(state: State) -> None:
    assert standing(state).label == "Being cancelled"
    assert standing(state).tone is Tone.WORKING
    assert sayable(state) == ()


BLOCKED = talk.reviewing_plan(plan=talk.PLAN.model_copy(update={"blocked_by": ("The disk is too small.",)}))
SAYABLE = [
    *talk.all_states().values(),
    *(talk.failed_at(stage) for stage in Stage),
    *(over(state) for state in talk.all_states().values() if not isinstance(state, Ended)),
    BLOCKED,
]


@pytest.mark.parametrize("state", SAYABLE, ids=lambda state: f"{state.kind} {getattr(state, 'stage', '')}")
def test_every_example_of_a_reply_counts_in_its_state(state: State) -> None:
    examples = sayable(state)
    assert examples
    asked = asked_at(state)
    for text in examples:
        event = Event(key=text, person=talk.ADA, place=talk.PLACE, at=talk.NOON, what=Said(text=text))
        command = command_of(event, state, asked[1] if asked else "", PUBLISHED)
        assert command is not None
        assert isinstance(decide(state, command, talk.POLICY), Proceed), text


def test_no_example_is_taken_to_be_wrong_where_the_analysis_failed() -> None:
    for state in (talk.failed_at(Stage.INTAKE), talk.reviewing_analysis(), BLOCKED):
        assert isinstance(state, Failed | ReviewingAnalysis | type(BLOCKED))
        assert "back to the plan" not in sayable(state)
    assert "ok" not in sayable(BLOCKED)
