"""What is worked out for the templates."""

from __future__ import annotations

import pytest

from bot.cards.card import Tone
from bot.conversation.state import Ending, Stage
from bot.platforms.web.views import BUSY, STANDING, WAITING, standing, standing_of, steps
from tests.bot.conversation import samples as talk


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


@pytest.mark.parametrize(
    ("state", "marks"),
    [
        (talk.analysing(), ["current", "ahead", "ahead", "ahead", "ahead"]),
        (talk.reviewing_plan(), ["done", "current", "ahead", "ahead", "ahead"]),
        (talk.preparing(), ["done", "done", "current", "ahead", "ahead"]),
        (talk.running(), ["done", "done", "done", "current", "ahead"]),
        (talk.reviewing_result(), ["done", "done", "done", "done", "current"]),
        (talk.ended(), ["done", "done", "done", "done", "done"]),
        (talk.ended(ending=Ending.CANCELLED), ["done", "done", "done", "stopped", "ahead"]),
        (
            talk.ended(ending=Ending.EXPIRED, run=None, manifest=None, plan=None, analysis=None),
            ["stopped", "ahead", "ahead", "ahead", "ahead"],
        ),
        (talk.failed_at(Stage.INTAKE), ["failed", "ahead", "ahead", "ahead", "ahead"]),
        (talk.failed_at(Stage.MANIFEST), ["done", "done", "failed", "ahead", "ahead"]),
        (talk.failed(), ["done", "done", "done", "failed", "ahead"]),
    ],
)
def test_steps_show_how_far_it_is(state: object, marks: list[str]) -> None:
    assert [step.state for step in steps(state)] == marks  # type: ignore[arg-type]
