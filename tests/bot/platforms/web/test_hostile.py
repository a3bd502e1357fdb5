"""Hostile text through every page: the elements of a page never depend on what people and models wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.conversation.person import Person
from bot.errors import NotFound, StoreFull
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web.browser import Browser, Element, Page, local_access
from tests.bot.platforms.web.desk import Desk
from tests.bot.platforms.web.poison import POISON, filled_desk

TEXTS = st.one_of(
    st.sampled_from(POISON), st.text(min_size=1, max_size=60), st.lists(st.sampled_from(POISON)).map(" ".join)
)


def pages(text: str) -> Iterator[tuple[str, Page]]:
    """Every page with the text on it."""
    desk = filled_desk(text)
    browser = Browser(desk, local_access(Person(id=talk.ADA.id, name=text[:200])))
    told = max(desk.events)
    for path in ("/", "/runs", "/threads/1", "/threads/1/edit", "/threads/1/fragment", f"/threads/1?told={told}"):
        answer = browser.get(path)
        assert answer.status == 200, path
        yield path, answer.page
    key = {"key": "a-key-of-a-form"}
    yield "confirm", browser.post("/threads/1/act", key | {"action": "ptq:approve:1:::0"}).page
    too_long = text + "x" * 100_001
    yield "too long", browser.post("/threads/1/reply", key | {"text": too_long}).page
    typed = key | {"digest": "d" * 64, "seq_len": text + "?", "output_dir": f"-{text}", "global_scheme": text + "?"}
    yield "wrong form", browser.post("/threads/1/edit", typed).page
    desk.unwritable = StoreFull("store_full", text, text)
    yield "not recorded", browser.post("/requests", key | {"text": f"x{text}x"}).page
    desk.unreadable = NotFound("nothing", text, text)
    yield "problem", browser.get("/threads/1").page


# What marks letters and moments inside of text, and says that there are such.
_DEPENDING = {"aria-describedby", "tabindex", "role", "aria-label", "checked", "selected"}
_MARKS = ("odd", "foreign", "word", "warn")


def shape(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """The elements of a page with the names of their attributes, without those that mark letters."""

    def counts(element: Element) -> bool:
        if element.tag == "time":
            return "title" in element.attributes
        return not (element.tag == "span" and element.classes[:1] and element.classes[0] in _MARKS)

    return [
        (element.tag, tuple(sorted(set(element.attributes) - _DEPENDING)))
        for element in page.elements
        if counts(element)
    ]


def harmless() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The shape of every page without any hostility, long enough to be as long as text gets."""
    return {name: shape(page) for name, page in pages("xé")}


HARMLESS = harmless()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
@example(text=POISON[0])
@example(text=POISON[1])
@example(text=POISON[3])
@example(text=POISON[6])
def test_no_text_changes_the_shape_of_a_page(text: str) -> None:
    for name, page in pages(_storable(text)):
        assert shape(page) == HARMLESS[name], name


@pytest.mark.parametrize("text", POISON)
def test_no_text_becomes_an_address_or_a_script(text: str) -> None:
    for name, page in pages(_storable(text)):
        for element in page.elements:
            assert not [one for one in element.attributes if one.startswith("on") or one == "style"], (name, element)
            for address in ("href", "src", "action", "formaction"):
                value = element.attributes.get(address, "/")
                assert value.startswith(("/", "#")), (name, element)
                assert not value.startswith(("//", "/\\")), (name, element)
        assert len(page.all("script")) <= 1


REORDERING = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# What a person typed comes back in its field as it was typed; these are not drawn, or have to be exact.
_LETTER_BY_LETTER = {"value", "href", "src", "data-copy", "data-version"}


@pytest.mark.parametrize("letter", REORDERING)
def test_what_reorders_text_is_never_drawn_outside_of_a_field(letter: str) -> None:
    given_back = 0
    for name, page in pages(f"a{letter}b"):
        for element in page.elements:
            for attribute, value in element.attributes.items():
                assert attribute in _LETTER_BY_LETTER or letter not in value, (name, element.tag, attribute)
        fields = re.compile("<textarea.*?</textarea>", re.DOTALL)
        given_back += sum(letter in field for field in fields.findall(page.html))
        texts = re.sub("<[^<>]*>", "", fields.sub("", page.html))
        assert letter not in texts, (name, texts[texts.index(letter) - 60 :][:120])
    assert given_back, "no page gave back what was typed"


def _storable(text: str) -> str:
    """Text as documents can hold it, and never nothing."""
    return text.encode("utf-8", "replace").decode() or "x"


@pytest.mark.parametrize("text", [text for text in POISON if text.isprintable()])
def test_words_can_be_read_as_they_were_written(text: str) -> None:
    desk = Desk()
    number = desk.begin(talk.analysing())
    desk.said(number, talk.BOB, text)
    page = Browser(desk).get(f"/threads/{number}").page
    assert "".join(page.one("div", class_="bubble").pieces) == text
