"""The whole conversation in Slack, in both modes: a real bot, a real runner, and people who mention, click and type."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.conversation.state import Checkpoint, Ended, Ending
from tests.bot.platforms.slack.stand import free_port
from tests.e2e.slack_team import Mode, running_team, yes_of
from tests.peers.slack_people import button_of, buttons_of, filled, typed, words_of
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


def test_a_plan_is_edited_in_the_form_and_two_clicks_run_it_once(tmp_path: Path) -> None:
    with running_team(tmp_path, "socket", free_port()) as team:
        thread = team.ask()
        (number,) = team.bot.conversations()
        team.approve(thread, Checkpoint.ANALYSIS)
        plan = team.asking(thread, Checkpoint.PLAN)
        team.click(plan, "Edit")
        peer = team.peer
        wait_until(lambda: peer.record.of("views.update"), 10, "the form is not filled")
        (view,) = peer.workspace.views.values()
        wait_until(lambda: view.view["callback_id"] == "ptq-edit", 10)
        chosen = next(block for block in view.view["blocks"] if block.get("dispatch_action"))
        choice = {"type": chosen["element"]["type"], "action_id": chosen["element"]["action_id"]}
        told = peer.people.changes("U0ADA", view.id, chosen["block_id"], choice, filled(view.view))
        assert peer.deliver(told).result(10) is not None
        wait_until(lambda: len(peer.record.of("views.update")) > 1, 10, "the form is not drawn again")
        values = typed(filled(view.view), "ptq-form-num_calib_data", value="5")
        ack = peer.deliver(peer.people.submits("U0ADA", view.id, values)).result(10)
        assert ack is not None
        assert not ack.payload

        def is_asked() -> bool:
            calibration = team.bot.state(number).request.choices.get("calibration")
            return isinstance(calibration, dict) and calibration.get("num_calib_data") == 5

        wait_until(is_asked, 20, "the change did not arrive")
        team.bot.wait_for(number, "reviewing_plan")
        wait_until(team.bot.all_is_shown, 20)
        team.approve(thread, Checkpoint.PLAN)
        command = team.asking(thread, Checkpoint.COMMAND)
        assert "--num_calib_data 5" in words_of(command.blocks)

        yes = button_of(command, yes_of(command))
        first, second = (peer.deliver(peer.people.presses(user, command, yes)) for user in ("U0ADA", "U0ADA"))
        assert first.result(10) is not None
        assert second.result(10) is not None
        team.bot.kill()
        team.bot.start()
        team.bot.wait_for(number, "reviewing_result")
        assert team.bot.host.starts() == 1
        approvals = team.bot.rows("SELECT count(*) FROM verdicts WHERE verb = 'approved'")
        assert approvals == [(3,)]


def test_faults_on_the_way_lose_and_double_nothing(tmp_path: Path) -> None:
    with running_team(tmp_path, "socket", free_port()) as team:
        faults = team.peer.faults
        faults.add("chat.postMessage", "lost")
        thread = team.ask()
        (number,) = team.bot.conversations()
        for checkpoint in (Checkpoint.ANALYSIS, Checkpoint.PLAN, Checkpoint.COMMAND, Checkpoint.RESULT):
            team.asking(thread, checkpoint)
            wait_until(team.bot.all_is_shown, 30, "the card is not delivered")
            faults.add("chat.postMessage", "lost")
            faults.add("conversations.replies", "broken")
            faults.add("chat.update", "ratelimited", seconds=1)
            faults.add("files.completeUploadExternal", "lost")
            team.approve(thread, checkpoint)
        team.bot.wait_for(number, "ended", seconds=20)
        wait_until(team.bot.all_is_shown, 60, f"not all is shown: {team.bot.log()[-3000:]}")
        shown = team.thread(thread)
        keys = [message.metadata["event_payload"]["key"] for message in shown if message.metadata]
        titles = [file["title"] for message in shown for file in message.files]
        assert len({*keys, *titles}) == len(keys) + len(titles) == len(shown)
        assert {key.rpartition("ptq-1-")[2] for key in [*keys, *titles]} == {
            slot for (slot,) in team.bot.rows("SELECT slot FROM outbox")
        }
        assert len([one for one in team.peer.workspace.posted() if not one.thread]) == 1
        assert team.bot.host.starts() == 1
