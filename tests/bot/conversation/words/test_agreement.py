"""Who agrees, and above all who does not."""

from __future__ import annotations

import pytest

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, understand
from tests.bot.conversation.words.sentences import ANALYSIS, CHECKPOINTS, COMMAND, PLAN, RESULT, TYPED


def intent(sentence: str, checkpoint: Checkpoint | None) -> Intent:
    return understand(sentence, checkpoint).intent


@pytest.mark.parametrize(
    ("checkpoint", "sentence"), [(checkpoint, sentence) for checkpoint in CHECKPOINTS for sentence in TYPED[checkpoint]]
)
def test_agreement_approves(checkpoint: Checkpoint, sentence: str) -> None:
    understood = understand(sentence, checkpoint)
    assert understood.intent is Intent.APPROVE
    assert understood.changes.nothing


@pytest.mark.parametrize(
    "sentence",
    [
        *("ok", "okay", "looks good", "continue", "confirm", "👍", ":+1:", "✅", "+1", "proceed", "lgtm", "fine"),
        "sure",
        *("perfect", "correct", "that's right", "sounds good", "great", "good", "accept", "accepted", "agreed"),
        "go on",
        *("ok, looks good", "👍👍", "alright", "of course", "thanks", "please", "nice", "ok thanks", "ship it", "done"),
        *("run ok", "start ok", "go okay", "execute okay", "run it ok", "good run it"),
        *("great start", "good run", "nice run", "good go", "perfect start", "cool run", "well done"),
    ],
)
def test_running_a_command_takes_an_explicit_yes(sentence: str) -> None:
    assert intent(sentence, COMMAND) is Intent.UNCLEAR


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("sentence", ["y", "Y", "y.", "Y!"])
def test_one_letter_is_a_yes(sentence: str, checkpoint: Checkpoint) -> None:
    assert intent(sentence, checkpoint) is Intent.APPROVE


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize(
    "sentence",
    [
        "y?",
        "y not",
        "run it y",
        "not y",
        "y n",
        "y/n",
        "y, n",
        "y...",
        "'y'",
        "> y",
        "(y)",
        "@ada y",
        "y\u0336",
        "-y",
        "yy",
    ],
)
def test_a_letter_beside_anything_is_none(sentence: str, checkpoint: Checkpoint) -> None:
    assert intent(sentence, checkpoint) is not Intent.APPROVE


@pytest.mark.parametrize("sentence", ["k", "K.", "good", "great", "next", "Good!", "the analysis is correct"])
def test_what_agrees_with_facts_only_starts_nothing(sentence: str) -> None:
    assert intent(sentence, ANALYSIS) is Intent.APPROVE
    for checkpoint in (PLAN, COMMAND, RESULT):
        assert intent(sentence, checkpoint) is Intent.UNCLEAR
    assert intent("the plan is correct", COMMAND) is Intent.UNCLEAR


@pytest.mark.parametrize(
    "sentence",
    [
        "sure",
        "lgtm",
        "run it lgtm",
        "not sure run it",
        "sure, not",
        "sure thing",
        "ship it",
        "sure if it fits",
        "run it sure",
    ],
)
def test_what_may_stand_before_an_explicit_yes_is_none(sentence: str) -> None:
    assert intent(sentence, COMMAND) is not Intent.APPROVE


@pytest.mark.parametrize("sentence", ["run it", "execute", "start it", "launch it", "run", "run this command"])
def test_a_plan_is_not_run(sentence: str) -> None:
    assert intent(sentence, PLAN) is Intent.UNCLEAR


@pytest.mark.parametrize("sentence", ["yes", "ok", "run it", "go", "approve", "looks good", "accept", "👍"])
def test_where_nothing_is_asked_nothing_agrees(sentence: str) -> None:
    assert intent(sentence, None) is Intent.UNCLEAR


