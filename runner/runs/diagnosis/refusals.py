"""What our own script says when it refuses what it was asked for, as a kind of failure."""

from __future__ import annotations

import re

from runner.runs.diagnosis.rule import Help
from schemas.artifacts.report import FailureClass

REFUSED = "BadInput: "
"""What our own script raises when it refuses what it was asked for; the sentence behind it is for people."""

_CHANGE = "Change what it names, and make a new plan where that changes what the plan says."

_REFUSALS: tuple[tuple[re.Pattern[str], FailureClass, str, tuple[Help, ...]], ...] = (
    (
        re.compile(
            r"^The model cannot be read|cannot be downloaded|^The download of |^There is no model |^The tokenizer"
        ),
        FailureClass.LOAD,
        "Compare the model's files with where they came from, and fetch again what is missing or differs.",
        (),
    ),
    (
        re.compile(r"^The dataset .* cannot be loaded|^The text .* cannot be read|^There is no text file"),
        FailureClass.LOAD,
        "Put the dataset into the runner's mirror, or calibrate on another text.",
        (),
    ),
    (
        re.compile(r"^The output folder .* cannot be written to"),
        FailureClass.HOST,
        "Let the runner's user write there, or choose another output folder.",
        (),
    ),
    (re.compile(r"^torch .* finds no GPU|^This version of Quark"), FailureClass.ENVIRONMENT, _CHANGE, ()),
    (
        re.compile(r"^The installed transformers cannot build"),
        FailureClass.COMPATIBILITY,
        _CHANGE,
        (),
    ),
    (
        re.compile(r" tokens, but calibration needs | samples; --num_calib_data asks for "),
        FailureClass.CONFIGURATION,
        "Plan again with fewer calibration samples or a shorter seq_len, or with a longer text.",
        (Help.FEWER_SAMPLES, Help.SHORTER_SAMPLES),
    ),
    (
        re.compile(r" tokens, but the evaluation needs | tokens, but "),
        FailureClass.CONFIGURATION,
        "Plan again with fewer calibration samples, without an evaluation, or with a longer text.",
        (Help.FEWER_SAMPLES, Help.SHORTER_SAMPLES, Help.NO_EVALUATION),
    ),
    (
        re.compile(r"^Quark has no \w+ for .* built in"),
        FailureClass.CONFIGURATION,
        _CHANGE,
        (Help.WRITE_CONFIG, Help.NO_ALGORITHM),
    ),
    (re.compile(r"^Quark has no scheme"), FailureClass.CONFIGURATION, _CHANGE, (Help.OTHER_SCHEME,)),
    (re.compile(r"^The template of .* names no key"), FailureClass.CONFIGURATION, _CHANGE, (Help.NO_KV_CACHE,)),
    (re.compile(""), FailureClass.CONFIGURATION, _CHANGE, ()),
)
"""Which kind of failure a refusal is, and what may help; the last one takes all others."""


def refused(line: str) -> tuple[FailureClass, str, tuple[Help, ...]]:
    """The kind of failure, what to do next, and what may help, from the line of a refusal."""
    sentence = line.removeprefix(REFUSED)
    return next((failure, action, helps) for pattern, failure, action, helps in _REFUSALS if pattern.search(sentence))
