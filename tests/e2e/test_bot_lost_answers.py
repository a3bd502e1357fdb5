"""An answer of the runner is lost after it took the run: the run is still followed, never doubted, never doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cards.card import ActionKind
from bot.conversation.state import Ended, Ending, Running
from tests.e2e.bot_host import BotHost, running_bot
from tests.e2e.host import running_host
from tests.peers import interpreter
from tests.peers.losing_proxy import LosingProxy

ASKED = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[BotHost]:
    """A bot that reaches its runner on a way where the first submission's answer is lost."""
    (tmp_path / "bot-host").mkdir()
    with running_host(tmp_path / "runner-host") as host:
        assert host.settings.socket_path is not None
        proxy = LosingProxy(tmp_path / "proxy.sock", host.settings.socket_path)
        runners = [{"name": "box", "url": f"unix://{tmp_path / 'proxy.sock'}"}]
        with running_bot(tmp_path / "bot-host", host, runners=runners) as bot:
            yield bot
        proxy.close()


def _submitted(pair: BotHost) -> int:
    thread = pair.ask(ASKED)
    for kind in ("reviewing_analysis", "reviewing_plan", "reviewing_command"):
        pair.wait_for(thread, kind)
        pair.approve(thread)
    return thread


def test_a_run_whose_submission_got_no_answer_is_followed(pair: BotHost) -> None:
    thread = _submitted(pair)
    pair.wait_for(thread, "reviewing_result", seconds=20)
    pair.approve(thread)
    ended = pair.wait_for(thread, "ended")
    assert isinstance(ended, Ended)
    assert ended.ending is Ending.ACCEPTED
    assert pair.host.starts() == 1


def test_a_run_whose_submission_got_no_answer_is_ended_by_a_cancel(pair: BotHost, tmp_path: Path) -> None:
    interpreter.tell(pair.host.engine, wait_for=str(tmp_path / "never"))
    thread = _submitted(pair)
    state = pair.wait_for(thread, "submitting", "running")
    pair.click(thread, ActionKind.CANCEL)
    ended = pair.wait_for(thread, "ended")
    assert isinstance(ended, Ended)
    assert ended.ending is Ending.CANCELLED
    assert isinstance(state, Running) or ended.run is not None
    assert ended.run is not None
    assert pair.host.state_of(ended.run.id) == "cancelled"
    assert pair.host.processes() == []
