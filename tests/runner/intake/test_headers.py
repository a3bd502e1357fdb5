from __future__ import annotations

import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.intake.headers import Tensor, read_header, read_headers
from runner.intake.source import ModelFolder
from tests.runner.intake.checkpoints import header_of, qwen3_8b, write_checkpoint, write_sparse
from tests.tiny_models import make_tiny_model

GOOD = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}


def packed(header: Any, data: bytes = bytes(24)) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(**changes: Any) -> bytes:
    return packed({"a": GOOD["a"] | changes})


def refusal(folder: Path) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        read_headers(folder)
    error = refused.value
    assert error.message.endswith(".")
    assert error.message.isprintable()
    assert error.hint
    return error


def test_a_good_file_is_read_without_its_data(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(packed(GOOD))
    headers = read_headers(tmp_path)
    assert headers.tensors == (Tensor("a", "F32", (2, 3), 24, "model.safetensors"),)
    assert headers.tensors[0].elements == 6
    assert (headers.size_bytes, headers.files, headers.loose) == (24, ("model.safetensors",), False)


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "weights_truncated", "ends after 0 bytes"),
        (b"\x10\0\0", "weights_truncated", "ends after 3 bytes"),
        (packed(GOOD)[:30], "weights_truncated", "within its header"),
        (packed(GOOD, bytes(23)), "weights_truncated", "ends after 23 of its 24 bytes"),
        (packed(GOOD, b""), "weights_truncated", "ends after 0 of its 24 bytes"),
        (packed(GOOD, bytes(25)), "weights_header_broken", "1 bytes follow"),
        (b"PK\x03\x04" + bytes(100), "weights_not_safetensors", "is not a safetensors file"),
        (b"PK\x03\x04PK\x03\x04" + bytes(100), "weights_not_safetensors", "is not a safetensors file"),
        (b"\xff" * 100, "weights_not_safetensors", "is not a safetensors file"),
        (struct.pack("<Q", 100_000_001) + bytes(100), "weights_not_safetensors", "is not a safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "weights_lfs_pointer", "git-lfs"),
        (packed(b"{"), "weights_header_broken", "not a JSON object"),
        (packed(b"[]"), "weights_not_safetensors", "is not a safetensors file"),
        (packed(b"{}x"), "weights_header_broken", "not a JSON object"),
        (struct.pack("<Q", 0), "weights_header_broken", "not a JSON object"),
        (packed(b'{"a": "\xff"}'), "weights_header_broken", "not a JSON object"),
        (packed(b"{" + b'"a":[' * 50_000), "weights_header_broken", "not a JSON object"),
        (packed(b'{"a": ' + b"9" * 10_000 + b"}"), "weights_header_broken", "not a JSON object"),
        (packed(GOOD | {"__metadata__": {"format": 5}}), "weights_header_broken", "__metadata__"),
        (packed(GOOD | {"__metadata__": ["pt"]}), "weights_header_broken", "__metadata__"),
        (packed({"a": 5}), "weights_header_broken", "entry of a"),
        (packed({"a": None}), "weights_header_broken", "entry of a"),
        (packed({"a": {}}), "weights_header_broken", "unknown dtype None"),
        (packed({"": GOOD["a"]}), "weights_header_broken", "a tensor is named"),
        (packed({"a\nb": GOOD["a"]}), "weights_header_broken", "a tensor is named"),
        (packed({"\ud800": GOOD["a"]}), "weights_header_broken", "a tensor is named"),
        (packed({"x" * 1001: GOOD["a"]}), "weights_header_broken", "a tensor is named"),
        (entry(dtype="F33"), "weights_header_broken", "unknown dtype 'F33'"),
        (entry(dtype=["F32"]), "weights_header_broken", "unknown dtype"),
        (entry(shape=[2, -3]), "weights_header_broken", "no usable shape"),
        (entry(shape=[2, 3.0]), "weights_header_broken", "no usable shape"),
        (entry(shape=[True, 6]), "weights_header_broken", "no usable shape"),
        (entry(shape=None), "weights_header_broken", "no usable shape"),
        (entry(shape=[1] * 17), "weights_header_broken", "no usable shape"),
        (entry(shape=[2, 4]), "weights_header_broken", "do not fit"),
        (entry(shape=[2**62, 2**62]), "weights_header_broken", "do not fit"),
        (entry(shape=[2**63]), "weights_header_broken", "no usable shape"),
        (entry(data_offsets=[24, 0]), "weights_header_broken", "data offsets"),
        (entry(data_offsets=[0]), "weights_header_broken", "data offsets"),
        (entry(data_offsets=[-24, 0]), "weights_header_broken", "data offsets"),
        (entry(data_offsets={"0": 24}), "weights_header_broken", "data offsets"),
        (entry(data_offsets=[4, 28]), "weights_header_broken", "leaves a gap before it"),
        (packed(GOOD | {"b": GOOD["a"]}), "weights_header_broken", "overlaps the one before it"),
        (
            packed(GOOD | {"b": {"dtype": "F32", "shape": [1], "data_offsets": [20, 24]}}),
            "weights_header_broken",
            "overlaps",
        ),
    ],
)
def test_each_broken_file_has_its_code(tmp_path: Path, content: bytes, code: str, says: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    error = refusal(tmp_path)
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize(
    ("dtype", "shape", "size"), [("F4", [32], 16), ("F6_E2M3", [4], 3), ("F8_E4M3", [3], 3), ("BF16", [0, 5], 0)]
)
def test_small_and_empty_types_are_measured_in_bits(tmp_path: Path, dtype: str, shape: list[int], size: int) -> None:
    header = {"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}
    (tmp_path / "model.safetensors").write_bytes(packed(header, bytes(size)))
    assert read_headers(tmp_path).tensors[0].size_bytes == size


def test_tensors_may_stand_in_any_order(tmp_path: Path) -> None:
    header = {
        "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]},
        "none": {"dtype": "U8", "shape": [0], "data_offsets": [4, 4]},
        "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
    }
    (tmp_path / "model.safetensors").write_bytes(packed(header, bytes(8)))
    assert [tensor.name for tensor in read_header(ModelFolder(tmp_path), "model.safetensors")] == ["a", "none", "b"]


def test_shards_are_read_by_their_index(tmp_path: Path) -> None:
    whole = read_headers(make_tiny_model(tmp_path / "one"))
    parts = read_headers(make_tiny_model(tmp_path / "three", shards=3))
    assert len(parts.files) == 3
    assert {t[:4] for t in parts.tensors} == {t[:4] for t in whole.tensors}


def test_a_single_file_wins_over_an_index(tmp_path: Path) -> None:
    make_tiny_model(tmp_path, shards=2)
    write_sparse(tmp_path / "model.safetensors", *header_of({"a": (2,)}))
    assert [tensor.name for tensor in read_headers(tmp_path).tensors] == ["a"]


def test_other_weight_files_are_left_alone(tmp_path: Path) -> None:
    make_tiny_model(tmp_path)
    (tmp_path / "consolidated.safetensors").write_bytes(b"broken")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickled")
    assert read_headers(tmp_path).files == ("model.safetensors",)


def test_files_without_single_file_or_index_are_loose(tmp_path: Path) -> None:
    write_sparse(tmp_path / "weights-a.safetensors", *header_of({"a": (2,)}))
    write_sparse(tmp_path / "weights-b.safetensors", *header_of({"b": (2,)}))
    headers = read_headers(tmp_path)
    assert headers.loose
    assert headers.files == ("weights-a.safetensors", "weights-b.safetensors")


@pytest.mark.parametrize(
    ("names", "code"),
    [
        ([], "weights_missing"),
        (["pytorch_model.bin"], "weights_not_safetensors"),
        (["pytorch_model-00001-of-00002.bin", "x.pth"], "weights_not_safetensors"),
        (["model-Q4_1.gguf"], "weights_not_safetensors"),
        (["model.safetensors\n"], "weights_missing"),
    ],
)
def test_a_folder_without_safetensors(tmp_path: Path, names: list[str], code: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    assert refusal(tmp_path).code == code


def test_missing_shards_are_counted_and_named(tmp_path: Path) -> None:
    make_tiny_model(tmp_path, shards=6)
    for number in range(2, 7):
        (tmp_path / f"model-{number:05d}-of-00006.safetensors").unlink()
    error = refusal(tmp_path)
    assert error.code == "weights_shard_missing"
    assert "names 6 weight files, and 5 of them are not" in error.message
    assert "model-00002-of-00006.safetensors" in error.message


@pytest.mark.parametrize(
    "index",
    [
        "{",
        "[]",
        "{}",
        '{"weight_map": {}}',
        '{"weight_map": []}',
        '{"weight_map": {"a": 5}}',
        '{"weight_map": {"a": null}}',
        '{"weight_map": {"a": "../model.safetensors"}}',
        '{"weight_map": {"a": "/etc/passwd"}}',
        '{"weight_map": {"a": "sub/model.safetensors"}}',
        '{"weight_map": {"a": "model.bin"}}',
        '{"weight_map": {"a": "x\\n.safetensors"}}',
        '{"weight_map": {"a": "\\ud800.safetensors"}}',
        '{"weight_map": {"lost": "part.safetensors"}}',
    ],
)
def test_a_broken_index(tmp_path: Path, index: str) -> None:
    write_sparse(tmp_path / "part.safetensors", *header_of({"a": (2,)}))
    (tmp_path / "model.safetensors.index.json").write_text(index)
    assert refusal(tmp_path).code == "weights_index_broken"


def test_a_tensor_in_two_shards(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_sparse(tmp_path / f"{name}.safetensors", *header_of({"a": (2,), name: (2,)}))
    error = refusal(tmp_path)
    assert error.code == "weights_index_broken"
    assert "The tensor a is in several" in error.message


def test_a_pipe_in_place_of_weights_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    assert refusal(tmp_path).code == "file_not_readable"


def test_a_link_to_nowhere_is_missing(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").symlink_to("../blobs/gone")
    assert refusal(tmp_path).code == "file_missing"


def test_hundreds_of_shards_are_read(tmp_path: Path) -> None:
    shapes, config = qwen3_8b()
    headers = read_headers(write_checkpoint(tmp_path, shapes, config, shards=300))
    assert len(headers.files) == 300
    assert len(headers.tensors) == len(shapes)
    assert headers.size_bytes == 16_381_470_720  # what the published checkpoint's index gives as its size


numbers = st.integers(-5, 40) | st.integers() | st.booleans() | st.none()
entries = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "U8", "F4", "BF16", "X"]) | st.none(),
        "shape": st.lists(numbers, max_size=4) | st.none(),
        "data_offsets": st.lists(numbers, max_size=3) | st.text(max_size=3),
    },
)
files = (
    st.binary(max_size=400)
    | st.builds(packed, st.binary(max_size=200), st.binary(max_size=60))
    | st.builds(packed, st.dictionaries(st.text(max_size=4), entries | numbers, max_size=4), st.binary(max_size=60))
)


def outcome(name: str, content: bytes) -> list[Tensor] | RunnerError:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            return read_header(ModelFolder(path.parent), path.name)
        except RunnerError as refused:
            return refused


@given(files)
def test_any_file_is_read_or_refused_with_a_sentence(content: bytes) -> None:
    found = outcome("model.safetensors", content)
    if isinstance(found, RunnerError):
        assert found.code.startswith("weights_")
        assert found.message.isprintable()
    else:
        assert sum(tensor.size_bytes for tensor in found) <= len(content)


@given(st.data())
def test_a_good_file_with_one_change_is_read_or_refused(data: st.DataObject) -> None:
    good = packed(
        {"__metadata__": {"format": "pt"}, **GOOD, "b": {"dtype": "U8", "shape": [4], "data_offsets": [24, 28]}}
    )
    good += bytes(4)
    place = data.draw(st.integers(0, len(good) - 1))
    change = data.draw(st.sampled_from(["cut", "flip", "drop"]))
    changed = {
        "cut": good[:place],
        "flip": good[:place] + bytes([good[place] ^ data.draw(st.integers(1, 255))]) + good[place + 1 :],
        "drop": good[:place] + good[place + 1 :],
    }[change]
    found = outcome("model.safetensors", changed)
    if change != "flip":
        assert isinstance(found, RunnerError)
    elif not isinstance(found, RunnerError):
        assert sum(tensor.size_bytes for tensor in found) == 28
