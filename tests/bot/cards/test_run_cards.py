"""Cards of a run, of failures and of endings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bot.cards.card import ActionKind, Card, LogPart, Tone
from bot.cards.ending import ending_card
from bot.cards.failure import failure_card
from bot.cards.form import edit_form
from bot.cards.help import help_card
from bot.cards.history import history_card
from bot.cards.run import PHASES, handing_over_card, quiet_since, run_card, run_closed_card
from bot.cards.working import working_card
from bot.conversation.person import Person, Place
from bot.conversation.state import Checkpoint, Ending, Stage, Trouble, Working
from bot.conversation.wording import NAMES
from bot.conversation.words.understand import Intent, understand
from bot.conversation.words.vocabulary import PUBLISHED
from bot.store.records import HistoryRow
from runner.runs.diagnosis import diagnose_file
from schemas.artifacts.plan import PlanChoices
from schemas.artifacts.report import Check, FailureClass, ValidationReport
from schemas.runs import Phase, Progress, RunState
from tests import samples
from tests.bot.cards.documents import ended_run
from tests.bot.cards.reading import fields_of, kinds_of, meter_of, read
from tests.bot.conversation import samples as states
from tests.fixtures_folder import fixture_files

CALIBRATING = Progress(
    phase=Phase.CALIBRATING,
    percent=43.2,
    done=12,
    total=128,
    rate=0.21,
    seconds_left=552,
    original_perplexity=9.4761,
)


def test_every_phase_has_words() -> None:
    assert PHASES.keys() == set(Phase)


@pytest.mark.parametrize("state", [states.analysing(), states.planning(), states.preparing()], ids=lambda s: s.kind)
def test_while_a_runner_works_it_can_be_cancelled(state: Working) -> None:
    assert isinstance(state, Working)
    card = working_card(7, state)  # type: ignore[arg-type]
    assert card.tone is Tone.WORKING
    assert kinds_of(card) == [ActionKind.CANCEL]
    delayed = working_card(7, state.model_copy(update={"delayed": states.AWAY}))  # type: ignore[arg-type]
    assert "warns: The runner does not answer. It is asked again." in read(delayed)
    assert "Delayed: The runner does not answer." in delayed.alternative


def test_a_step_that_is_taken_again_says_why() -> None:
    card = working_card(7, states.preparing(because="transformers is 5.17 now."))
    assert "warns: transformers is 5.17 now." in read(card)


def test_handing_over_can_be_cancelled_once() -> None:
    assert kinds_of(handing_over_card(7, states.submitting())) == [ActionKind.CANCEL]
    card = handing_over_card(7, states.submitting(cancelled_by=states.ADA, delayed=states.AWAY))
    assert card.buttons == ()
    assert "Ada cancelled it." in read(card)
    assert "The runner does not answer." in card.alternative


def test_progress_says_phase_rate_and_time_left() -> None:
    card = run_card(7, states.running(run=states.run(progress=CALIBRATING)))
    meter = meter_of(card)
    assert (meter.phase, meter.percent) == ("calibrating", 43.2)
    assert meter.detail == "12 of 128, 4.8 s each, 9 min 12 s left in this phase"
    assert meter.stale == ""
    assert fields_of(card)["Perplexity of the original"] == "9.476"
    assert card.alternative == "Run of Qwen3-8B to fp8: 43 %, calibrating."
    assert kinds_of(card) == [ActionKind.CANCEL]


def test_silence_is_told_since_when_and_why() -> None:
    silent = states.running(run=states.run(progress=CALIBRATING), silent=states.AWAY)
    since = quiet_since(None, silent.silent, states.NOON)
    card = run_card(7, silent, since)
    assert meter_of(card).stale == "since 2026-03-02 12:00 UTC: The runner does not answer. It is asked again."
    assert "No news: The runner does not answer." in card.alternative
    later = states.NOON + timedelta(hours=3)
    assert quiet_since(card, Trouble(code="x", message="Now it refuses."), later) == "2026-03-02 12:00 UTC"
    assert quiet_since(card, None, later) == ""


def test_a_queued_run_says_its_place() -> None:
    queued = states.run(state=RunState.QUEUED, position=2, started_at=None)
    card = run_card(7, states.running(run=queued))
    assert card.title == "Waiting in the queue, position 2"
    assert (meter_of(card).percent, kinds_of(card)) == (0.0, [ActionKind.CANCEL])


@pytest.mark.parametrize(
    "state",
    [
        states.running(cancelled_by=states.GRACE),
        states.running(run=states.run(state=RunState.CANCELLING), cancelled_by=states.GRACE),
    ],
)
def test_a_cancelled_run_is_not_over_and_has_no_button(state: object) -> None:
    card = run_card(7, state)  # type: ignore[arg-type]
    assert card.title == "Cancelling the run"
    assert "Grace cancelled it. It counts as running until" in read(card)
    assert card.buttons == ()


def test_an_unknown_outcome_is_said_honestly() -> None:
    unknown = states.run(state=RunState.UNKNOWN, reason="Its folder is damaged.")
    card = run_card(7, states.running(run=unknown))
    said = read(card)
    assert card.title == "Not known: what became of this run"
    assert "never run again by itself" in said
    assert "Its folder is damaged." in said
    assert "ptq-runner show run-0123456789abcdef" in said
    assert kinds_of(card) == [ActionKind.CANCEL]
    assert run_card(7, states.running(run=unknown, cancelled_by=states.ADA)).buttons == ()


@pytest.mark.parametrize("state", [state for state in RunState if state.ended])
def test_a_run_that_has_ended_cannot_be_cancelled(state: RunState) -> None:
    assert run_card(7, states.running(run=ended_run(state))).buttons == ()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RunState.SUCCEEDED, "Finished after 3 min 20 s, 2026-03-02 12:03 UTC"),
        (RunState.FAILED, "Failed after 3 min 20 s, 2026-03-02 12:03 UTC"),
        (RunState.CANCELLED, "Cancelled after 3 min 20 s, 2026-03-02 12:03 UTC"),
        (RunState.LOST, "Lost after 3 min 20 s: its outcome is not known, 2026-03-02 12:03 UTC"),
    ],
)
def test_the_run_closes_with_its_last_words(state: RunState, words: str) -> None:
    card = run_closed_card(states.running(), ended_run(state))
    assert (card.outcome, card.tone, card.buttons) == (words, Tone.CLOSED, ())


def test_a_run_of_which_nothing_is_known_is_closed_as_such() -> None:
    card = run_closed_card(states.running(), states.run())
    assert card.title == "Run: outcome not known"
    assert card.outcome == "Outcome not known"


def styles_of(card: Card) -> list[tuple[ActionKind, str]]:
    """What its buttons do and how they look, from left to right."""
    return [(one.action.kind, one.style) for one in card.buttons]


def _failed_run(report: ValidationReport) -> Card:
    run = ended_run(RunState.FAILED, report, exit_code=-9, code="exit_code", reason=report.summary)
    trouble = Trouble(code="exit_code", message=report.summary, hint=(report.next_actions or [""])[0])
    return failure_card(7, states.failed(run=run, trouble=trouble))


@pytest.mark.parametrize("log", fixture_files("failures/*.txt"))
def test_recorded_failures_are_shown_with_class_and_evidence(log: Path) -> None:
    report = diagnose_file(log, 1)
    card = _failed_run(report)
    said = fields_of(card)
    assert report.failure is not None
    assert said["Class"] == report.failure.value
    assert said["Exit status"] == "-9 (signal 9)"
    (evidence,) = [block for block in card.body if isinstance(block, LogPart)]
    lines = (*evidence.head, *evidence.tail)
    assert all(any(one[:400] in whole for whole in report.evidence) for one in lines)
    assert not [one for one in lines if one in report.summary]
    assert all(action.split(".")[0][:200] in read(card) for action in report.next_actions)
    again, back = (ActionKind.RETRY, "primary"), (ActionKind.REVISE, "plain")
    if report.failure.value in {"memory", "configuration", "compatibility", "quantization"}:
        again, back = (ActionKind.REVISE, "primary"), (ActionKind.RETRY, "plain")
    assert styles_of(card) == [again, back, (ActionKind.CANCEL, "danger")]
    assert card.tone is Tone.BAD


OUT_OF_MEMORY = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB."


def test_a_failed_run_says_nothing_twice_and_no_protocol() -> None:
    lines = [
        '{"ptq": "phase", "phase": "calibrating"}',
        "Calibrating: 12%",
        '  {"ptq":"progress", "phase": "calibrating", "done": 3, "total": 4}',
        "}",
        OUT_OF_MEMORY,
        "size: It is twice as large as predicted.",
        "",
    ]
    checks = [
        Check(name="exit status", outcome="failed", detail=f"The GPU ran out of memory. It said: {OUT_OF_MEMORY}"),
        Check(name="size", outcome="failed", detail="It is twice as large as predicted."),
    ]
    report = ValidationReport(
        status="failed",
        summary=f"Quantization failed: {checks[0].detail}",
        cause=checks[0].detail,
        failure=FailureClass.MEMORY,
        evidence=lines,
        checks=checks,
        next_actions=["Take a smaller batch."],
    )
    card = _failed_run(report)
    said = read(card)
    assert said.count(OUT_OF_MEMORY) == 1
    assert said.count("The GPU ran out of memory.") == 1
    assert said.count("twice as large") == 1
    assert said.count("Take a smaller batch.") == 1
    assert '"ptq"' not in said
    (log,) = [block for block in card.body if isinstance(block, LogPart)]
    assert log.tail == ("Calibrating: 12%", "}", "")  # short lines are no sentences: the log keeps its shape
    assert "lets you change what stopped the run" in said


@pytest.mark.parametrize("failure", FailureClass)
def test_trying_again_comes_first_only_where_it_may_help(failure: FailureClass) -> None:
    report = samples.report().model_copy(update={"failure": failure, "status": "failed"})
    first = ActionKind.RETRY
    if failure.value in {"memory", "configuration", "compatibility", "quantization"}:
        first = ActionKind.REVISE
    (kind, style), *others = styles_of(_failed_run(report))
    assert (kind, style) == (first, "primary")
    assert "primary" not in {other for _, other in others}


OUTPUT_CODES = ("output_outside_roots", "output_not_empty", "output_taken", "bad_output_name", "no_output_roots")


@pytest.mark.parametrize("code", OUTPUT_CODES)
@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.RUN])
def test_a_folder_that_cannot_be_used_is_not_blamed_on_the_model(stage: Stage, code: str) -> None:
    trouble = Trouble(code=code, message="/tmp/x is outside the output roots.", hint="Name another folder.")
    failed = states.failed_at(stage).model_copy(update={"trouble": trouble})
    card = failure_card(7, failed)
    assert card.title == "The output folder cannot be used: Qwen3-8B"
    assert card.alternative.startswith("The output folder cannot be used: Qwen3-8B. /tmp/x")
    assert styles_of(card)[0] == (ActionKind.EDIT, "primary")
    assert "Press Edit to name another folder" in read(card)
    assert "analysed" not in read(card)
    form = edit_form(7, failed, None, None)
    assert form.field("output_dir") is not None


def test_a_full_disk_is_not_blamed_on_the_model() -> None:
    full = Trouble(code="disk_full", message="The run needs 10.0 GB.", hint="Free some space.")
    failed = states.failed_at(Stage.INTAKE).model_copy(update={"trouble": full})
    assert failure_card(7, failed).title == "There is too little space on the disk: Qwen3-8B"


def test_a_run_that_failed_while_writing_is_a_failed_run() -> None:
    trouble = Trouble(code="output_too_large", message="It is no model's folder.")
    assert failure_card(7, states.failed(trouble=trouble)).title == "The run failed: Qwen3-8B"


def test_long_evidence_keeps_its_head_and_its_tail() -> None:
    report = samples.report().model_copy(update={"evidence": [f"line {n}" for n in range(100)], "status": "failed"})
    (evidence,) = [block for block in _failed_run(report).body if isinstance(block, LogPart)]
    assert evidence.head == tuple(f"line {n}" for n in range(5))
    assert evidence.left_out == 80
    assert evidence.tail == tuple(f"line {n}" for n in range(85, 100))


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_can_be_tried_again(stage: Stage) -> None:
    card = failure_card(7, states.failed_at(stage))
    second = ActionKind.EDIT if stage is Stage.INTAKE else ActionKind.REVISE
    assert kinds_of(card) == [ActionKind.RETRY, second, ActionKind.CANCEL]
    assert card.title.endswith(": Qwen3-8B")
    if stage is not Stage.RUN:
        assert "There is no model there." in read(card)
        assert "informs: Name another." in read(card)


@pytest.mark.parametrize("run", [ended_run(RunState.LOST, reason="The host went down."), states.run()])
def test_a_run_whose_outcome_is_not_known_is_not_called_failed(run: object) -> None:
    card = failure_card(7, states.failed(run=run))
    assert card.title == "Not known: what became of this run: Qwen3-8B"
    assert "Its outcome is not known. It is not run again by itself" in read(card)
    assert "If the runner finds the run again, it is taken up here." in read(card)


@pytest.mark.parametrize(
    ("ending", "by", "words"),
    [
        (Ending.ACCEPTED, states.ADA, "Accepted by Ada, 2026-03-02 12:00 UTC. The quantized model is in"),
        (Ending.REJECTED, states.ADA, "Rejected by Ada, 2026-03-02 12:00 UTC. Its files stay"),
        (Ending.CANCELLED, states.GRACE, "Cancelled by Grace, 2026-03-02 12:00 UTC."),
        (Ending.EXPIRED, None, "Expired 2026-03-02 12:00 UTC: nobody decided within 7 d."),
    ],
)
def test_endings_say_who_and_what_is_left(ending: Ending, by: Person | None, words: str) -> None:
    card = ending_card(7, states.ended(ending=ending, by=by), timedelta(days=7))
    assert words in read(card)
    assert card.alternative.startswith(f"Qwen3-8B: {words}"[:100])
    assert fields_of(card)["Output folder"] == "/out/qwen3-8b-fp8"
    assert kinds_of(card) == ([] if ending is Ending.ACCEPTED else [ActionKind.REVISE])
    assert {(one.label, one.action.step) for one in card.buttons} <= {("Back to the plan", 4)}
    assert (card.tone is Tone.GOOD) == (ending is Ending.ACCEPTED)


def test_what_never_ran_left_nothing() -> None:
    card = ending_card(7, states.ended(ending=Ending.CANCELLED, run=None, manifest=None, analysis=None))
    assert [one.label for one in card.buttons] == ["Take it up again"]  # there is no plan to go back to
    assert "Nothing was run." in read(card)
    assert "Output folder" not in fields_of(card)


def _row(number: int, **changes: object) -> HistoryRow:
    values = {
        "id": number,
        "place": Place(platform="web", channel="c", thread="1"),
        "requester": states.ADA,
        "model": "Qwen/Qwen3-8B",
        "scheme": "fp8",
        "runner": "local",
        "state": "accepted",
        "created_at": states.NOON,
        "changed_at": states.NOON,
        "run": "run-1",
        "output_dir": "/out/1",
        "size_bytes": 9_400_000_000,
        "original_size_bytes": 16_400_000_000,
        "perplexity": 7.2752,
        "original_perplexity": 7.2169,
    }
    return HistoryRow(**{**values, **changes})  # type: ignore[arg-type]


def test_history_lists_requests_beside_their_numbers() -> None:
    card = history_card([_row(12), _row(11, state="reviewing_plan", size_bytes=None, perplexity=None)])
    assert "12 | Qwen3-8B | fp8 | accepted | 16.4 GB → 9.4 GB | 7.217 → 7.275 | Ada | 2026-03-02 12:00 UTC" in read(
        card
    )
    assert "11 | Qwen3-8B | fp8 | asks about the plan |  |  | Ada | 2026-03-02 12:00 UTC" in read(card)
    assert card.alternative == "History: 2 requests. First: Qwen3-8B (accepted)."
    assert "older ones" not in read(card)


def test_a_long_history_says_that_there_is_more() -> None:
    assert "and 5 more" in read(history_card([_row(n) for n in range(25)]))
    assert "older ones" in read(history_card([_row(1)], more=True))
    assert "No request matches." in read(history_card([]))


def test_help_says_what_can_be_said() -> None:
    said = fields_of(help_card(["fp8", "int8"], ["local"]))
    assert said["Yes to the command"] == "run it; yes; go; execute"
    assert (said["Schemes"], said["Runners"]) == ("fp8, int8", "local")
    assert "Schemes" not in fields_of(help_card())


@pytest.mark.parametrize(
    ("field", "checkpoint", "intent"),
    [
        ("Ask", None, Intent.REQUEST),
        ("Yes to the analysis or plan", Checkpoint.ANALYSIS, Intent.APPROVE),
        ("Yes to the analysis or plan", Checkpoint.PLAN, Intent.APPROVE),
        ("Yes to the command", Checkpoint.COMMAND, Intent.APPROVE),
        ("Change", Checkpoint.PLAN, Intent.CHANGE),
        ("Stop", Checkpoint.PLAN, Intent.CANCEL),
    ],
)
def test_what_help_says_is_understood(field: str, checkpoint: Checkpoint | None, intent: Intent) -> None:
    said = [one for one in fields_of(help_card())[field].split("; ") if "button" not in one]
    assert said
    assert {understand(one, checkpoint, PUBLISHED).intent for one in said} == {intent}


def test_names_for_people_are_of_fields_that_exist() -> None:
    assert NAMES.keys() <= {*PlanChoices.model_fields, "output_dir"}


def test_a_run_that_waits_says_why_and_when_its_turn_may_come() -> None:
    waits = states.run(
        state=RunState.QUEUED,
        position=3,
        priority="high",
        reason="It waits for 2 GPUs; 1 free.",
        code="no_free_gpu",
        expected_start=states.NOON,
    )
    card = run_card(7, states.running(run=waits))
    assert "It waits for 2 GPUs; 1 free." in read(card)
    assert fields_of(card)["Priority"] == "high"
    assert fields_of(card)["Its turn may come"] == "2026-03-02 12:00 UTC"
    assert card.alternative.endswith("waits in the queue, position 3. It waits for 2 GPUs; 1 free.")


def test_a_run_shows_its_gpus_or_its_job() -> None:
    here = run_card(7, states.running(run=states.run(gpus=["0 (0000:05:00.0)", "1 (0000:15:00.0)"])))
    assert fields_of(here)["GPUs"] == "0 (0000:05:00.0), 1 (0000:15:00.0)"
    there = run_card(7, states.running(run=states.run(job="Slurm job 42")))
    assert fields_of(there)["Job"] == "Slurm job 42"


def test_a_failed_run_says_where_what_it_left_was_set_apart() -> None:
    run = states.run(state=RunState.FAILED, partial_output="/out/m.partial-run-1", report=samples.report())
    assert fields_of(failure_card(7, states.failed(run=run)))["Set apart"] == "/out/m.partial-run-1 (no finished model)"
