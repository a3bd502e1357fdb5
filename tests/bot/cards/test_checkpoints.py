"""The four cards that ask a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.cards import amounts
from bot.cards.analysis import analysis_card
from bot.cards.card import ActionKind, Card, Notes, Tone
from bot.cards.command import command_card
from bot.cards.outcome import decided
from bot.cards.plan import plan_card
from bot.cards.result import readers, result_card
from bot.conversation.state import Checkpoint, asked_at
from schemas.artifacts.analysis import Compatibility, ModelFacts, QuantizationTargets, Risk
from schemas.artifacts.manifest import EntryPoint
from schemas.artifacts.plan import Finding, QuantPlan, Severity
from schemas.artifacts.report import Check, OutputFile, ValidationReport
from schemas.digest import short
from schemas.runs import RunState
from tests import samples
from tests.bot.cards.documents import ended_run, plan_for, verified
from tests.bot.cards.reading import command_of, fields_of, kinds_of, read, table_of
from tests.bot.conversation import samples as states
from tests.runner.planning.models import llama, qwen3_8b

YES_EDIT_NO = [ActionKind.APPROVE, ActionKind.EDIT, ActionKind.CANCEL]

ANALYSIS = """\
# Model analysis: Qwen3-8B
Model path: /models/Qwen3-8B
Model type: qwen3
Hidden layers: 36
Linear layers: 252 (quantization targets)
MoE: no
Exclude defaults: lm_head
Size: 16.4 GB, 8.19 billion parameters, mostly BF16
Compatibility: OK: The engine has a template for qwen3.
List of layers: exact: the engine's own
Source: a folder on the runner
Asked for: scheme fp8
Runner: local
Output folder: a fresh one in /out; the command names it
Revision of this analysis: 1, digest 136e83c21e82
Linear layers by name and shape
Layers | Count | In → out |\x20
model.layers.*.self_attn.q_proj | 36 | 4,096 → 4,096 | BF16
model.layers.*.self_attn.k_proj | 36 | 4,096 → 1,024 | BF16
model.layers.*.self_attn.v_proj | 36 | 4,096 → 1,024 | BF16
model.layers.*.self_attn.o_proj | 36 | 4,096 → 4,096 | BF16
model.layers.*.mlp.gate_proj | 36 | 4,096 → 12,288 | BF16
model.layers.*.mlp.up_proj | 36 | 4,096 → 12,288 | BF16
model.layers.*.mlp.down_proj | 36 | 12,288 → 4,096 | BF16
lm_head | 1 | 4,096 → 151,936 | BF16, excluded by default
Risks
informs: No risks were found.
Checkpoint 1 of 4: is this analysis right?
[Approve]
[Edit]
[Cancel]"""

PLAN = """\
# Quantization plan: Qwen3-8B to fp8

