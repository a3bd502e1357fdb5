"""A thread whose run waits in the queue of a real runner with pretended GPUs: reasons, orders, offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cards.card import ActionKind
from bot.conversation.offered import offer_digest, offers_of
from bot.conversation.state import Failed, ReviewingPlan, Running
from schemas.runs import RunState
from tests.e2e.bot_host import BotHost, running_bot
from tests.e2e.host import Host
from tests.peers import interpreter
from tests.peers.gpus import PretendGpus
from tests.waiting import wait_until

REQUEST = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32"
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191.98 GiB "
    "of which 1.10 GiB is free."
)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[BotHost]:
    gpus = {"lease_dir": str(tmp_path / "leases")}
    host = Host(tmp_path / "runner", pretended=PretendGpus(tmp_path / "root", 1), gpus=gpus)
    (tmp_path / "bot").mkdir()
    try:
        host.start()
        with running_bot(tmp_path / "bot", host, approvals={"admins": ["web:local"]}) as bot:
            yield bot
    finally:
        host.stop()


def approved(pair: BotHost, request: str = REQUEST) -> int:
    """A thread whose command was approved."""
    thread = pair.ask(request)
    for kind in ("reviewing_analysis", "reviewing_plan", "reviewing_command"):
        pair.wait_for(thread, kind)
        wait_until(pair.all_is_shown, 20, "the card was not delivered")
        pair.approve(thread)
    return thread


def run_is(pair: BotHost, thread: int, state: RunState, code: str = "") -> None:
    def there() -> bool:
        now = pair.state(thread)
        return isinstance(now, Running) and now.run.state is state and code in ("", now.run.code)

    wait_until(there, 30, f"{pair.state(thread)}")


def told(pair: BotHost, thread: int, text: str) -> str:
    """What the person is told to these words."""
    last = pair.rows("SELECT coalesce(max(id), 0) FROM inbox")[0][0]
    assert pair.say(thread, text).is_success

    def outcome() -> tuple[object, ...] | None:
        found = pair.rows("SELECT outcome FROM inbox WHERE id > ? AND outcome IS NOT NULL ORDER BY id LIMIT 1", last)
        return found[0] if found else None

    return str(wait_until(outcome, 20, f"nothing was told: {pair.log()[-2000:]}")[0])


def shows(pair: BotHost, thread: int, text: str) -> None:
    wait_until(lambda: text in pair.page(thread), 20, f"the page does not show {text!r}")


def test_a_run_waits_while_the_queue_is_paused_and_goes_on_when_it_is_opened(pair: BotHost, tmp_path: Path) -> None:
    go = tmp_path / "go"
    interpreter.tell(pair.host.engine, wait_for=str(go))
    first = approved(pair)
    run_is(pair, first, RunState.RUNNING)
    shows(pair, first, "0 (0000:05:00.0)")

    said = told(pair, first, "pause the queue because the driver is exchanged")
    assert "The queue of box is paused: runs are taken and none starts. No run waits, and 1 is at work." in said
    second = approved(pair)
    run_is(pair, second, RunState.QUEUED, "paused")
    shows(pair, second, "paused this runner&#39;s queue")
    assert "The run has high priority now and is number 1 in the queue." in told(pair, second, "high priority")
    shows(pair, second, "high")
    assert "In line: 1. tiny to fp8" in told(pair, second, "what is in the queue?")
    shows(pair, second, "Open the queue")
    pair.click(second, ActionKind.OPEN_QUEUE)
    wait_until(lambda: pair.host.client.queue().mode == "open", 20, "the button did not open the queue")
    run_is(pair, second, RunState.QUEUED, "no_free_gpu")
    shows(pair, second, "It waits for 1 GPU; 0 free")
    go.touch()
    for thread in (first, second):
        pair.wait_for(thread, "reviewing_result")
    assert "no run that waits" in told(pair, second, "low priority")


def test_who_is_no_admin_changes_no_queue(pair: BotHost) -> None:
    pair.configure(approvals={"admins": ["slack:U0ROOT"]})
    pair.kill()
    pair.start()
    thread = pair.ask(REQUEST)
    assert "Only slack:U0ROOT may pause, drain or open a runner" in told(pair, thread, "drain the queue")
    assert pair.host.client.queue().mode == "open"


def test_an_order_to_a_runner_that_is_away_changes_nothing_and_says_so(pair: BotHost) -> None:
    thread = pair.ask(REQUEST)
    pair.wait_for(thread, "reviewing_analysis")
    pair.host.kill()
    assert "Nothing was changed." in told(pair, thread, "pause the queue")
    pair.host.start()
    assert pair.host.client.queue().mode == "open"


def test_what_a_failed_run_offers_is_planned_anew_and_needs_a_new_yes(pair: BotHost) -> None:
    interpreter.tell(pair.host.engine, exit=1, says=OUT_OF_MEMORY)
    thread = approved(pair, f"{REQUEST}, batch size 4, no evaluation")
    failed = pair.wait_for(thread, "failed")
    assert isinstance(failed, Failed)
    offers = offers_of(failed)
    assert offers, failed.run
    shows(pair, thread, offers[0].label)

    pair.click(thread, ActionKind.OFFER, digest=offer_digest(offers[0]))
    plan = pair.wait_for(thread, "reviewing_plan")
    assert isinstance(plan, ReviewingPlan)
    calibration = plan.request.choices["calibration"]
    assert isinstance(calibration, dict)
    assert (calibration["batch_size"], calibration["num_calib_data"]) == (1, 4), "what was asked for otherwise stands"
    assert pair.host.starts() == 1, "nothing is run again by itself"
    assert "Nothing is offered here." in told(pair, thread, "take offer 1")
