"""Text from outside: all of it can be seen, and none of it runs on for ever."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.cards.texts import cut, exact, last_part, line, plain, some, who
from bot.conversation.person import Person

ANY = st.text(st.characters(exclude_categories=()))
"""Every string that Python can hold, with halves of surrogate pairs."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("down_proj", "down_proj"),
        ("two\r\nlines\rand\nmore", "two\nlines\nand\nmore"),
        ("a\tb\u00a0c\u2028d", "a b c d"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("fp8\u202egnp.exe", "fp8\\u202egnp.exe"),
        ("half \ud800 a pair", "half \\ud800 a pair"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\u3164", "\\u3164"),
        ("Zoë 量化 🙂", "Zoë 量化 🙂"),
        (None, "None"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: object, shown: str) -> None:
    assert plain(text) == shown


@given(ANY)
def test_plain_text_hides_nothing_and_stays_as_it_is(text: str) -> None:
    shown = plain(text)
    assert not [letter for letter in shown if letter != "\n" and unicodedata.category(letter)[0] == "C"]
    assert plain(shown) == shown
    shown.encode()


@given(ANY, st.integers(1, 80))
def test_a_line_is_one_and_short(text: str, longest: int) -> None:
    shown = line(text, longest)
    assert "\n" not in shown
    assert len(shown) <= longest


def test_cutting_is_told() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 4) == "abc…"


def test_long_lists_say_how_many_more() -> None:
    assert some(["a", "b"], 2) == "a, b"
    assert some([f"layer{n}" for n in range(1002)], 2) == "layer0, layer1 and 1,000 more"
    assert some([]) == ""


def test_names() -> None:
    assert who(Person(id="web:ada", name="Ada\u202e")) == "Ada\\u202e"
    assert who(Person(id="web:ada", name="")) == "web:ada"
    assert who(None) == "nobody"
    assert [last_part(path) for path in ("Qwen/Qwen3-8B", "/models/tiny/", "/")] == ["Qwen3-8B", "tiny", "/"]


def test_a_command_that_hides_nothing_is_shown_letter_by_letter() -> None:
    command = "python3 q.py --model_dir '/models/a b\\c' --exclude_layers '*down_proj'"
    shown = exact(command)
    assert (shown.text, shown.hidden, shown.foreign) == (command, 0, ())


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("rm \u202etxt.x", "rm \\u202etxt.x"),
        ("a\\u202e\u202e", "a\\\\u202e\\u202e"),
        ("a\u00a0b", "a\\xa0b"),
        ("a\nb", "a\\x0ab"),
        ("a\tb", "a\\x09b"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("a\udcffb", "a\\udcffb"),
    ],
)
def test_hidden_letters_of_a_command_are_written_out(command: str, shown: str) -> None:
    found = exact(command)
    assert found.text == shown
    assert found.hidden == 1


def test_letters_that_look_like_others_are_named() -> None:
    assert exact("pyth\u043en q.py \u00e9\u043e").foreign == ("\u00e9", "\u043e")


@given(ANY, ANY)
def test_two_commands_never_look_the_same(one: str, other: str) -> None:
    assert (exact(one) == exact(other)) == (one == other)


def test_written_out_and_real_cannot_be_confused() -> None:
    real, written = exact("x \u202e"), exact("x \\u202e")
    assert real.text == "x \\u202e"
    assert (real.hidden, written.hidden) == (1, 0)  # with any hidden letter, a note says so and backslashes are doubled
