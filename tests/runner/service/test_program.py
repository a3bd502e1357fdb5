"""The edge of the program: whatever happens inside, a person reads one sentence and a program gets an exit status."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from runner.errors import Broken
from runner.service import asking
from runner.service.program import Program
from schemas.api import Approval, Health


def _invalid() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Health.model_validate({"status": "ok"})
    return caught.value


ENDS = [
    (Broken("x", "It is [/red] broken.", "Mend it."), "ptq-runner: It is [/red] broken.\n  Mend it.\n"),
    (Broken("x", "a\x1b[2Jb"), "ptq-runner: a\N{REPLACEMENT CHARACTER}[2Jb\n"),
    (_invalid(), "ptq-runner: version is not valid: Field required.\n"),
    (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "ptq-runner: Reading or writing failed: No space left"),
    (PermissionError(errno.EACCES, "Permission denied", "/x/y"), "ptq-runner: /x/y cannot be used: Permission denied."),
    (UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates"), "ptq-runner: Something here is not text"),
    (TypeError("a\nb"), "ptq-runner: This is a fault of ptq-runner: TypeError: a b; run with PTQ_RUNNER_DEBUG=1"),
    (RecursionError("too deep"), "fault of ptq-runner: RecursionError"),
    (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),
]


def _failing(error: BaseException) -> click.Group:
    @click.group(cls=Program)
    def program() -> None:
        """Fails."""

    @program.command()
    def fail() -> None:
        """Fail."""
        raise error

    return program


@pytest.mark.parametrize(("error", "said"), ENDS, ids=lambda value: type(value).__name__)
def test_every_error_is_a_sentence(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTQ_RUNNER_DEBUG", raising=False)
    done = CliRunner().invoke(_failing(error), ["fail"])
    assert done.exit_code == 1
    assert said in done.stderr if said else done.stderr == ""
    assert "Traceback" not in done.stderr


def test_the_traceback_is_shown_to_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTQ_RUNNER_DEBUG", "1")
    done = CliRunner().invoke(_failing(TypeError("x")), ["fail"])
    assert "Traceback" in done.stderr
    assert done.exit_code == 1


def test_control_c_is_no_error() -> None:
    done = CliRunner().invoke(_failing(KeyboardInterrupt()), ["fail"])
    assert done.exit_code == 130
    assert done.stderr.strip() == "Stopped."


def _typed(tail: str) -> subprocess.CompletedProcess[str]:
    """A command line of the shell's, for what only it can do with streams."""
    script = f'"$0" -m runner.service {tail}'
    # Buffered, as for a person: a full device is then noticed only at the end.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    command = ["bash", "-c", script, sys.executable]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


@pytest.mark.parametrize("command", ["--help", "diagnose {log}", "diagnose {log} --json"])
def test_a_full_device_is_told_in_one_sentence(command: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("RuntimeError: x\n")
    done = _typed(f"{command.format(log=tmp_path / 'log')} > /dev/full")
    assert done.returncode == 1
    assert done.stderr == "ptq-runner: Reading or writing failed: No space left on device.\n"


@pytest.mark.parametrize("command", ["--help", "diagnose {log}", "diagnose {log} --json"])
def test_a_reader_that_went_away_is_no_news(command: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("RuntimeError: x\n")
    # The reader has ended before the program begins to write.
    done = _typed(f"{command.format(log=tmp_path / 'log')} > >(exec true) 2>&1")
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception ignored" not in done.stdout + done.stderr


def test_streams_that_the_caller_closed_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("RuntimeError: x\n")
    done = _typed(f"diagnose {tmp_path / 'log'} <&- >&- 2>&-")
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["x" * 500, "a\udcffb", "\x1b[2J", "ada"])
def test_an_approval_can_carry_whoever_sits_here(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: name)
    who = asking.who()
    assert 1 <= len(who) <= 200
    assert who.isprintable()
    assert Approval(checkpoint="plan", digest="0" * 64, by=who, at=datetime.now(UTC)).by == who


def test_a_user_id_without_a_name_is_somebody_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert asking.who().startswith(f"uid {os.getuid()}@")


def test_a_diagnosis_says_class_cause_evidence_and_what_to_do(tmp_path: Path) -> None:
    line = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB."
    (tmp_path / "log").write_text(f"Traceback (most recent call last):\n  File 'x.py'\n{line}\nbye\n")
    told = _typed(f"diagnose {tmp_path / 'log'} --exit-code 1").stdout
    assert "The GPU ran out of memory." in told
    assert "memory" in told.split("Class", 1)[1].split("said", 1)[0]
    assert told.index(f"said {line[:40]}") < told.index("said bye") < told.index("next Calibrate with batch_size 1")
