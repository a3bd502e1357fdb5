"""No text of people, models or programs hides, commands or breaks anything in a card."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cards.analysis import analysis_card
from bot.cards.card import Card
from bot.cards.command import command_card
from bot.cards.drawing import Documents, draw
from bot.cards.ending import ending_card
from bot.cards.failure import failure_card
from bot.cards.form import edit_form, read_form
from bot.cards.history import history_card
from bot.cards.outcome import decided, outcome_in_words
from bot.cards.plan import plan_card
from bot.cards.result import result_card
from bot.cards.run import handing_over_card, run_card, run_closed_card
from bot.cards.working import working_card
from bot.conversation.decision import Verb, Verdict
from bot.conversation.person import Place
from bot.conversation.request import Changes
from bot.conversation.state import Ending, ExactList, State
from bot.store.records import HistoryRow
from schemas.artifacts.analysis import ModelFacts
from schemas.artifacts.manifest import Deviation, EntryPoint
from schemas.artifacts.plan import AlgorithmConfig, Decision, LayerMatch
from schemas.artifacts.report import Measured
from schemas.runs import Progress, RunState
from tests import samples
from tests.bot.cards.documents import ended_run, plan_for
from tests.bot.cards.hostile import TEXTS, TRICKS, filled, places
from tests.bot.cards.reading import texts_in
from tests.bot.conversation import samples as states

MANY = st.lists(TEXTS, min_size=1, max_size=6)

REPORT = samples.report().model_copy(
    update={
        "evidence": ["e"],
        "next_actions": ["n"],
        "cause": "c",
        "summary": "s",
        "output_dir": "/o",
        "measured": Measured(seconds=1.0, host_memory_bytes=2, gpu_memory_bytes=3),
    }
)
ENDED = ended_run(RunState.FAILED, REPORT, reason="r", code="x")
UNKNOWN = states.run(state=RunState.UNKNOWN, reason="r", progress=Progress(percent=1, original_perplexity=2))
PLAN = plan_for(global_scheme="mx6", layer_quant_config={"*k_proj": "fp8"}).model_copy(
    update={
        "layer_matches": [LayerMatch(pattern="p", role="override", count=0, examples=["e"])],
        "algorithm_configs": [
            AlgorithmConfig(algorithm="a", derived_from="d", content={"k": ["v"], "n": None}, sha256="0" * 64)
        ],
    }
)
OPEN_PLAN = PLAN.model_copy(update={"findings": [], "risks": ["r"]})
MANIFEST = samples.manifest(
    secrets=["HF_TOKEN"],
    blocked_by=["x"],
    deviations=[Deviation(flag="--f", reason="r")],
    entry_point=EntryPoint(name="site", path="/p", sha256="0" * 64, reason="r", files={"lib.py": "0" * 64}),
)
ANALYSIS = samples.analysis(
    model=ModelFacts(
        model_path="m", model_type="t", source="huggingface_id", revision="r", hub_token="h", downloaded=False
    )
)
NO_BETTER = states.ANALYSIS.model_copy(update={"better": "none", "no_better": "n"})
CONFIRMED = states.ANALYSIS.model_copy(
    update={"better": "none", "confirmed": ExactList(number=2, linear_layers=108, risks=("r",))}
)


def holds(card: Card) -> Card:
    """The card, if all that has to hold of any card does."""
    assert Card.model_validate_json(card.model_dump_json()) == card
    data = card.model_dump(mode="json")
    if data["mention"]:
        data["mention"].pop("id")  # the platform's own name of a person is not shown
    for text in texts_in(data):
        assert not [letter for letter in text if letter != "\n" and unicodedata.category(letter)[0] == "C"], text
    for text in (card.title, card.alternative, card.outcome):
        assert "\n" not in text
    assert 0 < len(card.alternative) <= 300
    assert len(card.title) <= 150
    assert all(len(button.action.encoded()) < 100 for button in card.buttons)
    return card


def decision(value: Any) -> Decision:
    """One row of the table."""
    return Decision(decision="d", value=value, reason="r", source="request")


Make = Callable[[list[str]], Card]

CARDS: dict[str, Make] = {
    "analysis": lambda t: analysis_card(
        7, filled(states.reviewing_analysis(because="b"), t), filled(samples.analysis(), t)
    ),
    "plan": lambda t: plan_card(7, filled(states.reviewing_plan(because="b"), t), filled(PLAN, t)),
    "analysis of the Hub": lambda t: analysis_card(
        7, filled(states.reviewing_analysis(analysis=NO_BETTER), t), filled(ANALYSIS, t)
    ),
    "open plan": lambda t: plan_card(7, filled(states.reviewing_plan(analysis=CONFIRMED), t), filled(OPEN_PLAN, t)),
    "names of files": lambda t: command_card(
        7,
        states.reviewing_command(),
        samples.manifest(entry_point=MANIFEST.entry_point.model_copy(update={"files": dict.fromkeys(t, "0" * 64)})),
    ),
    "bare plan": lambda t: plan_card(7, filled(states.reviewing_plan(), t), filled(samples.plan(), t)),
    "command": lambda t: command_card(7, filled(states.reviewing_command(because="b"), t), filled(MANIFEST, t)),
    "variables": lambda t: command_card(
        7, states.reviewing_command(), samples.manifest(environment=dict.fromkeys(t, t[0]), secrets=t, argv=t)
    ),
    "values": lambda t: plan_card(
        7,
        states.reviewing_plan(),
        samples.plan(
            decisions=[decision({key: [t] for key in t}), decision(t[0])], layer_quant_config=dict.fromkeys(t, "x")
        ),
    ),
    "result": lambda t: result_card(
        7, filled(states.reviewing_result(run=ended_run(RunState.SUCCEEDED, REPORT)), t), filled(PLAN, t), states.ADA
    ),
    "reading": lambda t: working_card(7, filled(states.analysing(delayed=states.AWAY), t)),
    "planning": lambda t: working_card(7, filled(states.planning(because="b"), t)),
    "preparing": lambda t: working_card(7, filled(states.preparing(because="b"), t)),
    "handing over": lambda t: handing_over_card(
        7, filled(states.submitting(delayed=states.AWAY, cancelled_by=states.ADA), t)
    ),
    "running": lambda t: run_card(7, filled(states.running(silent=states.AWAY), t), "2026-03-02 12:00 UTC"),
    "cancelling": lambda t: run_card(7, filled(states.running(cancelled_by=states.ADA), t)),
    "unknown": lambda t: run_card(7, filled(states.running(run=UNKNOWN, silent=states.AWAY), t)),
    "closed run": lambda t: run_closed_card(filled(states.running(), t), filled(ENDED, t)),
    "failure": lambda t: failure_card(7, filled(states.failed(run=ENDED), t), filled(states.ADA, t)),
    "ending": lambda t: ending_card(
        7, filled(states.ended(run=ENDED, ending=Ending.REJECTED), t), timedelta(days=7), filled(states.ADA, t)
    ),
}


@pytest.mark.parametrize("make", CARDS.values(), ids=CARDS.keys())
@settings(max_examples=40, deadline=None)
@given(texts=MANY, outcome=TEXTS)
def test_every_card_stands_any_text(make: Make, texts: list[str], outcome: str) -> None:
    card = holds(make(texts))
    closed = holds(decided(card, outcome))
    assert closed.body == card.body
    assert closed.buttons == ()


@pytest.mark.parametrize("make", CARDS.values(), ids=CARDS.keys())
def test_every_card_shows_that_something_was_hidden(make: Make) -> None:
    dumped = make(["\u202egnp"]).model_copy(update={"mention": None}).model_dump_json()
    assert "\\\\u202egnp" in dumped
    assert "\u202e" not in dumped


@pytest.mark.parametrize("trick", TRICKS, ids=range(len(TRICKS)))
@pytest.mark.parametrize("state", states.all_states().values(), ids=states.all_states().keys())
def test_every_state_is_drawn_with_any_text(state: State, trick: str) -> None:
    documents = Documents(filled(samples.analysis(), [trick]), filled(PLAN, [trick]), filled(MANIFEST, [trick]))
    drawn = draw(7, None, filled(state, [trick]), None, documents, lambda _: None, states.NOON)
    assert [holds(one.what) for one in drawn if isinstance(one.what, Card)]


def test_the_documents_are_hostile_indeed() -> None:
    assert places(samples.analysis()) > 15
    assert places(MANIFEST) > 50
    assert places(states.reviewing_result()) > 25


@settings(max_examples=100, deadline=None)
@given(verb=st.sampled_from(Verb), texts=MANY)
def test_outcomes_stand_any_text(verb: Verb, texts: list[str]) -> None:
    choices: dict[str, Any] = {
        "global_scheme": texts[0],
        "exclude_layers": texts,
        "layer_quant_config": dict.fromkeys(texts, texts[-1]),
        "calibration": {"dataset": texts[0], "num_calib_data": 256},
        "algorithm": None,
    }
    changes = Changes(model=texts[0], output_dir=texts[-1], choices=choices)
    verdict = Verdict(verb, filled(states.ADA, texts), changes=changes)
    card = analysis_card(7, states.reviewing_analysis(), samples.analysis())
    holds(decided(card, outcome_in_words(verdict, states.planning(), states.NOON)))


@settings(max_examples=60, deadline=None)
@given(texts=MANY)
def test_history_stands_any_text(texts: list[str]) -> None:
    row = HistoryRow(
        id=1,
        place=Place(platform="web", channel="c"),
        requester=filled(states.ADA, texts),
        model=texts[0],
        scheme=texts[-1],
        runner="",
        state=texts[0],
        created_at=states.NOON,
        changed_at=states.NOON,
        run=None,
        output_dir=None,
        size_bytes=None,
        original_size_bytes=None,
        perplexity=None,
        original_perplexity=None,
    )
    holds(history_card([row]))


@settings(max_examples=60, deadline=None)
@given(texts=MANY, sent=st.dictionaries(st.sampled_from(["global_scheme", "algorithm", "seq_len", "model"]), TEXTS))
def test_forms_stand_any_text(texts: list[str], sent: dict[str, str]) -> None:
    form = edit_form(7, filled(states.reviewing_plan(), texts), filled(PLAN, texts), None)
    assert form.model_dump_json()
    read_form(form, {**sent, "exclude_layers": texts, "layer_quant_config": texts[0]}).model_dump_json()
