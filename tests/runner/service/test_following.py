"""Following a run: the daemon may be away for a while, the person may leave, and the run goes on."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import click
import pytest
from rich.console import Console

from runner.errors import Broken, NotHere, RunnerError
from runner.service import following
from runner.service.client import Client
from schemas.runs import Progress, Run, RunState

_AT = datetime(2026, 1, 2, tzinfo=UTC)
_AWAY = "The runner is not answering; the run goes on; waiting."


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_PAUSE_SECONDS", 0.0)


def _run(state: RunState, percent: float = 0) -> Run:
    return Run(
        id="run-1", key="k", state=state, since=_AT, submitted_at=_AT, model="m", scheme="fp8", output_dir="/o",
        manifest_digest="0" * 64, progress=Progress(percent=percent),
    )  # fmt: skip


def _away(code: str = "runner_down") -> Broken:
    return Broken(code, "No runner listens.", "Start it.")


class _Answers:
    """A daemon that gives these answers in this order, an exception as what it is."""

    def __init__(self, *answers: Any) -> None:
        self.left = list(answers)
        self.asked: list[Any] = []

    def _next(self, *asked: Any) -> Any:
        self.asked.append(asked)
        answer = self.left.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def run(self, run: str) -> Any:
        return self._next(run)

    def log(self, run: str, offset: int) -> Any:
        return self._next(run, offset)

    @property
    def client(self) -> Client:
        return cast(Client, self)


def _follow(answers: _Answers, terminal: bool = False) -> tuple[Callable[[], Run], list[str], io.StringIO]:
    said: list[str] = []
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, markup=False)
    return lambda: following.follow(answers.client, "run-1", console, said.append), said, stream


@pytest.mark.parametrize("code", ["runner_down", "runner_slow", "runner_broken"])
def test_a_daemon_that_comes_back_is_waited_for_and_told_once(code: str) -> None:
    away = [_away(code)] * 3
    answers = _Answers(_run(RunState.RUNNING, 40), *away, _run(RunState.RUNNING, 60), _run(RunState.SUCCEEDED, 100))
    go, said, _ = _follow(answers)
    assert go().state is RunState.SUCCEEDED
    assert said.count(_AWAY) == 1
    assert not answers.left


def test_each_time_that_it_goes_away_is_told() -> None:
    answers = _Answers(_away(), _run(RunState.RUNNING), _away(), _run(RunState.SUCCEEDED))
    go, said, _ = _follow(answers)
    go()
    assert said.count(_AWAY) == 2


def test_patience_ends() -> None:
    answers = _Answers(*[_away()] * 5)
    said: list[str] = []
    with pytest.raises(Broken) as caught:
        following.patiently(lambda: answers.client.run("run-1"), said.append, patience=0.0)
    assert caught.value.code == "runner_down"
    assert said == [_AWAY]
    assert len(answers.left) == 4


def test_patience_lasts_for_minutes() -> None:
    assert 120 <= following.PATIENCE_SECONDS <= 3600


@pytest.mark.parametrize("error", [NotHere("no_such_run", "There is no run."), Broken("strange_answer", "No runner.")])
def test_what_waiting_does_not_mend_is_told_at_once(error: RunnerError) -> None:
    go, said, _ = _follow(_Answers(error, _run(RunState.SUCCEEDED)))
    with pytest.raises(type(error)):
        go()
    assert said == []


def test_control_c_leaves_the_run_alone_and_says_how_to_look_at_it() -> None:
    go, said, _ = _follow(_Answers(_run(RunState.RUNNING), KeyboardInterrupt()))
    with pytest.raises(click.exceptions.Exit) as caught:
        go()
    assert caught.value.exit_code == 130
    assert "goes on" in said[-1]
    assert "ptq-runner show run-1" in said[-1]


def test_a_terminal_shows_a_bar_and_a_file_shows_lines() -> None:
    answers = (_run(RunState.RUNNING, 40), _run(RunState.SUCCEEDED, 100))
    go, said, _ = _follow(_Answers(*answers))
    go()
    assert said == [" 40 %  preparing"]
    go, said, stream = _follow(_Answers(*answers), terminal=True)
    go()
    assert said == []
    assert "preparing" in stream.getvalue()


def test_a_log_goes_on_where_it_was_when_the_daemon_went_away() -> None:
    answers = _Answers((b"a\n", 2, False), _away(), _away(), (b"b\n", 4, False), (b"", 4, True))
    said: list[str] = []
    pieces = list(following.log_pieces(answers.client, "run-1", True, said.append))
    assert b"".join(pieces) == b"a\nb\n"
    assert said == [_AWAY]
    assert [offset for _, offset in answers.asked] == [0, 2, 2, 2, 4]


@pytest.mark.parametrize("follow", [True, False])
def test_a_daemon_that_was_never_there_is_an_error_at_once(follow: bool) -> None:
    with pytest.raises(Broken):
        list(following.log_pieces(_Answers(_away(), (b"", 0, True)).client, "run-1", follow, lambda _: None))


def test_without_following_the_log_ends_where_it_is() -> None:
    answers = _Answers((b"a\n", 2, False), (b"", 2, False))
    assert list(following.log_pieces(answers.client, "run-1", False, lambda _: None)) == [b"a\n"]
