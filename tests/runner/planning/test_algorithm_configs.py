"""Configurations of algorithms for families that the engine has none for: from whom they come, and where none fits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from runner.planning import HostView, make_plan
from runner.planning.algorithm_configs import donor, file_bytes, offer, written
from runner.planning.plan import derived
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices, QuantPlan
from tests.runner.planning.algorithms import (
    FINAL,
    GEMMA_NORMS,
    LAYER_NORMS,
    configs,
    host,
    qwen3,
    qwen3_moe,
    with_norms,
)
from tests.runner.planning.catalogue import recorded
from tests.runner.planning.hosts import CPU
from tests.runner.planning.models import Shape, analysis_of, decoder, experts, head, llama, routers


def planned(analysis: ModelAnalysis, view: HostView | None = None, **choices: Any) -> QuantPlan:
    asked = {"global_scheme": "int4_wo_32", "write_algorithm_config": True, **choices}
    return make_plan(analysis, PlanChoices(**asked), recorded(), view or host())


DENSE = {
    "awq": "qwen2",
    "gptq": "qwen2",
    "gptaq": "qwen2",
    "qronos": "qwen2",
    "smoothquant": "qwen2",
    "autosmoothquant": "llama",
    "rotation": "llama",
    "autoround": None,
    "twobitscalar": None,
}
MIXTURE = {
    "awq": "qwen2_moe",
    "gptq": "mixtral",
    "gptaq": "mixtral",
    "qronos": "mixtral",
    "smoothquant": "mixtral",
    "autosmoothquant": None,
    "rotation": None,
    "autoround": None,
    "twobitscalar": None,
}


@pytest.mark.parametrize("algorithm", recorded().algorithms)
def test_a_plain_model_follows_its_nearest_relative(algorithm: str) -> None:
    assert donor(algorithm, qwen3(), recorded(), host()) == DENSE[algorithm]


@pytest.mark.parametrize("algorithm", recorded().algorithms)
def test_a_mixture_follows_a_mixture(algorithm: str) -> None:
    assert donor(algorithm, qwen3_moe(), recorded(), host()) == MIXTURE[algorithm]


@pytest.mark.parametrize("algorithm", recorded().algorithms)
def test_nothing_is_offered_for_what_is_built_in(algorithm: str) -> None:
    assert offer(algorithm, with_norms(llama(), [*LAYER_NORMS, *FINAL]), recorded(), host()) is None


def test_the_content_is_the_donors_own() -> None:
    for algorithm in ("awq", "gptq", "smoothquant"):
        found = offer(algorithm, qwen3(), recorded(), host())
        assert found is not None
        assert found.content == configs()["qwen2"][algorithm]
        assert found.left == ()


def test_nothing_is_offered_where_the_engine_did_not_tell_its_configurations() -> None:
    assert offer("awq", qwen3(), recorded(), replace(CPU)) is None


@pytest.mark.parametrize(
    ("norms", "why"),
    [
        ([], "the norms are not known"),
        (LAYER_NORMS[:1], "attention and MLP run side by side behind one norm"),
        (LAYER_NORMS[1:] + GEMMA_NORMS[1:], "norms behind the blocks and none before them"),
        (LAYER_NORMS + GEMMA_NORMS, "the norm after attention feeds no MLP"),
        (["model.layers.*.ln_1", "model.layers.*.ln_2"], "other names"),
        ([name.replace("model.layers", "model.decoder.layers") for name in LAYER_NORMS], "at another depth"),
    ],
)
def test_scales_go_only_into_norms_that_feed_nothing_else(norms: list[str], why: str) -> None:
    for algorithm in ("awq", "smoothquant", "autosmoothquant", "rotation"):
        assert donor(algorithm, qwen3([*norms, *FINAL]), recorded(), host()) is None, why
    assert donor("gptq", qwen3([*norms, *FINAL]), recorded(), host()) == "qwen2", "it needs no norm"


@pytest.mark.parametrize(
    ("extra", "left"),
    [
        ("self_attn.gate_proj", {"gptq"}),  # Gemma's names end alike, and each layer is solved for itself
        ("mlp.shared_expert.up_proj", {"gptq"}),
        ("linear_attn.in_proj", set()),
        ("per_layer_gate", set()),
    ],
)
def test_a_layer_that_no_donor_names_stops_what_needs_it(extra: str, left: set[str]) -> None:
    shapes = [*decoder(), Shape(f"model.layers.*.{extra}", 2, 128, 128), head()]
    offered = {name for name in recorded().algorithms if donor(name, qwen3(shapes=shapes), recorded(), host())}
    assert offered == left


def test_layers_that_stand_in_some_of_the_repeated_layers_only_stop_scaling() -> None:
    """Families that mix kinds of layers have norms of their own."""
    shapes = [replace(shape, count=1) if "self_attn" in shape.pattern else shape for shape in [*decoder(), head()]]
    analysis = qwen3(shapes=shapes)
    assert donor("awq", analysis, recorded(), host()) is None
    assert donor("rotation", analysis, recorded(), host()) is None


def test_a_layer_that_the_donor_names_and_the_model_lacks_stops_it() -> None:
    shapes = [shape for shape in [*decoder(), head()] if not shape.pattern.endswith("gate_proj")]
    assert all(donor(name, qwen3(shapes=shapes), recorded(), host()) is None for name in recorded().algorithms)


def test_entries_for_single_experts_are_made_for_as_many_as_there_are() -> None:
    for count in (4, 128):
        found = offer("awq", qwen3_moe(count=count), recorded(), host())
        assert found is not None
        entries = found.content["scaling_layers"]
        assert isinstance(entries, list)
        named = [entry["inp"] for entry in entries if isinstance(entry, dict)]
        assert [name for name in named if "experts" in str(name)] == [
            f"mlp.experts.{number}.down_proj" for number in range(count)
        ]
        assert entries[2] == {
            "inp": "mlp.experts.0.down_proj",
            "layers": ["mlp.experts.0.down_proj"],
            "prev_op": "mlp.experts.0.up_proj",
        }


def test_what_a_mixtures_configuration_leaves_out_is_said() -> None:
    plan = planned(qwen3_moe(), algorithm="gptq")
    warning = next(finding for finding in plan.findings if finding.code == "algorithm_config_written")
    assert "mlp.experts.*.down_proj" in warning.message
    assert "after that of mixtral" in warning.message


def test_the_plan_carries_the_file_with_the_digest_of_its_bytes() -> None:
    plan = planned(qwen3(), algorithm="awq,smoothquant")
    assert [(config.algorithm, config.derived_from) for config in plan.algorithm_configs] == [
        ("awq", "qwen2"),
        ("smoothquant", "qwen2"),
    ]
    for config in plan.algorithm_configs:
        data = file_bytes(config)
        assert hashlib.sha256(data).hexdigest() == config.sha256
        assert json.loads(data) == config.content
        assert data.endswith(b"}\n")
    assert plan.blocked_by == []
    assert "algorithm_config_written" in plan.risks


def test_the_bytes_are_the_same_after_the_plan_went_through_other_programs() -> None:
    plan = planned(qwen3(), algorithm="qronos,gptaq")
    again = QuantPlan.model_validate_json(plan.model_dump_json())
    loose = json.loads(json.dumps(plan.model_dump(mode="json")), parse_float=lambda text: float(text))
    assert [file_bytes(config) for config in again.algorithm_configs] == [
        file_bytes(config) for config in plan.algorithm_configs
    ]
    assert QuantPlan.model_validate(loose).algorithm_configs == plan.algorithm_configs
    assert derived(again, qwen3(), recorded(), host()).algorithm_configs == plan.algorithm_configs


def test_a_plan_that_brings_a_configuration_of_its_own_gets_ours() -> None:
    """Plans come from anywhere: what runs is what follows from the decisions here."""
    plan = planned(qwen3(), algorithm="awq")
    forged = plan.algorithm_configs[0].model_copy(update={"content": {"name": "awq", "scaling_layers": []}})
    again = derived(plan.model_copy(update={"algorithm_configs": [forged]}), qwen3(), recorded(), host())
    assert again.algorithm_configs == plan.algorithm_configs


def test_without_the_wish_nothing_is_written_and_the_hint_offers_it() -> None:
    plan = planned(qwen3(), algorithm="awq", write_algorithm_config=None)
    assert plan.algorithm_configs == []
    (finding,) = plan.blocked_by
    assert finding.code == "algorithm_not_configured"
    assert finding.hint.startswith("Say 'write the configuration' to derive one from that of qwen2, or take")


def test_where_no_family_can_be_followed_nothing_is_offered_and_the_plan_stays_blocked() -> None:
    for wish in (None, True):
        plan = planned(qwen3([]), algorithm="awq", write_algorithm_config=wish)
        (finding,) = plan.blocked_by
        assert finding.code == "algorithm_not_configured"
        assert "write the configuration" not in finding.hint
        assert plan.algorithm_configs == []


def test_only_what_is_missing_is_written() -> None:
    plan = planned(qwen3_moe(), algorithm="autosmoothquant,gptq")
    assert [config.algorithm for config in plan.algorithm_configs] == ["gptq"]
    assert written(plan.model_copy(update={"algorithm": None}), qwen3_moe(), recorded(), host()) == []


def test_autoround_is_refused_whatever_is_written() -> None:
    plan = planned(qwen3(), algorithm="autoround")
    assert plan.algorithm_configs == []
    assert {"autoround_fails", "algorithm_not_configured"} <= {finding.code for finding in plan.blocked_by}


@pytest.mark.parametrize(
    ("analysis", "choices", "words"),
    [
        (qwen3(), {}, "the plan has no algorithm"),
        (with_norms(llama(), LAYER_NORMS), {"algorithm": "awq"}, "the engine has its own of awq for llama"),
    ],
    ids=["no algorithm", "built in"],
)
def test_a_wish_that_changes_nothing_is_named(analysis: ModelAnalysis, choices: dict[str, Any], words: str) -> None:
    plan = planned(analysis, **choices)
    warning = next(finding for finding in plan.findings if finding.code == "algorithm_config_unused")
    assert words in warning.message


def test_normalised_queries_are_named_for_what_scales_attention_only() -> None:
    def doubts(algorithm: str, analysis: ModelAnalysis) -> bool:
        findings = planned(analysis, algorithm=algorithm).findings
        said = next(finding for finding in findings if finding.code == "algorithm_config_written").message
        return "normalises queries and keys" in said

    assert doubts("awq", qwen3())
    assert not doubts("gptq", qwen3())
    assert not doubts("awq", qwen3([*LAYER_NORMS, *FINAL]))


def test_the_recommendation_offers_it_and_takes_it_when_wanted() -> None:
    def row(**choices: Any) -> tuple[Any, str]:
        plan = make_plan(qwen3(), PlanChoices(priority="size", **choices), recorded(), host())
        return plan.algorithm, next(row.reason for row in plan.decisions if row.decision == "algorithm")

    value, reason = row()
    assert value is None
    assert "say 'use awq and write its configuration'" in reason
    value, reason = row(write_algorithm_config=True)
    assert value == "awq"
    assert "written after that of qwen2" in reason


UNKNOWN: list[dict[str, Any]] = [
    {},
    {"model_decoder_layers": "model.layers"},
    {"model_decoder_layers": "model.layers", "scaling_layers": []},
    {"model_decoder_layers": "model.layers", "scaling_layers": [{"from": "input_layernorm"}]},
    {"model_decoder_layers": "model.layers", "scaling_layers": ["input_layernorm"]},
    {"model_decoder_layers": "model.layers", "scaling_layers": {"first_layer": [{"norm_module": "model.norm"}]}},
    {"model_decoder_layers": "model.layers", "scaling_layers": {"first_layer": "model.norm"}},
    {"model_decoder_layers": "model.layers", "inside_layer_modules": "self_attn.q_proj"},
    {"model_decoder_layers": "model.layers", "inside_layer_modules": []},
    {"model_decoder_layers": "model.layers", "inside_layer_modules": ["self_attn.qkv"]},
    {"model_decoder_layers": None, "scaling_layers": None},
    {"exclude_layers": "lm_head"},
]


@pytest.mark.parametrize("content", UNKNOWN, ids=range(len(UNKNOWN)))
def test_a_configuration_of_a_kind_that_nobody_knows_is_followed_by_nobody(content: dict[str, Any]) -> None:
    view = host(algorithm_configs={"llama": {"awq": content}})
    assert offer("awq", qwen3(), recorded(), view) is None


def test_the_engines_own_configuration_of_a_family_says_which_norms_can_be_scaled() -> None:
    """OLMo's norms have no weights, so the engine scales none of them; another family's configuration would fail."""
    olmo = with_norms(analysis_of("olmo", [*decoder(), head()]), [*LAYER_NORMS, *FINAL])
    assert donor("autosmoothquant", olmo, recorded(), host()) is None
    assert donor("rotation", olmo, recorded(), host()) is None
    assert donor("gptaq", olmo, recorded(), host()) == "llama"
    mistral = with_norms(analysis_of("mistral", [*decoder(), head()]), [*LAYER_NORMS, *FINAL])
    assert donor("autosmoothquant", mistral, recorded(), host()) == "llama"


def test_what_would_work_on_excluded_layers_only_is_not_offered() -> None:
    left_alone = [replace(shape, excluded="self_attn" in shape.pattern) for shape in experts(4, 128)]
    analysis = analysis_of("minimax_m2", [*left_alone, routers(), head()], is_moe=True, experts=4)
    for algorithm in ("gptq", "smoothquant"):
        assert donor(algorithm, with_norms(analysis, [*LAYER_NORMS, *FINAL]), recorded(), host()) != "mixtral"
