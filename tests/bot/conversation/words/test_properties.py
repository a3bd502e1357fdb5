"""What holds for every sentence: nothing around an agreement leaves one, and any change beside it counts."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.conversation.state import Checkpoint
from bot.conversation.words import Intent, as_json, phrases, understand
from tests.bot.conversation.words.sentences import AGREEMENTS, CHANGES, CHECKPOINTS, EVERY_AGREEMENT, PLAN

NEGATIONS = (
    *("don't {}", "do not {}", "not {}", "never {}", "no {}", "no, {}", "{} not", "{}, no", "{}. No.", "{} - no"),
    "!{}",
    *("nobody says {}", "it isn't {}", "not yet {}", "by no means {}", "without {}", "cannot {}", "{}, nope"),
    "nope. {}",
    *("I take back {}", "un-{}", "neither {}", "{}? no", "stop. {}", "{}, cancel", "wrong, {}", "{}\nno", "no\n{}"),
)
QUESTIONS = (
    *("{}?", "{} ?", "{}?!", "{}？", "{}⁇", "¿{}", "is it {}", "should I say {}", "can I {}", "what if {}", "why {}"),
    "who {}",
    *("{} or not", "when {}", "shall we {}", "how {}", "do you mean {}", "{}, right?", "{} why", "ok to {}?"),
    "may I {}",
)
QUOTATIONS = (
    *("he said {}", "'{}'", '"{}"', "`{}`", "“{}”", "‘{}’", "«{}»", "> {}", ">{}", "&gt; {}", "```{}```"),
    "```\n{}\n```",
    *("({})", "[{}]", "say {}", "reply {} to run it", "Ada: {}", "{}, says Ada", "she wrote {}", "> shall I?\n{}"),
    "<{}>",
    *("{}\n> {}", "~{}~", "~~{}~~", "||{}||", "the word {}", "/{}", "- {}", "*{}*", "_{}_", "#{}", "= {}", "{} = yes"),
)
DOUBTS = (
    *("maybe {}", "{} maybe", "perhaps {}", "I guess {}", "{} I guess", "probably {}", "almost {}", "{} for now"),
    *("{}...", "{}…"),
    *("{} if it fits", "if it fits, {}", "{} unless it is full", "{} later", "{} tomorrow", "{} when done"),
    *("{} soon", "{} 🤔"),
    *("I would say {}", "hmm, {}", "wait, {}", "{}, wait", "{} but", "{}, but", "but {}", "once tested, {}"),
    "{} in principle",
    *("{} 🙃", "{} sort of", "not sure, {}", "{} 2", "{} or {}", "either {}", "{} after lunch", "{} (kidding)"),
    "{} /s",
)
OTHERS = ("@ada {}", "<@U0ADA> {}", "<@!42> {}", "ada, {}", "{} @ada", "{}, <!here>", "@channel {}", "{} said nobody")
SPOILERS = (*NEGATIONS, *QUESTIONS, *QUOTATIONS, *DOUBTS, *OTHERS)

WORDS_OF_AGREEMENT = frozenset(
    word for phrase in (*EVERY_AGREEMENT, *phrases.PRAISE, *phrases.COURTESY) for word in phrase.lower().split()
)

COURTESIES = (
    "{}, please",
    "please {}",
    "hi, {}",
    "{}. Thanks!",
    "ok, {}",
    "@ptq-bot {}",
    "  {}  ",
    "{}!",
    "well, {} 🙏",
)

# One change of each field, of which none reaches into what stands beside it.
APART = {
    "use FP8": 1,
    "use awq": 2,
    "no kv cache": 3,
    "256 calibration samples": 4,
    "skip the evaluation": 5,
    "keep lm_head as it is": 6,
    "attention in fp8": 7,
    "file2file": 8,
    "load it in bfloat16": 9,
    "tensor parallel 4": 10,
    "write the configuration": 11,
    "export onnx": 12,
    "runner b": 13,
    "tasks gsm8k": 14,
}

checkpoints = st.sampled_from(CHECKPOINTS)
agreements = st.sampled_from(EVERY_AGREEMENT)
agreeing = checkpoints.flatmap(
    lambda checkpoint: st.tuples(st.just(checkpoint), st.sampled_from(AGREEMENTS[checkpoint]))
)
spaces = st.sampled_from(["", " ", "  ", "\t", "\n", " \n ", "\u00a0", "\u3000", "\u200b", "\ufeff"])


@pytest.mark.parametrize("template", SPOILERS)
def test_nothing_said_around_an_agreement_leaves_one(template: str) -> None:
    for agreement in EVERY_AGREEMENT:
        said = template.replace("{}", agreement)
        for checkpoint in CHECKPOINTS:
            assert understand(said, checkpoint).intent is not Intent.APPROVE, (said, checkpoint)


@given(checkpoints, agreements, st.lists(st.sampled_from(SPOILERS), min_size=1, max_size=4))
@settings(deadline=None)
def test_nor_do_several_such_things(checkpoint: Checkpoint, agreement: str, templates: list[str]) -> None:
    said = agreement
    for template in templates:
        said = template.replace("{}", said)
    assert understand(said, checkpoint).intent is not Intent.APPROVE


@given(agreeing, st.text(string.ascii_lowercase, min_size=1, max_size=12), st.integers(0, 20))
@settings(deadline=None)
def test_one_more_word_anywhere_approves_nothing(said: tuple[Checkpoint, str], word: str, place: int) -> None:
    checkpoint, agreement = said
    if word in WORDS_OF_AGREEMENT or word == "and":
        return
    words = agreement.split()
    words.insert(place % (len(words) + 1), word)
    assert understand(" ".join(words), checkpoint).intent is not Intent.APPROVE


@given(agreeing, st.characters(exclude_characters=".,;:!+'’ʼ‛‘-–—&_\n"), st.booleans())
@example((PLAN, "ok"), "?", True)
@example((PLAN, "ok"), "\u202e", False)
@settings(deadline=None)
def test_one_foreign_character_approves_nothing(said: tuple[Checkpoint, str], character: str, behind: bool) -> None:
    checkpoint, agreement = said
    seen = character.isspace() or character in "\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f"
    full_width = "\uff01" <= character <= "\uff5e"
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    if (
        seen
        or full_width
        or skin_tone
        or character.lower() in WORDS_OF_AGREEMENT
        or character in "‐‑−👍👌✅✔☑🆗💯🙏🙂😊🎉🚀🙌"
    ):
        return
    sentence = f"{agreement}{character}" if behind else f"{character} {agreement}"
    assert understand(sentence, checkpoint).intent is not Intent.APPROVE


@st.composite
def noise(draw: st.DrawFn, agreement: str) -> str:
    """The agreement in another case, with other spaces, marks and courtesy around it."""
    if ":" not in agreement:
        letters = random.Random(draw(st.integers(0, 2**32)))
        agreement = "".join(letters.choice((letter.lower(), letter.upper())) for letter in agreement)
    agreement = draw(spaces.filter(lambda space: space.isspace() and "\n" not in space)).join(agreement.split(" "))
    opening = draw(st.sampled_from(["", "hi, ", "Hello! ", "hey ", "thanks, ", "@ptq-bot ", "Hi @ptq-bot, ", "🙏 "]))
    closing = draw(
        st.sampled_from(["", ".", "!", "!!!", ", thanks", " thank you!", ". Cheers", " 🙂", " @ptq-bot", " 🚀"])
    )
    return f"{draw(spaces)}{opening}{agreement}{closing}{draw(spaces)}"


@given(agreeing, st.data())
@settings(deadline=None)
def test_an_agreement_stays_one_under_noise(said: tuple[Checkpoint, str], data: st.DataObject) -> None:
    checkpoint, agreement = said
    sentence = data.draw(noise(agreement))
    assert understand(sentence, checkpoint).intent is Intent.APPROVE, sentence


@given(agreeing, st.sampled_from(["{}, please", "please {}", "{} please!", "pls, {}", "{} plz"]))
@settings(deadline=None)
def test_please_changes_nothing_unless_somebody_else_is_asked(said: tuple[Checkpoint, str], polite: str) -> None:
    checkpoint, agreement = said
    expected = agreement not in phrases.ASKED_OF_OTHERS
    assert (understand(polite.format(agreement), checkpoint).intent is Intent.APPROVE) == expected


@given(
    st.one_of(st.none(), checkpoints),
    agreements,
    st.sampled_from(sorted(CHANGES)),
    st.sampled_from(
        [
            "{0} but {1}",
            "{0}, {1}",
            "{0}. {1}",
            "{0}\n{1}",
            "{0} and {1}",
            "{0}, but {1}",
            "{1}, {0}",
            "{1}\n{0}",
            "{1} and {0}",
        ]
    ),
)
@settings(deadline=None)
def test_an_agreement_with_a_change_is_the_change(
    checkpoint: Checkpoint | None, agreement: str, change: str, template: str
) -> None:
    understood = understand(template.format(agreement, change), checkpoint)
    assert understood.intent in (Intent.CHANGE, Intent.REQUEST)
    assert understood.flat == CHANGES[change]


# Of these, what follows may be a part: "keep layer 0" and "fp8" are "keep layer 0 fp8".
OPEN = (
    "fp8 attention math",
    "do not quantize layers 0, 1 and 2",
    "balanced",
    "also quantize lm_head",
    "add kv cache quantization",
    "keep layer 0",
    "keep layers 0 and 1",
    "keep layers 0-3",
    "keep the first layer",
    "keep lm_head",
)
SINGLE = sorted(
    change
    for change in CHANGES
    if change not in OPEN
    and not change.startswith(("quantize the kv", "with kv", "quantize attention", "use fp8 for the attention"))
)
JOINTS = st.sampled_from([", ", " and ", " ", "; ", " but ", "\n", " with ", ". ", ", and ", " then "])


@given(st.lists(st.sampled_from(SINGLE), min_size=2, max_size=4), st.data())
@settings(max_examples=500, deadline=None)
def test_several_changes_are_all_made_or_none_is(changes: list[str], data: st.DataObject) -> None:
    said = changes[0]
    for change in changes[1:]:
        joint = data.draw(JOINTS)
        said += (", " if joint == " with " and "eval" in said else joint) + change
    understood = understand(said, PLAN)
    if understood.intent is Intent.UNCLEAR:
        return
    asked = [CHANGES[change] for change in changes]
    assert understood.flat.keys() == {field for change in asked for field in change}, said
    for field, value in understood.flat.items():
        values = [change[field] for change in asked if field in change]
        if field in ("algorithm", "tasks") and isinstance(value, str):  # "awq and gptq" is a list
            assert set(value.split(",")) == {name for names in values if names for name in names.split(",")}, said
        elif field == "exclude_layers":
            assert patterns(value) == set().union(*map(patterns, values)), said
        elif isinstance(value, dict):
            assert value == {name: part for whole in values for name, part in whole.items()}, said
        else:
            assert all(value == other for other in values), said


def patterns(excluded: Any) -> set[tuple[str, bool]]:
    """The patterns that are excluded (True) or not any more (False), whether they are added or the whole list."""
    sides = excluded if isinstance(excluded, dict) else {"add": excluded or []}
    return {(pattern, side == "add") for side, named in sides.items() for pattern in named}


@given(
    st.sampled_from(sorted(CHANGES)),
    st.sampled_from(["if", "maybe", "unless", "or", "probably", "hardly", "tomorrow", "he", "less", "whenever"]),
    st.integers(0, 20),
)
@settings(max_examples=500, deadline=None)
def test_one_more_word_anywhere_changes_nothing(change: str, word: str, place: int) -> None:
    pieces = change.split(" ") if "my model" not in change else [change]
    pieces.insert(place % (len(pieces) + 1), word)
    assert understand(" ".join(pieces), PLAN).intent is Intent.UNCLEAR


# "ptpc, not fp8" and "change, not fp8, to int8" are read as they are meant.
@pytest.mark.parametrize("change", [change for change in CHANGES if change not in ("ptpc fp8", "change fp8 to int8")])
def test_a_not_anywhere_never_leaves_the_same_change(change: str) -> None:
    pieces = change.split(" ") if "my model" not in change else [change]
    for place in range(len(pieces) + 1):
        said = " ".join([*pieces[:place], "not", *pieces[place:]])
        understood = understand(said, PLAN)
        assert understood.intent is not Intent.APPROVE
        assert understood.intent is Intent.UNCLEAR or understood.flat != CHANGES[change], said


@given(st.sampled_from(sorted(CHANGES)), st.integers(0, 2**32), st.sampled_from(sorted(COURTESIES)))
@settings(max_examples=500, deadline=None)
def test_case_and_courtesy_change_no_change(change: str, seed: int, courtesy: str) -> None:
    letters = random.Random(seed)
    typed = change
    as_typed = ("/", "*", "'", '"', "`", "model", "runner", "output", "revision", "dataset", ".")
    if not any(name in change for name in as_typed):
        typed = "".join(letters.choice((letter.lower(), letter.upper())) for letter in change)
    for said in (courtesy.format(change.rstrip(".")), courtesy.format(typed.rstrip("."))):
        understood = understand(said, PLAN)
        assert (understood.intent, understood.flat) == (Intent.CHANGE, CHANGES[change]), said


@given(st.lists(st.sampled_from(sorted(APART)), min_size=2, max_size=4, unique_by=lambda name: APART[name]), st.data())
@settings(max_examples=300, deadline=None)
def test_the_order_of_changes_changes_nothing(changes: list[str], data: st.DataObject) -> None:
    expected = {field: value for change in changes for field, value in CHANGES[change].items()}
    ordered = data.draw(st.permutations(changes))
    joint = data.draw(st.sampled_from([", ", " and ", "; ", ". ", "\n", ", and "]))
    understood = understand(joint.join(ordered), PLAN)
    assert (understood.intent, understood.flat) == (Intent.CHANGE, expected), ordered


FRAGMENTS = sorted(
    {word for sentence in (*CHANGES, *EVERY_AGREEMENT, *SPOILERS) for word in sentence.split()}
    | {
        "quantize",
        "Qwen/Qwen3-8B",
        "/out/x",
        "'",
        '"',
        "`",
        "`x`",
        ",",
        "\n",
        "?",
        "…",
        "<@U1>",
        "-5",
        "0",
        "1e9",
        "\u202e",
    }
)


@given(st.one_of(st.text(), st.text(max_size=3_000), st.lists(st.sampled_from(FRAGMENTS), max_size=40).map(" ".join)))
@example("\ud800")
@example("\x00")
@example("use '")
@example("quantize <https://huggingface.co/a/b|")
@example("calibration " + "9" * 400)
@example("min kv scale 1e99")
@settings(deadline=None)
def test_any_text_is_understood_somehow(text: str) -> None:
    for checkpoint in (None, *CHECKPOINTS):
        understood = understand(text, checkpoint)
        assert understood.changes.nothing or understood.intent in (Intent.CHANGE, Intent.REQUEST)
        assert not (understood.changes.nothing and understood.intent is Intent.CHANGE)
        assert json.loads(json.dumps(as_json(understood))) == as_json(understood)
        if understood.intent is Intent.APPROVE:
            assert checkpoint is not None
            assert not set(text.lower()) & set('?"`>()[]{}…')
