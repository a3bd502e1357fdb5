"""What is asked for in a channel, and in a thread that has a conversation already."""

from __future__ import annotations

from typing import Any

import pytest

from bot.conversation.words import Intent, understand
from tests.bot.conversation.words.sentences import CHECKPOINTS, COMMAND, PLAN, calibration

QWEN = {"model": "Qwen/Qwen3-8B"}

REQUESTS: dict[str, dict[str, Any]] = {
    "quantize Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "Quantize Qwen/Qwen3-8B": QWEN,
    "quantise Qwen/Qwen3-8B": QWEN,
    "please quantise /models/llama with int4_wo_32 and awq, calibration 256": {
        "model": "/models/llama",
        "global_scheme": "int4_wo_32",
        "algorithm": "awq",
        **calibration(num_calib_data=256),
    },
    "quantize the model 'my model'": {"model": "my model"},
    "quantize the model /models/llama": {"model": "/models/llama"},
    "quantize the llama model to int4": {"model": "llama", "global_scheme": "int4_wo_32"},
    "quantize gpt2 to int8": {"model": "gpt2", "global_scheme": "int8"},
    "quantize “Qwen/Qwen3-8B” to `fp8`": {**QWEN, "global_scheme": "fp8"},
    "hi! I want to quantize Qwen/Qwen3-8B, thanks": QWEN,
    "let's quantize Qwen/Qwen3-8B": QWEN,
    "@ptq-bot quantize Qwen/Qwen3-8B": QWEN,
    "<@U00FAKEBOT01> quantize Qwen/Qwen3-8B": QWEN,
    "<@!1234567890> quantize Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "/quantize Qwen/Qwen3-8B fp8": {**QWEN, "global_scheme": "fp8"},
    "/ptq quantize Qwen/Qwen3-8B": QWEN,
    "could you please quantize Qwen/Qwen3-8B to fp8?": {**QWEN, "global_scheme": "fp8"},
    "@ptq-bot can you quantize Qwen/Qwen3-8B": QWEN,
    "quantize Qwen/Qwen3-8B@abc123": {**QWEN, "revision": "abc123"},
    "quantize Qwen/Qwen3-8B revision abc": {**QWEN, "revision": "abc"},
    "quantize Qwen/Qwen3-8B at revision refs/pr/3 to fp8": {**QWEN, "revision": "refs/pr/3", "global_scheme": "fp8"},
    "quantize https://huggingface.co/Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "quantize <https://huggingface.co/Qwen/Qwen3-8B/tree/main|huggingface.co/Qwen>": {**QWEN, "revision": "main"},
    "quantize Qwen/Qwen3-8B into /out/foo": {**QWEN, "output_dir": "/out/foo"},
    "quantize Qwen/Qwen3-8B to fp8 and save it to /out/foo": {
        **QWEN,
        "global_scheme": "fp8",
        "output_dir": "/out/foo",
    },
    "quantize Qwen/Qwen3-8B to /out/foo, output format onnx": {
        **QWEN,
        "output_dir": "/out/foo",
        "model_export": "onnx",
    },
    "quantize Qwen/Qwen3-8B on runner mi300": {**QWEN, "runner": "mi300"},
    "quantize Qwen/Qwen3-8B for best accuracy": {**QWEN, "priority": "accuracy"},
    "quantize Qwen/Qwen3-8B, smallest": {**QWEN, "priority": "size"},
    "quantize Qwen/Qwen3-8B fastest": {**QWEN, "priority": "speed"},
    "quantize Qwen/Qwen3-8B for cpu": {**QWEN, "priority": "cpu"},
    "quantize Qwen/Qwen3-8B to gguf": {**QWEN, "priority": "gguf"},
    "quantize Qwen/Qwen3-8B for H100": {**QWEN, "hardware": "H100"},
    "quantize Qwen/Qwen3-8B for MI300X": {**QWEN, "hardware": "MI300X"},
    "quantize Qwen/Qwen3-8B for AMD MI355X GPUs": {**QWEN, "hardware": "MI355X"},
    "quantize Qwen/Qwen3-8B to fp8 for vllm": {**QWEN, "global_scheme": "fp8"},
    "quantize Qwen/Qwen3-8B to fp8 with sglang please, asap": {**QWEN, "global_scheme": "fp8"},
    "quantize Qwen/Qwen3-8B to fp8 per tensor": {**QWEN, "global_scheme": "fp8"},
    "quantize Qwen/Qwen3-8B ptpc fp8": {**QWEN, "global_scheme": "ptpc_fp8"},
    "quantize Qwen/Qwen3-8B now": QWEN,
    "quantize Qwen/Qwen3-8B without revision": {**QWEN, "revision": None},
    "convert Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "compress Qwen/Qwen3-8B to int4": {**QWEN, "global_scheme": "int4_wo_32"},
    "make Qwen/Qwen3-8B fp8": {**QWEN, "global_scheme": "fp8"},
    "turn Qwen/Qwen3-8B into fp8": {**QWEN, "global_scheme": "fp8"},
    "I need an fp8 version of Qwen/Qwen3-8B": {**QWEN, "global_scheme": "fp8"},
    "make an fp8 version of the model /models/a/b": {"model": "/models/a/b", "global_scheme": "fp8"},
    "please make me an INT8 copy of /models/a/b": {"model": "/models/a/b", "global_scheme": "int8"},
    "an fp8 quant of Qwen/Qwen3-8B for MI300X": {**QWEN, "global_scheme": "fp8", "hardware": "MI300X"},
    "we need a quantized version of Qwen/Qwen3-8B": QWEN,
    "I want a quantized Qwen/Qwen3-8B": QWEN,
    "quantize Qwen/Qwen3-8B to fp8, keep lm_head at int8, no evaluation": {
        **QWEN,
        "global_scheme": "fp8",
        "layer_quant_config": {"lm_head": "int8"},
        "evaluation_intent": "none",
    },
    "quantize model: Qwen/Qwen3-8B\nscheme: fp8\nkv cache: fp8\noutput: /out/q": {
        **QWEN,
        "global_scheme": "fp8",
        "kv_cache_scheme": "fp8",
        "output_dir": "/out/q",
    },
}
WITHOUT_VERB: dict[str, dict[str, Any]] = {
    "Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "Qwen/Qwen3-8B": QWEN,
    "<@U00FAKEBOT01> Qwen/Qwen3-8B fp8 awq": {**QWEN, "global_scheme": "fp8", "algorithm": "awq"},
    "/ptq Qwen/Qwen3-8B to fp8": {**QWEN, "global_scheme": "fp8"},
    "/models/llama-3 to fp8": {"model": "/models/llama-3", "global_scheme": "fp8"},
    "https://hf.co/Qwen/Qwen3-8B": QWEN,
    "Qwen/Qwen3-8B fp8": {**QWEN, "global_scheme": "fp8"},
}
IN_A_CHANNEL: dict[str, dict[str, Any]] = {
    "quantize tiny fp8": {"model": "tiny", "global_scheme": "fp8"},
    "convert tiny asap": {"model": "tiny"},
    "an fp8 version of tiny": {"model": "tiny", "global_scheme": "fp8"},
    "I'd like Qwen/Qwen3-8B in fp8": {**QWEN, "global_scheme": "fp8"},
    "need Qwen/Qwen3-8B in fp8": {**QWEN, "global_scheme": "fp8"},
    "we want /models/llama as mxfp4": {"model": "/models/llama", "global_scheme": "mxfp4"},
    "use Qwen/Qwen3-8B": QWEN,
    "could you convert Qwen/Qwen3-8B to fp8?": {**QWEN, "global_scheme": "fp8"},
}
WITHOUT_MODEL: dict[str, dict[str, Any]] = {
    "quantize": {},
    "please quantize": {},
    "quantize it": {},
    "quantize this model to fp8": {"global_scheme": "fp8"},
    "quantize the model": {},
    "quantize to int4_wo_64 with awq": {"global_scheme": "int4_wo_64", "algorithm": "awq"},
    "quantize fp8": {"global_scheme": "fp8"},
    "/quantize": {},
}


