"""Text of people and models as HTML."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.web.text import exact, told, when, words

PLAIN = re.compile(r"</?(?:span|time)[^<>]*>")


def read(markup: str) -> str:
    """What a browser shows of it."""
    return html.unescape(PLAIN.sub("", markup))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words", "plain words"),
        ("<b>&\"'", "<b>&\"'"),
        ("line\r\nline\rline", "line\nline\nline"),
        ("مرحبا שלום", "مرحبا שלום"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("a\u202eb", "aU+202Eb"),
        ("a\x00\x1b[31m", "aU+0000U+001B[31m"),
        ("\ud800", "U+D800"),
        ("a\u2028b", "aU+2028b"),
    ],
)
def test_words_are_shown_as_they_are(text: str, shown: str) -> None:
    assert read(words(text)) == shown
    assert read(told(text)) == shown


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("python a --b", 0),
        ("a\u200bb", 1),
        ("a\u00a0b", 1),
        ("a\u3164b", 1),
        ("a\ufe0fb", 1),
        ("a\tb", 1),
        ("Qwеn", 1),  # the third letter is Cyrillic
        ("a\u2011b", 1),
    ],
)
def test_a_command_marks_what_hides_or_looks_like_something_else(text: str, marks: int) -> None:
    shown = exact(text)
    assert len(re.findall(r'class="(?:odd|foreign)"', shown)) == marks
    assert shown.count("title=") == marks


@given(st.text())
def test_nothing_in_a_text_is_markup(text: str) -> None:
    for made in (words(text), told(text), exact(text)):
        assert not re.search(r"[<>]", PLAIN.sub("", made))
        made.encode()


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_a_command_is_shown_letter_by_letter(text: str) -> None:
    assert read(exact(text)) == text


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" ")))
def test_no_letter_of_words_is_lost(text: str) -> None:
    assert read(words(text)) == text


def test_moments_in_cards_become_times() -> None:
    shown = told("Approved by Ada <x>, 2026-03-02 11:50 UTC, late")
    assert shown == (
        'Approved by Ada &lt;x&gt;, <time datetime="2026-03-02T11:50:00Z">2026-03-02 11:50 UTC</time>, late'
    )


def test_times_are_told_in_utc() -> None:
    at = datetime(2026, 3, 2, 1, 5, 9, tzinfo=timezone(timedelta(hours=2)))
    assert when(at) == '<time datetime="2026-03-01T23:05:09Z">2026-03-01 23:05 UTC</time>'
    assert when(datetime(2026, 3, 2, tzinfo=UTC)).startswith('<time datetime="2026-03-02T00:00:00Z">')
