"""`ptq-bot understand`: how a sentence is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from bot.service.commands import main


def read(*arguments: str) -> Any:
    """What is printed, as JSON."""
    done = CliRunner().invoke(main, ["understand", *arguments])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


@pytest.mark.parametrize(
    ("checkpoint", "sentence", "expected"),
    [
        ("plan", "use smoothquant", {"intent": "change", "changes": {"algorithm": "smoothquant"}}),
        ("plan", "ok", {"intent": "approve", "changes": {}}),
        ("command", "ok", {"intent": "unclear", "changes": {}}),
        ("command", "run it", {"intent": "approve", "changes": {}}),
        ("result", "why fp8?", {"intent": "question", "changes": {}}),
        (
            "plan",
            "increase calibration to 256",
            {"intent": "change", "changes": {"calibration": {"num_calib_data": 256}}},
        ),
        (
            "analysis",
            "keep layer 0",
            {"intent": "change", "changes": {"exclude_layers": ["*layers.0.*"]}, "relative": ["exclude_layers"]},
        ),
        (
            "plan",
            "use smoothqant",
            {"intent": "unclear", "changes": {}, "unread": "smoothqant", "hint": "Did you mean smoothquant?"},
        ),
    ],
)
def test_a_sentence_is_shown_as_it_is_read(checkpoint: str, sentence: str, expected: dict[str, Any]) -> None:
    assert read("--checkpoint", checkpoint, sentence) == expected


def test_without_a_checkpoint_it_is_a_request() -> None:
    assert read("quantize Qwen/Qwen3-8B to fp8") == {
        "intent": "request",
        "changes": {"model": "Qwen/Qwen3-8B", "global_scheme": "fp8"},
    }
