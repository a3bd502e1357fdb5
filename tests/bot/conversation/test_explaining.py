"""What questions are answered with: the plan's own reasons, findings and estimates, and the catalogue's own words."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.conversation.explaining import Known, explain, explain_runners
from bot.conversation.runner_choice import KnownRunner
from bot.conversation.state import State
from schemas.api import Capabilities
from schemas.artifacts.plan import Decision, Estimates, Finding, LayerMatch, QuantPlan, Severity
from schemas.artifacts.report import Measured, Offer, Perplexity
from schemas.catalog import Algorithm, Catalogue
from schemas.runs import Phase, Progress, Run, RunState
from tests import samples
from tests.bot.conversation.samples import (
    NOON,
    analysing,
    ended,
    failed,
    reviewing_analysis,
    reviewing_plan,
    reviewing_result,
    run,
    running,
)

RECORDED = Catalogue.model_validate(
    json.loads((Path(__file__).parents[2] / "data" / "catalogue-0.13.json").read_text(encoding="utf-8"))
)
AWQ = Algorithm(name="awq", description="Scales what matters before rounding.", suits="weight-only INT4.")
CATALOGUE = RECORDED.model_copy(
    update={
        "described_algorithms": {"awq": AWQ},
        "schemes": {
            **RECORDED.schemes,
            "fp8": RECORDED.schemes["fp8"].model_copy(update={"description": "FP8 per tensor", "use_case": "GPUs."}),
            "mx9": RECORDED.schemes["mx9"].model_copy(update={"description": "", "use_case": ""}),
        },
    }
)
OFFER = Capabilities(
    catalogue=CATALOGUE,
    entry_points={"own": "/content/quantize.py"},
    model_roots=[],
    output_roots=[],
    datasets=["own.txt"],
    hub=False,
    remote_code=False,
    engine="local",
)
ROWS: tuple[tuple[str, Any, str], ...] = (
    ("global_scheme", "fp8", "Requested: fp8."),
    ("algorithm", None, "RTN baseline (fastest)."),
    ("kv_cache_scheme", "fp8", "Recommended for FP8 inference."),
    ("exclude_layers", ["lm_head"], "Standard: the template leaves these."),
    ("layer_quant_config", {"*down_proj": "int8"}, "Requested."),
    ("num_calib_data", 128, "Standard default."),
    ("calibration_dataset", "pileval", "Fast default."),
    ("entry_point", "own", "quantize_quark.py is not here."),
)
ESTIMATES = Estimates(
    output_bytes=8_600_000_000,
    source_bytes=16_381_470_720,
    download_bytes=2_000_000,
    disk_bytes_needed=9_000_000_000,
    disk_bytes_free=1_000_000_000_000,
    gpu_memory_bytes=18_000_000_000,
    gpu_memory_bytes_there=192_000_000_000,
    seconds_least=300,
    seconds_most=8_200,
    runs_of_this_kind=3,
)
WARNS = Finding(severity=Severity.WARNS, code="x", message="awq was not tried here.", hint="Take gptq.")
BLOCKS = Finding(severity=Severity.BLOCKS, code="y", message="The widths do not fit.", hint="Take int8.")
INFORMS = Finding(severity=Severity.INFORMS, code="z", message="Told only.")


def plan(**changes: Any) -> QuantPlan:
    values: dict[str, Any] = {
        "decisions": [Decision(decision=a, value=b, reason=c, source="engine") for a, b, c in ROWS],
        "layer_quant_config": {"*down_proj": "int8"},
        "layer_matches": [LayerMatch(pattern="lm_head", role="exclude", count=1)],
        "findings": [WARNS, BLOCKS, INFORMS],
        "estimates": ESTIMATES,
    }
    return samples.plan(**{**values, **changes})


def known(state: State | None = None, **changes: Any) -> Known:
    values: dict[str, Any] = {"plan": plan(), "analysis": samples.analysis(), "offer": OFFER}
    return Known(state or reviewing_plan(), **{**values, **changes})


ANSWERS = {
    "why fp8?": "Scheme fp8: Requested: fp8. KV cache fp8: Recommended for FP8 inference.",
    "why fp8": "Scheme fp8: Requested: fp8. KV cache fp8: Recommended for FP8 inference.",
    "ok, but why that scheme?": "Scheme fp8: Requested: fp8.",
    "why the kv cache?": "KV cache fp8: Recommended for FP8 inference.",
    "why no algorithm?": "Algorithm none: RTN baseline (fastest).",
    "why 128 samples?": "Samples 128: Standard default.",
    "why pileval?": "Calibration dataset pileval: Fast default.",
    "why not awq?": "Plan 1 does not use awq. Algorithm none: RTN baseline (fastest). "
    "awq was not tried here. Take gptq.",
    "why is lm_head left out?": "Excluded layers lm_head: Standard: the template leaves these.",
    "which algorithm is it?": "Algorithm none: RTN baseline (fastest).",
    "how many samples?": "Samples 128: Standard default.",
    "which entry point?": "Entry point own: quantize_quark.py is not here.",
    "how big will it be?": "The result will have about 8.6 GB, from 16.4 GB.",
    "how long will it take?": "Time: 5 min to 2 h 17 min, as 3 finished runs of this kind took here.",
    "how much disk does it need?": "It needs 9.0 GB of disk, and 1.0 TB are free. "
    "It downloads 2.0 MB for the model first.",
    "what gpu does it need?": "Peak of GPU memory: 18.0 GB of 192.0 GB.",
    "does it fit on one GPU?": "Peak of GPU memory: 18.0 GB of 192.0 GB.",
    "which layers are excluded?": "Excluded: lm_head (1). Standard: the template leaves these. With another scheme: "
    "*down_proj = int8. All others get fp8.",
    "is lm_head quantized?": "lm_head is left as it is, by the exclusion lm_head. Standard: the template leaves these.",
    "what happens to model.layers.0.mlp.down_proj": "model.layers.0.mlp.down_proj gets int8, by the override of "
    "*down_proj. Standard: the template leaves these.",
    "what are the risks?": "awq was not tried here. Take gptq. The widths do not fit. Take int8.",
    "why is it blocked?": "The widths do not fit. Take int8.",
    "what is awq?": "awq: Scales what matters before rounding. It suits weight-only INT4.",
    "what is fp8?": "fp8: FP8 per tensor. For: GPUs.",
    "what is gptq?": "gptq is an algorithm of this runner's engine; nobody has described it.",
    "what is mx9?": "mx9 is a scheme of int8 weights of this runner's engine; nobody has described it.",
    "can I use awq?": "This runner's engine has awq, but no configuration for qwen3 built in; "
    '"use awq and write its configuration" asks for a written one. awq was not tried here. Take gptq. '
    'Say "use awq" to see the plan with it.',
    "what about fp8?": "This runner's engine has fp8 (GPUs). Plan 1 uses fp8.",
    "which datasets are there?": "This runner's datasets: own.txt.",
    "which entry points can I use?": "This runner's entry points: own.",
    "which model is it?": "It is /models/qwen3-8b (qwen3), with 8,190,735,360 parameters.",
    "who approved the analysis?": "Ada (web:ada) approved the analysis.",
}


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items())
def test_questions_are_answered_from_the_documents(question: str, answer: str) -> None:
    if question == "what is mx9?":
        weights = CATALOGUE.schemes["mx9"].weight
        group = CATALOGUE.schemes["mx9"].group_size
        answer = answer.replace("int8 weights", f"{weights[0].dtype} weights, with groups of {group}")
    assert explain(question, known()) == answer


def test_all_of_the_costs_are_told_together() -> None:
    told = explain("what does this cost?", known())
    assert told is not None
    for part in ("8.6 GB", "3 finished runs", "9.0 GB of disk", "18.0 GB of 192.0 GB"):
        assert part in told


def test_what_is_not_known_is_said_to_be_so() -> None:
    bare = known(plan=plan(estimates=Estimates(), findings=[]))
    assert explain("how long will it take?", bare) == (
        "No run of this kind has finished on this runner yet, so how long it takes is not known."
    )
    assert explain("how big will it be?", bare) == "The size of the result could not be computed."
    assert explain("will it fit?", bare) == "How much memory it needs is not known."
    assert explain("what are the risks?", bare) == "Plan 1 has no warnings."
    assert explain("is it blocked?", bare) == "Plan 1 is not blocked."


def test_a_plan_without_a_gpu_says_so() -> None:
    assert explain("what gpu does it need?", known(plan=plan(device="cpu", estimates=Estimates()))) == (
        "It runs on the CPU."
    )


def test_before_there_is_a_plan_the_analysis_is_asked() -> None:
    early = known(reviewing_analysis(), plan=None)
    assert explain("which layers are excluded?", early) == (
        "With the engine's defaults 108 linear layers are quantized, and it leaves lm_head alone."
    )
    assert str(explain("how big will it be?", early)).startswith("The model has 16.4 GB of weights and 8,190,735,360")
    assert explain("what are the risks?", early) == "The embedding is shared."
    assert explain("why no algorithm?", early) is None


def test_a_run_says_how_far_it_is() -> None:
    going = running(run=run(progress=Progress(phase=Phase.LOADING_MODEL, percent=40, seconds_left=125)))
    assert explain("how long will it take?", known(going)) == (
        "The run is at 40 %; its phase loading model ends in about 2 min."
    )


def finished(**report: Any) -> Run:
    values: dict[str, Any] = {
        "size_bytes": 8_700_000_000,
        "original_size_bytes": 16_381_470_720,
        "measured": Measured(seconds=754, gpu_memory_bytes=17_500_000_000),
        "perplexity": Perplexity(dataset="wikitext", tokens=4_096, original=7.2, quantized=7.3),
    }
    return run(
        state=RunState.SUCCEEDED,
        ended_at=NOON + timedelta(minutes=20),
        report=samples.report().model_copy(update={**values, **report}),
    )


TOOK = "The run took 13 min; predicted: 5 min to 2 h 17 min."
HAS = "The result has 8.7 GB, from 16.4 GB; predicted: 8.6 GB."
SCORES = "Perplexity on 4,096 tokens of wikitext: 7.3, 7.2 for the original (+1.4 %). Lower is better."
USED = "Peak of GPU memory: 17.5 GB; predicted: 18.0 GB."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("how long did it take?", TOOK),
        ("how big is it?", HAS),
        ("how good is it?", SCORES),
        ("what is the perplexity?", SCORES),
        ("how much memory did it need?", USED),
        ("how much disk space does it need?", HAS),
        ("how big is it and how good is it?", f"{HAS} {SCORES}"),
        ("what did it cost?", f"{TOOK} {HAS} {USED} {SCORES}"),
        ("what does this cost?", f"{TOOK} {HAS} {USED} {SCORES}"),
    ],
)
def test_a_run_that_has_ended_answers_instead_of_its_plan(question: str, answer: str) -> None:
    for state in (reviewing_result(run=finished()), ended(run=finished())):
        assert explain(question, known(state)) == answer


def test_what_a_run_did_not_measure_is_said_to_be_so() -> None:
    bare = known(reviewing_result(run=finished(size_bytes=None, measured=None, perplexity=None)), plan=None)
    assert explain("how long did it take?", bare) == "The run took 20 min."
    assert explain("how big is it?", bare) == "The size of the result was not measured."
    assert explain("how good is it?", bare) == "The perplexity of the result was not measured."
    assert explain("how much memory did it take?", bare) == "How much memory the run took was not measured."
    unknown = run(state=RunState.SUCCEEDED, ended_at=None)
    assert "How long the run took is not known." in str(explain("how long did it take?", known(ended(run=unknown))))


def test_a_run_that_failed_has_no_result_to_speak_of() -> None:
    broken = known(failed(run=run(state=RunState.FAILED, ended_at=NOON + timedelta(minutes=3))), plan=None)
    assert explain("how long did it take?", broken) == "The run failed after 3 min."
    assert explain("how good is it?", broken) == "The run failed, so there is no verified result."
    assert "The result will" not in str(explain("what did it cost?", broken))
    never = run(state=RunState.CANCELLED, started_at=None)
    assert explain("how long did it take?", known(ended(run=never))) == "The run never started."


def test_what_is_not_asked_of_a_run_is_answered_from_the_plan() -> None:
    after = known(reviewing_result(run=finished()))
    for question in ("why fp8?", "which algorithm is it?", "how many samples?", "which layers are excluded?"):
        assert explain(question, after) == ANSWERS[question]
    assert explain("how big will it be?", known(ended(run=None))) == ANSWERS["how big will it be?"]


@pytest.mark.parametrize("question", list(ANSWERS))
def test_without_any_document_there_is_no_answer(question: str) -> None:
    told = explain(question, Known(analysing()))
    assert told in (None, "Nobody has approved anything yet.")


@pytest.mark.parametrize(
    "question",
    ["what now?", "where are we?", "what is the meaning of life?", "is it done?", "", "?", "help", "why \u202efp8?"],
)
def test_what_no_document_says_is_not_answered(question: str) -> None:
    assert explain(question, known()) is None


WORDS = sorted({word for question in ANSWERS for word in question.split()} | {"'", '"', "\n", "<@U1>", "*", "9" * 50})


@given(st.one_of(st.text(max_size=3_000), st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)))
@settings(deadline=None)
def test_any_question_is_answered_shortly_or_not_at_all(question: str) -> None:
    for one in (known(), known(reviewing_analysis(), plan=None), Known(analysing())):
        told = explain(question, one)
        assert told is None or 0 < len(told) <= 900


def test_reasons_are_those_of_the_plan_letter_by_letter() -> None:
    odd = [Decision(decision="algorithm", value="awq", reason="Because Ada's <b>rule</b> says so.", source="host")]
    assert explain("why awq?", known(plan=plan(decisions=odd))) == "Algorithm awq: Because Ada's <b>rule</b> says so."


QUEUED = run(state=RunState.QUEUED, position=2, reason="It waits for 2 GPUs; 1 free.", expected_start=NOON)
PLACED = run(state=RunState.RUNNING, started_at=NOON, gpus=["3 (0000:c1:00.0)"], job="Slurm job 42")
TURN = "It has place 2 in the queue; its turn may come at 2026-03-02 12:00 UTC."
OF_A_WAITING_RUN = {
    "why does it wait?": f"It waits for 2 GPUs; 1 free. {TURN}",
    "what is it waiting for?": f"It waits for 2 GPUs; 1 free. {TURN}",
    "why isn't it running?": f"It waits for 2 GPUs; 1 free. {TURN}",
    "how long does it wait?": f"{TURN} It waits for 2 GPUs; 1 free.",
    "when does it start?": f"{TURN} It waits for 2 GPUs; 1 free.",
    "what is my position?": f"{TURN} It waits for 2 GPUs; 1 free.",
    "where does it run?": "It waits on local. It waits for 2 GPUs; 1 free.",
    "which gpu?": "It waits, and has no GPU. It waits for 2 GPUs; 1 free.",
}
OF_A_RUN = {
    "where does it run?": "It runs on local, as Slurm job 42. It has the GPU 3 (0000:c1:00.0).",
    "which runner is it on?": "It runs on local, as Slurm job 42. It has the GPU 3 (0000:c1:00.0).",
    "which gpu is it on?": "It has the GPU 3 (0000:c1:00.0).",
    "why does it wait?": "The run does not wait: it started at 2026-03-02 12:00 UTC.",
    "when did it start?": "The run does not wait: it started at 2026-03-02 12:00 UTC.",
    "what gpu does it need?": "Peak of GPU memory: 18.0 GB of 192.0 GB.",
    "what is left?": "The run has not ended.",
}


@pytest.mark.parametrize("question", OF_A_WAITING_RUN)
def test_a_run_that_waits_says_why_and_until_when(question: str) -> None:
    assert explain(question, known(running(run=QUEUED))) == OF_A_WAITING_RUN[question]


@pytest.mark.parametrize("question", OF_A_RUN)
def test_a_run_says_where_it_is(question: str) -> None:
    assert explain(question, known(running(run=PLACED))) == OF_A_RUN[question]


def test_before_a_run_its_runner_is_known_and_why() -> None:
    state = reviewing_plan()
    chosen = state.request.model_copy(update={"runner": "b", "runner_reason": "only b has mxfp4"})
    there = known(state.model_copy(update={"request": chosen}))
    for question in ("which runner is it on?", "where will it run?", "why this runner?"):
        assert explain(question, there) == "The runner is b, since only b has mxfp4."
    assert explain("when does it start?", there) == "It has no run yet: that begins once its command is approved."
    assert explain("which gpu?", there) == "Peak of GPU memory: 18.0 GB of 192.0 GB."


def failed_run(*offers: Offer, cause: str = "") -> State:
    report = samples.report().model_copy(update={"cause": cause, "offers": list(offers)})
    return failed(run=run(state=RunState.FAILED, report=report, partial_output="/out/x.partial-run-1"))


def test_a_failure_tells_its_cause_and_what_may_help() -> None:
    fewer = Offer(
        label="Plan with 64 samples", reason="They need less memory.", choices={"calibration": {"seq_len": 64}}
    )
    own = Offer(label="Plan with the own script", reason="It needs no checkout.", choices={"entry_point": "own"})
    state = failed_run(fewer, own, cause="The GPU ran out of memory.")
    for question in ("what failed?", "why did it fail?", "what went wrong?"):
        assert explain(question, known(state)) == "The run failed: The GPU ran out of memory."
    for question in ("what can I do?", "what helps?", "what do you suggest?", "what now?"):
        assert explain(question, known(state)) == (
            "This may help, with a new plan and a new yes. 1. Plan with 64 samples: They need less memory. "
            "2. Plan with the own script: It needs no checkout."
        )
    told = "What the run left was set apart in /out/x.partial-run-1; it is no finished model."
    assert explain("where is the partial output?", known(state)) == told


def test_where_nothing_is_offered_what_can_be_said_is_left_to_others() -> None:
    assert explain("what can I do?", known(failed_run())) is None
    assert explain("what now?", known(running())) is None


RUNNERS = (
    KnownRunner("box", ("mi300x",), OFFER.model_copy(update={"gpu_count": 8}), queued=2, active=3),
    KnownRunner("a", ("h100",), OFFER, queued=0, active=1),
    KnownRunner("new"),
    KnownRunner("gone", (), OFFER, 1, away=True),
)
BOX = "box (mi300x): 2 runs wait and 3 compute on 8 GPUs, as it said last."
A = "a (h100): no runs wait and 1 computes, as it said last."


def test_runners_are_told_as_far_as_they_are_known() -> None:
    everything = f"{BOX} {A} new has not been asked yet. gone does not answer."
    for question in ("which runners are there?", "what is in the queue?", "is a gpu free?", "what's running?"):
        assert explain(question, known(runners=RUNNERS)) == everything
        assert explain_runners(question, RUNNERS) == everything
        assert explain_runners(question, ()) is None
    assert explain_runners("how busy is mi300x?", RUNNERS) == BOX
    assert explain_runners("is a gpu free on box?", RUNNERS) == BOX
    assert explain_runners("what is in the queue of runner a?", RUNNERS) == A
    assert explain_runners("why fp8?", RUNNERS) is None
    assert explain_runners("", RUNNERS) is None
