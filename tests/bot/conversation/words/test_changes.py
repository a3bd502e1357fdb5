"""What a change says beside an agreement, with the names of this bot's runners, and as JSON. See also the table."""

from __future__ import annotations

import pytest

from bot.conversation.words import Intent, Vocabulary, as_json, understand
from bot.conversation.words.vocabulary import PUBLISHED
from tests.bot.conversation.words.sentences import CHANGES, CHECKPOINTS, PLAN


@pytest.mark.parametrize(
    "agreement", ["yes", "ok", "looks good", "go ahead", "👍", "perfect", "run it", "I approve", "great", "accepted"]
)
@pytest.mark.parametrize(
    "sentence", ["use int4_wo_32", "calibration 256", "no kv cache", "exclude lm_head", "runner b"]
)
def test_agreeing_and_changing_is_changing(agreement: str, sentence: str) -> None:
    for checkpoint in CHECKPOINTS:
        for said in (
            *(f"{agreement} but {sentence}", f"{agreement}, {sentence}", f"{agreement}, but {sentence}"),
            *(f"{agreement}. {sentence.capitalize()}.", f"{sentence}, then {agreement}", f"{sentence} and {agreement}"),
        ):
            understood = understand(said, checkpoint)
            assert (understood.intent, understood.flat) == (Intent.CHANGE, CHANGES[sentence]), said


def test_a_known_runner_is_found_by_its_name() -> None:
    vocabulary = Vocabulary(**{**PUBLISHED.model_dump(), "runners": {"mi300", "Lab-2"}})
    for sentence, runner in {
        "on mi300": "mi300",
        "run it on MI300": "mi300",
        "use runner lab-2": "Lab-2",
        "on the lab_2 runner": "Lab-2",
        "runner box-9": "box-9",  # whoever knows the runners says that there is none
        "runner = b": "b",
    }.items():
        assert understand(sentence, PLAN, vocabulary).flat == {"runner": runner}, sentence
    for sentence in ("use runner nope", "change the runner to nope", "runner: nope"):
        assert understand(sentence, PLAN, vocabulary).flat == {"runner": "nope"}, sentence
    for sentence in ("runner nope", "the runner is offline", "use runner please"):
        assert understand(sentence, PLAN, vocabulary).intent is Intent.UNCLEAR, sentence
    assert understand("for mi300", PLAN, vocabulary).flat == {"hardware": "MI300"}
    assert understand("runner missing", PLAN, vocabulary).intent is Intent.UNCLEAR


def test_json_has_the_intent_and_field_to_value() -> None:
    assert as_json(understand("ok, calibration 256, runner b", PLAN)) == {
        "intent": "change",
        "changes": {"runner": "b", "calibration": {"num_calib_data": 256}},
    }
    assert as_json(understand("ok", PLAN)) == {"intent": "approve", "changes": {}}


def test_json_says_what_is_only_a_part_and_what_may_be_meant() -> None:
    assert as_json(understand("keep layer 0 and quantize lm_head too, not awq", PLAN)) == {
        "intent": "change",
        "changes": {"exclude_layers": {"add": ["*layers.0.*"], "drop": ["lm_head"]}, "algorithm": None},
        "relative": ["exclude_layers", "algorithm"],
    }
    assert as_json(understand("use smoothqant", PLAN)) == {
        "intent": "unclear",
        "changes": {},
        "unread": "smoothqant",
        "hint": "Did you mean smoothquant?",
    }
