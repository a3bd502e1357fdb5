"""One bot and two runners, each with a folder of models and labels of its own: real daemons, sockets and databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.conversation.state import Analysing, ReviewingAnalysis
from bot.service.commands import main
from tests.e2e.bot_host import BotHost, running_bot
from tests.e2e.host import Host, running_host
from tests.waiting import wait_until

Three = tuple[BotHost, Host, Host]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    (tmp_path / "bot").mkdir()
    with (
        running_host(tmp_path / "a", labels=["shared"]) as a,
        running_host(tmp_path / "b", labels=["shared", "h100"]) as b,
    ):
        runners = [
            {"name": "a", "url": a.settings.listen_url, "labels": ["old"]},
            {"name": "b", "url": b.settings.listen_url},
        ]
        with running_bot(tmp_path / "bot", a, runners=runners) as bot:
            yield bot, a, b


def asked(bot: BotHost, text: str) -> tuple[int, str, str]:
    """The thread of a request, its runner and why it is that one."""
    thread = bot.ask(text)
    request = bot.state(thread).request
    return thread, request.runner, request.runner_reason


def asked_once_known(bot: BotHost, text: str) -> tuple[int, str, str]:
    """The same, once the bot knows what both runners offer."""
    found = [asked(bot, text)]

    def known() -> bool:
        if "not known" in found[-1][2]:
            found.append(asked(bot, text))
        return "not known" not in found[-1][2]

    wait_until(known, 60, f"what the runners offer does not become known: {bot.log()[-2000:]}")
    return found[-1]


def test_the_need_a_label_or_a_name_chooses_and_the_card_says_why(three: Three) -> None:
    bot, a, b = three
    thread, name, why = asked_once_known(bot, f"quantize {b.model} to fp8")
    assert (name, why) == ("b", f"only b reads {b.model}"[:300])
    bot.wait_for(thread, "reviewing_analysis")
    wait_until(bot.all_is_shown, 20, "the card was not delivered")
    assert "b, since only b reads " in bot.page(thread)

    assert asked(bot, f"quantize {a.model} to fp8")[1] == "a"
    assert asked(bot, "quantize tiny to fp8 on h100")[1:] == ("b", "only b has the label h100")
    assert asked(bot, "quantize tiny to fp8 on OLD")[1:] == ("a", "only a has the label old")
    assert asked(bot, "quantize tiny to fp8 on runner b")[1:] == ("b", "")
    _, name, why = asked(bot, "quantize tiny to fp8 on shared")
    assert name == "a"
    assert why.startswith("shared is a label of 2 runners, and b stands behind it")
    assert asked(bot, "quantize tiny to fp8")[1:] == ("a", "b stands behind it in the settings")


def test_a_person_takes_another_runner_at_checkpoint_1_and_no_restart_moves_it(three: Three) -> None:
    bot, a, _ = three
    thread, name, _ = asked_once_known(bot, "quantize tiny to fp8")
    assert name == "a"
    bot.wait_for(thread, "reviewing_analysis")
    wait_until(bot.all_is_shown, 20, "the card was not delivered")
    assert bot.say(thread, "use runner b").is_success

    def on_b() -> bool:
        state = bot.state(thread)
        return isinstance(state, ReviewingAnalysis) and state.request.runner == "b"

    wait_until(on_b, 30, "it is not analysed on b")
    state = bot.state(thread)
    assert state.request.runner_reason == ""
    assert state.revisions["analysis"] >= 2  # more, where the exact list came before it moved

    later, name, why = asked_once_known(bot, "quantize tiny to int8 on shared")
    bot.kill()
    a.kill()
    bot.start()
    after = bot.state(later).request
    assert (after.runner, after.runner_reason) == (name, why)
    assert bot.state(thread).request.runner == "b"

    # One that is known to be away comes last; which is not known at once after a start.
    moved = asked_once_known(bot, "quantize tiny to fp8 on shared")
    wait_until(lambda: asked(bot, "quantize tiny to fp8")[1] == "b", 60, f"a is not seen to be away: {moved}")
    there, name, why = asked(bot, "quantize tiny to fp8")
    assert (name, why) == ("b", "a does not answer")
    # What is on the runner that is away waits for it there.
    assert bot.state(later).request.runner == "a"
    waits, name, _ = asked(bot, "quantize tiny to fp8 on runner a")
    assert name == "a"
    assert isinstance(bot.state(waits), Analysing)
    assert there != waits


def test_check_lists_the_runners_with_what_each_offers(three: Three) -> None:
    bot, _, b = three
    said = CliRunner().invoke(main, ["--config", str(bot.config), "check"]).output
    lines = {line.split(":")[0].split()[-1]: line for line in said.splitlines() if "runner " in line.split(":")[0]}
    assert lines["a"].endswith("labels old, shared.")
    assert lines["b"].endswith("labels shared, h100.")
    for part in ("schemes", "0 runs active, 0 waiting", str(b.models), "no Hub", "GPU"):
        assert part in lines["b"]
    b.kill()
    without = CliRunner().invoke(main, ["--config", str(bot.config), "check"])
    assert without.exit_code == 1
    assert "FAIL  runner b: " in without.output
