"""A team's threads with rich documents, as they look on a busy day."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from bot.cards.card import Action, ActionKind, Attachment
from bot.cards.drawing import Documents
from bot.cards.form import Form, edit_form
from bot.conversation.decision import Verb, Verdict
from bot.conversation.endings import ended
from bot.conversation.person import Person, Place
from bot.conversation.state import Checkpoint, Ended, Ending, Stage, State, Trouble
from bot.platforms.contract import Clicked, Event
from bot.store.records import Outcome
from schemas.api import Capabilities
from schemas.artifacts.analysis import LinearGroup, ModelSize, QuantizationTargets, Risk
from schemas.artifacts.plan import Decision, Estimates, Finding, QuantPlan, Severity
from schemas.artifacts.report import Check, OutputFile, Perplexity, TensorCount, ValidationReport
from schemas.catalog import Catalogue
from schemas.runs import Phase, Progress, Run, RunState
from tests import samples
from tests.bot.conversation import samples as talk
from tests.bot.platforms.web.desk import Desk, later

ADA = talk.ADA
BOB = Person(id="slack:U07BOB", name="Bob Nakamura")
EVE = Person(id="discord:99", name="Ève \u202eevil\u202c <b>bold</b>")
SLACK = Place(platform="slack", channel="C042", thread="1772452800.1234")
WHY = (
    "The template knows the KV layers of qwen3 and the GPU computes fp8, so the KV cache takes fp8 as well. "
    "Say: no kv cache, to leave it alone."
)
DISCORD = Place(platform="discord", channel="77", thread="88")

_SHAPES = {
    "self_attn.q_proj": (4096, 4096),
    "self_attn.k_proj": (4096, 1024),
    "self_attn.v_proj": (4096, 1024),
    "self_attn.o_proj": (4096, 4096),
    "mlp.gate_proj": (4096, 12288),
    "mlp.up_proj": (4096, 12288),
    "mlp.down_proj": (12288, 4096),
}
ANALYSIS = samples.analysis(
    quantization_targets=QuantizationTargets(
        linear_layer_count=252,
        exclude_defaults=["lm_head"],
        groups=[
            LinearGroup(pattern=f"model.layers.*.{name}", count=36, in_features=k, out_features=n, dtype="BF16")
            for name, (k, n) in _SHAPES.items()
        ],
    ),
    size=ModelSize(weight_bytes=16_381_470_720, parameters=8_190_735_360),
    risks=[
        Risk(
            severity="medium",
            code="no_algorithm",
            message="Quark 0.13 has no built-in configuration of awq or gptq for qwen3.",
            recovery_hint="Plan without an algorithm, or give one a configuration file.",
        ),
        Risk(severity="low", code="license", message="The model's card names the Apache 2.0 licence."),
    ],
)
PLAN = samples.plan(
    decisions=[
        Decision(decision="global_scheme", value="fp8", reason="Requested: fp8.", source="request"),
        Decision(
            decision="kv_cache_scheme",
            value="fp8",
            reason="Proposed: the template knows the KV layers of qwen3, and the GPU computes fp8.",
            source="engine",
        ),
        Decision(
            decision="exclude_layers",
            value=["lm_head"],
            reason="Standard: the engine's template for qwen3 leaves these at full precision.",
            source="engine",
        ),
        Decision(decision="algorithm", value=None, reason="fp8 needs none.", source="default"),
        Decision(decision="calibration_dataset", value="pileval", reason="The published default.", source="published"),
        Decision(decision="num_calib_data", value=128, reason="The published default.", source="published"),
        Decision(decision="device", value="cuda", reason="A GPU with enough free memory is there.", source="host"),
    ],
    findings=[
        Finding(
            severity=Severity.WARNS,
            code="kv_scales",
            message="Several servers read calibrated fp8 KV scales as 1.0 for some families.",
            hint="Compare the served model's answers with the original's.",
        ),
        Finding(
            severity=Severity.INFORMS, code="evaluation", message="Perplexity is measured on wikitext-2, both times."
        ),
    ],
    estimates=Estimates(
        output_bytes=9_441_000_000,
        source_bytes=16_381_470_720,
        disk_bytes_needed=9_913_000_000,
        disk_bytes_free=1_822_000_000_000,
    ),
)
_ARGV = [
    *("/opt/quark/bin/python", "/var/lib/ptq-runner/content/9f2c77a0b1d4e5f6/quantize.py"),
    *("--model_dir", "/models/Qwen3-8B", "--output_dir", "/data/quantized/Qwen3-8B-fp8", "--quant_scheme", "fp8"),
    *("--kv_cache_dtype", "fp8", "--dataset", "pileval", "--num_calib_data", "128", "--seq_len", "512"),
    *("--batch_size", "1", "--model_export", "hf_format", "--data_type", "auto", "--device", "cuda"),
    "--no_trust_remote_code",
]
MANIFEST = samples.manifest(argv=_ARGV)
DOCUMENTS = Documents(analysis=ANALYSIS, plan=PLAN, manifest=MANIFEST)
REPORT = ValidationReport(
    status="success",
    summary="Quantization complete: 252 layers to fp8, model size 9.4 GB (original 16.4 GB), perplexity 9.81 (+0.8 %).",
    checks=[
        Check(name="files", outcome="ok", detail="7 files, all that were expected"),
        Check(name="layers", outcome="ok", detail="252 of 252 layers are quantized as planned"),
        Check(name="exclusions", outcome="ok", detail="The engine excluded what the plan says: lm_head 1."),
        Check(name="reload", outcome="ok", detail="Loaded again in 27 s and computes finite numbers"),
        Check(name="perplexity", outcome="ok", detail="9.733 became 9.811 (+0.8 %); FP8 usually costs at most 1 %"),
    ],
    output_dir="/data/quantized/Qwen3-8B-fp8",
    files=[
        OutputFile(name=f"model-0000{n}-of-00002.safetensors", size_bytes=4_700_000_000, mode="-rw-r-----")
        for n in (1, 2)
    ]
    + [OutputFile(name="config.json", size_bytes=4_211, mode="-rw-r-----")],
    tensors=[TensorCount(dtype="F8_E4M3", tensors=252, size_bytes=6_945_000_000)],
    size_bytes=9_442_000_000,
    original_size_bytes=16_381_470_720,
    perplexity=Perplexity(dataset="wikitext-2", tokens=245_760, original=9.733, quantized=9.811),
)


def capabilities() -> Capabilities:
    """What a runner with the installed engine offers."""
    data = Path(__file__).parents[3] / "data" / "catalogue-0.13.json"
    return Capabilities(
        catalogue=Catalogue.model_validate(json.loads(data.read_text(encoding="utf-8"))),
        entry_points={"own": "/content/quantize.py", "quantize_quark": "/opt/Quark/examples/quantize_quark.py"},
        model_roots=["/models"],
        output_roots=["/data/quantized"],
        datasets=["pileval", "wikitext"],
        hub=True,
        remote_code=False,
        engine="local",
    )


def form(number: int, state: State, plan: QuantPlan | None = PLAN, known: bool = True) -> Form:
    """The edit form of a state; `known` says whether the runner has told what it offers."""
    return edit_form(number, state, plan, capabilities() if known else None, ["local", "mi300"] if known else [])


def run(**changes: object) -> Run:
    """The run of the story's command."""
    progress = Progress(phase=Phase.CALIBRATING, percent=42.0, done=54, total=128, rate=0.31, seconds_left=239.0)
    values = {"output_dir": "/data/quantized/Qwen3-8B-fp8", "progress": progress}
    return talk.run(**{**values, **changes})