@pytest.mark.parametrize(
    ("sentence", "expected"), [*REQUESTS.items(), *WITHOUT_VERB.items(), *IN_A_CHANNEL.items(), *WITHOUT_MODEL.items()]
)
def test_requests_are_read(sentence: str, expected: dict[str, Any]) -> None:
    understood = understand(sentence, None)
    assert (understood.intent, understood.flat) == (Intent.REQUEST, expected)


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize(
    "sentence", [sentence for sentence in REQUESTS if not sentence.startswith("could") and "can you" not in sentence]
)
def test_a_thread_may_be_asked_for_another_model(sentence: str, checkpoint: Any) -> None:
    understood = understand(sentence, checkpoint)
    assert (understood.intent, understood.flat) == (Intent.REQUEST, REQUESTS[sentence])


@pytest.mark.parametrize(
    "sentence", [*WITHOUT_VERB, "quantize", "quantize it", "please quantize", "quantize the model"]
)
def test_in_a_thread_neither_a_model_alone_nor_the_verb_alone_says_enough(sentence: str) -> None:
    assert understand(sentence, COMMAND).intent is Intent.UNCLEAR


def test_in_a_thread_too_somebody_may_ask_politely() -> None:
    understood = understand("could you quantize Qwen/Qwen3-8B to fp8?", PLAN)
    assert (understood.intent, understood.flat) == (Intent.REQUEST, {**QWEN, "global_scheme": "fp8"})
    assert understand("would you quantize Qwen/Qwen3-8B to fp8?", PLAN).intent is Intent.QUESTION


