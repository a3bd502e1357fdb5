"""Requests and changes as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.request import Changes
from bot.conversation.wording import changes_in_words, request_in_words
from tests.bot.conversation.samples import REQUEST


@pytest.mark.parametrize(
    ("calibration", "words"),
    [
        ({"num_calib_data": 4, "seq_len": 32, "dataset": "text.txt"}, "4 samples of 32 tokens from text.txt"),
        ({"dataset": "text.txt", "num_calib_data": 4}, "4 samples from text.txt"),
        ({"num_calib_data": 1, "seq_len": 1}, "1 sample of 1 token"),
        ({"num_calib_data": 256}, "256 samples"),
        ({"seq_len": 512}, "samples of 512 tokens"),
        ({"dataset": "pileval"}, "from pileval"),
        ({"batch_size": 2}, "in batches of 2"),
        ({"seq_len": 512, "batch_size": 2}, "samples of 512 tokens in batches of 2"),
        ({"num_calib_data": None}, "as usual"),
        ({}, "as usual"),
    ],
)
def test_calibration_is_a_phrase(calibration: dict[str, Any], words: str) -> None:
    choices = {"global_scheme": "fp8", "calibration": calibration}
    assert request_in_words(REQUEST.model_copy(update={"choices": choices})) == f"scheme fp8, calibration: {words}"


def test_changes_have_the_names_of_people() -> None:
    changes = Changes(output_dir="/out/x", choices={"kv_cache_scheme": None, "trust_remote_code": True})
    assert changes_in_words(changes) == "output folder /out/x, KV cache none, the model's own code yes"


def test_long_lists_say_how_many_more_there_are() -> None:
    said = changes_in_words(Changes(choices={"exclude_layers": [f"l{number}" for number in range(20)]}))
    assert said.startswith("excluded layers l0, l1, ")
    assert said.endswith("l11 and 8 more")