def yes(checkpoint: Checkpoint, by: Person = ADA) -> Verdict:
    """An approval, for the card that it closes."""
    return Verdict(Verb.APPROVED, by, checkpoint)


def tell(desk: Desk) -> dict[str, int]:
    """Put the story on a desk; its threads by name."""
    accepted = _up_to_result(desk, SLACK, BOB, -400)
    desk.go(accepted, talk.ended(requester=BOB, by=BOB), yes(Checkpoint.RESULT, BOB), at=later(-300))
    cancelled = desk.begin(talk.analysing(requester=BOB), SLACK.model_copy(update={"thread": "2"}), later(-250))
    gone = Ended(request=talk.REQUEST, requester=BOB, step=1, ending=Ending.CANCELLED, by=BOB, at=later(-249))
    desk.go(cancelled, gone, Verdict(Verb.CANCELLED, BOB), at=later(-249))
    result = _up_to_result(desk, None, ADA, -200)
    running = _up_to_command(desk, DISCORD, EVE, -60)
    _start(desk, running, EVE, -50)
    command = _up_to_command(desk, None, ADA, -30)
    failed = _up_to_command(desk, SLACK.model_copy(update={"thread": "3"}), BOB, -25)
    _start(desk, failed, BOB, -20)
    _fail(desk, failed, BOB, -15)
    plan = _up_to_plan(desk, None, ADA, -10)
    analysing = desk.begin(talk.analysing(requester=ADA), at=later(-1))
    return {
        "accepted": accepted,
        "cancelled": cancelled,
        "result": result,
        "running": running,
        "command": command,
        "failed": failed,
        "plan": plan,
        "analysing": analysing,
    }


