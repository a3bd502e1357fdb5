"""Hostile text through every page: the elements of a page never depend on what people and models wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bot.cards.card import (
    Action,
    ActionKind,
    Attachment,
    Button,
    Card,
    CommandLine,
    Fields,
    LogPart,
    Meter,
    Note,
    Notes,
    Table,
    Text,
    Tone,
)
from bot.cards.form_data import Form, FormField, Option
from bot.conversation.person import Person, Place
from bot.conversation.request import Changes
from bot.errors import NotFound, StoreFull
from bot.platforms.contract import Edited, Event
from bot.store.records import HistoryRow, Outcome
from schemas.artifacts.plan import Severity
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web.browser import Browser, Element, Page, local_access
from tests.bot.platforms.web.desk import Desk

POISON = [
    "<script>alert(1)</script>",
    "</textarea></title></style><img src=x onerror=alert(1)>",
    "\"'><svg onload=alert(1)>",
    '" autofocus onfocus=alert(1) x="',
    "{{ 7 * 7 }}{% raw %}${7*7}",
    "&lt;b&gt; &amp;#x3c; <!-- --> ]]> <![CDATA[",
    "\u202egnp.exe \u2066\u2067 \u200b\u2028 \x00\x1b[2J \x7f",
    "javascript:alert(1)",
    "\n\n\r\r\n   ",
    "😀" * 50 + "ﷺ" * 20 + "a" * 500,
    "2026-03-02 11:50 UTC <b>2026-99-99 99:99 UTC</b>",
    "\ufffe\uffff\U000e0041\u0301\u0301",
]
TEXTS = st.one_of(
    st.sampled_from(POISON), st.text(min_size=1, max_size=60), st.lists(st.sampled_from(POISON)).map(" ".join)
)


def card(text: str) -> Card:
    """Every kind of block, made of one text."""
    action = Action(kind=ActionKind.APPROVE, conversation=1)
    return Card(
        title=text,
        tone=Tone.WAITING,
        body=(
            Text(text=text),
            Fields(fields=((text, text),)),
            Table(caption=text, head=(text, text), rows=((text, text),), numeric=(1,)),
            Notes(title=text, notes=(Note(severity=Severity.WARNS, message=text, hint=text),)),
            CommandLine(command=f"python a.py {text}", digest=text),
            Meter(phase=text, percent=1.0, detail=text, stale=text),
            LogPart(head=(text,), left_out=1, tail=(text,)),
        ),
        buttons=(Button(label=text, action=action, confirm=text),),
        outcome=text,
        alternative=text,
    )


def form(text: str) -> Form:
    """Every kind of field, made of one text."""
    option = Option(value=text, label=text, group=text)
    common: dict[str, Any] = {"label": text, "section": text, "help": text}
    return Form(
        conversation=1,
        title=text,
        digest="d" * 64,
        fields=(
            FormField(name="global_scheme", kind="select", value=text, options=(option,), **common),
            FormField(name="algorithm", kind="list", value=(text,), options=(option,), **common),
            FormField(name="exclude_layers", kind="list", value=(text,), **common),
            FormField(name="output_dir", kind="text", value=text, **common),
            FormField(name="seq_len", kind="number", value=text, **common),
            FormField(name="trust_remote_code", kind="toggle", value="true", **common),
        ),
    )


def filled_desk(text: str) -> Desk:
    """A thread in which everything that people and models name is one text."""
    desk = Desk()
    named = Person(id=talk.ADA.id, name=text[:200])
    place = Place(platform=text, channel=text, thread=text)
    request = talk.REQUEST.model_copy(update={"text": text, "model": text, "runner": text})
    number = desk.begin(talk.running(request=request, requester=named, run=talk.run(id=text)), place)
    desk.threads[number].clear()
    asked = card(text)
    desk.threads[number].append(replace(desk.show(number, "plan:1", asked), error=text))
    desk.threads[number].pop(0)
    desk.show(number, "plan:2", asked.model_copy(update={"tone": Tone.CLOSED, "buttons": ()}))
    desk.show(number, "plan:1:file", Attachment(name=text, artifact=text, number=1, alternative=text))
    desk.show(number, "plan:2:file", Attachment(name=f"{text}.png", artifact=text, number=2, alternative=text))
    desk.said(number, named, text, told=text)
    desk.said(number, Person(id=text[:200], name=text[:200]), text)
    changes = Changes(model=text, output_dir=text, choices={"global_scheme": text, "exclude_layers": [text]})
    what = Edited(conversation=number, changes=changes)
    edited = Event(key="k", person=named, place=place, at=talk.NOON, what=what)
    desk.keep(edited, number, Outcome(verdict="refused", text=text))
    desk.forms[number] = form(text)
    desk.rows = [
        HistoryRow(
            id=number,
            place=place,
            requester=Person(id="other", name=text[:200]),
            model=text,
            scheme=text,
            runner=text,
            state=state,
            created_at=talk.NOON,
            changed_at=talk.NOON,
            run=text,
            output_dir=text,
            size_bytes=1,
            original_size_bytes=2,
            perplexity=1.0,
            original_perplexity=1.0,
        )
        for number, state in ((3, "failed"), (2, text), (1, "accepted"))
    ]
    return desk


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
    yield "confirm", browser.post("/threads/1/act", key | {"action": "ptq:approve:1::"}).page
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
