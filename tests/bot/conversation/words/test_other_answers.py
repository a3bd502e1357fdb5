"""No, stop, and questions."""

from __future__ import annotations

import pytest

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, understand
from tests.bot.conversation.words.sentences import CHECKPOINTS, EVERY_AGREEMENT, RESULT

ANYWHERE: tuple[Checkpoint | None, ...] = (None, *CHECKPOINTS)


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize(
    "sentence",
    [
        *("no", "No.", "NO!", "nope", "nah", "no no", "no, thanks", "no thank you", "no...", "wrong"),
        *("that's wrong", "no way"),
        *("that is wrong", "reject", "rejected", "I reject it", "reject the plan", "don't run it", "do not run it"),
        "don't do it",
        *("not ok", "not good", "incorrect", "that's not right", "👎", ":-1:", "decline", "denied", "absolutely not"),
        *("sorry, no", "no, that's wrong", "not approved", "the plan looks wrong", "it is not correct", "no go"),
        *("nope 🙏", "reject, too much loss", "Rejected: the perplexity went up 3%", "reject it - awful quality"),
        *("reject because it lost accuracy", "I reject it, the loss is too high", "rejected. looks awful"),
    ],
)
def test_no_rejects(sentence: str, checkpoint: Checkpoint | None) -> None:
    assert understand(sentence, checkpoint).intent is Intent.REJECT


@pytest.mark.parametrize(
    "sentence",
    [
        *("no problem", "no worries", "no changes", "no objections", "no?", "not bad", "yes, no", "no or yes", "> no"),
        *("he said no", "'no'", "no idea", "wrong?", "nobody rejects it", "nothing is wrong", "don't reject"),
        "not wrong",
        "of course not wrong",
        "don't do it wrong",
        "absolutely not rejected",
        *("no 👍", "no, looks good", "I wonder if no", "no if it is slow", "@ada reject", "`reject`", "reject nothing"),
        *(
            "reject, or not?",
            "reject, or not",
            "reject, just kidding",
            "reject, no wait",
            "reject: not yet",
            "reject, yes",
        ),
        *("reject if it is slow", "reject, unless it is fast", "reject, 'awful'", "reject, @ada", "> reject, awful"),
        *(
            "reject what is slow",
            "reject... I guess",
            "reject, I would say",
            "he said reject, awful",
            "no, too much loss",
        ),
    ],
)
def test_what_only_has_a_no_in_it_rejects_no_result(sentence: str) -> None:
    assert understand(sentence, RESULT).intent is not Intent.REJECT


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize(
    "sentence",
    [
        *("cancel", "Cancel!", "stop", "STOP", "stop!!!", "abort", "kill it", "never mind", "nevermind"),
        *("forget it", "quit"),
        *("please cancel", "cancel, please", "cancel it", "cancel this", "stop it", "stop the run", "cancel the run"),
        *("abort the run please", "kill the run", "no, cancel", "ok, cancel it", "wait, stop", "actually, cancel"),
        "call it off",
        *("cancel everything", "stop right now", "halt", "drop it", "I want to cancel", "@ptq-bot cancel"),
        "stop, thanks",
        *("yes, cancel it", "no wait, stop", "sorry, never mind", "stop..."),
    ],
)
def test_stop_cancels(sentence: str, checkpoint: Checkpoint | None) -> None:
    assert understand(sentence, checkpoint).intent is Intent.CANCEL


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize(
    "sentence",
    [
        *("stop using awq", "cancel the kv cache", "stop?", "can I cancel", "don't cancel", "do not stop"),
        *("never stop", "> stop"),
        *("'cancel'", "he said stop", "stop by later", "non-stop", "cancel if it is slow", "stop when done"),
        "quit smoking",
        *("stop, or not", "cancellation", "how do I cancel", "I would cancel", "maybe cancel", "cancel tomorrow"),
        "c\u0430ncel",
        *("stop the presses", "never mind the kv cache", "@ada cancel", "`stop`", "forget it, use awq", "kill"),
        "cancel\u202e",
    ],
)
def test_what_only_has_a_stop_in_it_cancels_nothing(sentence: str, checkpoint: Checkpoint | None) -> None:
    assert understand(sentence, checkpoint).intent is not Intent.CANCEL


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize(
    "sentence",
    [
        *("what is awq", "why int8", "can we use awq?", "can we use awq", "how long will it take", "is fp8 good"),
        *("fp8?", "why"),
        *("which runner is it on", "should I use gptq", "does it fit on one GPU", "what about awq, fp8", "use awq?"),
        "help",
        *("ok, but why int8", "hi, what is gptq", "and what does smoothquant do", "will it fit", "yes?"),
        *("who approved", "what"),
        *("do you know awq", "do we need calibration", "tell me about mxfp4", "explain the plan"),
        *("Don't you use awq?", "¿fp8"),
        *("use fp8 ？", "isn't int8 better", "what's mxfp4", "@ptq-bot what is awq", "would you use awq?"),
        *("can you explain awq?", "can you run it?", "could you use awq or gptq?", "should we use awq?", "can you?"),
        *(
            "can you use awq? why not gptq",
            "will you use awq",
            "what if you use awq",
            "can you approve?",
            "could you go on",
        ),
        "use awq. why not fp8",
    ],
)
def test_questions_change_nothing(sentence: str, checkpoint: Checkpoint | None) -> None:
    understood = understand(sentence, checkpoint)
    assert understood.intent is Intent.QUESTION
    assert understood.changes.nothing


@pytest.mark.parametrize("checkpoint", ANYWHERE)
@pytest.mark.parametrize("agreement", EVERY_AGREEMENT)
def test_an_agreement_with_a_question_mark_is_a_question(agreement: str, checkpoint: Checkpoint | None) -> None:
    assert understand(f"{agreement}?", checkpoint).intent is Intent.QUESTION
