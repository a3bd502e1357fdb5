"""What a change says, and what is not understood as one."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, Vocabulary, as_json, understand
from bot.conversation.words.vocabulary import PUBLISHED
from tests.bot.conversation.words.sentences import CHANGES, CHECKPOINTS, PLAN, calibration


@pytest.mark.parametrize("checkpoint", [None, *CHECKPOINTS])
@pytest.mark.parametrize(("sentence", "expected"), CHANGES.items())
def test_changes_are_read(sentence: str, expected: dict[str, Any], checkpoint: Checkpoint | None) -> None:
    understood = understand(sentence, checkpoint)
    # "Quantize it to fp8" asks for the model where no thread has one; and whoever names one there asks for it.
    asks = checkpoint is None and (sentence.startswith("quantize it") or "model" in expected)
    assert understood.intent is (Intent.REQUEST if asks else Intent.CHANGE)
    assert understood.flat == expected


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


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("no, use awq", {"algorithm": "awq"}),
        ("nope, fp8", {"global_scheme": "fp8"}),
        ("wrong: scheme int8", {"global_scheme": "int8"}),
        ("no, no kv cache", {"kv_cache_scheme": None}),
        ("wait, use fp8", {"global_scheme": "fp8"}),
        ("hmm, actually calibration 64", calibration(num_calib_data=64)),
        ("sorry, use fp8 instead, thanks!", {"global_scheme": "fp8"}),
        ("<@U0BOT> use fp8", {"global_scheme": "fp8"}),
        ("run it on runner b", {"runner": "b"}),
        ("use fp8 👍", {"global_scheme": "fp8"}),
        ("👍 use fp8 :+1:", {"global_scheme": "fp8"}),
        ("please do use fp8", {"global_scheme": "fp8"}),
        ("please do not use awq", {"algorithm": None}),
        ("rerun with 512 samples", calibration(num_calib_data=512)),
        ("try again with awq", {"algorithm": "awq"}),
        ("redo with int8", {"global_scheme": "int8"}),
        ("re-run it with int8", {"global_scheme": "int8"}),
        ("once more, but with gptq", {"algorithm": "gptq"}),
        ("use awq and try again", {"algorithm": "awq"}),
        ("reject, use awq", {"algorithm": "awq"}),
        ("next, use awq", {"algorithm": "awq"}),
        ("the plan is fine but use awq", {"algorithm": "awq"}),
        ("can you use int8 instead?", {"global_scheme": "int8"}),
        ("could you use awq", {"algorithm": "awq"}),
        ("could you please drop awq?", {"algorithm": None}),
        ("ok, can you run it on runner b?", {"runner": "b"}),
        ("could you quantize it to fp8?", {"global_scheme": "fp8"}),
        ("convert it to fp8", {"global_scheme": "fp8"}),
        ("yes, with 256 samples", calibration(num_calib_data=256)),
    ],
)
def test_a_change_may_begin_with_another_word(sentence: str, expected: dict[str, Any]) -> None:
    understood = understand(sentence, PLAN)
    assert (understood.intent, understood.flat) == (Intent.CHANGE, expected)


NOT_UNDERSTOOD = [
    # out of range, or no number
    *("calibration -5", "calibration 0", "calibration 99999999", "calibration 2.5"),
    *("calibration 64,512", "calibration 1, 024", "calibration 1,02", "calibration 1,0245", "calibration 1,024,5"),
    *("seq len 2k", "2k tokens", "calibration 1,024k"),
    "batch size 0",
    *("seq_len 99999999", "calibration many", "calibration", "increase calibration", "double the calibration", "256"),
    *("min kv scale -1", "min kv scale", "min kv scale nan", "calibration ٢٥٦", "calibration 10^3", "seq len", "1e400"),
    *("increase calibration by 256", "calibration 256 or 512", "more samples", "calibration 256 512", "samples"),
    # contradictions
    *("use fp8 and int8", "fp8, int8", "calibration 256 and calibration 128", "awq, then no algorithm"),
    "runner a, runner b",
    *("trust remote code, do not trust remote code", "*attn* fp8 and *attn* int8", "exclude nothing, exclude lm_head"),
    *("full evaluation, no evaluation", "use awq. use gptq.", "best accuracy and smallest"),
    "kv cache fp8, no kv cache",
    # half understood
    *("use int4_wo_32 with awq or gptq", "use fp8 if it fits", "use fp8 tomorrow", "use fp8 and make it blue"),
    "maybe fp8",
    *("use nvfp4 unless it is slow", "I would use fp8", "fp8 looks good", "the scheme is wrong"),
    *("we tried fp8 before", "awq too"),
    *("he said use fp8", "'use fp8'", "`use fp8`", "> use fp8", "use", "change the scheme", "set it", "switch"),
    "use it",
    *("never use fp8", "don't use fp8", "no fp8", "not fp8", "no calibration 256", "without fp8", "stop fp8"),
    "remove lm_head",
    *("drop awq and fp8", "drop awq, fp8", "no awq and fp8", "no awq or gptq", "without awq and smoothquant"),
    "fp8 is fine",
    *("change fp8", "change awq", "increase fp8", "replace awq", "instead of fp8", "use something smaller"),
    "use awq?fp8",
    # to be read in two ways
    *("exclude lm_head, *self_attn* fp8", "exclude lm_head and *gate* with fp8", "fp8 kv cache int8"),
    "fp8 kv cache off",
    *("use mxfp4 for the experts, *self_attn* fp8", "no kv cache and awq", "disable the kv cache, evaluation"),
    *("export onnx export gguf", "hf format export gguf", "kv cache no", "trust remote code no kv cache"),
    # adding to what is not seen
    *("also exclude *gate*", "exclude *gate* too", "also use smoothquant", "add awq", "also keep lm_head at fp8"),
    *(
        "add fp8",
        "add 64 samples",
        "add lm_head",
        "add runner b",
        "exclude lm_head as well",
        "awq+foo",
        "awq+",
        "awq++gptq",
    ),
    *("don't quantize lm_head", "skip lm_head", "keep lm_head in bf16", "group size 64", "exclude the first layer"),
    # what is said of a thing is no name of it
    *(
        "the model rocks",
        "the model is tiny",
        "model works",
        "model said",
        "model back",
        "model type",
        "output is odd",
        "the output looks odd",
        "output wrong",
    ),
    *("output missing", "my output vanished", "use runner please", "runner missing again", "output foo looks odd"),
    # a home folder, which nobody here knows
    *("output ~/foo9", "save it to ~/foo", "into ~/foo", "model ~/llama", "dataset ~/calib.jsonl", "output ~"),
    *("use notes.pdf", "use ../text.txt", "text.txt", "per tensor", "ptpc int4", "int8 per channel"),
    # names of nothing
    *("use w4a16", "use w8a8", "use fp16", "use bf16", "mxfp6", "use int4 group size 256", "use foo", "algorithm foo"),
    *("scheme foo", "kv cache foo", "kv cache", "dataset", "dataset wrong", "exclude", "exclude everything"),
    "exclude lm head's",
    *("keep lm_head", "keep lm_head at", "quantize lm_head", "quantize the attention", "*attn*", "lm_head"),
    *("export", "export foo"),
    *("entry point", "entry point foo", "own", "auto", "evaluation", "full", "smoke", "evaluation on wikitext"),
    *("full evaluation on wikitext", "evaluate on wikitext", "trust", "remote code", "trust me"),
    "trust no remote code",
    *("trust remote code, no", "trust remote code maybe", "output", "output fp8", "output int4_wo_32"),
    *("save as fp8", "output later"),
    "into production",
    *("runner", "runner please", "on", "on monday", "model", "model fp8", "model looks good", "the model is great"),
    "revision 2",
    *("revision", "commit to int8", "model --trust", "use Qwen", "Qwen/Qwen3-8B", "Qwen/Qwen3-8B looks good"),
    "use 24/7",
    *("use f\u0440 8", "use f\u04408", "scheme \u202efp8", "use fp8\x00", "exclude -rf", "exclude ../x", "model -x"),
    "output -o",
]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("sentence", NOT_UNDERSTOOD)
def test_nothing_is_half_understood(sentence: str, checkpoint: Checkpoint) -> None:
    understood = understand(sentence, checkpoint)
    assert understood.intent is Intent.UNCLEAR
    assert understood.flat == {}


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
