"""Bad input of the quantization script costs a second: one sentence, an error event, status 1, and no traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.ptq import quantize
from tests.runner.ptq.scripts import events_of
from tests.tiny_models import make_tiny_model, tiny_text

pytest.importorskip("safetensors", reason="safetensors is not installed here")


def cut_off(model: Path) -> None:
    weights = model / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1000)


def not_safetensors(model: Path) -> None:
    (model / "model.safetensors").write_bytes(b"<html>404</html>" * 100)


def without_a_shard(model: Path) -> None:
    make_tiny_model(model, shards=2)
    (model / "model.safetensors").unlink()
    (model / "model-00002-of-00002.safetensors").unlink()


SPOILED: list[tuple[str, Callable[[Path], object], str]] = [
    ("no configuration", lambda model: (model / "config.json").unlink(), "The model's configuration cannot be read"),
    ("no JSON", lambda model: (model / "config.json").write_text("{"), "The model's configuration cannot be read"),
    ("no object", lambda model: (model / "config.json").write_text("[]"), "is not a JSON object"),
    ("no weights", lambda model: (model / "model.safetensors").unlink(), "holds no weights"),
    ("cut off", cut_off, "is cut off or no safetensors file"),
    ("other format", not_safetensors, "is cut off or no safetensors file"),
    ("a shard missing", without_a_shard, "model-00002-of-00002.safetensors is missing"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make_tiny_model(tmp_path / "model")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return tiny_text(tmp_path / "text.txt")


def refusal(capsys: pytest.CaptureFixture[str], **options: object) -> str:
    """The sentence with which the script refuses these options."""
    given = {"quant_scheme": "fp8", "device": "cpu", **options}
    status = quantize.main([part for name, value in given.items() for part in (f"--{name}", str(value))])
    said = capsys.readouterr()
    events = events_of(said.out)
    assert status == 1
    assert events[0] == {"ptq": "phase", "phase": "preparing"}
    assert events[-1] == {"ptq": "error", "phase": "preparing", "type": "BadInput", "message": said.err.strip()}
    assert "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) == 1
    return said.err.strip()


@pytest.mark.parametrize(("spoil", "reason"), [case[1:] for case in SPOILED], ids=[case[0] for case in SPOILED])
def test_a_spoiled_model_is_named_with_what_it_lacks(
    spoil: Callable[[Path], object],
    reason: str,
    model: Path,
    text: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(model)
    assert reason in refusal(capsys, model_dir=model, output_dir=tmp_path / "out", dataset=text)
    assert not (tmp_path / "out").exists()


def test_a_model_folder_that_does_not_exist(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, model_dir=tmp_path / "absent", output_dir=tmp_path / "out", dataset=text)
    assert said == f"There is no model folder {tmp_path / 'absent'}."


def test_an_output_folder_with_something_in_it_is_left_alone(
    model: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "out" / "kept.txt"
    kept.parent.mkdir()
    kept.write_text("precious")
    assert "is not empty" in refusal(capsys, model_dir=model, output_dir=kept.parent, dataset=text)
    assert [path.read_text() for path in kept.parent.iterdir()] == ["precious"]


def test_what_was_set_apart_of_an_earlier_try_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / ".partial-run-1").mkdir()
    (tmp_path / "config.json").touch()
    assert [path.name for path in quantize.written(tmp_path)] == ["config.json"]


def test_an_output_folder_that_is_a_file(model: Path, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be written to" in refusal(capsys, model_dir=model, output_dir=text, dataset=text)


@pytest.mark.parametrize("place", [".", "quantized", "a/../quantized"])
def test_an_output_folder_within_the_model(
    place: str, model: Path, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(model.iterdir())
    assert "in the model's own folder" in refusal(capsys, model_dir=model, output_dir=model / place, dataset=text)
    assert sorted(model.iterdir()) == before


def test_a_text_that_does_not_exist(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, model_dir=model, output_dir=tmp_path / "out", dataset=tmp_path / "no.txt")
    assert said == f"There is no text file {tmp_path / 'no.txt'} to calibrate on."


def test_a_configuration_of_an_algorithm_that_is_not_json(
    model: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "awq.json").write_text("scaling_layers:")
    needed = ["--model_dir", str(model), "--output_dir", str(tmp_path / "out"), "--quant_scheme", "int4_wo_32"]
    algorithm = ["--quant_algo", "awq", "--quant_algo_config_file", "awq", str(tmp_path / "awq.json")]
    assert quantize.main([*needed, *algorithm, "--dataset", str(text)]) == 1
    assert "The configuration of awq cannot be read" in capsys.readouterr().err


def test_an_error_without_a_message_is_told_by_its_statement() -> None:
    def engine() -> None:
        assert json is None

    with pytest.raises(AssertionError) as raised:
        engine()
    bare = AssertionError().with_traceback(raised.value.__traceback__)
    told = quantize.in_words(bare)
    assert told.startswith("AssertionError without a message at test_quantize_bad_input.py:")
    assert told.endswith("assert json is None")
