"""kill -9 of the bot, of the runner, and of both, at every state of a conversation: nothing is lost or done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.cards.card import Card
from bot.conversation.state import Ended, Ending
from bot.store.records import Shown
from bot.store.store import look
from tests.e2e.bot_host import BotHost, running_pair
from tests.peers import interpreter
from tests.waiting import wait_until

pytestmark = pytest.mark.chaos

ASKED = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32"
Strike = Callable[[BotHost], None]


def _bot(pair: BotHost) -> None:
    pair.kill()
    pair.start()


def _runner(pair: BotHost) -> None:
    pair.host.kill()
    pair.host.start()


def _both(pair: BotHost) -> None:
    pair.kill()
    pair.host.kill()
    pair.host.start()
    pair.start()


@contextmanager
def _hanging(pair: BotHost) -> Iterator[None]:
    """The runner answers nothing meanwhile, as on a host that swaps: a working state lasts."""
    daemon = pair.host.daemon
    assert daemon is not None
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if daemon.poll() is None:
            os.kill(daemon.pid, signal.SIGCONT)


@pytest.mark.parametrize("strike", [_bot, _runner, _both], ids=["bot", "runner", "both"])
def test_a_conversation_survives_a_kill_at_every_state(tmp_path: Path, strike: Strike) -> None:
    go, checked = tmp_path / "go", tmp_path / "checked"
    with running_pair(tmp_path) as pair:
        interpreter.tell(pair.host.engine, wait_for=str(go), check_waits_for=str(checked))
        with _hanging(pair):
            thread = pair.ask(ASKED)
            _struck_while(pair, thread, "analysing", strike)
        for waiting, working in (
            ("reviewing_analysis", "planning"),
            ("reviewing_plan", "preparing"),
            ("reviewing_command", "submitting"),
        ):
            _struck_while(pair, thread, waiting, strike)
            with _hanging(pair):
                pair.approve(thread)
                _struck_while(pair, thread, working, strike)
        pair.wait_for(thread, "running")
        _when_it_runs(pair, thread, "running")
        _struck_while(pair, thread, "running", strike)
        go.touch()
        _when_it_runs(pair, thread, "verifying")
        _struck_while(pair, thread, "running", strike)
        checked.touch()
        _struck_while(pair, thread, "reviewing_result", strike)
        pair.approve(thread)
        ended = _struck_while(pair, thread, "ended", strike)
        assert isinstance(ended, Ended)
        assert ended.ending is Ending.ACCEPTED
        assert pair.host.starts() == 1
        approvals = pair.rows("SELECT checkpoint FROM verdicts WHERE verb = 'approved' ORDER BY id")
        assert [row[0] for row in approvals] == ["analysis", "plan", "command", "result"]
        assert_all_is_shown(pair, thread)


def _struck_while(pair: BotHost, thread: int, kind: str, strike: Strike) -> object:
    """Kill in a state; afterwards it is the same state, and the page shows it."""
    pair.wait_for(thread, kind)
    strike(pair)
    state = pair.state(thread)
    page = pair.page(thread)
    assert f"Thread {thread}" in page or "thread" in page.lower()
    return state


def _when_it_runs(pair: BotHost, thread: int, run_state: str) -> None:
    def there() -> bool:
        run = getattr(pair.state(thread), "run", None)
        return run is not None and run.state == run_state

    wait_until(there, 60, f"the run is not {run_state}: {pair.log()[-2000:]}")


def assert_all_is_shown(pair: BotHost, thread: int) -> None:
    """Everything that was to be shown was delivered, one message for each slot, and nothing asks any more."""

    def delivered() -> bool:
        return not pair.rows("SELECT 1 FROM outbox WHERE wanted > delivered")

    wait_until(delivered, 20, "deliveries are left")
    entries = look(f"sqlite:///{pair.database}", lambda reader: reader.thread(thread))
    shown = [entry for entry in entries if isinstance(entry, Shown)]
    assert len({one.slot for one in shown}) == len(shown)
    assert not any(isinstance(one.what, Card) and one.what.buttons for one in shown)
