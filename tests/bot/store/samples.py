"""People, places, states, events and cards of plausible size, for tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from bot.cards.card import Action, ActionKind, Button, Card, Fields, Note, Notes, Text, Tone
from bot.conversation.person import Person, Place
from bot.conversation.request import Changes, Request
from bot.conversation.state import (
    Analysing,
    AnalysisRevision,
    Checkpoint,
    Ended,
    Ending,
    Failed,
    ManifestRevision,
    Planning,
    PlanRevision,
    Preparing,
    ReviewingAnalysis,
    ReviewingCommand,
    ReviewingPlan,
    ReviewingResult,
    Running,
    Stage,
    State,
    Submitting,
    Trouble,
)
from bot.platforms.contract import Clicked, Edited, Event, Said
from schemas.api import Approval
from schemas.artifacts.plan import Severity
from schemas.runs import Run, RunState
from tests import samples

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ADA = Person(id="slack:U1", name="Ada Lovelace")
BOB = Person(id="slack:U2", name="Bob")
THREAD = Place(platform="slack", channel="C1", thread="1700000000.000100")
ANALYSIS, PLAN, MANIFEST = "a" * 64, "b" * 64, "c" * 64
REQUEST = Request(text="please quantize Qwen/Qwen3-8B to fp8, accuracy matters", model="Qwen/Qwen3-8B", runner="gpu-1")

_keys = count(1)


class HeldClock:
    """A clock that only moves when it is told to."""

    def __init__(self, at: datetime = NOON) -> None:
        self.at = at

    def now(self) -> datetime:
        """The time it was set to."""
        return self.at

    def move(self, **by: float) -> datetime:
        """Go on, or back."""
        self.at += timedelta(**by)
        return self.at


def said(text: str, place: Place = THREAD, **changes: Any) -> Event:
    """Words of Ada."""
    return _event(Said(text=text), place, changes)


def clicked(conversation: int, checkpoint: Checkpoint, digest: str, **changes: Any) -> Event:
    """Bob says yes with a button."""
    action = Action(kind=ActionKind.APPROVE, conversation=conversation, checkpoint=checkpoint, digest=digest)
    return _event(Clicked(action=action), THREAD, {"person": BOB, **changes})


def edited(conversation: int, **changes: Any) -> Event:
    """Bob sends an edit form."""
    what = Edited(conversation=conversation, digest=PLAN, changes=Changes(choices={"global_scheme": "int8"}))
    return _event(what, THREAD, {"person": BOB, **changes})


def _event(what: Said | Clicked | Edited, place: Place, changes: dict[str, Any]) -> Event:
    values = {"key": f"slack:E{next(_keys)}", "person": ADA, "place": place, "at": NOON, "what": what}
    return Event(**{**values, **changes})


def state(kind: str, **changes: Any) -> State:
    """A state of this kind, or ended in this way. All that it knows is as after a usual request."""
    approvals = (
        Approval(checkpoint="analysis", digest=ANALYSIS, by=ADA.id, at=NOON, where="slack C1"),
        Approval(checkpoint="plan", digest=PLAN, by=BOB.id, at=NOON, where="slack C1"),
    )
    known: dict[str, Any] = {
        "request": REQUEST,
        "requester": ADA,
        "step": 1,
        "analysis": AnalysisRevision(number=1, digest=ANALYSIS, proposed_output="/out/qwen3-8b"),
        "approvals": approvals,
        "plan": PlanRevision(number=1, digest=PLAN, scheme="fp8"),
        "manifest": ManifestRevision(number=1, digest=MANIFEST, output_dir="/out/qwen3-8b-fp8"),
        "key": "k1",
        "run": run(),
        "stage": Stage.RUN,
        "trouble": Trouble(code="exit_code", message="The command ended with exit code 1.", hint="Read its output."),
        "ending": kind,
        "by": BOB,
        "at": NOON,
    }
    made = _KINDS.get(kind, Ended)
    there: State = made(**{**{name: known[name] for name in made.model_fields if name in known}, **changes})
    return there


def run(**changes: Any) -> Run:
    """A run that succeeded, with its report."""
    report = samples.report().model_copy(update={"size_bytes": 8_000_000_000, "original_size_bytes": 16_000_000_000})
    values: dict[str, Any] = {
        "id": "r-0123456789abcdef",
        "key": "k1",
        "state": RunState.SUCCEEDED,
        "since": NOON,
        "submitted_at": NOON,
        "model": "Qwen/Qwen3-8B",
        "scheme": "fp8",
        "output_dir": "/out/qwen3-8b-fp8",
        "manifest_digest": MANIFEST,
        "report": report,
    }
    return Run(**{**values, **changes})


def card(title: str = "Is this the plan?", digest: str = PLAN, conversation: int = 1, **changes: Any) -> Card:
    """A card as large as they usually are."""
    action = Action(kind=ActionKind.APPROVE, conversation=conversation, checkpoint=Checkpoint.PLAN, digest=digest)
    notes = [Note(severity=Severity.WARNS, message="The KV cache is not quantized on this host.", hint="Use a GPU.")]
    values: dict[str, Any] = {
        "title": title,
        "tone": Tone.WAITING,
        "body": (
            Text(text="The plan keeps the embeddings and the last layer as they are."),
            Fields(fields=(("Model", "Qwen/Qwen3-8B"), ("Scheme", "fp8"), ("Excluded", "lm_head"), ("Size", "8.7 GB"))),
            Notes(title="Findings", notes=tuple(notes)),
        ),
        "buttons": (Button(label="Confirm", action=action, style="primary"),),
        "alternative": f"Asked: {title}",
    }
    return Card(**{**values, **changes})


_KINDS: dict[str, Any] = {
    "analysing": Analysing,
    "reviewing_analysis": ReviewingAnalysis,
    "planning": Planning,
    "reviewing_plan": ReviewingPlan,
    "preparing": Preparing,
    "reviewing_command": ReviewingCommand,
    "submitting": Submitting,
    "running": Running,
    "reviewing_result": ReviewingResult,
    "failed": Failed,
}
KINDS = (*_KINDS, *(ending.value for ending in Ending))
