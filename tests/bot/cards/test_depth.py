"""What cards say of what the engine will do: exact lists, patterns, configurations, needs, risks, deviations."""

from __future__ import annotations

from typing import Any

import pytest

from bot.cards.analysis import analysis_card
from bot.cards.card import Card, LogPart, Notes, Text
from bot.cards.command import command_card
from bot.cards.estimates import estimate_fields
from bot.cards.plan import plan_card
from bot.cards.result import result_card
from bot.conversation.decision import Verb, Verdict
from bot.conversation.state import AnalysisRevision, ExactList
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import Deviation, EntryPoint
from schemas.artifacts.plan import AlgorithmConfig, Estimates, Finding, LayerMatch, QuantPlan, Severity
from schemas.artifacts.report import Measured
from schemas.runs import RunState
from tests import samples
from tests.bot.cards.board import board_at
from tests.bot.cards.documents import ended_run, plan_for
from tests.bot.cards.reading import fields_of, read, table_of
from tests.bot.conversation import samples as states

GB = 1_000_000_000
CONFIG = AlgorithmConfig(
    algorithm="awq",
    derived_from="qwen2",
    content={"name": "awq", "scaling_layers": [{"layers": ["q_proj"]}] * 40},
    sha256="ab" * 32,
)


def analysis(document: ModelAnalysis | None = None, **revision: Any) -> Card:
    """Checkpoint 1."""
    kept = AnalysisRevision(**{**states.ANALYSIS.model_dump(), **revision})
    return analysis_card(7, states.reviewing_analysis(analysis=kept), document or samples.analysis())


def plan(document: QuantPlan, confirmed: ExactList | None = None) -> Card:
    """Checkpoint 2."""
    kept = states.ANALYSIS.model_copy(update={"confirmed": confirmed})
    return plan_card(7, states.reviewing_plan(analysis=kept), document)


def warnings(card: Card) -> list[str]:
    """What it warns of."""
    notes = [note for block in card.body if isinstance(block, Notes) for note in block.notes]
    return [note.message for note in notes if note.severity is Severity.WARNS]


def paragraphs(card: Card) -> list[str]:
    """Its paragraphs."""
    return [block.text for block in card.body if isinstance(block, Text)]


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        (
            {"better": "wanted"},
            "from the headers of the weights; the engine's own is being made, and is shown here once it is there",
        ),
        ({"better": "none"}, "from the headers of the weights"),
        (
            {"better": "none", "no_better": "The model needs its own code."},
            "from the headers of the weights; the engine's own could not be made: The model needs its own code.",
        ),
        ({"better": "none", "exact": True}, "exact: the engine's own"),
    ],
)
def test_whose_the_list_of_layers_is(revision: dict[str, Any], said: str) -> None:
    assert fields_of(analysis(**revision))["List of layers"] == said


def test_a_provisional_list_says_so() -> None:
    targets = samples.analysis().quantization_targets.model_copy(update={"provisional": True})
    card = analysis(samples.analysis(quantization_targets=targets))
    assert fields_of(card)["List of layers"].startswith("provisional, from the headers")


def test_weights_that_are_still_on_the_hub_are_told_with_whose_token() -> None:
    facts = samples.analysis().model.model_copy(
        update={
            "source": "huggingface_id",
            "revision": "0123abcd",
            "downloaded": False,
            "hub_token": "the runner's HF_TOKEN",
        }
    )
    said = fields_of(analysis(samples.analysis(model=facts)))
    assert said["Source"] == "the Hugging Face Hub, commit 0123abcd"
    assert said["Weights"] == "on the Hub: 16.4 GB to download"
    assert said["Asked the Hub with"] == "the runner's HF_TOKEN"
    here = fields_of(analysis())
    assert "Weights" not in here
    assert "Asked the Hub with" not in here


