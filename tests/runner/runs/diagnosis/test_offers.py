"""What is offered after a failure: it changes something, is stopped by no rule, and needs less of what was short."""

from __future__ import annotations

from typing import Any

import pytest

from runner.planning import HostView, make_plan
from runner.runs.diagnosis.offers import AT_MOST, Failed, offers
from runner.runs.diagnosis.rule import Help, Memory
from runner.runs.diagnosis.rules.memory import LESS_WORK
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import PlanChoices
from schemas.artifacts.report import Offer
from schemas.catalog import Catalogue
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import CPU, MI300X, but
from tests.runner.planning.models import llama, qwen3_8b, qwen3_moe

GPU_ENDS = (*LESS_WORK, Help.SEVERAL_GPUS, Help.FILE_TO_FILE)


def failed(
    analysis: ModelAnalysis,
    host: HostView = MI300X,
    short_of: Memory | None = None,
    **choices: Any,
) -> Failed:
    """A run of a plan that could run, with these choices."""
    catalogue: Catalogue = recorded() if host.accelerator == "cpu" else with_gpu_torch()
    plan = make_plan(analysis, PlanChoices.model_validate(choices), catalogue, host)
    assert not plan.blocked_by
    return Failed(plan, analysis, catalogue, host, short_of)


def choices_of(made: list[Offer]) -> list[dict[str, Any]]:
    return [dict(offer.choices) for offer in made]


def test_less_work_comes_before_other_ways() -> None:
    case = failed(
        qwen3_8b(),
        but(MI300X, gpus_per_run=4, gpu_memory=(4 * 10**10,) * 4),
        "gpu",
        global_scheme="fp8",
        calibration={"batch_size": 16, "num_calib_data": 128, "seq_len": 2048},
    )
    made = offers(GPU_ENDS, case)
    # Without an algorithm no sample is kept, so that fewer of them would save nothing: they are not offered.
    assert choices_of(made) == [
        {"calibration": {"batch_size": 1}},
        {"calibration": {"seq_len": 1024}},
        {"multi_gpu": "auto"},
    ]


def test_fewer_samples_are_offered_where_an_algorithm_keeps_them() -> None:
    case = failed(
        llama(4096),
        short_of="gpu",
        global_scheme="int4_wo_128",
        algorithm="awq",
        calibration={"num_calib_data": 4096, "seq_len": 4096},
    )
    made = choices_of(offers(GPU_ENDS, case))
    assert {"calibration": {"num_calib_data": 2048}} in made
    assert {"calibration": {"seq_len": 2048}} in made
    assert {"calibration": {"batch_size": 1}} not in made


def test_nothing_is_offered_that_changes_nothing() -> None:
    case = failed(qwen3_8b(), short_of="gpu", global_scheme="int4_wo_128", evaluation_intent="none")
    made = choices_of(offers((*LESS_WORK, Help.SEVERAL_GPUS, Help.NO_EVALUATION, Help.NO_ALGORITHM), case))
    assert made == []


def test_file_to_file_only_where_its_rules_allow_it() -> None:
    dynamic = failed(qwen3_8b(), short_of="gpu", global_scheme="ptpc_fp8", evaluation_intent="smoke")
    (offer,) = offers([Help.FILE_TO_FILE], dynamic)
    assert offer.choices["file2file_quantization"] is True
    assert offer.choices["evaluation_intent"] == "none"
    assert offer.choices["kv_cache_scheme"] is None
    assert "evaluated" in offer.reason
    calibrated = failed(qwen3_8b(), short_of="gpu", global_scheme="fp8")
    assert offers([Help.FILE_TO_FILE], calibrated) == []
    assert offers([Help.FILE_TO_FILE], failed(llama(), CPU, "host", global_scheme="ptpc_fp8")) == []


def test_file_to_file_names_the_program_that_can_do_it() -> None:
    case = failed(qwen3_8b(), short_of="gpu", global_scheme="ptpc_fp8", entry_point="own")
    (offer,) = offers([Help.FILE_TO_FILE], case)
    assert offer.choices["entry_point"] == "quantize_quark"


@pytest.mark.parametrize(("per_run", "expected"), [(1, 0), (4, 1)])
def test_several_gpus_where_a_run_gets_several(per_run: int, expected: int) -> None:
    host = but(MI300X, gpus_per_run=per_run, gpu_memory=(10**11,) * per_run)
    assert len(offers([Help.SEVERAL_GPUS], failed(qwen3_8b(), host, "gpu", global_scheme="fp8"))) == expected


def test_an_evaluation_that_cannot_be_made_is_left_out_with_its_options() -> None:
    case = failed(llama(), global_scheme="fp8", evaluation_intent="full", num_eval_data=8, entry_point="quantize_quark")
    (offer,) = offers([Help.NO_EVALUATION], case)
    assert offer.choices == {"evaluation_intent": "none", "num_eval_data": None}


