"""Text that pages may break on, and a thread in which people and models name everything so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from bot.platforms.contract import Edited, Event
from bot.store.records import HistoryRow, Outcome
from schemas.artifacts.plan import Severity
from tests.bot.conversation import samples as talk
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