NOT_AGREEING = [
    # negations
    *("don't run it", "do not run it", "dont run it", "not ok", "no", "nope", "not yet", "never", "no, go back"),
    "no go",
    *("I don't approve", "don't go", "not good", "it is not correct", "isn't ok", "nothing looks good", "no yes"),
    *("yes no", "no, yes", "yes. no.", "yes and no", "yes/no", "yes or no", "not approved", "do not continue", "no ok"),
    *("disapprove", "unapproved", "can't approve", "ok not", "go not", "never run it", "run it not", "yes, don't"),
    *("!yes", "~yes~", "~~run it~~", "¬yes", "yes, not", "y̶e̶s̶", "≠ ok", "no problem", "no worries", "no objections"),
    # questions
    *("yes?", "ok?", "run it?", "should I say yes", "shall we run it", "is it ok", "yes?!", "go ahead??", "yes ?"),
    "¿yes",
    *("should I approve", "can I say go", "what if I say yes", "do you want me to say ok", "why yes", "yes？", "yes⁇"),
    *("looks good?", "who said run it", "when do we go", "ok what", "yes؟", "yes;\u037e", "yes‽", "confirm?"),
    "approved?",
    # conditions, doubt and time
    *("yes, if it fits", "ok if it fits", "ok once it is tested", "go when ready", "yes unless it is full", "maybe"),
    *("maybe yes", "I would say go later", "I guess so", "I guess yes", "probably ok", "yes I think", "I think ok"),
    *("ok wait", "wait", "hold on", "yes, wait", "run it tomorrow", "go later", "run it tonight", "not now", "soon"),
    *("yes...", "ok…", "go...", "ok... I guess", "hmm ok", "well yes", "actually yes", "sort of ok", "almost good"),
    *("yeah, right", "yeah right", "run it after lunch", "approve it next week", "ok in principle", "go in 5 minutes"),
    *("yes but", "yes, however", "ok except", "looks good but", "yes although", "fine for now", "run it once"),
    "go slow",
    # quotation
    *("he said 'run it'", "he said run it", "> yes", "> run it", "&gt; yes", ">yes", "`yes`", "'yes'", '"run it"'),
    *("“yes”", "‘ok’", "«yes»", "```yes```", "```\nyes\n```", "> shall I run this?\nyes", "yes\n> ok", "she says go"),
    *('say "yes"', "type yes", "reply with yes", "say yes to run it", "Ada: yes", "yes, says Ada", "(yes)", "[yes]"),
    *("<yes>", "{yes}", "*yes*", "_yes_", "yes to whom", "the word yes", "yes = approve", "||yes||", "/yes"),
    "/approve",
    # what speaks of an agreement, or of something else
    *("confirm that this is correct", "confirm all is good", "sure that's right", "sure it is correct"),
    "accept all is ok",
    *("nice", "cool", "nice thanks", "good run it", "cool go", "next week", "next time", "next to it", "good enough"),
    *("the analysis is correct so far", "is the analysis correct", "the analysis is correct?", "great idea"),
    # somebody else is spoken to
    *("@ada approve", "<@U0ADA> run it", "<@123456789> yes", "ada, approve", "please approve", "please confirm"),
    "pls accept",
    *("confirm it please", "@ada please run it", "yes @ada", "approve, <!here>", "kindly approve", "please approve it"),
    # other words
    *("yesterday it would go", "go to hell", "go away", "go back", "goose", "okra", "yessir it broke", "okay-ish"),
    "yes-man",
    *("run away", "run out", "run it back", "run another one", "do it yourself", "start over", "start again"),
    "execute him",
    *("good question", "good grief", "fine print", "right", "all wrong", "correct it", "correct that", "continue what"),
    *("approve nothing", "approve all but this", "approved by nobody", "everything", "it looks", "looks", "that is"),
    "me",
    *("", " ", "\n", ".", "...", "!", "-", "1", "ok 2", "yes 1", "go 4 it", "and", "and yes", "yes and"),
    "please",
    *("thanks", "hello", "🙏", "🚀", "🤔", "yes 🤔", "ok 😬", "yes 🙃", "👍👎", "👎", "🙄 ok", "yes 🤷", "ok 😂"),
    # dashes and list marks in front
    *("- yes", "-yes", "--yes", "– yes", "* yes", "• yes", "1. yes", "...yes", ", yes", "; yes", ": yes", "= yes"),
    # other languages are not on the list
    *("oui", "sí", "да", "はい", "ja", "si", "是", "oké", "okéy", "ＹＥＳ？"),
]


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("sentence", NOT_AGREEING)
def test_what_does_not_agree_approves_nothing(sentence: str, checkpoint: Checkpoint) -> None:
    assert intent(sentence, checkpoint) is not Intent.APPROVE


