"""A bot for tests: a real daemon in a real process, its page on a real port, beside a real runner."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from bot.cards.card import Action, ActionKind
from bot.conversation.state import Checkpoint, State, asked_at
from bot.store.records import Conversation
from bot.store.store import look
from tests.e2e.host import Host, running_host
from tests.waiting import wait_until


class BotHost:
    """One state folder and at most one daemon at a time. People speak to it through the page."""

    def __init__(self, folder: Path, host: Host, **settings: Any) -> None:
        self.folder = folder
        self.host = host
        self.state_dir = folder / "bot"
        self.port = _free_port()
        self.config = folder / "bot.yaml"
        self._values: dict[str, Any] = {
            "state_dir": str(self.state_dir),
            "web": {"port": self.port, "person": "Ada"},
            "runners": [{"name": "box", "url": host.settings.listen_url}],
        }
        self.configure(**settings)
        self.daemon: subprocess.Popen[bytes] | None = None
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20, follow_redirects=True)

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.state_dir / "bot.sqlite3"

    def configure(self, **settings: Any) -> None:
        """Write bot.yaml anew with some settings replaced; the next daemon reads it."""
        self._values |= settings
        self.config.write_text(yaml.safe_dump(self._values))

    def start(self) -> None:
        """Start the daemon and wait until its page answers."""
        with (self.folder / "bot.log").open("ab") as log:
            self.daemon = subprocess.Popen(
                [sys.executable, "-m", "bot.service", "--config", str(self.config), "serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ},
            )
        wait_until(self.answers, 30, f"the bot does not answer: {self.log()[-2000:]}")

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None

    def stop(self) -> None:
        """End the daemon in order."""
        self.http.close()
        if self.daemon is not None:
            self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait(20)
            self.daemon = None

    def log(self) -> str:
        """What the daemon said."""
        path = self.folder / "bot.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def answers(self) -> bool:
        """Whether the page is there."""
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        return self.http.get("/health").is_success

    def ask(self, text: str, key: str = "") -> int:
        """A request in words; the conversation that it began."""
        before = self.conversations()
        answer = self.post("/requests", text=text, key=key or uuid.uuid4().hex)
        assert answer.is_success, answer.text
        wait_until(lambda: len(self.conversations()) > len(before), 20, f"nothing began: {self.log()[-2000:]}")
        return self.conversations()[-1]

    def say(self, conversation: int, text: str, key: str = "") -> httpx.Response:
        """Words in a thread, written on its page as it is now; again where a newer card came while they were."""

        def written() -> httpx.Response:
            field = re.search(r'<input[^>]*name="asked"[^>]*value="([^"]*)"', self.page(conversation))
            assert field is not None
            return self.post(f"/threads/{conversation}/reply", text=text, asked=field[1], key=key or uuid.uuid4().hex)

        return self._again_where_outdated(conversation, written)

    def click(
        self, conversation: int, kind: ActionKind, checkpoint: Checkpoint | None = None, digest: str = "", key: str = ""
    ) -> httpx.Response:
        """A button, whatever card it may be from."""
        action = Action(kind=kind, conversation=conversation, checkpoint=checkpoint, digest=digest[:12])
        return self.post(
            f"/threads/{conversation}/act", action=action.encoded(), confirmed="yes", key=key or uuid.uuid4().hex
        )

    def approve(self, conversation: int) -> httpx.Response:
        """Yes to what is asked now; again where a newer card came under the mouse, as a person would."""

        def clicked() -> httpx.Response:
            asked = asked_at(self.state(conversation))
            assert asked is not None, self.state(conversation).kind
            return self.click(conversation, ActionKind.APPROVE, asked[0], asked[1])

        return self._again_where_outdated(conversation, clicked)

    def _again_where_outdated(self, conversation: int, act: Callable[[], httpx.Response]) -> httpx.Response:
        """What came of an act, after another look where its card was not the newest any more, or not there yet."""
        while True:
            before = asked_at(self.state(conversation))
            last = self.rows("SELECT coalesce(max(id), 0) FROM inbox")[0][0]
            answer = act()
            told = "" if answer.status_code == 409 else self._told(last)
            if "had not been shown yet" in told:
                wait_until(self.all_is_shown, 20, "the card was not delivered")
                continue
            outdated = answer.status_code == 409 or "newest card" in told
            if not outdated or asked_at(self.state(conversation)) == before:
                return answer

    def all_is_shown(self) -> bool:
        """Whether everything that is to be shown was delivered."""
        return not self.rows("SELECT 1 FROM outbox WHERE wanted > delivered")

    def _told(self, last: int) -> str:
        """What came of what came in after an inbox row, once it is told."""

        def told() -> tuple[Any, ...] | None:
            found = self.rows("SELECT outcome FROM inbox WHERE id > ? ORDER BY id LIMIT 1", last)
            return found[0] if found and found[0][0] is not None else None

        return str(wait_until(told, 20, "nothing came of it")[0])

    def post(self, path: str, **form: str) -> httpx.Response:
        """A form, as a browser on the page sends it."""
        return self.http.post(path, data=form, headers={"Origin": f"http://127.0.0.1:{self.port}"})

    def page(self, conversation: int) -> str:
        """The thread as HTML."""
        return self.http.get(f"/threads/{conversation}").text

    def conversations(self) -> list[int]:
        """All conversations, oldest first."""
        return [row[0] for row in self.rows("SELECT id FROM conversations ORDER BY id")]

    def state(self, conversation: int) -> State:
        """Where a conversation stands."""
        there: Conversation | None = look(
            f"sqlite:///{self.database}", lambda reader: reader.conversation(conversation)
        )
        assert there is not None
        return there.state

    def wait_for(self, conversation: int, *kinds: str, seconds: float = 60) -> State:
        """Wait until the conversation is in a state of these kinds."""

        def there() -> bool:
            return self.state(conversation).kind in kinds

        wait_until(there, seconds, f"thread {conversation} is not {kinds}: {self.log()[-3000:]}")
        return self.state(conversation)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Rows of the database, read beside the daemon."""
        if not self.database.exists():
            return []
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)) as reader:
            return reader.execute(query, values).fetchall()


@contextmanager
def running_bot(folder: Path, host: Host, **settings: Any) -> Iterator[BotHost]:
    """A bot with its daemon up, and nothing left of it afterwards."""
    bot = BotHost(folder, host, **settings)
    try:
        bot.start()
        yield bot
    finally:
        bot.stop()


@contextmanager
def running_pair(folder: Path, **settings: Any) -> Iterator[BotHost]:
    """A runner and a bot."""
    (folder / "bot-host").mkdir(parents=True)
    # Few samples and short ones: what is tested is the conversation, and the engine is a stand-in.
    with running_host(folder / "runner-host") as host, running_bot(folder / "bot-host", host, **settings) as bot:
        yield bot


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
