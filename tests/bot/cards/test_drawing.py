"""Which messages a transition draws."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.cards.card import ActionKind, Attachment, Card, Tone
from bot.cards.drawing import WORTH_A_NOTICE, Documents, Drawn, draw, front_slot
from bot.conversation.decision import Verb, Verdict
from bot.conversation.person import Person
from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint, Ended, Ending, Failed, Stage, State, Trouble, asked_at
from schemas.runs import Progress, Run, RunState
from tests import samples
from tests.bot.cards.board import ALL, CONVERSATION, Board, board_at
from tests.bot.cards.documents import ended_run
from tests.bot.cards.reading import kinds_of, meter_of, read
from tests.bot.conversation import samples as states

WEEK = timedelta(days=7)


def approved(state: State, by: Person = states.ADA) -> Verdict:
    """A yes to what a state asks."""
    checkpoint, digest = asked_at(state) or (None, "")
    return Verdict(Verb.APPROVED, by, checkpoint, digest)


def slots(drawn: list[Drawn]) -> list[str]:
    """Their names, in order."""
    return [one.slot for one in drawn]


def files(drawn: list[Drawn]) -> list[tuple[str, str, str, int]]:
    """The attachments among them."""
    return [
        (one.slot, one.what.name, one.what.artifact, one.what.number)
        for one in drawn
        if isinstance(one.what, Attachment)
    ]


def test_the_analysis_replaces_its_working_card_and_brings_its_file() -> None:
    board = Board()
    assert slots(board.go(states.analysing())) == ["analysis:1"]
    drawn = board.go(states.reviewing_analysis())
    assert slots(drawn) == ["analysis:1", "analysis:1:file"]
    assert files(drawn) == [("analysis:1:file", "model_analysis.json", "analysis", 1)]
    assert drawn[0].asks == states.ANALYSIS.digest
    assert board.card("analysis:1").title == "Model analysis: qwen3-8b"


def test_an_approved_card_says_who_and_when_and_the_next_step_begins() -> None:
    board = board_at(states.reviewing_analysis())
    body = board.card("analysis:1").body
    drawn = board.go(states.planning(), approved(states.reviewing_analysis()))
    assert slots(drawn) == ["analysis:1", "plan:2"]
    closed = board.card("analysis:1")
    assert (closed.outcome, closed.body, closed.buttons) == ("Approved by Ada, 2026-03-02 12:00 UTC", body, ())
    assert closed.tone is Tone.CLOSED
    assert [one.asks for one in drawn] == ["", ""]
    assert board.card("plan:2").mention is None


def test_plan_and_command_come_with_their_files() -> None:
    board = board_at(states.planning())
    plan = states.PLAN.model_copy(update={"number": 3})
    assert files(board.go(states.reviewing_plan(plan=plan))) == [("plan:2:file", "quant_plan.json", "plan", 3)]
    assert slots(board.go(states.preparing(), approved(states.reviewing_plan()))) == ["plan:2", "command:3"]
    found = files(board.go(states.reviewing_command()))
    assert found == [("command:3:file", "run_manifest.yaml", "manifest", 1)]
    assert board.asks["command:3"] == states.MANIFEST.digest


def test_a_file_is_not_posted_again_when_only_the_request_changed() -> None:
    board = board_at(states.reviewing_analysis())
    request = states.REQUEST.model_copy(update={"choices": {"global_scheme": "int4_wo_32"}})
    changed = Verdict(Verb.CHANGED, states.ADA, changes=Changes(choices={"global_scheme": "int4_wo_32"}))
    drawn = board.go(states.reviewing_analysis(request=request), changed)
    assert slots(drawn) == ["analysis:1"]
    assert "Asked for: scheme int4_wo_32" in read(board.card("analysis:1"))
    assert drawn[0].asks == states.ANALYSIS.digest


def test_what_looks_as_before_is_not_drawn() -> None:
    board = board_at(states.running())
    assert board.go(states.running(run=states.run(last_event=4))) == []
    further = states.running(run=states.run(progress=Progress(percent=20.0)))
    assert slots(board.go(further)) == ["run:4"]


def test_the_run_is_one_message_from_handing_over_to_its_last_words() -> None:
    board = board_at(states.reviewing_command())
    assert slots(board.go(states.submitting(), approved(states.reviewing_command()))) == ["command:3", "run:4"]
    assert slots(board.go(states.running())) == ["run:4"]
    cancelled = Verdict(Verb.CANCELLED, states.ADA)
    assert slots(board.go(states.running(cancelled_by=states.ADA), cancelled)) == ["run:4"]
    assert board.card("run:4").title == "Cancelling the run"
    assert board.with_buttons == []


def test_who_waited_for_a_run_is_called_once_when_it_begins() -> None:
    queued = states.run(state=RunState.QUEUED, position=2)
    board = board_at(states.running(run=queued))
    begun = queued.model_copy(
        update={
            "state": RunState.RUNNING,
            "position": None,
            "started_at": queued.submitted_at + WORTH_A_NOTICE + timedelta(seconds=1),
            "gpus": ["3 (0000:c1:00.0)"],
        }
    )
    assert slots(board.go(states.running(run=begun))) == ["run:4", "turn:4"]
    assert board.card("turn:4").mention == states.ADA
    assert "3 (0000:c1:00.0)" in read(board.card("turn:4"))
    further = begun.model_copy(update={"progress": Progress(percent=20.0)})
    assert slots(board.go(states.running(run=further))) == ["run:4"], "once"


def test_a_run_that_begins_soon_calls_nobody() -> None:
    queued = states.run(state=RunState.QUEUED, position=1)
    board = board_at(states.running(run=queued))
    begun = queued.model_copy(update={"state": RunState.RUNNING, "started_at": queued.submitted_at + WORTH_A_NOTICE})
    assert slots(board.go(states.running(run=begun))) == ["run:4"]


def test_a_result_is_a_new_message_that_mentions_the_requester() -> None:
    board = board_at(states.running())
    drawn = board.go(states.reviewing_result(run=ended_run(RunState.SUCCEEDED, samples.report())))
    assert slots(drawn) == ["run:4", "result:4", "result:4:file"]
    assert files(drawn) == [("result:4:file", "validation_report.json", "report", 1)]
    assert board.card("run:4").outcome == "Finished after 3 min 20 s, 2026-03-02 12:03 UTC"
    assert board.card("result:4").mention == states.ADA
    assert board.card("run:4").mention is None
    assert board.asks["result:4"] == states.MANIFEST.digest
    assert "Predicted" not in read(board.card("result:4"))  # the sample plan predicts nothing


def test_the_number_of_a_report_is_that_of_its_run() -> None:
    board = board_at(states.running())
    run = ended_run(RunState.SUCCEEDED, samples.report())
    assert files(board.go(states.reviewing_result(run=run, revisions={"run": 5})))[0][3] == 5


def test_a_failed_run_is_a_new_message_with_its_report() -> None:
    board = board_at(states.running())
    drawn = board.go(states.failed(run=ended_run(RunState.FAILED, samples.report())))
    assert slots(drawn) == ["run:4", "result:4", "result:4:file"]
    assert board.card("result:4").mention == states.ADA
    assert board.with_buttons == ["result:4"]
    retried = Verdict(Verb.RETRIED, states.ADA)
    assert slots(board.go(states.preparing(step=5), retried)) == ["result:4", "command:5"]
    assert board.card("result:4").outcome == "Tried again by Ada, 2026-03-02 12:00 UTC"


def test_a_run_that_never_started_leaves_no_file() -> None:
    board = board_at(states.running())
    assert slots(board.go(states.failed(run=ended_run(RunState.FAILED)))) == ["run:4", "result:4"]


@pytest.mark.parametrize(
    ("stage", "slot"),
    [
        (Stage.INTAKE, "analysis:1"),
        (Stage.PLAN, "plan:2"),
        (Stage.MANIFEST, "command:3"),
        (Stage.SUBMISSION, "run:4"),
    ],
)
def test_a_failed_step_turns_its_own_message_into_the_failure(stage: Stage, slot: str) -> None:
    working: dict[Stage, State] = {
        Stage.INTAKE: states.analysing(),
        Stage.PLAN: states.planning(),
        Stage.MANIFEST: states.preparing(),
        Stage.SUBMISSION: states.submitting(),
    }
    board = board_at(working[stage])
    assert slots(board.go(states.failed_at(stage))) == [slot]
    assert kinds_of(board.card(slot))[0] is ActionKind.RETRY
    assert board.with_buttons == [slot]


def test_a_change_says_what_and_leads_to_a_new_message() -> None:
    board = board_at(states.reviewing_plan())
    changes = Changes(choices={"global_scheme": "int4_wo_32", "calibration": {"num_calib_data": 256}})
    verdict = Verdict(Verb.CHANGED, states.ADA, Checkpoint.PLAN, states.PLAN.digest, changes)
    assert slots(board.go(states.planning(step=3), verdict)) == ["plan:2", "plan:3"]
    assert board.card("plan:2").outcome == (
        "Changed by Ada, 2026-03-02 12:00 UTC: scheme int4_wo_32, calibration: 256 samples"
    )
    assert board.with_buttons == ["plan:3"]


def test_an_outdated_card_says_why() -> None:
    board = board_at(states.submitting())
    board.go(states.preparing(step=5, because="torch is 2.14 now."))
    assert board.card("run:4").outcome == "Outdated: torch is 2.14 now."
    assert "torch is 2.14 now." in read(board.card("command:5"))


def test_a_run_that_is_offered_again_calls_the_requester() -> None:
    board = board_at(states.running(run=states.run(state=RunState.QUEUED)))
    board.go(states.preparing(step=5, because="The model's files changed."))
    assert board.card("command:5").mention == states.ADA
    board.go(states.reviewing_command(step=5))
    assert board.card("command:5").mention == states.ADA  # the message that called is the same one


def test_the_requester_is_called_when_somebody_else_decided() -> None:
    board = board_at(states.reviewing_command())
    board.go(states.submitting(), approved(states.reviewing_command(), states.GRACE))
    assert board.card("command:3").outcome == "Approved by Grace, 2026-03-02 12:00 UTC"
    assert board.card("run:4").mention == states.ADA


@pytest.mark.parametrize(
    ("ending", "verb", "words"),
    [(Ending.ACCEPTED, Verb.APPROVED, "Accepted"), (Ending.REJECTED, Verb.REJECTED, "Rejected")],
)
def test_a_decided_result_is_closed_in_its_message(ending: Ending, verb: Verb, words: str) -> None:
    before = states.reviewing_result()
    board = board_at(before)
    body = board.card("result:4").body
    verdict = Verdict(verb, states.ADA, Checkpoint.RESULT, states.MANIFEST.digest)
    assert slots(board.go(states.ended(ending=ending), verdict)) == ["result:4"]
    closed = board.card("result:4")
    assert (closed.outcome, closed.body) == (f"{words} by Ada, 2026-03-02 12:00 UTC", body)


def test_who_did_not_end_it_is_told_in_a_new_message() -> None:
    board = board_at(states.reviewing_plan())
    ended = _ended_at(states.reviewing_plan(), Ending.CANCELLED, states.ROOT)
    assert slots(board.go(ended, Verdict(Verb.CANCELLED, states.ROOT))) == ["plan:2", "result:2:end"]
    assert board.card("plan:2").outcome == "Cancelled by Root, 2026-03-02 12:00 UTC"
    assert board.card("result:2:end").mention == states.ADA
    assert "Cancelled by Root" in read(board.card("result:2:end"))


def test_who_ended_it_needs_no_new_message() -> None:
    board = board_at(states.reviewing_plan())
    ended = _ended_at(states.reviewing_plan(), Ending.CANCELLED, states.ADA)
    assert slots(board.go(ended, Verdict(Verb.CANCELLED, states.ADA))) == ["plan:2"]
    assert kinds_of(board.card("plan:2")) == [ActionKind.REVISE]


@pytest.mark.parametrize("patience", [WEEK, None])
def test_time_ends_a_request_and_says_so(patience: timedelta | None) -> None:
    board = board_at(states.reviewing_command())
    ended = _ended_at(states.reviewing_command(), Ending.EXPIRED, None)
    board.go(ended, patience=patience)
    told = "nobody decided within 7 d" if patience else "nobody decided in time"
    assert board.card("command:3").outcome == f"Expired 2026-03-02 12:00 UTC: {told}"
    assert board.card("result:3:end").mention == states.ADA


def test_a_cancelled_run_ends_in_a_new_message() -> None:
    board = board_at(states.running(cancelled_by=states.ADA))
    run = ended_run(RunState.CANCELLED, reason="Ada cancelled it. What it wrote may lie in /out.")
    drawn = board.go(states.ended(ending=Ending.CANCELLED, run=run))
    assert slots(drawn) == ["run:4", "result:4"]
    assert "What it wrote may lie in /out." in read(board.card("result:4"))
    assert board.card("result:4").mention == states.ADA
    assert board.with_buttons == ["result:4"]
    assert kinds_of(board.card("result:4")) == [ActionKind.REVISE]


def test_what_was_cancelled_before_the_runner_had_it_says_by_whom() -> None:
    before = states.submitting(cancelled_by=states.ADA)
    board = board_at(before)
    board.go(_ended_at(before, Ending.CANCELLED, states.ADA))
    assert board.card("run:4").outcome == "Cancelled by Ada, 2026-03-02 12:00 UTC"


def test_silence_keeps_the_moment_at_which_it_began() -> None:
    board = board_at(states.running())
    board.go(states.running(silent=states.AWAY))
    other = Trouble(code="refused", message="Now it refuses.")
    board.go(states.running(silent=other), at=states.NOON + timedelta(hours=3))
    assert meter_of(board.card("run:4")).stale == "since 2026-03-02 12:00 UTC: Now it refuses."
    board.go(states.running(), at=states.NOON + timedelta(hours=4))
    assert meter_of(board.card("run:4")).stale == ""


@pytest.mark.parametrize(
    "state", [states.reviewing_analysis(), states.reviewing_plan(), states.reviewing_command()], ids=lambda s: s.kind
)
def test_what_cannot_be_shown_cannot_be_approved(state: State) -> None:
    board = Board()
    drawn = board.go(state, documents=Documents())
    front = front_slot(state)
    assert front is not None
    card = board.card(front)
    assert kinds_of(card) == [ActionKind.EDIT, ActionKind.CANCEL]
    assert "is missing in the bot's database" in read(card)
    assert drawn[0].asks == ""


def test_the_prediction_of_the_plan_stands_on_the_result() -> None:
    estimates = samples.plan().estimates.model_copy(update={"output_bytes": 90, "source_bytes": 200})
    report = samples.report().model_copy(update={"size_bytes": 99})
    board = board_at(states.running())
    documents = Documents(plan=samples.plan(estimates=estimates))
    board.go(states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report)), documents=documents)
    assert "Size of all files | 90 bytes | 99 bytes | +10.0 %" in read(board.card("result:4"))


@pytest.mark.parametrize("state", states.all_states().values(), ids=states.all_states().keys())
def test_every_state_can_be_drawn_from_nothing(state: State) -> None:
    board = board_at(state)
    front = front_slot(state)
    assert set(board.with_buttons) <= {front}
    assert board.slots
    assert draw(CONVERSATION, state, state, None, ALL, board.shown, states.NOON) == []


@pytest.mark.parametrize("run", [states.run(), ended_run(RunState.LOST)])
def test_a_run_that_was_given_up_closes_its_message(run: Run) -> None:
    board = board_at(states.running())
    board.go(states.failed(run=run))
    assert "not known" in board.card("run:4").outcome.lower()
    assert board.card("result:4").title.startswith("Not known")


def test_cards_of_a_failure_that_is_cancelled_are_closed() -> None:
    failed = states.failed()
    assert isinstance(failed, Failed)
    board = board_at(failed)
    drawn = board.go(_ended_at(failed, Ending.CANCELLED, states.ADA), Verdict(Verb.CANCELLED, states.ADA))
    assert slots(drawn) == ["result:4"]
    assert isinstance(drawn[0].what, Card)
    assert drawn[0].what.outcome == "Cancelled by Ada, 2026-03-02 12:00 UTC"


def _ended_at(state: State, ending: Ending, by: Person | None) -> Ended:
    """The end of a conversation in this state."""
    kept = {name: getattr(state, name) for name in type(state).model_fields if name in Ended.model_fields}
    return Ended(**{**kept, "kind": "ended", "ending": ending, "by": by, "at": states.NOON})


ONLY = "Only web:grace and web:bob may approve this command."


def test_the_command_says_who_may_approve_it() -> None:
    board = board_at(states.preparing())
    board.go(states.reviewing_command(), approvers=ONLY)
    card = board.card("command:3")
    assert f"warns: {ONLY}" in read(card)
    assert f"Checkpoint 3 of 4: shall I run this exact command? {ONLY}" in read(card)
    assert card.alternative.startswith(f"Shall I run this exact command? {ONLY} It quantizes ")
    assert ONLY not in read(board_at(states.reviewing_command()).card("command:3"))


@pytest.mark.parametrize(
    "state", [state for state in states.all_states().values() if state.kind != "reviewing_command"]
)
def test_no_other_card_says_who_may_approve_commands(state: State) -> None:
    board = Board()
    drawn = board.go(state, approvers=ONLY)
    assert not [one for one in drawn if ONLY in one.what.model_dump_json()]


def _caption(after: State) -> str:
    board = board_at(states.running())
    (file,) = [one.what for one in board.go(after) if isinstance(one.what, Attachment)]
    return file.alternative


def test_the_report_is_called_what_it_is() -> None:
    report = samples.report()
    name = "validation_report.json"
    assert (
        _caption(states.failed(run=ended_run(RunState.FAILED, report, id="run-1")))
        == f"{name}: why the run run-1 failed"
    )
    done = states.reviewing_result(run=ended_run(RunState.SUCCEEDED, report, id="run-1"))
    assert _caption(done) == f"{name}: how the result of run run-1 was verified"
    lost = states.failed(run=ended_run(RunState.LOST, report, id="run-1"))
    cancelled = states.ended(ending=Ending.CANCELLED, run=ended_run(RunState.CANCELLED, report, id="run-1"))
    assert _caption(lost) == _caption(cancelled) == f"{name}: what is known of run run-1"


def test_going_back_from_an_end_closes_its_button() -> None:
    before = states.reviewing_result()
    board = board_at(before)
    rejected = states.ended(ending=Ending.REJECTED)
    board.go(rejected, Verdict(Verb.REJECTED, states.ADA, Checkpoint.RESULT, states.MANIFEST.digest))
    assert [one.label for one in board.card("result:4").buttons] == ["Back to the plan"]
    assert slots(board.go(states.planning(step=5), Verdict(Verb.REVISED, states.ADA))) == ["result:4", "plan:5"]
    assert board.card("result:4").outcome == (
        "Rejected by Ada, 2026-03-02 12:00 UTC; taken back to the plan by Ada, 2026-03-02 12:00 UTC"
    )
    assert board.with_buttons == ["plan:5"]


def test_time_offers_the_way_back_where_it_tells_the_end() -> None:
    board = board_at(states.reviewing_command())
    expired = _ended_at(states.reviewing_command(), Ending.EXPIRED, None)
    board.go(expired)
    assert board.with_buttons == ["result:3:end"]
    board.go(states.planning(step=4), Verdict(Verb.REVISED, states.ADA))
    assert board.card("result:3:end").outcome.startswith("Taken back to the plan by Ada")
    assert board.with_buttons == ["plan:4"]


def _given_up() -> Board:
    board = board_at(states.running())
    board.go(states.failed(run=states.run(), trouble=Trouble(code="run_missing", message="It is not known.")))
    return board


def test_a_run_that_is_found_again_is_a_new_message_that_calls_the_requester() -> None:
    board = _given_up()
    assert slots(board.go(states.running(step=5))) == ["result:4", "run:5"]
    assert board.card("result:4").outcome == "Outdated: the runner found the run again"
    assert board.card("run:5").mention == states.ADA
    assert board.with_buttons == ["run:5"]


def test_a_run_that_is_found_ended_closes_its_first_message() -> None:
    board = _given_up()
    done = ended_run(RunState.SUCCEEDED, samples.report())
    drawn = board.go(states.reviewing_result(run=done, step=5))
    assert slots(drawn) == ["result:4", "run:4", "result:5", "result:5:file"]
    assert board.card("run:4").outcome == "Finished after 3 min 20 s, 2026-03-02 12:03 UTC"
    assert board.card("result:5").mention == states.ADA
    assert board.with_buttons == ["result:5"]
