"""The planner against what really happened: every recorded combination of model, scheme, algorithm and options."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.agreement import matrix, models, rows
from tests.agreement.__main__ import run
from tests.agreement.matrix import Judged
from tests.fixtures_folder import fixture
from tests.runner.planning.catalogue import recorded

OUT_OF_CUDA = "OBS: forward-after-freeze failed RuntimeError: qdq_mxfp4 is only implemented in CUDA devices!"
NOT_BUILT_IN = "No built-in gptq configuration is available for the 'qwen3' architecture."
NOT_DIVISIBLE = "The number of element per dimension ch_axis=-1 is 96 which is not divisible by group_size=64."


def failed(kind: str, message: str, stage: str = "config") -> dict[str, str]:
    """What a line says of a run that failed."""
    return {"result(ok/error class)": kind, "stage": stage, "message": message}


FAILED = failed("ValueError", NOT_DIVISIBLE, "quantize")


def line(model: str, scheme: str, extra: dict[str, Any] | None = None, **changes: str) -> dict[str, str]:
    """A recorded line of a model that is built by its name, whose weight file is as large as it says."""
    sizes = next(models.usual(models.parse(model) or pytest.fail(f"{model} is not known")))
    built = models.build(sizes)
    assert built is not None
    values = dict.fromkeys(rows.COLUMNS, "") | {"output_bytes": ""}
    values |= {"model": model, "scheme": scheme, "extra": json.dumps(extra) if extra else ""}
    values |= {"result(ok/error class)": "ok", "src_bytes": str(models.weight_file_bytes(sizes, built))}
    return values | changes


def written(folder: Path, *lines: dict[str, str]) -> Path:
    path = folder / "matrix.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return path


def judged(folder: Path, *lines: dict[str, str]) -> list[Judged]:
    return matrix.judge(written(folder, *lines))


@pytest.fixture(scope="module")
def recorded_rows() -> list[Judged]:
    return matrix.judge(fixture("quark", "matrix.csv"))


def test_every_recorded_row_is_judged_and_agrees(recorded_rows: list[Judged]) -> None:
    assert len(recorded_rows) > 300
    assert [f"{each.row.shown}: {each.problems}" for each in recorded_rows if each.problems] == []


def test_what_failed_is_stopped_and_what_worked_is_not(recorded_rows: list[Judged]) -> None:
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for each in recorded_rows:
        said[each.row.worked].add(each.said)
    assert said == {True: {"warned", "clean"}, False: {"blocked"}}


def test_every_export_is_predicted_within_one_percent(recorded_rows: list[Judged]) -> None:
    off = [each.size_off for each in recorded_rows if each.row.worked]
    assert len(off) > 200
    assert all(error is not None and abs(error) < matrix.NEAR for error in off)


AGREE = [
    line("llama_h96", "int4_wo_64") | FAILED,
    line("llama_h96", "int4_wo_32"),
    line("mistral_h100", "uint4_wo_32") | FAILED,
    line("qwen2_h96", "int4_wo_per_channel"),
    line("qwen3_h96_l3", "int4_wo_32"),
    line("gemma2", "int4_wo_128"),
    line("phi3_h96", "uint4_wo_128") | FAILED,
    line("qwen3_moe_e8", "mx6") | failed("AssertionError", "", "export"),
    line("opt_h96", "mxfp4", warnings_and_obs=OUT_OF_CUDA),
    line("qwen3_h96", "fp8", algo="gptq") | failed("NotImplementedError", NOT_BUILT_IN),
    line("qwen3_h96", "fp8", {"algo_from": "llama"}, algo="gptq"),
    line("llama_i192", "fp8", {"layer_config": {"*down_proj": "int4_wo_64"}}),
    line("llama_i96", "fp8", {"layer_config": {"*down_proj": "int4_wo_64"}}) | FAILED,
    line("llama", "fp8", {"layer_config": {"*nothing*": "int8"}}),
    line("llama", "fp8", {"layer_config": {"lm_head": "int8"}}),
    line("qwen2", "fp8", {"exclude_layers": ["down_proj"]}, warnings_and_obs="OBS: exclude=[]"),
    line("mistral_tied", "fp8", {"exclude_layers": []}, warnings_and_obs="OBS: exclude=[]"),
    line("llama", "fp8", {"min_kv_scale": 0.1}),
    line("llama", "fp8", kv="int8") | failed("ValueError", "Unsupported KV cache scheme: int8"),
    line("llama", "fp8", {"layer_config": {"*mlp*": "fp9"}}) | failed("KeyError", "'fp9'"),
]


@pytest.mark.parametrize("known", AGREE, ids=lambda known: f"{known['model']}-{known['scheme']}-{known['extra']}")
def test_other_dimensions_and_families_follow_the_same_rules(tmp_path: Path, known: dict[str, str]) -> None:
    (found,) = judged(tmp_path, known)
    assert found.problems == []


DISAGREE = [
    (line("llama", "int4_wo_32") | FAILED, "has to be stopped by group_size_divides; stopped by nothing"),
    (line("llama_h96", "int4_wo_64"), "it worked and is stopped by group_size_divides"),
    (line("llama", "mx6") | FAILED, "has to be stopped by group_size_divides; stopped by not_exportable"),
    (line("llama", "fp8", warnings_and_obs=OUT_OF_CUDA), "it has to warn of evaluation_needs_gpu"),
    (line("llama", "fp8", output_bytes="1000000"), "the predicted size is off by +35.0"),
    (line("llama", "fp8", src_bytes="9000000"), "the structure of llama is not known"),
    (line("llama", "fp8") | {"model": "eagle"}, "the structure of eagle is not known"),
    (line("llama", "fp8", {"mood": "good"}), "asks for mood"),
    (line("llama", "fp8") | failed("ValueError", "The moon is full."), "no code is known for ValueError"),
]


@pytest.mark.parametrize(("known", "words"), DISAGREE, ids=[words for _, words in DISAGREE])
def test_a_disagreement_is_listed_and_fails(tmp_path: Path, known: dict[str, str], words: str) -> None:
    out = StringIO()
    assert matrix.main(written(tmp_path, line("llama", "fp8"), known), out) == 1
    assert "1 of 2 rows agree." in out.getvalue()
    assert words in out.getvalue()


def test_the_table_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, *AGREE)
    assert run(["matrix", str(path)]) == 0
    shown = capsys.readouterr().out
    assert f"{len(AGREE)} of {len(AGREE)} rows agree." in shown
    assert "fails: group_size_divides" in shown


def test_a_file_with_other_columns_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.csv"
    path.write_text("model,scheme\nllama,fp8\n", encoding="utf-8")
    assert run(["matrix", str(path)]) == 2
    assert "has no column algo" in capsys.readouterr().err
    assert run(["matrix", str(tmp_path / "absent.csv")]) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"src_bytes": "many"}, "line 3, column src_bytes: 'many' is no number"),
        ({"src_bytes": "nan"}, "line 3, column src_bytes: 'nan' is no number of bytes"),
        ({"output_bytes": "1e999"}, "line 3, column output_bytes: '1e999' is no number of bytes"),
        ({"output_bytes": "-5"}, "line 3, column output_bytes: '-5' is no number of bytes"),
        ({"extra": "{"}, "line 3, column extra: '{' is no JSON"),
        ({"extra": "[]"}, "line 3, column extra: '[]' is no JSON object"),
        ({"extra": '{"layer_config": {"*": 4}}'}, "line 3, column extra: layer_config has to give"),
        ({"extra": '{"exclude_layers": "lm_head"}'}, "line 3, column extra: exclude_layers has to be a list"),
        ({"extra": '{"min_kv_scale": "low"}'}, "line 3, column extra: min_kv_scale"),
        ({"warnings_and_obs": "exclude=[1 2]"}, "line 3, column warnings_and_obs: what stands behind exclude="),
        ({"model": ""}, "line 3, column model: it is empty"),
    ],
)
def test_a_cell_that_cannot_be_read_is_told_by_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], says: str
) -> None:
    path = written(tmp_path, line("llama_h96", "fp8"), line("llama_h96", "fp8") | changes)
    assert run(["matrix", str(path)]) == 2
    said = capsys.readouterr()
    assert f"{path}, {says}" in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b"llama,fp8", "line 3, column algo: the row has 2 cells instead of 11."),
        (b"x," * 11, "line 3, behind the last column: the row has 12 cells instead of 11."),
        (b'"llama', "line 3: this is no CSV"),
        (b"llama,\xff\xfe", "line 3, byte 7: this is no UTF-8 text."),
        (b"x" * 200_000, "line 3: this is no CSV (field larger"),
    ],
)
def test_a_row_that_is_none_is_told_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: bytes, says: str
) -> None:
    path = written(tmp_path, line("llama_h96", "fp8"))
    path.write_bytes(path.read_bytes() + row + b"\n")
    assert run(["matrix", str(path)]) == 2
    said = capsys.readouterr()
    assert f"{path}, {says}" in said.err
    assert said.err.count("\n") == 1


def test_a_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "matrix.csv"
    path.write_bytes(bytes(range(256)) * 100)
    assert run(["matrix", str(path)]) == 2
    assert "no UTF-8 text" in capsys.readouterr().err


def test_an_empty_file_agrees_with_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(",".join(rows.COLUMNS) + "\n", encoding="utf-8")
    assert matrix.main(path, StringIO()) == 1


def test_names_of_models_are_read() -> None:
    assert models.parse("qwen3_moe_h96_e8_tied") == models.Sizes("qwen3_moe", hidden=96, experts=8, tied=True)
    assert models.parse("gemma3_text") == models.Sizes("gemma3_text", tied=True)
    assert models.parse("eagle_h96") is None
    assert all(models.parse(name) is not None for name in recorded().templates)
