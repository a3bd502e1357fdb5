"""What a person types is checked in one place, whichever command and option it was typed for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from runner.service.arguments import FilePath, RunName, Words
from runner.service.commands import main
from runner.service.program import Program
from schemas.artifacts.manifest import RunManifest
from tests import samples

_CHECKED = (Words, FilePath, RunName, click.Choice, click.IntRange, click.FloatRange)
_BIG = "[" * 100_000


def _types(command: click.Command) -> Iterator[tuple[str, object]]:
    for parameter in command.params:
        several = isinstance(parameter.type, click.Tuple)
        for kind in parameter.type.types if isinstance(parameter.type, click.Tuple) and several else [parameter.type]:
            if not isinstance(kind, click.types.BoolParamType):
                yield f"{command.name} {parameter.name}", kind


def test_no_argument_of_any_command_goes_unchecked() -> None:
    every = [found for command in (main, *main.commands.values()) for found in _types(command)]
    assert len(every) > 30
    assert [name for name, kind in every if not isinstance(kind, _CHECKED)] == []


WRONG = [
    (("intake", ""), "MODEL is empty"),
    (("intake", " "), "MODEL is empty"),
    (("intake", "a" * 5000), "MODEL has 5000 characters"),
    (("intake", "a/\udcff"), "MODEL is not UTF-8 text"),
    (("intake", "a\x1b]52;c;eA==\x07"), "MODEL has the invisible character U+001B"),
    (("intake", "a\u202eb"), "MODEL has the invisible character U+202E"),
    (("intake", "a\nb"), "MODEL has the invisible character U+000A"),
    (("intake", "~nosuchuser/x"), "~nosuchuser in '~nosuchuser/x' is nobody's home"),
    (("intake", "m", "--output-dir", "~nosuch/x"), "nobody's home"),
    (("intake", "m", "--output-dir", "/x/\udcff"), "--output-dir is not UTF-8"),
    (("intake", "m", "--into", "\udcff"), "--into is not UTF-8"),
    (("intake", "m", "--into", ""), "--into is empty"),
    (("plan", "a.json", "--scheme", "\udcff"), "--scheme is not UTF-8"),
    (("plan", "a.json", "--layer", "*", "\udcff"), "--layer is not UTF-8"),
    (("plan", "a.json", "--exclude", "ok", "--exclude", "\udcff"), "--exclude is not UTF-8"),
    (("plan", "a.json", "--request", _BIG + "["), "--request has 100001 characters"),
    (("manifest", "\udcff"), "PLAN is not UTF-8"),
    (("show", ""), "Name a run"),
    (("show", "../../x"), "'../../x' is not the name of a run"),
    (("show", "\udcff"), "RUN is not UTF-8"),
    (("logs", ".."), "is not the name of a run"),
    (("cancel", "run-" + "a" * 500), "RUN has 504 characters"),
    (("runs", "--state", "\udcff"), "--state is not UTF-8"),
    (("diagnose", "~nosuch/log"), "nobody's home"),
    (("demo", "--scheme", "\udcff"), "--scheme is not UTF-8"),
    (("--config", "\udcff", "runs"), "--config is not UTF-8"),
]


@pytest.mark.parametrize(("typed", "words"), WRONG, ids=[f"{typed[0]}-{words[:24]}" for typed, words in WRONG])
def test_what_cannot_be_meant_is_one_sentence(typed: tuple[str, ...], words: str) -> None:
    done = CliRunner().invoke(main, typed)
    assert done.exit_code == 1
    assert words in done.stderr
    assert "fault of ptq-runner" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2
    assert len(done.stderr) < 400


def test_a_limit_beyond_all_runs_is_refused() -> None:
    done = CliRunner().invoke(main, ["runs", "--limit", "9999999999999999"])
    assert done.exit_code == 2
    assert "--limit" in done.stderr


@pytest.mark.parametrize(
    "request_json", [_BIG, '{"layer_quant_config":' * 900 + "1" + "}" * 900, "{", "[]", '{"x": 1}']
)
def test_a_request_that_is_none_is_one_sentence(request_json: str, tmp_path: Path) -> None:
    analysis = tmp_path / "model_analysis.json"
    analysis.write_text(samples.analysis().model_dump_json())
    done = CliRunner().invoke(main, ["plan", str(analysis), "--request", request_json])
    assert done.exit_code == 1
    assert "--request is not a valid request" in done.stderr
    assert len(done.stderr) < 1000


@pytest.mark.parametrize("key", ["k" * 201, "\udcff", ""])
def test_a_wrong_key_is_refused_before_anybody_is_asked(key: str, tmp_path: Path) -> None:
    document: RunManifest = samples.manifest()
    (tmp_path / "run_manifest.yaml").write_text(document.model_dump_json())
    done = CliRunner().invoke(main, ["run", str(tmp_path / "run_manifest.yaml"), "--key", key], input="ok\nok\nyes\n")
    assert done.exit_code == 1
    assert "--key" in done.stderr
    assert "Checkpoint" not in done.output


def test_text_that_is_only_unusual_is_taken() -> None:
    unusual = "modèle 模型 [/red] :skull: 'x' \"y\" $(id)"
    taken: list[str] = []

    @click.group(cls=Program)
    def program() -> None:
        """Takes text."""

    @program.command()
    @click.argument("text", type=Words())
    def take(text: str) -> None:
        """Take it."""
        taken.append(text)

    assert CliRunner().invoke(program, ["take", unusual]).exit_code == 0
    assert taken == [unusual]