def test_our_own_script_where_another_does_not_fit() -> None:
    case = failed(llama(), global_scheme="fp8", entry_point="quantize_quark")
    assert choices_of(offers([Help.OWN_PROGRAM], case)) == [{"entry_point": "own"}]
    assert offers([Help.OWN_PROGRAM], failed(llama(), global_scheme="fp8", entry_point="own")) == []
    # What our own script has no flag for would be stopped by the rules.
    gguf = failed(llama(), global_scheme="uint4_wo_32", model_export="gguf", entry_point="quantize_quark")
    assert offers([Help.OWN_PROGRAM], gguf) == []


def test_another_scheme_is_near_in_bits_and_works() -> None:
    case = failed(llama(), CPU, global_scheme="mxfp6_e2m3", evaluation_intent="none")
    (offer,) = offers([Help.OTHER_SCHEME], case)
    scheme = str(offer.choices["global_scheme"])
    assert scheme in case.catalogue.schemes
    assert scheme not in {"mxfp6_e2m3", "mx6", "mx9", "bfp16", "mxfp4"}
    assert "bits" in offer.reason
    assert not case.planned(dict(offer.choices)).blocked_by


@pytest.mark.parametrize("scheme", ["int8", "int4_wo_128", "fp8", "mxfp6_e3m2"])
def test_a_finer_scheme_is_never_coarser(scheme: str) -> None:
    case = failed(llama(), CPU, global_scheme=scheme, evaluation_intent="none")
    now = case.as_planned.estimates.output_bytes
    for offer in offers([Help.FINER_SCHEME], case):
        then = case.planned(dict(offer.choices)).estimates.output_bytes
        assert now is not None
        assert then is not None
        assert then >= 0.98 * now
        assert offer.choices["global_scheme"] != scheme


def test_a_collapsed_int8_is_offered_smoothing_and_floats() -> None:
    made = choices_of(offers([Help.ALGORITHM, Help.FINER_SCHEME], failed(llama(), CPU, global_scheme="int8")))
    assert made[0] == {"algorithm": "smoothquant"}
    assert "fp8" in str(made[1]["global_scheme"])


def test_an_algorithm_only_where_the_engine_has_a_configuration() -> None:
    assert offers([Help.ALGORITHM], failed(qwen3_8b(), global_scheme="int4_wo_128")) == []
    (offer,) = offers([Help.ALGORITHM], failed(llama(), global_scheme="int4_wo_128"))
    assert offer.choices == {"algorithm": "awq"}
    assert offers([Help.ALGORITHM], failed(llama(), global_scheme="int4_wo_128", algorithm="gptq")) == []


def test_without_algorithm_kv_cache_and_foreign_code() -> None:
    case = failed(llama(), global_scheme="int4_wo_128", algorithm="awq", kv_cache_scheme="fp8", min_kv_scale=0.1)
    assert choices_of(offers([Help.NO_ALGORITHM, Help.NO_KV_CACHE, Help.NATIVE_CODE], case)) == [
        {"algorithm": None},
        {"kv_cache_scheme": None, "min_kv_scale": None},
    ]


def test_at_most_three_and_each_with_a_label_that_fits_a_button() -> None:
    case = failed(
        qwen3_moe(),
        global_scheme="fp8",
        kv_cache_scheme="fp8",
        evaluation_intent="smoke",
        calibration={"batch_size": 4},
        entry_point="quantize_quark",
    )
    made = offers(Help, case)
    assert len(made) == AT_MOST
    assert all(len(offer.label) <= 75 and offer.reason.endswith(".") for offer in made)
    assert len({offer.label for offer in made}) == AT_MOST


def test_what_the_catalogue_does_not_know_any_more_is_no_error() -> None:
    """An engine that was exchanged since, a family without a template, an analysis without layers."""
    case = failed(llama(), global_scheme="int4_wo_128", algorithm="awq")
    empty = case.analysis.model_copy(
        update={"quantization_targets": case.analysis.quantization_targets.model_copy(update={"groups": []})}
    )
    gone = case.plan.model_copy(update={"global_scheme": "w_fp8_a_fp8", "algorithm": "nope"})
    bare = case.catalogue.model_copy(update={"schemes": {}, "templates": {}, "algorithms": []})
    for plan in (case.plan, gone):
        for analysis in (case.analysis, empty):
            for catalogue in (case.catalogue, bare):
                for wanted in Help:
                    assert len(offers([wanted], Failed(plan, analysis, catalogue, MI300X))) <= 1


@pytest.mark.parametrize("scheme", sorted(recorded().schemes))
def test_an_offer_is_never_stopped_by_the_rules(scheme: str) -> None:
    """Whatever failed: what is offered can be planned as it is, and says something else than before."""
    analysis, host = llama(), but(MI300X, gpus_per_run=2, gpu_memory=(10**11,) * 2)
    catalogue = with_gpu_torch()
    plan = make_plan(analysis, PlanChoices(global_scheme=scheme, evaluation_intent="none"), catalogue, host)
    case = Failed(plan, analysis, catalogue, host)
    stopped = {finding.code for finding in plan.blocked_by}
    for wanted in Help:
        for offer in offers([wanted], case):
            asked = {"global_scheme": scheme, "evaluation_intent": "none", **offer.choices}
            again = make_plan(analysis, PlanChoices.model_validate(asked), catalogue, host)
            assert {finding.code for finding in again.blocked_by} <= stopped
            assert again.model_dump() != plan.model_dump()
