from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.errors import RunnerError
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation
from runner.intake import analyse, fingerprint, needs_remote_code
from runner.settings import ModelSettings, RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis, Risk
from schemas.catalog import Catalogue
from schemas.digest import digest
from tests.runner.intake.checkpoints import (
    config,
    decoder,
    deepseek_v3,
    gpt2,
    mixtral_8x7b,
    mlp,
    qwen3_8b,
    write_checkpoint,
)
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.tiny_models import make_tiny_model


def analysed(
    folder: Path,
    *,
    catalogue: Catalogue = CATALOGUE,
    facts: InterpreterFacts = FACTS,
    source: Any = "local",
    remote: bool = False,
) -> ModelAnalysis:
    allowed = RunnerSettings(models=ModelSettings(roots=[folder.parent]), remote_code=remote)
    return analyse(ModelLocation(folder, source, folder.name), catalogue, facts, allowed)


def risk(analysis: ModelAnalysis, code: str) -> Risk:
    (only,) = [risk for risk in analysis.risks if risk.code == code]
    assert only.message.endswith(".")
    assert only.recovery_hint.endswith((".", "?"))
    return only


def codes(analysis: ModelAnalysis) -> set[str]:
    return {risk.code for risk in analysis.risks}


def test_a_plain_model_is_complete_and_without_risks(tmp_path: Path) -> None:
    analysis = analysed(write_checkpoint(tmp_path / "m", *qwen3_8b()))
    assert analysis.analysis_status == "complete"
    assert analysis.risks == []
    assert (analysis.compatibility.status, analysis.compatibility.template) == ("ok", "qwen3")
    targets, model = analysis.quantization_targets, analysis.model
    assert (targets.linear_layer_count, targets.exclude_defaults, targets.provisional) == (252, ["lm_head"], False)
    assert (model.model_type, model.hidden_layers, model.hidden_size) == ("qwen3", 36, 4096)
    assert (model.dtype, model.is_moe, model.tied_embeddings) == ("BF16", False, False)
    assert analysis.size.parameters == 8_190_735_360
    assert analysis.size.weight_bytes == 2 * analysis.size.parameters
    assert [fact.name for fact in analysis.size.files] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert analysis.size.files == fingerprint(tmp_path / "m")