def test_each_pattern_says_what_it_matches() -> None:
    matches = [
        LayerMatch(pattern="lm_head", role="exclude", count=0, exact=True),
        LayerMatch(
            pattern="*self_attn*", role="override", count=144, examples=["model.layers.0.self_attn.q_proj"], exact=True
        ),
    ]
    card = plan(samples.plan(layer_matches=matches, layer_quant_config={"*self_attn*": "fp8"}))
    table = table_of(card, 1)
    assert table.caption == "What the patterns match, counted in the engine's own list of layers"
    assert table.rows == (
        ("lm_head", "left as it is", "0", "matches nothing"),
        ("*self_attn*", "fp8", "144", "model.layers.0.self_attn.q_proj"),
    )
    assert warnings(card) == []


def test_patterns_of_people_that_match_nothing_are_a_warning_once() -> None:
    matches = [
        LayerMatch(pattern="*atn*", role="override", count=0),
        LayerMatch(pattern="*router*", role="exclude", count=0),
    ]
    document = samples.plan(layer_matches=matches, layer_quant_config={"*atn*": "fp8"}, exclude_layers_changed=True)
    card = plan(document)
    assert warnings(card) == ["*atn* matches no layer of this model.", "*router* matches no layer of this model."]
    assert "counted in the names in the headers" in table_of(card, 1).caption
    known = Finding(
        severity=Severity.WARNS,
        code="override_matches_nothing",
        message="The pattern *atn* matches no linear layer, so fp8 would be used nowhere.",
    )
    card = plan(document.model_copy(update={"findings": [known]}))
    assert warnings(card) == [known.message, "*router* matches no layer of this model."]


def test_a_pattern_that_stands_in_what_is_said_of_others_has_its_own_warning() -> None:
    matches = [LayerMatch(pattern=pattern, role="exclude", count=0) for pattern in ("layer", "*atn*", "*a*")]
    said = [
        ("exclusion_matches_nothing", "The exclusion *atn* matches no linear layer, so it leaves nothing alone."),
        ("weights_wide", "The exclusion *a* matches no taste, and this layer is wide."),
    ]
    findings = [Finding(severity=Severity.INFORMS, code=code, message=message) for code, message in said]
    card = plan(samples.plan(layer_matches=matches, exclude_layers_changed=True, findings=findings))
    assert warnings(card) == ["layer matches no layer of this model.", "*a* matches no layer of this model."]


def test_the_engines_own_exclusions_are_nobodys_mistake() -> None:
    matches = [LayerMatch(pattern=pattern, role="exclude", count=0) for pattern in ("*.gate", "*router*")]
    kept = states.ANALYSIS.model_copy(update={"exclude_defaults": ("lm_head", "*.gate")})
    document = samples.plan(layer_matches=matches, exclude_layers_changed=True)
    card = plan_card(7, states.reviewing_plan(analysis=kept), document)
    assert warnings(card) == ["*router* matches no layer of this model."]


@pytest.mark.parametrize(
    "choices",
    [
        {"exclude_layers": ["lm_head", "*nothing*"]},
        {"layer_quant_config": {"*nothing*": "int4_wo_128"}},
        {"layer_quant_config": {"*embed_tokens": "int4_wo_128"}},
    ],
)
def test_the_planner_and_the_card_do_not_say_it_twice(choices: dict[str, Any]) -> None:
    document = plan_for(global_scheme="fp8", **choices)
    (pattern,) = [one.pattern for one in document.layer_matches if one.pattern != "lm_head"]
    text = [note.message for block in plan(document).body if isinstance(block, Notes) for note in block.notes]
    assert sum(pattern in message for message in text) == 1


def test_what_the_engine_never_quantizes_is_said() -> None:
    targets = samples.analysis().quantization_targets
    router = targets.groups[0].model_copy(
        update={"pattern": "layers.*.gate", "never_quantized": True, "excluded_by_default": True}
    )
    document = samples.analysis(quantization_targets=targets.model_copy(update={"groups": [router]}))
    assert table_of(analysis(document)).rows[0][3] == "BF16, never quantized"


