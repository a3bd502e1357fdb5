"""kill -9 between the steps of deliveries into Slack: nothing is lost, nothing is shown twice, and cards are true."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cards.card import Attachment
from bot.clock import SystemClock
from bot.conversation.person import Person, Place
from bot.conversation.request import Request
from bot.conversation.state import Analysing
from bot.store.store import Store
from bot.store.unit import Unit
from tests.bot.platforms.scenarios import AT, Report, card
from tests.peers.slack import SlackPeer, running_slack
from tests.peers.slack_people import buttons_of, thread_of, words_of
from tests.peers.slack_state import CHANNEL

pytestmark = [pytest.mark.slack, pytest.mark.chaos]

_SECONDS = 60


def _wanted(unit: Unit) -> None:
    """A thread with two cards and a file between them."""
    ada = Person(id="slack:U0ADA", name="Ada")
    state = Analysing(request=Request(model="a/model"), requester=ada, step=1)
    there = unit.begin(Place(platform="slack", channel=CHANNEL), ada, state, AT)
    unit.add_artifact(there.id, "plan", 1, "d" * 64, Report(), AT)
    unit.show(there.id, "plan:1", card("The plan", asks=True), AT)
    unit.show(there.id, "plan:1:file", Attachment(name="quant_plan.json", artifact="plan", number=1), AT)
    unit.show(there.id, "command:1", card("The command"), AT)


async def _prepare(database: Path) -> None:
    store = await Store.open(f"sqlite:///{database}", SystemClock())
    await store.write(_wanted)
    await store.close()


def _live(database: Path, peer: SlackPeer, dies_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.e2e.dying_slack", str(database), peer.api_base_url, str(dies_at)]
    return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)


def _assert_once(peer: SlackPeer, step: int) -> None:
    channel = peer.workspace.channels[CHANNEL]
    (root,) = [message for message in channel.messages if not message.thread]
    shown = [(words_of(one.blocks), [file["name"] for file in one.files]) for one in thread_of(channel, root.ts)]
    assert ["The plan" in words for words, _ in shown] == [True, False, False], step
    assert [files for _, files in shown] == [[], ["quant_plan.json"], []], step
    assert "The command" in shown[2][0], step
    assert "Approved by Ada" in shown[0][0], step
    assert not any(buttons_of(message) for message in channel.messages), step


def test_a_death_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    step = 0
    while True:
        database = tmp_path / f"step-{step}.sqlite3"
        asyncio.run(_prepare(database))
        with running_slack() as peer:
            first = _live(database, peer, step)
            if first.returncode == 0:
                _assert_once(peer, step)
                if step:  # it was over before this step
                    assert step > int(first.stdout) > 20
                    return
            else:
                assert first.returncode == -signal.SIGKILL, (step, first.stderr[-3000:])
                second = _live(database, peer, 0)
                assert second.returncode == 0, (step, second.stderr[-3000:])
                _assert_once(peer, step)
        step += 2  # after one act is before the next
