"""The containers' healthchecks, asked of real daemons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bot.settings import WebSettings
from tests.deploy.files import SOCKET_FOLDER, compose
from tests.e2e.bot_host import running_pair


def _healthy(service: str, there: str, here: str) -> bool:
    """What the healthcheck of a service says, asked at another place than in its container."""
    code = compose()["services"][service]["healthcheck"]["test"][-1]
    assert there in code
    command = [sys.executable, "-c", code.replace(there, here)]
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0


def test_a_healthcheck_tells_a_daemon_that_answers_from_one_that_is_gone(tmp_path: Path) -> None:
    with running_pair(tmp_path) as bot:
        socket, page = f"{SOCKET_FOLDER}/runner.sock", f"127.0.0.1:{WebSettings().port}"

        def healthy() -> tuple[bool, bool]:
            runner = _healthy("runner-cpu", socket, str(bot.host.settings.socket_path))
            return runner, _healthy("bot", page, f"127.0.0.1:{bot.port}")

        assert healthy() == (True, True)
        bot.kill()
        assert healthy() == (True, False)
        bot.host.kill()
        assert healthy() == (False, False)


def test_the_page_answers_its_healthcheck_also_when_it_wants_tokens(tmp_path: Path) -> None:
    with running_pair(tmp_path) as bot:
        bot.kill()
        bot.configure(web={"host": "0.0.0.0", "port": bot.port, "token": "0123456789abcdef"})
        bot.start()
        assert _healthy("bot", f"127.0.0.1:{WebSettings().port}", f"127.0.0.1:{bot.port}")
