"""What a person is told of a sentence that was not understood: its first part that was not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, understand
from bot.conversation.words.unread import MOST_CHARACTERS
from tests.bot.conversation.words.sentences import CHECKPOINTS, PLAN

QWEN = "Qwen/Qwen3-8B"

UNREAD = {
    f"quantize {QWEN} to w8a8": "w8a8",
    f"quantize {QWEN} W4A16": "W4A16",
    f"quantize {QWEN} to 4 bit": "4 bit",
    f"quantize {QWEN} 8bit, please": "8bit",
    f"convert {QWEN} to fp8 and make it blue": "make it blue",
    f"quantize {QWEN} to fp8 and int8": "int8",
    f"quantize {QWEN}, calibration 0": "0",
    "quantize ~/llama to fp8": "~/llama",
    "mxfp4 but keep the router in bf16": "keep the router in bf16",
    "use foo": "foo",
    "output ~/foo9": "~/foo9",
    "save it to ~/foo9, thanks": "~/foo9",
    "use fp8. Exclude the last layer.": "Exclude the last layer",
    "don't quantize the router": "don't quantize the router",
    "also exclude the last layer": "also exclude the last layer",
    "drop awq and fp8": "drop awq and fp8",
    "group size 64": "group size 64",
    "yes, but slowly": "slowly",
}


@pytest.mark.parametrize("checkpoint", [None, *CHECKPOINTS])
@pytest.mark.parametrize(("sentence", "part"), UNREAD.items())
def test_the_part_that_was_not_understood_is_told(sentence: str, part: str, checkpoint: Checkpoint | None) -> None:
    understood = understand(sentence, checkpoint)
    assert (understood.intent, understood.unread) == (Intent.UNCLEAR, part)


def test_a_polite_request_is_told_as_well() -> None:
    assert understand(f"can you convert {QWEN} to w8a8?", None).unread == "w8a8"
    assert understand("can you explain w8a8?", None).unread == ""


@pytest.mark.parametrize(
    "sentence", ["ok", "thanks", "no", "cancel", "what is w8a8?", "use fp8", f"quantize {QWEN}", ""]
)
def test_what_was_understood_has_no_such_part(sentence: str) -> None:
    for checkpoint in (None, *CHECKPOINTS):
        assert understand(sentence, checkpoint).unread == ""


@given(st.text(max_size=300))
def test_it_is_short_and_made_of_the_sentence(text: str) -> None:
    said = understand(text, PLAN).unread
    assert len(said) <= MOST_CHARACTERS
    assert said.isprintable()
    assert "\n" not in said


def test_a_long_part_is_cut() -> None:
    assert understand("use fp8, " + "x" * 500, PLAN).unread == "x" * (MOST_CHARACTERS - 1) + "…"
