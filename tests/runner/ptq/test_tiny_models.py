"""The tiny models have the layout of real checkpoints."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.tiny_models import MODEL_TYPES, SMALLEST_VOCABULARY, make_tiny_model, tiny_text


def header(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    read: dict[str, Any] = json.loads(data[8 : 8 + length])
    del read["__metadata__"]
    assert len(data) == 8 + length + max(item["data_offsets"][1] for item in read.values())
    return read


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_tensors_lie_one_after_another_and_fit_their_shapes(model_type: str, tmp_path: Path) -> None:
    tensors = header(make_tiny_model(tmp_path, model_type) / "model.safetensors")
    end = 0
    for tensor in tensors.values():
        first, last = tensor["data_offsets"]
        assert first == end
        assert last - first == 2 * math.prod(tensor["shape"])
        end = last
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == model_type
    assert tensors["lm_head.weight"]["shape"] == [config["vocab_size"], config["hidden_size"]]


def test_shards_together_hold_what_one_file_holds(tmp_path: Path) -> None:
    whole = header(make_tiny_model(tmp_path / "whole") / "model.safetensors")
    parts = make_tiny_model(tmp_path / "parts", shards=3)
    index = json.loads((parts / "model.safetensors.index.json").read_text())
    found = {name: header(parts / file)[name]["shape"] for name, file in index["weight_map"].items()}
    assert found == {name: tensor["shape"] for name, tensor in whole.items()}
    assert index["metadata"]["total_size"] == sum(2 * math.prod(shape) for shape in found.values())


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    one, two, other = (make_tiny_model(tmp_path / str(number), seed=number // 2) for number in range(3))
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes()
    assert (one / "model.safetensors").read_bytes() != (other / "model.safetensors").read_bytes()


def test_tied_embeddings_leave_the_head_out(tmp_path: Path) -> None:
    assert "lm_head.weight" not in header(make_tiny_model(tmp_path, tied=True) / "model.safetensors")


@pytest.mark.parametrize(("dtype", "kind"), [("F16", "e"), ("F32", "f")])
def test_weights_are_small_numbers_of_both_signs(dtype: str, kind: str, tmp_path: Path) -> None:
    data = (make_tiny_model(tmp_path, dtype=dtype) / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    values = [value for (value,) in struct.iter_unpack(f"<{kind}", data[start : start + 4000])]
    assert all(1 / 128 <= abs(value) <= 1 / 16 for value in values)
    assert 0.4 < sum(value > 0 for value in values) / len(values) < 0.6


def test_sizes_that_make_no_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="do not divide evenly"):
        make_tiny_model(tmp_path, hidden=100, heads=3)
    with pytest.raises(ValueError, match="is too small"):
        make_tiny_model(tmp_path, vocab=SMALLEST_VOCABULARY - 1)
    with pytest.raises(ValueError, match="no tiny gpt2"):
        make_tiny_model(tmp_path, "gpt2")
    assert list(tmp_path.iterdir()) == []


def test_a_text_is_the_same_every_time_in_both_forms(tmp_path: Path) -> None:
    plain = tiny_text(tmp_path / "a.txt", words=500).read_text()
    assert plain == tiny_text(tmp_path / "b.txt", words=500).read_text()
    assert len(plain.split()) == 500
    rows = [json.loads(line)["text"] for line in tiny_text(tmp_path / "c.jsonl", words=500).read_text().splitlines()]
    assert "\n\n".join(rows) + "\n" == plain