@pytest.mark.parametrize(
    "sentence",
    [
        *("yes", "Yes", "YES", " yes ", "\tyes\n", "yes.", "yes!", "yes!!!", "Yes, please", "yes please!"),
        "please, yes",
        *("hi, yes", "hey, run it", "Hello! Yes.", "yes, thanks", "yes, thank you", "Thanks! Run it.", "yes, pls"),
        "yes 🙏",
        *("@ptq-bot yes", "@PTQ-Bot run it", "yes @ptq-bot", "hi @ptq-bot, run it please", "yes 🚀", "run it :rocket:"),
        *(
            "yes\nrun it",
            "yes; run it",
            "Yes: run it.",
            "yes – go",
            "yes — go",
            "ＹＥＳ",
            "ｒｕｎ　ｉｔ！",
            "yes\u00a0",
        ),
        *("y\u200bes", "\ufeffyes", "run\u00a0it", "let’s go", "lets go", "LET'S RUN IT!", "yes👍", "👍🏽 yes"),
        "yes ✔️",
        *("yes yes", "go go", "yes and go", "Ok. Run it.", "okay, go ahead!", "please run it", "go, please"),
        "run it, cheers",
    ],
)
def test_courtesy_case_spaces_and_marks_change_nothing(sentence: str) -> None:
    assert intent(sentence, COMMAND) is Intent.APPROVE


@pytest.mark.parametrize("checkpoint", [PLAN, RESULT])
@pytest.mark.parametrize(
    "sentence",
    ["👍🏿", ":+1::skin-tone-3:", "👍👍", "Great, looks good!", "ok, thanks 🙂", "Yes. Continue.", "ok. perfect"],
)
def test_emoji_and_praise_beside_an_agreement(sentence: str, checkpoint: Checkpoint) -> None:
    assert intent(sentence, checkpoint) is Intent.APPROVE


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize(
    "sentence",
    [
        "\u202eyes",  # writes from right to left from here on
        "yes\u202c",
        "\u2066yes\u2069",
        "yes\u200e",
        "ye\u0455",  # a Cyrillic s
        "\u0443es",  # a Cyrillic y
        "\u043ek",
        "g\u03bf",  # a Greek o
        "run \u0456t",
        "don\x08\x08\x08yes",
        "yes\x00",
        "\x1b[8mdo not\x1b[0m yes",
        "yes\U000e0020\U000e006e\U000e006f",  # tag characters that spell "no"
        "yes\ud800",
        "\ue000yes",
        "yes\u3164",  # a letter that looks like nothing
        "\U0001d432es",  # a mathematical y
        "ye\u017f",  # a long s
        "yes\u0338",
    ],
)
def test_text_that_reads_otherwise_than_it_looks_approves_nothing(sentence: str, checkpoint: Checkpoint) -> None:
    assert intent(sentence, checkpoint) is not Intent.APPROVE


@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("filling", [" ", "\n", "!", "yes ", "please ", "\u200b", "👍"])
def test_long_texts_approve_nothing(filling: str, checkpoint: Checkpoint) -> None:
    assert intent("yes" + filling * 2_000, checkpoint) is not Intent.APPROVE
    assert intent(filling * 100_000 + " yes", checkpoint) is not Intent.APPROVE
