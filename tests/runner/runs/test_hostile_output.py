"""Whatever lies in an output folder, the report says so: no exception, no waiting, no way out of the folder."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.runs import output
from runner.runs.output import read_output
from runner.runs.verification import verify
from schemas.artifacts.report import ValidationReport
from tests.runner.runs.exported import Export, catalogue, detail, evidence_of, manifest_for, outcomes

CATALOGUE = catalogue()
RECORDED = Export.recorded("llama-fp8-kv")


def report_on(folder: Path) -> ValidationReport:
    """The report, which can always be written down."""
    report = verify(manifest_for(RECORDED, folder), CATALOGUE, evidence_of(RECORDED))
    json.loads(report.model_dump_json())
    return report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RECORDED.write(tmp_path / "out")


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["lm_head", "*", "[", "fp8"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
KEYS = [*RECORDED.told, "weight", "dtype"]


@settings(deadline=None)
@given(changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6), whole=st.none() | VALUES)
def test_any_quantization_config_gives_a_report(changes: dict[str, Any], whole: Any) -> None:
    export = RECORDED.copy()
    export.told.update(changes)
    if whole is not None:
        export.config["quantization_config"] = whole
    with tempfile.TemporaryDirectory() as name:
        report = report_on(export.write(Path(name)))
    if whole is not None and not isinstance(whole, dict):
        assert report.status == "failed"


SPECS = st.dictionaries(st.sampled_from(["dtype", "qscheme", "group_size", "is_dynamic"]), SCALARS, max_size=4)
LAYERS = st.dictionaries(
    st.sampled_from(["*", "*q_proj", "[!a-", "model.layers.0.mlp.up_proj"]) | st.text(max_size=10),
    VALUES | st.fixed_dictionaries({"weight": SPECS | st.lists(SPECS), "input_tensors": VALUES}),
    max_size=4,
)


@settings(deadline=None)
@given(layers=LAYERS, exclude=st.lists(st.sampled_from(["lm_head", "*", "[", "*[a", "?"]) | st.text(max_size=6)))
def test_any_layer_configuration_gives_a_report(layers: dict[str, Any], exclude: list[str]) -> None:
    export = RECORDED.copy()
    export.told.update(layer_quant_config=layers, exclude=exclude)
    with tempfile.TemporaryDirectory() as name:
        report = report_on(export.write(Path(name)))
    if "lm_head" not in exclude and not any(set("*?[") & set(pattern) for pattern in exclude):
        assert outcomes(report)["quantization_config"] == "failed"


NAMES = st.sampled_from(sorted(RECORDED.tensors)) | st.text(max_size=20)
TENSORS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["BF16", "F8_E4M3", "U8", "I32", "F4"]),
            "shape": st.lists(st.integers(0, 200), max_size=3),
        }
    ),
    max_size=12,
)
BITS = {"BF16": 16, "F8_E4M3": 8, "U8": 8, "I32": 32, "F4": 4}


@settings(deadline=None)
@given(tensors=TENSORS)
def test_any_well_formed_header_gives_a_report(tensors: dict[str, Any]) -> None:
    offset = 0
    for tensor in tensors.values():
        elements = 1
        for width in tensor["shape"]:
            elements *= width
        size = elements * BITS[tensor["dtype"]] // 8
        tensor["data_offsets"] = [offset, offset + size]
        offset += size
    text = json.dumps(tensors).encode()
    with tempfile.TemporaryDirectory() as name:
        folder = RECORDED.write(Path(name))
        with (folder / "model.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + offset)
        report = report_on(folder)
    assert report.status == "failed"


@settings(deadline=None)
@given(
    name=st.sampled_from(["config.json", "model.safetensors", "model.safetensors.index.json"]),
    content=st.binary(max_size=300) | VALUES.map(lambda value: json.dumps(value).encode()),
)
def test_any_bytes_give_a_report(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = RECORDED.write(Path(temporary))
        if name.endswith(".index.json"):
            (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
        (folder / name).write_bytes(content)
        assert report_on(folder).status == "failed"


@settings(deadline=None, max_examples=40)
@given(names=st.lists(st.binary(min_size=1, max_size=40).filter(lambda name: not set(name) & {0, 47}), unique=True))
def test_files_with_any_names_are_listed(names: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = RECORDED.write(Path(temporary))
        made = 0
        for name in names:
            path = folder / os.fsdecode(name)
            if name not in (b".", b"..") and not path.exists():
                path.touch()
                made += 1
        report = report_on(folder)
    assert len(report.files) == 6 + made
    assert all(file.name.isprintable() for file in report.files)
    assert report.status == "success"


def test_deep_json_is_a_failed_check(folder: Path) -> None:
    (folder / "config.json").write_text('{"quantization_config":' + "[" * 200_000)
    assert outcomes(report_on(folder))["quantization_config"] == "failed"
    header = b'{"a":' + b"[" * 200_000
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    assert outcomes(report_on(folder))["files"] == "failed"


def test_a_huge_configuration_is_not_read(folder: Path) -> None:
    os.truncate(folder / "config.json", 1 << 40)
    report = report_on(folder)
    assert "config.json is 1099511627776 bytes long" in detail(report, "quantization_config")


def test_absurd_patterns_are_bounded(folder: Path) -> None:
    """Compiling all of them would take minutes, and none of them is the engine's."""
    config = json.loads((folder / "config.json").read_text())
    patterns = [f"*{'a*' * 200}{number}" for number in range(50_000)]
    config["quantization_config"]["exclude"] = ["lm_head", *patterns]
    (folder / "config.json").write_text(json.dumps(config))
    assert outcomes(report_on(folder))["quantization_config"] == "ok"


def test_pipes_sockets_and_loops_are_not_opened(folder: Path) -> None:
    """Reading a pipe would wait for ever."""
    (folder / "config.json").unlink()
    os.mkfifo(folder / "config.json")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "self").symlink_to("self")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s"))
        report = report_on(folder)
    assert report.status == "failed"
    assert "config.json is a link or something else" in detail(report, "files")
    assert sorted(file.name for file in report.files if not file.mode.startswith("-")) == [
        "config.json",
        "loop",
        "s",
        "self",
    ]


def test_a_linked_folder_is_no_output(folder: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    assert "is not a folder" in detail(report_on(link), "files")


def test_weights_in_a_folder_below_do_not_count(folder: Path) -> None:
    (folder / "below").mkdir()
    shutil.move(folder / "model.safetensors", folder / "below" / "model.safetensors")
    report = report_on(folder)
    assert report.status == "failed"
    assert "below/model.safetensors" in {file.name for file in report.files}


def test_a_folder_of_too_many_files_is_no_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MOST_ENTRIES", 5)
    report = report_on(folder)
    assert "holds more than 5 files" in detail(report, "files")


def test_a_long_list_is_cut_but_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LISTED_FILES", 2)
    found = read_output(folder)
    assert len(found.files) == 2
    assert len(found.sizes) == 6
    assert report_on(folder).status == "success"
