"""kill -9 between the steps of every delivery: nothing lost, nothing shown twice, and the command runs once."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.bot_host import BotHost
from tests.e2e.host import Host, running_host

pytestmark = pytest.mark.chaos

_ASKED = "quantize tiny to fp8, no kv cache, dataset text.txt, calibration 4, seq len 32, into {}"
_SECONDS = 120
# Every so many steps one life ends there; the next one starts from nothing again. Together with the offset each
# kind of step is met: transactions of every state, and each call of the platform, before and after.
_STRIDE = 7
_MOST_OF_THEM = 0.8


def _live(bot: BotHost, request: str, dies_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.e2e.dying_bot", str(bot.config), str(bot.folder / "journal.jsonl")]
    return subprocess.run(
        [*command, request, str(dies_at)], capture_output=True, text=True, timeout=_SECONDS, check=False
    )


def _assert_once(bot: BotHost, host: Host, starts_before: int) -> None:
    posted = [json.loads(line)["key"] for line in (bot.folder / "journal.jsonl").read_text().splitlines() if line]
    assert sorted(posted) == sorted(set(posted)), "a message was posted twice"
    with closing(sqlite3.connect(bot.database)) as database:
        assert database.execute("SELECT count(*) FROM conversations").fetchone() == (1,)
        wanted = database.execute("SELECT slot FROM outbox").fetchall()
        assert database.execute("SELECT count(*) FROM outbox WHERE delivered < wanted").fetchone() == (0,)
        said = database.execute("SELECT count(*) FROM verdicts WHERE verb = 'approved'").fetchone()
    assert said == (4,)
    assert len(posted) == len(wanted) + 1  # every slot, and the thread
    assert host.starts() == starts_before + 1, "the command did not run exactly once"


def test_a_death_at_any_step_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with running_host(tmp_path / "runner-host") as host:
        whole = _bot(tmp_path / "whole", host)
        before = host.starts()
        done = _live(whole, _ASKED.format(host.outputs / "whole"), 0)
        assert done.returncode == 0, done.stderr[-3000:]
        _assert_once(whole, host, before)
        steps = int(done.stdout)
        assert steps > 60
        for step in range(1, steps, _STRIDE):
            bot = _bot(tmp_path / f"step-{step}", host)
            before = host.starts()
            request = _ASKED.format(host.outputs / f"step-{step}")
            first = _live(bot, request, step)
            if first.returncode == 0 and step > steps * _MOST_OF_THEM:
                # Lives differ by a few steps: how often a card was drawn depends on how fast the runner answered.
                assert int(first.stdout) < step
                _assert_once(bot, host, before)
                break
            assert first.returncode == -signal.SIGKILL, (step, first.stderr[-3000:])
            second = _live(bot, request, 0)
            assert second.returncode == 0, (step, second.stderr[-3000:])
            _assert_once(bot, host, before)


def _bot(folder: Path, host: Host) -> BotHost:
    folder.mkdir()
    bot = BotHost(folder, host)
    bot.http.close()  # nobody uses the page here
    return bot
