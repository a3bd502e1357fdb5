"""The edit form: open in time, whatever else is slow, and what is sent in it is kept before it closes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.cards.card import Action, ActionKind
from bot.cards.form import Form
from bot.platforms.slack import modals
from bot.service.library import BotLibrary
from tests.bot.platforms.slack.stand import MODES, Mode, deliver
from tests.bot.platforms.slack.test_hearing import Room, play
from tests.peers.slack_people import filled, typed
from tests.peers.slack_state import CHANNEL, View
from tests.waiting import until

pytestmark = [pytest.mark.slack, pytest.mark.parametrize("mode", MODES)]

EDIT = {"action_id": "ptq-edit-1", "value": Action(kind=ActionKind.EDIT, conversation=1).encoded()}


async def opened(room: Room) -> View:
    """The edit form of a new request, filled."""
    root = await room.thread()
    assert await deliver(room.peer, room.peer.people.presses("U0ADA", root, EDIT)) is not None
    await until(lambda: room.peer.record.of("views.update"), 10, "the form does not come")
    (view,) = room.peer.workspace.views.values()
    await until(lambda: view.view["callback_id"] == "ptq-edit", 10, "the form is not filled")
    return view


def test_a_change_that_is_sent_is_kept(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        view = await opened(room)
        before = len(await room.events())
        values = typed(filled(view.view), "ptq-form-model", value="another/model")
        sent = room.peer.people.submits("U0ADA", view.id, values)
        for attempt in (0, 1):
            ack = await deliver(room.peer, sent, attempt)
            assert ack is not None
            assert ack.payload.get("response_action") is None
        (kept,) = (await room.events())[before:]
        assert kept.event.what.kind == "edited"
        assert kept.event.what.changes.model == "another/model"
        assert kept.event.place.channel == CHANNEL

    play(tmp_path, mode, act)


def test_what_does_not_fit_is_said_at_its_field(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        view = await opened(room)
        before = len(await room.events())
        same = await deliver(room.peer, room.peer.people.submits("U0ADA", view.id, filled(view.view)))
        assert same is not None
        assert same.payload["response_action"] == "errors"
        values = typed(filled(view.view), "ptq-form-model", value=" ")
        empty = await deliver(room.peer, room.peer.people.submits("U0ADA", view.id, values))
        assert empty is not None
        assert list(empty.payload["errors"]) == ["ptq-form-model"]
        assert len(await room.events()) == before

    play(tmp_path, mode, act)


def test_a_form_that_the_database_does_not_take_stays_open(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        view = await opened(room)

        async def slow(event: Any) -> Any:
            del event
            await asyncio.Event().wait()

        room.bot.core.receive = slow  # type: ignore[method-assign]
        values = typed(filled(view.view), "ptq-form-model", value="another/model")
        ack = await deliver(room.peer, room.peer.people.submits("U0ADA", view.id, values))
        assert ack is not None
        assert modals.NOT_RECORDED in ack.payload["errors"].values()

    play(tmp_path, mode, act)


def test_the_form_opens_in_time_however_slow_its_content_is(
    mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(room: Room) -> None:
        root = await room.thread()
        goes_on = asyncio.Event()
        form = BotLibrary.form

        async def slow(library: BotLibrary, conversation: int) -> Form | None:
            await goes_on.wait()
            return await form(library, conversation)

        monkeypatch.setattr(BotLibrary, "form", slow)
        assert await deliver(room.peer, room.peer.people.presses("U0ADA", root, EDIT)) is not None
        await until(lambda: room.peer.workspace.views, 3, "nothing opens")
        (view,) = room.peer.workspace.views.values()
        assert view.view["callback_id"] == "ptq-loading"
        room.peer.workspace.views.clear()  # the person closes it meanwhile
        goes_on.set()
        await until(lambda: room.peer.record.of("views.update"), 10)
        assert await deliver(room.peer, room.peer.people.commands("U0ADA", "help")) is not None
        assert not room.peer.workspace.whispers

    play(tmp_path, mode, act)


def test_a_trigger_that_expired_is_said(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        root = await room.thread()
        click = room.peer.people.presses("U0ADA", root, EDIT)
        room.peer.workspace.expire_triggers()
        assert await deliver(room.peer, click) is not None
        assert await room.told() == modals.LATE

    play(tmp_path, mode, act)


def test_a_request_is_asked_in_a_form(mode: Mode, tmp_path: Path) -> None:
    async def act(room: Room) -> None:
        assert await deliver(room.peer, room.peer.people.commands("U0ADA", "")) is not None
        await until(lambda: room.peer.workspace.views, 10)
        (view,) = room.peer.workspace.views.values()
        values = typed(filled(view.view), "ptq-request-text", value="a/model to fp8")
        assert await deliver(room.peer, room.peer.people.submits("U0ADA", view.id, values)) is not None
        (asked,) = await room.events()
        assert asked.event.what.kind == "said"
        assert asked.event.what.text == "quantize a/model to fp8"
        assert asked.event.place.channel == CHANNEL
        await until(lambda: [one for one in room.peer.workspace.posted() if "a/model" in one.text], 10)

    play(tmp_path, mode, act)