def test_a_written_configuration_is_shown_folded_and_bound() -> None:
    card = plan(samples.plan(algorithm="awq", write_algorithm_config=True, algorithm_configs=[CONFIG]))
    table = table_of(card, 1)
    assert table.caption == "Written for this plan: 1 algorithm configuration, whole in quant_plan.json"
    assert table.rows == (("awq", "that of qwen2", "abababababab"),)
    (part,) = [block for block in card.body if isinstance(block, LogPart)]
    assert part.head[:2] == ("{", '"name": "awq",')
    assert part.left_out > 100
    assert len(part.head) + len(part.tail) == 14


def test_what_a_yes_accepts_is_said_before_and_after_it() -> None:
    document = samples.plan(risks=["scales_in_f32", "disk_tight"])
    card = plan(document)
    assert "Approving accepts 2 risks: scales in f32, disk tight." in paragraphs(card)
    kept = states.PLAN.model_copy(update={"risks": ("scales_in_f32", "disk_tight")})
    board = board_at(states.reviewing_plan(plan=kept))
    board.go(states.preparing(plan=kept), Verdict(Verb.APPROVED, states.ADA))
    outcome = board.card("plan:2").outcome
    assert outcome.startswith("Approved by Ada, ")
    assert outcome.endswith("; accepted 2 risks: scales in f32, disk tight")


def test_without_risks_nothing_is_accepted() -> None:
    assert not any("accepts" in text for text in paragraphs(plan(samples.plan())))
    board = board_at(states.reviewing_plan())
    board.go(states.preparing(), Verdict(Verb.APPROVED, states.ADA))
    assert "risk" not in board.card("plan:2").outcome
    risky = states.PLAN.model_copy(update={"risks": ("disk_tight",)})
    board = board_at(states.reviewing_plan(plan=risky))
    board.go(states.planning(step=3), Verdict(Verb.CHANGED, states.ADA))
    assert "risk" not in board.card("plan:2").outcome


def test_a_blocked_plan_accepts_nothing() -> None:
    blocked = states.BLOCKED.model_copy(update={"risks": ["slow"]})
    assert not any("Approving accepts" in text for text in paragraphs(plan(blocked)))


def test_an_exact_list_that_agrees_gains_a_line_and_what_only_it_found() -> None:
    found = ExactList(number=2, linear_layers=252, risks=("Two layers share one weight.",))
    card = plan(samples.plan(), found)
    assert fields_of(card)["Exact list of layers"] == "252 linear layers, as analysed"
    assert warnings(card) == ["Two layers share one weight."]
    assert "Exact list of layers" not in fields_of(plan(samples.plan()))


def needs(**estimates: Any) -> dict[str, str | None]:
    """What the card says a run needs."""
    return dict(estimate_fields(Estimates(**estimates)))


def test_needs_stand_beside_what_is_there() -> None:
    said = needs(
        output_bytes=9 * GB,
        source_bytes=16 * GB,
        gpu_memory_bytes=18 * GB,
        gpu_memory_bytes_there=206 * GB,
        gpu_memory_bytes_free=200 * GB,
        host_memory_bytes=34 * GB,
        host_memory_bytes_there=512 * GB,
        disk_bytes_needed=26 * GB,
        disk_bytes_free=100 * GB,
        download_bytes=16 * GB,
        dataset_bytes=500_000_000,
        flow="file2file",
        seconds_least=720,
        seconds_most=900,
        runs_of_this_kind=3,
    )
    assert said == {
        "Expected output": "9.0 GB for all files, 56 % of the 16.0 GB of the original's weights",
        "GPU memory": "needs about 18.0 GB of 206.0 GB, 200.0 GB of it free now",
        "Main memory": "needs about 34.0 GB of 512.0 GB",
        "Weights": "read and written file by file",
        "Disk": (
            "needs 26.0 GB, 100.0 GB free: 9.0 GB for the output, 16.0 GB of the model to download, "
            "500.0 MB of datasets to download"
        ),
        "Time": "12 min to 15 min for the command alone, from 3 finished runs of this kind",
    }


