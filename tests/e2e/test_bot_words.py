"""The whole conversation in words, typed on the page: what the person wrote counts for what the page showed."""

from __future__ import annotations

from pathlib import Path

from bot.conversation.state import Ended, Ending
from tests.e2e.bot_host import running_pair
from tests.waiting import wait_until


def test_a_model_is_quantized_by_words_alone(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        thread = pair.ask("quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32")
        for kind, words in (
            ("reviewing_analysis", "looks good"),
            ("reviewing_plan", "ok"),
            ("reviewing_command", "yes, run it"),
            ("reviewing_result", "accept"),
        ):
            pair.wait_for(thread, kind)
            wait_until(pair.all_is_shown, 20, "the card was not delivered")
            assert pair.say(thread, words).is_success
        ended = pair.wait_for(thread, "ended", seconds=20)
        assert isinstance(ended, Ended)
        assert ended.ending is Ending.ACCEPTED
        assert pair.host.starts() == 1
