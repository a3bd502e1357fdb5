from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.intake.config import ModelConfig, has_tokenizer, parse_config, read_config, remote_code
from runner.intake.listing import Listing

PATH = Path("/models/m/config.json")


def parsed(**document: Any) -> ModelConfig:
    return parse_config({"model_type": "llama"} | document, PATH)


def refusal(folder: Path) -> RunnerError:
    with pytest.raises(RunnerError) as refused:
        read_config(folder)
    assert refused.value.message.endswith(".")
    assert refused.value.message.isprintable()
    assert refused.value.hint
    return refused.value


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "config_broken", "not JSON"),
        (b"{", "config_broken", "line 1, column 2"),
        (b"{'model_type': 'llama'}", "config_broken", "not JSON"),
        (b"[]", "config_broken", "JSON object"),
        (b"null", "config_broken", "JSON object"),
        (b"\xff\xfe{}", "config_broken", "not UTF-8"),
        (b"\xef\xbb\xbf{}", "config_broken", "not JSON"),
        (b"[" * 100_000, "config_broken", "cannot be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "config_broken", "cannot be read"),
        (b"{}", "model_type_missing", "which model_type"),
        (b'{"model_type": null}', "model_type_missing", "which model_type"),
        (b'{"model_type": ""}', "model_type_missing", "which model_type"),
        (b'{"model_type": 5}', "config_value_wrong", "model_type 5"),
        (b'{"model_type": "a b"}', "config_value_wrong", "model_type 'a b'"),
        (b'{"model_type": "../x"}', "config_value_wrong", "model_type"),
        (b'{"model_type": "\\u001b[31m"}', "config_value_wrong", "model_type"),
        (b" " * 16_000_001, "config_broken", "at most 16000000"),
    ],
)
def test_each_broken_configuration_has_its_code(tmp_path: Path, content: bytes, code: str, says: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    error = refusal(tmp_path)
    assert error.code == code
    assert says in error.message


def test_a_missing_or_strange_configuration(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == "config_missing"
    os.mkfifo(tmp_path / "config.json")
    assert refusal(tmp_path).code == "file_not_readable"
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    assert refusal(tmp_path).code == "file_not_readable"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", "many"),
        ("num_hidden_layers", -1),
        ("num_hidden_layers", 0),
        ("num_hidden_layers", 2.5),
        ("num_hidden_layers", True),
        ("num_hidden_layers", 10**12),
        ("hidden_size", [4096]),
        ("vocab_size", {}),
        ("num_experts", "8"),
        ("tie_word_embeddings", "yes"),
        ("transformers_version", 5),
        ("transformers_version", "5\n"),
        ("architectures", "LlamaForCausalLM"),
        ("architectures", [5]),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(key: str, value: object) -> None:
    with pytest.raises(RunnerError, match=f"has {key} ") as refused:
        parsed(**{key: value})
    assert refused.value.code == "config_value_wrong"


def test_absent_facts_are_none() -> None:
    assert parsed() == ModelConfig("llama", (), "", None, None, None, None, None, (), None)


@pytest.mark.parametrize(
    ("document", "layers", "hidden", "vocab"),
    [
        ({"num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 10}, 2, 8, 10),
        ({"n_layer": 2, "n_embd": 8, "vocab_size": 10}, 2, 8, 10),
        ({"num_layers": 2, "hidden_size": 8, "padded_vocab_size": 10}, 2, 8, 10),
        ({"n_layers": 2, "d_model": 8, "vocab_size": 10}, 2, 8, 10),
        ({"text_config": {"num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 10}}, 2, 8, 10),
        ({"llm_config": {"num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 10}}, 2, 8, 10),
        ({"thinker_config": {"text_config": {"num_hidden_layers": 2, "hidden_size": 8}}}, 2, 8, None),
        ({"num_hidden_layers": None, "text_config": {"num_hidden_layers": 2}}, 2, None, None),
        ({"vision_config": {"num_hidden_layers": 27, "hidden_size": 99}}, None, None, None),
    ],
)
def test_measures_have_many_spellings(
    document: dict[str, Any], layers: int, hidden: int | None, vocab: int | None
) -> None:
    found = parsed(**document)
    assert (found.hidden_layers, found.hidden_size, found.vocab_size) == (layers, hidden, vocab)


@pytest.mark.parametrize(
    ("document", "experts"),
    [
        ({"num_experts": 128}, 128),
        ({"num_local_experts": 8}, 8),
        ({"n_routed_experts": 256}, 256),
        ({"ffn_config": {"moe_num_experts": 16}}, 16),
        ({"text_config": {"num_experts": 64}}, 64),
        ({"moe_num_experts": [64, 64]}, 64),
        ({"num_experts": 0}, None),
        ({"num_experts": None}, None),
        ({}, None),
    ],
)
def test_experts(document: dict[str, Any], experts: int | None) -> None:
    assert parsed(**document).experts == experts


def test_modalities_are_sub_configurations_beside_text() -> None:
    assert parsed(vision_config={}, text_config={}).modalities == ("vision",)
    assert parsed(thinker_config={"audio_config": {}, "vision_config": {}}).modalities == ("vision", "audio")
    assert parsed(vision_config=None).modalities == ()


@pytest.mark.parametrize(
    ("document", "method"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
        ({"quantization_config": {"bits": 4}}, "unknown"),
        ({"quantization_config": {"quant_method": "\x1b[2J"}}, "unknown"),
        ({"compression_config": {"format": "x"}}, "compressed-tensors"),
        ({"text_config": {"quantization_config": {"quant_method": "awq"}}}, "awq"),
        ({"quantization_config": None}, None),
        ({"quantization_config": {}}, None),
    ],
)
def test_quantized_inputs(document: dict[str, Any], method: str | None) -> None:
    assert parsed(**document).quantized_by == method


def test_the_outer_word_on_tied_embeddings_counts() -> None:
    assert parsed(tie_word_embeddings=False, text_config={"tie_word_embeddings": True}).ties_embeddings is False
    assert parsed(text_config={"tie_word_embeddings": True}).ties_embeddings is True


def code_of(tmp_path: Path, **files: Any) -> list[str]:
    for name, document in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    return remote_code(tmp_path)


def test_code_is_found_in_the_configuration_and_with_the_tokenizer(tmp_path: Path) -> None:
    found = code_of(
        tmp_path,
        config={"auto_map": {"AutoConfig": "configuration_x.XConfig", "AutoModel": "org/other--modeling_x.X"}},
        tokenizer_config={"auto_map": {"AutoTokenizer": ["tokenization_x.X", None]}},
        processor_config={"auto_map": {"AutoProcessor": "processing_x.X"}},
        generation_config={"auto_map": "not read by loading"},
    )
    assert found == [
        "config.json: AutoConfig -> configuration_x.XConfig",
        "config.json: AutoModel -> org/other--modeling_x.X",
        "tokenizer_config.json: AutoTokenizer -> tokenization_x.X",
        "processor_config.json: AutoProcessor -> processing_x.X",
    ]


def test_code_of_an_inner_configuration_counts(tmp_path: Path) -> None:
    assert code_of(tmp_path, config={"text_config": {"auto_map": {"AutoConfig": "x.X"}}})


@pytest.mark.parametrize("value", [None, {}, [], "", 5, {"AutoConfig": None}, {"AutoConfig": 5}])
def test_an_empty_or_senseless_map_names_no_code(tmp_path: Path, value: object) -> None:
    assert code_of(tmp_path, config={"auto_map": value}) == []


def test_code_is_named_so_that_it_shows(tmp_path: Path) -> None:
    (entry,) = code_of(tmp_path, config={"auto_map": {"Auto\n": "x\u202e.X"}})
    assert entry.isprintable()


def test_a_broken_tokenizer_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(RunnerError, match=r"tokenizer_config\.json is not JSON") as refused:
        remote_code(tmp_path)
    assert refused.value.code == "config_broken"


@pytest.mark.parametrize(
    ("files", "code", "there"),
    [
        (("tokenizer.json",), [], True),
        (("tokenizer.model",), [], True),
        (("vocab.json", "merges.txt"), [], True),
        (("vocab.json",), [], False),
        (("vocab.txt",), [], True),
        (("qwen.tiktoken",), [], True),
        (("tiktoken.model",), [], True),
        (("tekken.json",), [], True),
        (("tokenizer_config.json", "config.json"), [], False),
        (("tokenizer_config.json",), ["tokenizer_config.json: AutoTokenizer -> x.X"], True),
        (("config.json",), ["config.json: AutoModel -> x.X"], False),
        ((), [], False),
    ],
)
def test_what_makes_a_tokenizer(files: tuple[str, ...], code: list[str], there: bool) -> None:
    assert has_tokenizer(Listing(files, ()), code) == there


KEYS = (
    *("model_type", "architectures", "transformers_version", "num_hidden_layers", "hidden_size", "vocab_size"),
    *("num_experts", "ffn_config", "text_config", "vision_config", "quantization_config", "quant_method"),
    *("compression_config", "tie_word_embeddings", "auto_map"),
)
keys = st.sampled_from(KEYS)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=15,
)


def outcome(content: bytes) -> ModelConfig | RunnerError:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_bytes(content)
        try:
            found = read_config(Path(folder))
            remote_code(Path(folder))
        except RunnerError as refused:
            return refused
    return found


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_sentence(content: bytes) -> None:
    found = outcome(content)
    assert isinstance(found, RunnerError)
    assert found.message.isprintable()


@given(st.dictionaries(keys, values), st.booleans())
def test_any_object_is_read_or_refused_with_a_sentence(document: dict[str, Any], named: bool) -> None:
    found = outcome(json.dumps(document | ({"model_type": "llama"} if named else {})).encode())
    if isinstance(found, RunnerError):
        assert found.message.isprintable()
        assert found.code in {"config_value_wrong", "model_type_missing", "config_broken"}
    else:
        assert all(name.isprintable() for name in (found.model_type, found.transformers_version, *found.architectures))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, None),
        ({"max_position_embeddings": 40960}, 40960),
        ({"n_positions": 1024}, 1024),
        ({"text_config": {"max_position_embeddings": 8192}}, 8192),
        ({"max_position_embeddings": None}, None),
        ({"max_position_embeddings": -1}, None),
        ({"max_position_embeddings": 1e30}, None),
    ],
)
def test_the_longest_text_is_read_and_odd_values_are_as_good_as_absent(
    document: dict[str, Any], expected: int | None
) -> None:
    assert parsed(**document).max_positions == expected