@pytest.mark.parametrize(
    "sentence",
    [
        *("quantize everything", "quantize something", "quantize lm_head", "quantize A/b1 and C/d2"),
        "quantize Qwen 3 8B",
        *("quantize Qwen/Qwen3-8B to fp8 and int8", "quantize Qwen/Qwen3-8B if it fits"),
        "don't quantize Qwen/Qwen3-8B",
        *("quantize Qwen/Qwen3-8B tomorrow", "I would quantize Qwen/Qwen3-8B", "> quantize Qwen/Qwen3-8B"),
        "quantized it",
        *("'quantize Qwen/Qwen3-8B'", "24/7", "yes/no", "CI/CD", "and/or", "either/or to fp8", "hello"),
        *("good morning", "/help"),
        *("quantize Qw\u0435n/Qwen3-8B", "quantize -x", "quantize \u202eQwen/Qwen3-8B"),
        "quantize Qwen/Qwen3-8B calibration -5",
        "quantize Qwen/Qwen3-8B, calibration 0",
        "> can you quantize Qwen/Qwen3-8B",
        "quantize -5",
        *(
            "quantize ~/llama",
            "make it so",
            "make love",
            "quantized Qwen/Qwen3-8B",
            "convert everything",
            "turn it off",
        ),
        *("quantize http://example.org/model", "stop quantizing", "we quantize a lot", "Qwen/Qwen3-8B is great"),
        "fp8 rocks",
    ],
)
def test_other_talk_requests_nothing(sentence: str) -> None:
    understood = understand(sentence, None)
    assert (understood.intent, understood.flat) == (Intent.UNCLEAR, {})


@pytest.mark.parametrize(
    "sentence",
    [
        "quantize Qwen/Qwen3-8B?",
        "should we quantize Qwen/Qwen3-8B",
        "can we quantize Qwen/Qwen3-8B to fp8?",
        "can you?",
    ],
)
def test_questions_request_nothing(sentence: str) -> None:
    assert understand(sentence, None).intent is Intent.QUESTION
