"""Which tokens of a text are calibrated on and which are evaluated on, without the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.ptq import quantize


class Tokens(list[Any]):
    """As much of a tensor as cutting texts needs: rows of numbers, sliced, shaped and split."""

    def __getitem__(self, part: Any) -> Any:
        found = super().__getitem__(part)
        return Tokens(found) if isinstance(part, slice) else found

    def reshape(self, _rows: int, width: int) -> Tokens:
        return Tokens(self[start : start + width] for start in range(0, len(self), width))

    def split(self, size: int) -> Tokens:
        return Tokens(self[start : start + size] for start in range(0, len(self), size))


class Tokenizer:
    """Makes as many tokens as it is told, numbered from 0."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self, _text: str, **_: object) -> dict[str, list[Tokens]]:
        return {"input_ids": [Tokens(range(self._count))]}


def data_of(text: Path, tokens: int, **options: int) -> quantize.Data:
    needed = ["--model_dir", "model", "--output_dir", "out", "--quant_scheme", "fp8", "--dataset", str(text)]
    flags = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return quantize.load_data(quantize.parse([*needed, *flags]), Tokenizer(tokens))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_text("any")
    return path


sizes = st.integers(1, 9)


@given(samples=sizes, width=sizes, batch=sizes, windows=sizes, length=st.integers(2, 9), spare=st.integers(0, 20))
def test_calibration_takes_the_beginning_and_evaluation_the_end(
    text: Path, samples: int, width: int, batch: int, windows: int, length: int, spare: int
) -> None:
    count = samples * width + windows * length + spare
    numbers = {"num_calib_data": samples, "seq_len": width, "batch_size": batch}
    data = data_of(text, count, **numbers, eval_windows=windows, eval_seq_len=length)
    rows = [row for rows in data.batches for row in rows]
    assert [token for row in rows for token in row] == list(range(samples * width))
    assert len(rows) == samples
    assert all(len(rows) <= batch for rows in data.batches)
    evaluated = [token for window in data.windows for token in window]
    assert evaluated == list(range(count - windows * length, count))
    assert [len(window) for window in data.windows] == [length] * windows


@given(samples=sizes, width=sizes, windows=sizes, length=st.integers(2, 9))
def test_one_token_too_few_is_refused(text: Path, samples: int, width: int, windows: int, length: int) -> None:
    count = samples * width + windows * length - 1
    numbers = {"num_calib_data": samples, "seq_len": width, "eval_windows": windows, "eval_seq_len": length}
    with pytest.raises(quantize.BadInput, match=f"text.txt has {count:,} tokens, but calibration needs"):
        data_of(text, count, **numbers)


def test_no_windows_means_the_whole_rest(text: Path) -> None:
    data = data_of(text, 109, num_calib_data=2, seq_len=10, eval_windows=0, eval_seq_len=20)
    assert [token for window in data.windows for token in window] == list(range(29, 109))


def test_an_evaluation_that_is_skipped_needs_no_tokens(text: Path) -> None:
    needed = ["--model_dir", "m", "--output_dir", "o", "--quant_scheme", "fp8", "--dataset", str(text)]
    options = quantize.parse([*needed, "--num_calib_data", "2", "--seq_len", "10", "--skip_evaluation"])
    assert quantize.load_data(options, Tokenizer(20)).windows == []


def test_rows_of_a_json_lines_file_are_parted_by_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "one"}\n\n{"text": " two\u2028\\nthree ", "other": 1}\n', encoding="utf-8")
    assert quantize.read_text(path) == "one\n\ntwo\u2028\nthree"


@pytest.mark.parametrize("row", ["{", "[]", '{"content": "x"}', '{"text": 1}', '"text"', "null"])
def test_a_row_without_a_text_is_named(tmp_path: Path, row: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "one"}\n' + row + "\n", encoding="utf-8")
    with pytest.raises(quantize.BadInput, match=r"Row 2 of .*rows\.jsonl is not a JSON object with a text\."):
        quantize.read_text(path)


def test_a_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("Käse".encode("latin-1"))
    with pytest.raises(quantize.BadInput, match="cannot be read"):
        quantize.read_text(path)


def test_the_name_of_a_dataset_is_no_file() -> None:
    assert not "HuggingFaceH4/ultrachat_200k".endswith(quantize.TEXT_FILES)
    assert "/texts/own.jsonl".endswith(quantize.TEXT_FILES)


class Loader(list[Any]):
    """Calibration batches as the engine's loader gives them."""


@pytest.mark.parametrize(("dataset", "refused"), [("pileval", True), ("pileval_for_awq_benchmark", False)])
def test_fewer_samples_than_asked_for_are_refused_unless_the_set_is_defined_so(
    dataset: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = quantize.Data(batches=Loader([[1, 2, 3], {"input_ids": [4]}]), windows=[], evaluated_on="wikitext")
    monkeypatch.setattr(quantize, "named_data", lambda *_: short)
    needed = ["--model_dir", "m", "--output_dir", "o", "--quant_scheme", "fp8", "--dataset", dataset]
    options = quantize.parse([*needed, "--num_calib_data", "5"])
    if refused:
        with pytest.raises(quantize.BadInput, match="pileval has 4 samples; --num_calib_data asks for 5"):
            quantize.load_data(options, cast(Any, None))
    else:
        assert quantize.load_data(options, cast(Any, None)) is short