Decision | Value | Reason
global_scheme | fp8 | Requested: fp8.
kv_cache_scheme | fp8 | Recommended for FP8 inference.
exclude_layers | lm_head | Standard: the engine's template for qwen3 leaves these at full precision.
layer_quant_config | none | No per-pattern overrides.
algorithm | none | RTN baseline (fastest).
calibration_dataset | pileval | Fast default.
num_calib_data | 128 | Standard default.
seq_len | 512 | Standard default.
batch_size | 1 | Standard default."""

COMMAND = """\
# Shall I run this exact command?
$ /venv/bin/python /content/quantize.py --model_dir /models/qwen3-8b --quant_scheme fp8
{digest}
Output folder: /out/qwen3-8b-fp8
Expected files: config.json, *.safetensors
Model: /models/qwen3-8b, 1 file
Entry point: own: It fits.
Script: /content/quantize.py, SHA-256 000000000000
Versions: Python 3.11.7, torch 2.13.0+cpu, transformers 5.16.1, Quark 0.13
Secrets: HF_TOKEN (only the names are known here)
GPU: chosen by the runner at the start
Working folder: made by the runner at the start
Runner: local
Revision of this command: 1, digest {short}
Environment variables that the run always gets
Variable | Value
PYTHONUNBUFFERED | 1
Checkpoint 3 of 4: shall I run this exact command?
[Run it]
[Edit]
[Cancel]"""


def _analysis_card() -> Card:
    return analysis_card(7, states.reviewing_analysis(), qwen3_8b())


def _plan_card(plan: QuantPlan) -> Card:
    return plan_card(7, states.reviewing_plan(), plan)


def _off(plan: QuantPlan, report: ValidationReport) -> str:
    """How far the prediction of the size is off."""
    assert plan.estimates.output_bytes
    assert report.size_bytes
    return amounts.change(report.size_bytes / plan.estimates.output_bytes - 1)


def _notes(card: Card) -> list[tuple[Severity, str]]:
    return [(one.severity, one.message) for block in card.body if isinstance(block, Notes) for one in block.notes]


def test_the_analysis_says_what_the_model_is() -> None:
    card = _analysis_card()
    assert read(card) == ANALYSIS
    assert card.alternative == ("Model analysis of Qwen3-8B: qwen3, 252 linear layers, 16.4 GB, no risks. Is it right?")
    assert card.tone is Tone.WAITING


def test_buttons_carry_what_they_are_about() -> None:
    state = states.reviewing_analysis()
    card = _analysis_card()
    assert kinds_of(card) == YES_EDIT_NO
    for button in card.buttons:
        assert button.action.conversation == 7
        assert (button.action.checkpoint, button.action.digest) == (Checkpoint.ANALYSIS, short(state.analysis.digest))
        assert len(button.action.encoded()) < 100


def test_risks_come_worst_first_and_a_model_that_does_not_fit_before_them() -> None:
    risks = [
        Risk(severity="low", code="tied", message="Tied."),
        Risk(severity="high", code="code", message="It brings code.", recovery_hint="Read it."),
        Risk(severity="medium", code="moe", message="Experts."),
    ]
    unsupported = Compatibility(status="unsupported", message="The engine has no template for it.")
    card = analysis_card(7, states.reviewing_analysis(), samples.analysis(risks=risks, compatibility=unsupported))
    assert _notes(card) == [
        (Severity.BLOCKS, "The engine has no template for it."),
        (Severity.WARNS, "high risk: It brings code."),
        (Severity.WARNS, "medium risk: Experts."),
        (Severity.INFORMS, "low risk: Tied."),
    ]
    assert "3 risks, unsupported" in card.alternative


def test_a_mixture_from_the_hub_says_where_it_comes_from() -> None:
    facts = ModelFacts(
        model_path="Qwen/Qwen3-30B-A3B",
        model_type="qwen3_moe",
        source="huggingface_id",
        revision="0123abcd",
        is_moe=True,
        experts=128,
        remote_code=["config.json: AutoModel -> modeling.Model"],
    )
    targets = QuantizationTargets(linear_layer_count=18_624, exclude_defaults=[], provisional=True)
    analysis = samples.analysis(model=facts, quantization_targets=targets, analysis_status="partial")
    said = fields_of(analysis_card(7, states.reviewing_analysis(because="The model's files changed."), analysis))
    assert said["MoE"] == "yes, 128 experts per layer"
    assert said["Linear layers"] == "about 18,624 (quantization targets)"
    assert said["Source"] == "the Hugging Face Hub, commit 0123abcd"
    assert said["Hidden layers"] == "unknown"
    assert said["Exclude defaults"] == "none"
    assert said["Code of its own"] == "config.json: AutoModel -> modeling.Model"
    assert "partial" in said["Analysis"]


def test_many_groups_are_cut_and_the_file_is_named() -> None:
    analysis = samples.analysis()
    groups = [
        analysis.quantization_targets.groups[0].model_copy(update={"pattern": f"vision.{n}.proj"}) for n in range(500)
    ]
    targets = analysis.quantization_targets.model_copy(update={"groups": groups})
    many = analysis.model_copy(update={"quantization_targets": targets})
    table = table_of(analysis_card(7, states.reviewing_analysis(), many))
    assert len(table.rows) == 15
    assert table.rows[-1] == ("and 486 more", "", "", "")
    assert "model_analysis.json" in table.caption


def test_the_plan_says_every_decision_and_its_reason() -> None:
    card = _plan_card(plan_for(global_scheme="fp8"))
    assert read(card).startswith(PLAN)
    assert kinds_of(card) == YES_EDIT_NO
    said = fields_of(card)
    assert said["Expected output"] == "9.4 GB for all files, 58 % of the 16.4 GB of the original's weights"
    assert said["Disk"] == "needs 9.9 GB, 10.0 TB free"
    assert card.alternative == (
        "Plan for Qwen3-8B: fp8, KV cache fp8, no algorithm, 128 x 512 tokens of pileval, about 9.4 GB. "
        "Confirm it, or say what to change."
    )


def test_a_blocked_plan_cannot_be_approved_and_says_why() -> None:
    card = _plan_card(plan_for(global_scheme="mx6"))
    assert kinds_of(card) == [ActionKind.EDIT, ActionKind.CANCEL]
    assert "This plan cannot run: mx6 (as global scheme) can be calibrated but not exported" in read(card)
    assert "It cannot run: mx6" in card.alternative


def test_the_state_alone_is_enough_to_block() -> None:
    state = states.reviewing_plan(plan=states.PLAN.model_copy(update={"blocked_by": ("The disk is full.",)}))
    card = plan_card(7, state, samples.plan())
    assert kinds_of(card) == [ActionKind.EDIT, ActionKind.CANCEL]
    assert "The disk is full." in read(card)


def test_findings_come_worst_first() -> None:
    card = _plan_card(states.BLOCKED)
    assert _notes(card) == [
        (Severity.BLOCKS, "576 is no multiple of 128."),
        (Severity.BLOCKS, "The disk is too small."),
        (Severity.WARNS, "This is slow."),
    ]
    assert "576 is no multiple of 128. 1 more below." in read(card)


def test_many_findings_are_cut_and_stopping_ones_stay() -> None:
    informs = [Finding(severity=Severity.INFORMS, code="x", message=f"Note {n}.") for n in range(40)]
    blocks = Finding(severity=Severity.BLOCKS, code="y", message="It stops.")
    shown = _notes(_plan_card(samples.plan(findings=[*informs, blocks])))
    assert shown[0] == (Severity.BLOCKS, "It stops.")
    assert shown[-1] == (Severity.INFORMS, "and 21 more")


def test_a_plan_without_reasons_is_shown_all_the_same() -> None:
    rows = {row[0]: row[1] for row in table_of(_plan_card(samples.plan(layer_quant_config={"*k_proj": "fp8"}))).rows}
    assert rows["global_scheme"] == "fp8"
    assert rows["layer_quant_config"] == "*k_proj = fp8"
    assert rows["trust_remote_code"] == "no"


def test_the_command_is_shown_with_all_that_it_is_bound_to() -> None:
    state = states.reviewing_command()
    entry = EntryPoint(name="own", path="/content/quantize.py", sha256="0" * 64, reason="It fits.")
    card = command_card(7, state, samples.manifest(secrets=["HF_TOKEN"], entry_point=entry))
    assert read(card) == COMMAND.format(digest=state.manifest.digest, short=short(state.manifest.digest))
    assert kinds_of(card) == YES_EDIT_NO
    run_it = card.buttons[0]
    assert run_it.confirm == "This starts the run on local. It writes to /out/qwen3-8b-fp8."
    assert (Checkpoint.COMMAND, state.manifest.digest) == asked_at(state)
    assert run_it.action.digest == short(state.manifest.digest)


def test_a_command_that_is_offered_again_says_why() -> None:
    card = command_card(7, states.reviewing_command(because="torch is 2.14 now."), samples.manifest())
    assert _notes(card) == [(Severity.WARNS, "torch is 2.14 now.")]


def test_a_long_command_is_never_cut() -> None:
    argv = ["python", "q.py", "--exclude_layers", *(f"model.layers.{n}.mlp.down_proj" for n in range(2000))]
    card = command_card(7, states.reviewing_command(), samples.manifest(argv=argv, command=" ".join(argv)))
    assert command_of(card).command == " ".join(argv)


def test_hidden_characters_of_a_command_are_written_out_and_told() -> None:
    argv = ["python", "q.py", "--output_dir", "/out/\u202egnp.\\model"]
    card = command_card(7, states.reviewing_command(), samples.manifest(argv=argv))
    assert command_of(card).command == "python q.py --output_dir '/out/\\u202egnp.\\\\model'"
    messages = [message for _, message in _notes(card)]
    assert any("1 character that cannot be seen" in message for message in messages)


def test_what_would_run_is_shown_when_the_text_says_something_else() -> None:
    card = command_card(7, states.reviewing_command(), samples.manifest(command="python harmless.py"))
    assert "quantize.py" in command_of(card).command
    assert any("differs from its argument list" in message for _, message in _notes(card))


def test_letters_from_other_scripts_and_remote_code_are_told() -> None:
    plan = states.PLAN.model_copy(update={"remote_code": True})
    argv = ["python", "/\u043edels/q.py"]
    card = command_card(
        7, states.reviewing_command(plan=plan), samples.manifest(argv=argv, command="python '/\u043edels/q.py'")
    )
    found = _notes(card)
    assert (Severity.WARNS, "This run may execute code that the model brings along.") in found
    assert any("U+043E" in message for _, message in found)


def test_hidden_characters_of_a_variable_are_told() -> None:
    card = command_card(7, states.reviewing_command(), samples.manifest(environment={"HF_HOME": "/a\u200bb"}))
    assert ("HF_HOME", "/a\\u200bb") in table_of(card).rows
    assert any("variable" in message for _, message in _notes(card))


def test_the_result_stands_beside_the_original(tmp_path: Path) -> None:
    plan, report = verified(tmp_path)
    state = states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report))
    card = result_card(7, state, plan)
    numbers = table_of(card)
    assert numbers.head == ("", "Original", "Quantized", "Change")
    assert numbers.rows[0] == ("Perplexity (wikitext)", "7.217", "7.275", "+0.8 %")
    assert numbers.rows[1] == ("Size of all files", "754.9 kB", "483.1 kB", "-36.0 %")
    assert table_of(card, 1).rows[0] == (
        "Size of all files",
        amounts.size(plan.estimates.output_bytes),
        "483.1 kB",
        _off(plan, report),
    )
    said = fields_of(card)
    assert said["Format"] == "HuggingFace SafeTensors: 14 F8_E4M3 tensors, 39 BF16 tensors"
    assert said["Output folder"] == str(tmp_path / "out")
    assert said["Took"] == "3 min 20 s"
    assert kinds_of(card) == [ActionKind.APPROVE, ActionKind.REJECT]
    assert [button.label for button in card.buttons] == ["Accept", "Reject"]
    assert {button.action.checkpoint for button in card.buttons} == {Checkpoint.RESULT}
    files = table_of(card, 3)
    assert files.rows[0][:2] == ("model.safetensors", "466.1 kB")
    assert "perplexity 7.275 (+0.8 %), 483.1 kB of 754.9 kB, no check failed" in card.alternative


def test_doubts_come_before_the_numbers() -> None:
    report = samples.report().model_copy(
        update={
            "checks": [
                Check(name="files", outcome="ok", detail="All there."),
                Check(name="size", outcome="failed", detail="Twice as large."),
                Check(name="reload", outcome="skipped", detail="No GPU."),
            ],
            "next_actions": ["Look at the files."],
        }
    )
    card = result_card(7, states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report)), None)
    assert _notes(card) == [(Severity.WARNS, "size: Twice as large."), (Severity.INFORMS, "Look at the files.")]
    assert [row[1] for row in table_of(card, 1).rows] == ["failed", "skipped", "ok"]
    assert "1 check failed" in card.alternative


def test_what_was_not_measured_is_said() -> None:
    report = samples.report().model_copy(update={"perplexity": None, "size_bytes": None, "original_size_bytes": 100})
    numbers = table_of(result_card(7, states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report)), None))
    assert numbers.rows == (
        ("Perplexity", "not measured", "not measured", ""),
        ("Size of all files", "100 bytes", "unknown", ""),
    )


def test_a_result_without_a_report_says_that_nothing_was_verified() -> None:
    card = result_card(7, states.reviewing_result(run=ended_run(RunState.SUCCEEDED)), None)
    assert "nothing was verified" in read(card)
    assert kinds_of(card) == [ActionKind.APPROVE, ActionKind.REJECT]


def test_many_files_are_cut_largest_first() -> None:
    files = [OutputFile(name=f"model-{n}.safetensors", size_bytes=n, mode="-rw-r-----") for n in range(163)]
    report = samples.report().model_copy(update={"files": files, "checks": []})
    table = table_of(result_card(7, states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report)), None), 1)
    assert table.rows[0][0] == "model-162.safetensors"
    assert table.rows[-1] == ("and 147 more", "", "")
    assert table.caption == "163 files; all of them are in validation_report.json"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("-rw-------", "its owner only"),
        ("-rw-r-----", "its owner and group"),
        ("-rw-r--r--", "everybody on the host"),
        ("?", "not known"),
    ],
)
def test_modes_say_who_can_read(mode: str, words: str) -> None:
    assert readers(mode) == words


@pytest.mark.parametrize(
    "card",
    [
        _analysis_card(),
        _plan_card(samples.plan()),
        command_card(7, states.reviewing_command(), samples.manifest()),
        result_card(7, states.reviewing_result(), samples.plan()),
    ],
    ids=["analysis", "plan", "command", "result"],
)
def test_a_decided_card_keeps_its_body(card: Card) -> None:
    closed = decided(card, "Approved by Ada, 2026-11-30 12:03 UTC")
    assert (closed.title, closed.body, closed.mention) == (card.title, card.body, card.mention)
    assert closed.buttons == ()
    assert closed.tone is Tone.CLOSED
    assert closed.outcome == "Approved by Ada, 2026-11-30 12:03 UTC"
    assert closed.alternative.startswith(f"{closed.outcome}. {card.title}")


def test_a_small_model_too() -> None:
    assert fields_of(analysis_card(7, states.reviewing_analysis(), llama()))["Model type"] == "llama"


def test_the_reason_of_a_chosen_runner_stands_beside_it() -> None:
    request = states.reviewing_analysis().request
    chosen = request.model_copy(update={"runner": "b", "runner_reason": "only b has mxfp4\u202e"})
    said = fields_of(analysis_card(7, states.reviewing_analysis(request=chosen), qwen3_8b()))
    assert said["Runner"] == "b, since only b has mxfp4\\u202e"
