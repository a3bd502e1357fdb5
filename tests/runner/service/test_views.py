"""What is printed: text from outside stays text, and a narrow terminal still shows what people copy."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from runner.service import terminal
from runner.service.shell import Shell
from schemas.artifacts.plan import Finding, Severity
from schemas.digest import digest, short
from schemas.runs import Run, RunState
from tests import samples

_ID = "run-0123456789abcdef"
_NASTY = "[/red][blue]y[/] :skull: \x1b[2J\u202e"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _run(**changes: Any) -> Run:
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    values: dict[str, Any] = {
        "id": _ID, "key": "k", "state": RunState.SUCCEEDED, "since": at, "submitted_at": at, "model": "/models/tiny",
        "scheme": "fp8", "output_dir": "/outputs/out", "manifest_digest": "0" * 64, "report": samples.report(),
    }  # fmt: skip
    return Run(**{**values, **changes})


def _shown(view: Any, width: int = 80) -> str:
    shell = Shell(None)
    stream = io.StringIO()
    shell.out = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    shell.show(view)
    return stream.getvalue()


@pytest.mark.parametrize("width", [20, 40, 69, 70, 80, 200])
def test_a_list_keeps_the_whole_name_of_a_run_at_any_width(width: int) -> None:
    shown = _shown(terminal.runs_view([_run(), _run(id="run-fedcba9876543210")]), width)
    assert _ID in shown
    assert "run-fedcba9876543210" in shown
    assert shown.count("03:04") == 2


@pytest.mark.parametrize("width", [5, 20, 49])
def test_on_a_narrow_terminal_every_fact_is_a_line_of_its_own(width: int) -> None:
    shown = _shown(terminal.run_view(_run()), width).splitlines()
    assert f"Run {_ID}" in shown
    assert "State: succeeded" in shown
    assert "Output: /outputs/out" in shown


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize(
    "view",
    [
        terminal.analysis_view(samples.analysis()),
        terminal.plan_view(samples.plan()),
        terminal.manifest_view(samples.manifest()),
        terminal.report_view(samples.report()),
        terminal.run_view(_run()),
    ],
    ids=["analysis", "plan", "manifest", "report", "run"],
)
def test_no_view_breaks_words_into_single_letters(view: Any, width: int) -> None:
    lines = [line.strip(" │╭╮╰╯─") for line in _shown(view, width).splitlines()]
    assert sum(0 < len(line) <= 2 for line in lines) <= 1


@pytest.mark.parametrize("width", [20, 80])
def test_markup_in_names_is_printed_as_it_is(width: int) -> None:
    shown = _shown(terminal.run_view(_run(model=_NASTY, scheme="[bold]", output_dir="[/red]")), width)
    assert "[/red][blue]y[/] :skull:" in shown
    assert "[bold]" in shown
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown


def test_a_title_shows_its_digest() -> None:
    plan = samples.plan()
    assert f"[{short(digest(plan))}]" in _shown(terminal.plan_view(plan))


def test_a_long_finding_is_whole_also_in_a_pipe() -> None:
    finding = Finding(severity=Severity.WARNS, code="x", message="word " * 60 + "end", hint="hint")
    assert "end hint" in " ".join(_shown(terminal.finding_view(finding)).split())


@pytest.mark.parametrize("said", ["[/red]", "Accepted: /out/[blue]y", ":skull:", "[link=x]y[/link]"])
def test_a_sentence_is_printed_as_it_is(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(None)
    shell.say(said)
    shell.tell(said)
    printed = capsys.readouterr()
    assert printed.out == printed.err == said + "\n"
    shell.out.print(said)  # also where a bare string gets there
    shell.err.print(said)
    printed = capsys.readouterr()
    assert printed.out == printed.err == said + "\n"


def test_json_has_nothing_that_commands_a_terminal() -> None:
    stream = io.StringIO()
    run = _run(model="a\u202e\x9b2J\u200db\n é")
    terminal.show_json(Console(file=stream), run)
    assert json.loads(stream.getvalue()) == run.model_dump(mode="json")
    assert not {"\u202e", "\x9b", "\u200d"} & set(stream.getvalue())
    assert "é" in stream.getvalue()


_LOG = "a\r\n10%\r20%\n\x1b]52;c;eA==\x07\x1b[2J\u202eé\tz\n".encode() + b"\xff\n"


@given(st.lists(st.integers(0, len(_LOG)), max_size=6).map(sorted))
def test_a_log_cannot_command_the_terminal_however_it_is_cut(cuts: list[int]) -> None:
    stream = _Terminal()
    write = terminal.log_writer(stream)
    for begin, end in zip([0, *cuts], [*cuts, len(_LOG)], strict=True):
        write(_LOG[begin:end])
    r = "\N{REPLACEMENT CHARACTER}"
    assert stream.getvalue() == f"a\n10%\n20%\n{r}]52;c;eA=={r}{r}[2J{r}é\tz\n{r}\n"


def test_a_log_goes_to_a_file_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        terminal.log_writer(stream)(_LOG)
    assert (tmp_path / "log").read_bytes() == _LOG