def endings(desk: Desk) -> dict[str, int]:
    """Threads that failed or ended early, in every way; by name."""
    rejected = _up_to_result(desk, None, ADA, -900)
    _end(desk, rejected, Ending.REJECTED, -890, Verdict(Verb.REJECTED, ADA, Checkpoint.RESULT))
    stopped = _up_to_command(desk, None, ADA, -850)
    _start(desk, stopped, ADA, -840)
    desk.go(stopped, talk.running(run=run(state=RunState.CANCELLED, ended_at=later(-830))), None, DOCUMENTS)
    _end(desk, stopped, Ending.CANCELLED, -830, Verdict(Verb.CANCELLED, ADA))
    expired = _up_to_command(desk, None, ADA, -800)
    _end(desk, expired, Ending.EXPIRED, -100, None)
    kinds = {"rejected": rejected, "stopped": stopped, "expired": expired}
    for stage in (Stage.INTAKE, Stage.PLAN, Stage.MANIFEST, Stage.SUBMISSION):
        kinds[f"failed-{stage}"] = desk.begin(talk.analysing(), at=later(-700))
        desk.go(kinds[f"failed-{stage}"], talk.failed_at(stage), None, DOCUMENTS, later(-699))
    return kinds


def _end(desk: Desk, number: int, ending: Ending, minutes: float, verdict: Verdict | None) -> None:
    state = desk.conversations[number].state
    by = verdict.by if verdict else None
    desk.go(number, ended(state, ending, later(minutes), by), verdict, DOCUMENTS, later(minutes))


def _up_to_plan(desk: Desk, place: Place | None, who: Person, minutes: float) -> int:
    at = later(minutes)
    number = desk.begin(talk.analysing(requester=who), place, at)
    asked = desk.said(number, who, "quantize Qwen/Qwen3-8B to fp8", at=at)
    desk.threads[number].remove(asked)
    desk.threads[number].insert(0, asked)
    desk.go(number, talk.reviewing_analysis(requester=who), None, DOCUMENTS, at)
    desk.said(number, who, "looks good", at=at + timedelta(minutes=1))
    desk.go(number, talk.planning(requester=who), yes(Checkpoint.ANALYSIS, who), DOCUMENTS, at)
    desk.go(number, talk.reviewing_plan(requester=who), None, DOCUMENTS, at)
    desk.forms[number] = form(number, desk.conversations[number].state)
    return number


def _up_to_command(desk: Desk, place: Place | None, who: Person, minutes: float) -> int:
    number = _up_to_plan(desk, place, who, minutes)
    at = later(minutes + 3)
    if who is ADA:
        desk.said(number, ADA, "why fp8 for the KV cache as well?", WHY, at)
    desk.go(number, talk.preparing(requester=who), yes(Checkpoint.PLAN, who), DOCUMENTS, at)
    desk.go(number, talk.reviewing_command(requester=who), None, DOCUMENTS, at)
    return number


def _start(desk: Desk, number: int, who: Person, minutes: float) -> None:
    at = later(minutes)
    desk.go(number, talk.submitting(requester=who), yes(Checkpoint.COMMAND, who), DOCUMENTS, at)
    desk.go(number, talk.running(requester=who, run=run()), None, DOCUMENTS, at)


def _fail(desk: Desk, number: int, who: Person, minutes: float) -> None:
    trouble = Trouble(
        code="out_of_memory",
        message="The GPU ran out of memory while calibrating: 22.1 GB were wanted and 3.4 GB were free.",
        hint="Lower the batch size or the tokens of a sample, or wait until the GPU is free.",
    )
    lost = run(state=RunState.FAILED, ended_at=later(minutes), exit_code=1, reason=trouble.message)
    desk.go(number, talk.failed(requester=who, trouble=trouble, run=lost), None, DOCUMENTS, later(minutes))


def _up_to_result(desk: Desk, place: Place | None, who: Person, minutes: float) -> int:
    number = _up_to_command(desk, place, who, minutes)
    _start(desk, number, who, minutes + 10)
    done = Progress(phase=Phase.DONE, percent=100.0)
    at = later(minutes + 20)
    ended = run(state=RunState.SUCCEEDED, ended_at=at, report=REPORT, last_event=9, progress=done)
    desk.go(number, talk.reviewing_result(requester=who, run=ended), None, DOCUMENTS, at)
    return number


def refused_click(desk: Desk, number: int, person: Person, kind: ActionKind = ActionKind.APPROVE) -> None:
    """A click of a reader that came to nothing, each with a key of its own."""
    action = Action(kind=kind, conversation=number, checkpoint=Checkpoint.PLAN, digest="0" * 12)
    place = desk.conversations[number].place
    event = Event(
        key=f"old-{number}-{len(desk.events)}", person=person, place=place, at=later(0), what=Clicked(action=action)
    )
    outcome = Outcome(verdict="refused", text="This card is outdated: the plan was changed. Look at the newest one.")
    desk.keep(event, number, outcome)


def picture(name: str = "progress.png") -> Attachment:
    """A picture as an attachment."""
    return Attachment(name=name, artifact="plot", number=1, alternative="Perplexity before and after")
