"""What people may not do, and what cannot be: a sentence each, and the state is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.conversation.state import Failed, ReviewingCommand
from tests.e2e.bot_host import BotHost, running_pair

ASKED = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32"


def _to_the_command(pair: BotHost, text: str) -> int:
    thread = pair.ask(text)
    for kind in ("reviewing_analysis", "reviewing_plan"):
        pair.wait_for(thread, kind)
        pair.approve(thread)
    return thread


@pytest.mark.parametrize("name", ["same1", "sub/../same1", "{root}/same1"])
def test_a_folder_that_another_thread_holds_is_refused_however_it_is_written(tmp_path: Path, name: str) -> None:
    with running_pair(tmp_path) as pair:
        first = _to_the_command(pair, f"{ASKED}, into {pair.host.outputs}/same1")
        pair.wait_for(first, "reviewing_command")
        second = _to_the_command(pair, f"{ASKED}, output {name.format(root=pair.host.outputs)}")
        failed = pair.wait_for(second, "failed", "reviewing_command", seconds=20)
        assert isinstance(failed, Failed)
        assert f"Thread {first} writes to {pair.host.outputs}/same1 already." in failed.trouble.message


def test_two_threads_that_name_no_folder_get_one_each(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        threads = [pair.ask(ASKED) for _ in range(3)]
        for kind in ("reviewing_analysis", "reviewing_plan"):
            for thread in threads:
                pair.wait_for(thread, kind)
                pair.approve(thread)
        folders = set()
        for thread in threads:
            state = pair.wait_for(thread, "reviewing_command")
            assert isinstance(state, ReviewingCommand)
            folders.add(state.manifest.output_dir)
        assert len(folders) == 3
