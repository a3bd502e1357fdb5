"""`ptq-runner` on a bad day: odd names, a daemon that restarts under it, and a person who leaves."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from schemas.runs import RunState
from tests.e2e.host import Host
from tests.e2e.test_terminal import Person
from tests.peers import interpreter
from tests.waiting import wait_until

_AWAY = "The runner is not answering; the run goes on; waiting."


@pytest.fixture
def person(host: Host) -> Person:
    """Somebody at a terminal."""
    return Person(host)


class Following:
    """A command that goes on; what it says lies in a file."""

    def __init__(self, person: Person, *arguments: str, says: str = "") -> None:
        self.log = person.folder / "said"
        command = [sys.executable, "-m", "runner.service", "--config", str(person.host.config), *arguments]
        with self.log.open("wb") as log:
            # A program that was started in the background ignores Control-C; one at a terminal does not.
            heard = ["env", "--default-signal=INT", *command]
            self.process = subprocess.Popen(heard, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=person.folder)
        assert self.process.stdin is not None
        self.process.stdin.write(says.encode())
        self.process.stdin.close()

    def said(self) -> str:
        """All of it so far."""
        return self.log.read_text()

    def hears(self, words: str) -> None:
        """Wait until it said so."""
        wait_until(lambda: words in self.said(), 30, f"it does not say {words!r}: {self.said()[-800:]}")


@contextmanager
def following(person: Person, *arguments: str, says: str = "") -> Iterator[Following]:
    """Start a command, and end it whatever happens."""
    started = Following(person, *arguments, says=says)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()


def _run_id(said: str) -> str:
    return next(word for word in said.split() if word.startswith("run-"))


def test_following_goes_on_when_the_daemon_restarts(person: Person) -> None:
    go = person.folder / "go"
    interpreter.tell(person.host.engine, wait_for=str(go))
    person.goes_to_the_command()
    with following(person, "run", "run_manifest.yaml", says="ok\nok\nyes\nok\n") as command:
        command.hears("It goes on when this terminal is closed")
        run = _run_id(command.said())
        person.host.wait_for(run, RunState.RUNNING)
        person.host.kill()
        command.hears(_AWAY)
        person.host.start()
        go.touch()
        command.process.wait(60)
        assert command.process.returncode == 0, command.said()
        assert "Accepted: " in command.said()
        assert "Traceback" not in command.said()
        assert command.said().count(_AWAY) == 1


def test_following_a_log_goes_on_when_the_daemon_restarts(person: Person) -> None:
    go = person.folder / "go"
    interpreter.tell(person.host.engine, wait_for=str(go))
    run = person.host.submit(person.host.manifest()).id
    person.host.wait_for(run, RunState.RUNNING)
    with following(person, "logs", "-f", run) as command:
        wait_until(command.said, 30, "no log is shown")
        person.host.kill()
        command.hears(_AWAY)
        person.host.start()
        go.touch()
        command.process.wait(60)
        assert command.process.returncode == 0, command.said()
        shown = command.said().replace(f"{_AWAY}\n", "")
        assert shown == person.types("logs", run).stdout


@pytest.mark.parametrize("command", ["run", "logs"])
def test_control_c_ends_the_looking_and_not_the_run(person: Person, command: str) -> None:
    go = person.folder / "go"
    interpreter.tell(person.host.engine, wait_for=str(go))
    person.goes_to_the_command()
    arguments: tuple[str, ...] = ("run", "run_manifest.yaml")
    says = "ok\nok\nyes\n"
    if command == "logs":
        run = person.host.submit(person.host.manifest()).id
        person.host.wait_for(run, RunState.RUNNING)
        arguments, says = ("logs", run, "-f"), ""
    with following(person, *arguments, says=says) as looking:
        if command == "run":
            looking.hears("%  ")
            run = _run_id(looking.said())
        else:
            wait_until(looking.said, 30, "no log is shown")
        looking.process.send_signal(signal.SIGINT)
        looking.process.wait(20)
        assert looking.process.returncode == 130
        assert f"Run {run} goes on. Look at it with: ptq-runner show {run}" in looking.said()
        assert "Traceback" not in looking.said()
    go.touch()
    person.host.wait_for(run, RunState.SUCCEEDED)


def test_folders_whose_names_look_like_markup_work_to_the_end(person: Person) -> None:
    interpreter.tell(person.host.engine)
    desk = person.folder / "[" / "red]"  # one path, as it is typed below
    desk.mkdir(parents=True)
    output = person.host.outputs / "[blue]y"
    for arguments in (
        ("intake", "tiny", "--output-dir", str(output), "--into", "[/red]"),
        ("plan", "[/red]/model_analysis.json", "--scheme", "fp8", "--kv-cache", "none", "--dataset", "text.txt",
         "--samples", "4", "--seq-len", "32"),
        ("manifest", "[/red]/quant_plan.json"),
    ):  # fmt: skip
        done = person.types(*arguments)
        assert done.returncode == 0, done.stderr
        assert "ptq-runner" in done.stderr
        assert "[/red]/" in done.stderr
    done = person.types("run", "[/red]/run_manifest.yaml", says="ok\nok\nyes\nok\n")
    assert done.returncode == 0, done.stderr
    assert f"Accepted: {output}\n" in done.stdout


def test_an_answer_that_is_no_text_is_no_yes(person: Person) -> None:
    interpreter.tell(person.host.engine)
    person.goes_to_the_command()
    command = [sys.executable, "-m", "runner.service", "--config", str(person.host.config), "run", "run_manifest.yaml"]
    done = subprocess.run(command, input=b"\xff\xfe\n", capture_output=True, cwd=person.folder, timeout=60, check=False)
    assert done.returncode == 1
    assert b"neither a yes nor a no" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_log_cannot_command_a_real_terminal(person: Person) -> None:
    interpreter.tell(person.host.engine, exit=1, says="\x1b]52;c;eA==\x07\x1b[2J\u202ehidden")
    run = person.host.submit(person.host.manifest()).id
    person.host.wait_for(run, RunState.SUCCEEDED, RunState.FAILED)
    shown = _on_a_terminal(person.host.config, "logs", run)
    assert b"hidden" in shown
    assert [part for part in (b"\x1b", b"\x07", "\u202e".encode()) if part in shown] == []
    assert "\x1b[2J" in person.types("logs", run).stdout


def _on_a_terminal(config: Path, *arguments: str) -> bytes:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "runner.service", "--config", str(config), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # EIO is how a terminal says that the other side is closed
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.wait(60) == 0
    return shown
