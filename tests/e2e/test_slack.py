"""The whole conversation in Slack, in both modes: a real bot, a real runner, and people who mention, click and type."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.conversation.state import Checkpoint, Ended, Ending
from tests.bot.platforms.slack.stand import free_port
from tests.e2e.slack_team import Mode, running_team
from tests.peers.slack_people import buttons_of, words_of
from tests.waiting import wait_until

pytestmark = pytest.mark.slack


@pytest.mark.parametrize("mode", ["socket", "http"])
def test_a_model_is_quantized_in_a_thread(mode: Mode, tmp_path: Path) -> None:
    with running_team(tmp_path, mode, free_port()) as team:
        thread = team.ask()
        (number,) = team.bot.conversations()
        team.asking(thread, Checkpoint.ANALYSIS)
        team.say(thread, "looks good")
        team.bot.wait_for(number, "reviewing_plan")
        plan = team.approve(thread, Checkpoint.PLAN)
        assert "fp8" in words_of(plan.blocks)
        team.bot.wait_for(number, "reviewing_command")
        command = team.asking(thread, Checkpoint.COMMAND)
        assert "quantize" in words_of(command.blocks)
        team.approve(thread, Checkpoint.COMMAND)
        team.bot.wait_for(number, "reviewing_result")
        team.approve(thread, Checkpoint.RESULT)
        ended = team.bot.wait_for(number, "ended", seconds=20)
        assert isinstance(ended, Ended)
        assert ended.ending is Ending.ACCEPTED
        assert team.bot.host.starts() == 1
        wait_until(team.bot.all_is_shown, 20, f"not all is shown: {team.bot.log()[-3000:]}")

        shown = team.thread(thread)
        keys = [message.metadata["event_payload"]["key"] for message in shown if message.metadata]
        assert len(keys) == len(set(keys)), "a card was posted twice"
        assert "Ada" in words_of(command.blocks)
        names = {file["name"] for message in shown for file in message.files}
        assert {"model_analysis.json", "quant_plan.json", "run_manifest.yaml"} <= names
        assert not [button for message in shown for button in buttons_of(message) if ":approve:" in button["value"]]
        assert {message.thread for message in shown} == {thread}