def test_what_is_not_known_is_said_or_left_out() -> None:
    said = needs()
    assert said["Expected output"] == "not predicted"
    assert said["Time"] == "no history: no run of this kind has finished on this runner"
    assert {name for name, value in said.items() if value is None} == {"GPU memory", "Main memory", "Weights", "Disk"}
    assert needs(gpu_memory_bytes=GB)["GPU memory"] == "needs about 1.0 GB; how much there is, is not known"
    assert needs(output_bytes=GB, disk_bytes_needed=GB)["Disk"] == "1.0 GB"


def test_one_run_gives_one_time() -> None:
    said = needs(seconds_least=65, seconds_most=65, runs_of_this_kind=1)
    assert said["Time"] == "1 min 5 s for the command alone, from 1 finished run of this kind"


def result(estimates: Estimates, measured: Measured | None, size: int | None = None) -> Card:
    """Checkpoint 4."""
    report = samples.report().model_copy(update={"measured": measured, "size_bytes": size})
    state = states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report))
    return result_card(7, state, samples.plan(estimates=estimates))


def test_what_was_predicted_stands_beside_what_it_became() -> None:
    predicted = Estimates(
        output_bytes=10 * GB,
        gpu_memory_bytes=20 * GB,
        host_memory_bytes=30 * GB,
        seconds_least=600,
        seconds_most=1200,
        runs_of_this_kind=2,
    )
    measured = Measured(seconds=1800, host_memory_bytes=33 * GB, gpu_memory_bytes=19 * GB)
    table = table_of(result(predicted, measured, 10 * GB + 50_000_000), 1)
    assert table.head == ("", "Predicted", "Actual", "Difference")
    assert table.rows == (
        ("Size of all files", "10.0 GB", "10.1 GB", "+0.5 %"),
        ("GPU memory", "20.0 GB", "19.0 GB", "-5.0 %"),
        ("Main memory", "30.0 GB", "33.0 GB", "+10.0 %"),
        ("Time of the command", "10 min to 20 min", "30 min", "+50.0 %"),
    )


def test_a_time_within_what_was_said_is_not_off() -> None:
    predicted = Estimates(seconds_least=600, seconds_most=1200, runs_of_this_kind=2)
    table = table_of(result(predicted, Measured(seconds=700)), 1)
    assert table.rows == (("Time of the command", "10 min to 20 min", "12 min", "0.0 %"),)


def test_what_nobody_measured_or_predicted_is_said() -> None:
    table = table_of(result(Estimates(output_bytes=GB), Measured(seconds=60, host_memory_bytes=GB), None), 1)
    assert table.rows == (
        ("Size of all files", "1.0 GB", "not measured", ""),
        ("Main memory", "not predicted", "1.0 GB", ""),
        ("Time of the command", "not predicted", "1 min", ""),
    )
    assert "Predicted" not in read(result(Estimates(), Measured(seconds=60), GB))


def test_the_whole_run_and_its_command_are_told_apart() -> None:
    assert fields_of(result(Estimates(), None))["Took"] == "3 min 20 s"
    said = fields_of(result(Estimates(), Measured(seconds=150)))
    assert said["Took"] == "3 min 20 s with verification; the command alone 2 min 30 s"


def test_deviations_from_the_published_mapping_have_a_reason() -> None:
    deviations = [Deviation(flag="--skip_evaluation", reason="quark-cli has no such option.")]
    card = command_card(7, states.reviewing_command(), samples.manifest(deviations=deviations))
    table = table_of(card, 1)
    assert table.caption == "Where this command differs from the published workflow"
    assert table.rows == (("--skip_evaluation", "quark-cli has no such option."),)


def test_files_beside_the_script_of_a_site_are_bound_and_named() -> None:
    entry = EntryPoint(name="site", path="/opt/site/run.py", sha256="0" * 64, files={"lib/a.py": "ab" * 32})
    said = fields_of(command_card(7, states.reviewing_command(), samples.manifest(entry_point=entry)))
    assert said["Beside the script"] == "lib/a.py (SHA-256 abababababab)"
    assert "Beside the script" not in fields_of(command_card(7, states.reviewing_command(), samples.manifest()))