def test_the_same_files_give_the_same_digest(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m")
    assert digest(analysed(folder)) == digest(analysed(folder))
    (folder / "tokenizer.json").write_text("{}")
    assert digest(analysed(folder)) != digest(analysed(make_tiny_model(tmp_path / "other")))


def test_a_mixture_of_experts(tmp_path: Path) -> None:
    analysis = analysed(write_checkpoint(tmp_path / "m", *mixtral_8x7b()))
    assert analysis.analysis_status == "complete"
    assert analysis.quantization_targets.linear_layer_count == 896
    assert analysis.quantization_targets.provisional
    assert (analysis.model.is_moe, analysis.model.experts) == (True, 8)
    assert codes(analysis) == {"moe", "provisional_layers"}
    assert "8 experts per layer" in risk(analysis, "moe").message


def test_a_large_model_counts_only_what_is_loaded(tmp_path: Path) -> None:
    analysis = analysed(write_checkpoint(tmp_path / "m", *deepseek_v3(), shards=40))
    assert analysis.quantization_targets.linear_layer_count == 44_727
    assert "671 billion" in risk(analysis, "large_model").message
    assert analysis.size.weight_bytes == 2 * analysis.size.parameters


def test_a_family_without_a_template_is_partial(tmp_path: Path) -> None:
    analysis = analysed(write_checkpoint(tmp_path / "m", *gpt2()))
    assert analysis.analysis_status == "partial"
    assert (analysis.compatibility.status, analysis.compatibility.template) == ("unsupported", None)
    assert analysis.quantization_targets.exclude_defaults == []
    assert risk(analysis, "unsupported_model_type").severity == "high"
    assert "48 layers" in risk(analysis, "no_linear_layers").message
    assert analysis.quantization_targets.provisional


def test_the_hint_names_similar_families(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", extra_config={"model_type": "qwen3_vl"})
    assert "qwen3" in risk(analysed(folder), "unsupported_model_type").recovery_hint


def test_a_template_for_what_transformers_does_not_know(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", extra_config={"model_type": "grok-1"})
    analysis = analysed(folder)
    assert analysis.compatibility.status == "unsupported"
    assert risk(analysis, "unknown_to_transformers").severity == "high"
    folder = make_tiny_model(
        tmp_path / "n", extra_config={"model_type": "grok-1", "auto_map": {"AutoConfig": "configuration_grok.Grok"}}
    )
    analysis = analysed(folder)
    assert analysis.compatibility.status == "doubtful"
    assert needs_remote_code(analysis, CATALOGUE)
    assert "unknown_to_transformers" not in codes(analysis)


@pytest.mark.parametrize(
    ("model_type", "remote", "severity", "effect", "hint"),
    [
        ("llama", False, "medium", "loads without it", "Leave trust_remote_code off"),
        ("grok-1", False, "high", "loading it runs that code", "remote_code: false"),
        ("grok-1", True, "high", "loading it runs that code", "read that code"),
    ],
)
def test_a_models_own_code(
    tmp_path: Path, model_type: str, remote: bool, severity: str, effect: str, hint: str
) -> None:
    extra = {"model_type": model_type, "auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}
    analysis = analysed(make_tiny_model(tmp_path / "m", extra_config=extra), remote=remote)
    assert analysis.model.trust_remote_code
    assert analysis.model.remote_code == ["config.json: AutoModelForCausalLM -> modeling_x.X"]
    found = risk(analysis, "remote_code")
    assert found.severity == severity
    assert effect in found.message
    assert hint in found.recovery_hint
    assert needs_remote_code(analysis, CATALOGUE) == (model_type == "grok-1")


def test_a_tokenizers_own_code_is_worse_since_an_evaluation_runs_it(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m")
    (folder / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["tokenization_x.X", null]}}')
    found = risk(analysed(folder), "remote_code")
    assert found.severity == "high"
    assert "skip the evaluation" in found.recovery_hint


@pytest.mark.parametrize(
    ("extra", "tensor", "method"),
    [
        ({"quantization_config": {"quant_method": "fp8"}}, None, "fp8"),
        ({}, "model.layers.0.mlp.up_proj.weight_scale", "unknown"),
    ],
)
def test_a_quantized_input(tmp_path: Path, extra: dict[str, Any], tensor: str | None, method: str) -> None:
    shapes = decoder(64, 100) | dict(mlp("model.layers.0.mlp", 64, 128)) | ({tensor: (1,)} if tensor else {})
    analysis = analysed(write_checkpoint(tmp_path / "m", shapes, config("llama", 1, 64, 100) | extra))
    assert analysis.model.quantized_by == method
    assert analysis.compatibility.status == "doubtful"
    assert risk(analysis, "quantized_input").severity == "high"
    assert analysis.quantization_targets.provisional


def test_a_model_with_towers(tmp_path: Path) -> None:
    shapes = {name.replace("model.", "language_model.model."): shape for name, shape in decoder(64, 100).items()}
    shapes |= dict(mlp("language_model.model.layers.0.mlp", 64, 128))
    shapes |= dict(mlp("vision_tower.vision_model.encoder.layers.5.mlp", 32, 64))
    text = {"num_hidden_layers": 1, "hidden_size": 64, "vocab_size": 100}
    document = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 32}}
    analysis = analysed(write_checkpoint(tmp_path / "m", shapes, document))
    assert analysis.model.modalities == ["vision"]
    assert "vision" in risk(analysis, "multimodal").message
    assert analysis.quantization_targets.linear_layer_count == 3, "the tower is excluded by default"
    assert analysis.quantization_targets.provisional


def test_versions_of_transformers(tmp_path: Path) -> None:
    newer = analysed(make_tiny_model(tmp_path / "m", extra_config={"transformers_version": "5.20.0"}))
    assert "5.20.0" in risk(newer, "transformers_version").message
    (tmp_path / "amd_quark-0.13.dist-info").mkdir()
    (tmp_path / "amd_quark-0.13.dist-info" / "METADATA").write_text('Requires-Dist: transformers<5.16,>5; extra == "x"')
    facts = FACTS.model_copy(update={"quark_path": str(tmp_path / "quark")})
    outside = analysed(make_tiny_model(tmp_path / "n"), facts=facts)
    assert "<5.16,>5" in risk(outside, "transformers_range").message
    assert outside.compatibility.status == "doubtful"


def test_tied_embeddings(tmp_path: Path) -> None:
    analysis = analysed(make_tiny_model(tmp_path / "m", tied=True))
    assert analysis.model.tied_embeddings
    assert risk(analysis, "tied_embeddings").severity == "low"


def test_weights_that_do_not_belong_to_the_configuration(tmp_path: Path) -> None:
    analysis = analysed(make_tiny_model(tmp_path / "m", layers=2, extra_config={"num_hidden_layers": 4}))
    assert "2, 3" in risk(analysis, "layers_missing").message
    assert analysis.analysis_status == "partial"
    headless = analysed(make_tiny_model(tmp_path / "n", tied=True, extra_config={"tie_word_embeddings": False}))
    assert risk(headless, "head_missing").severity == "high"


def test_weights_that_transformers_would_not_find(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "weights.safetensors")
    analysis = analysed(folder)
    assert risk(analysis, "weights_index_missing").severity == "high"
    assert analysis.analysis_status == "partial"


def test_an_unknown_measure_makes_it_partial(tmp_path: Path) -> None:
    analysis = analysed(make_tiny_model(tmp_path / "m", extra_config={"num_hidden_layers": None}))
    assert analysis.analysis_status == "partial"
    assert analysis.model.hidden_layers is None


def test_a_name_that_could_be_a_hub_id(tmp_path: Path) -> None:
    assert risk(analysed(make_tiny_model(tmp_path / "m"), source="ambiguous"), "ambiguous_source").severity == "low"


def test_the_worst_risks_come_first(tmp_path: Path) -> None:
    extra = {"quantization_config": {"quant_method": "fp8"}, "transformers_version": "6.0"}
    found = analysed(make_tiny_model(tmp_path / "m", tied=True, extra_config=extra)).risks
    assert [risk.severity for risk in found] == ["high", "medium", "low"]


@pytest.mark.parametrize(
    ("remove", "code"),
    [
        (["config.json"], "config_missing"),
        (["tokenizer.json"], "tokenizer_missing"),
        (["model.safetensors"], "weights_missing"),
    ],
)
def test_a_missing_part_is_named(tmp_path: Path, remove: list[str], code: str) -> None:
    folder = make_tiny_model(tmp_path / "m")
    for name in remove:
        (folder / name).unlink()
    with pytest.raises(RunnerError) as refused:
        analysed(folder)
    assert refused.value.code == code
    assert str(folder) in refused.value.message
    assert refused.value.hint


def test_a_truncated_download(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m")
    os.truncate(folder / "model.safetensors", 50_000)
    with pytest.raises(RunnerError, match="ends after") as refused:
        analysed(folder)
    assert refused.value.code == "weights_truncated"


def test_a_file_that_a_link_takes_out_of_the_roots(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "models" / "m")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "vocab.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(RunnerError, match=r"vocab\.txt is a link to") as refused:
        analysed(folder)
    assert refused.value.code == "outside_roots"


def test_nothing_of_the_model_is_imported(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", extra_config={"auto_map": {"AutoConfig": "configuration_x.X"}})
    (folder / "configuration_x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert "configuration_x.py" in [fact.name for fact in analysed(folder).size.files]
    assert not (tmp_path / "ran").exists()


@settings(max_examples=60)
@given(
    st.sampled_from(["config.json", "model.safetensors", "tokenizer_config.json", "model.safetensors.index.json"]),
    st.binary(max_size=80)
    | st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5)).map(
        lambda document: json.dumps(document).encode()
    ),
)
def test_whatever_a_file_holds_there_is_an_analysis_or_a_sentence(name: str, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = make_tiny_model(Path(place) / "m", hidden=16, intermediate=16, layers=1, heads=2, kv_heads=1)
        if name == "model.safetensors.index.json":
            (folder / "model.safetensors").unlink()
        (folder / name).write_bytes(content)
        message = outcome(folder)
    assert message.isprintable()


def outcome(folder: Path) -> str:
    try:
        return analysed(folder).compatibility.message
    except RunnerError as refused:
        return refused.message
