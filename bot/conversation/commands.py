"""What may happen to a conversation: people decide, runners answer, time passes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.conversation.person import Person
from bot.conversation.request import Changes
from bot.conversation.state import Checkpoint, Trouble
from bot.conversation.words.orders.order import Order
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.runs import Run


@dataclass(frozen=True)
class Human:
    """Something that a person did. `where` is kept with approvals, such as "web thread 12"."""

    by: Person
    at: datetime
    where: str


@dataclass(frozen=True)
class Approve(Human):
    """Yes to what was shown. `digest` is that of the card which the person saw, or its first 12 digits or more.

    Words carry the digest of the latest card that had been delivered when they were said; empty when there was none,
    which approves nothing. `step` is that of the card whose button was clicked; 0 for words, which have none.
    """

    checkpoint: Checkpoint
    digest: str
    step: int = 0


@dataclass(frozen=True)
class Change(Human):
    """Something shall be otherwise. `digest` as for Approve; empty where the person was not looking at a card."""

    changes: Changes
    digest: str = ""


@dataclass(frozen=True)
class Reject(Human):
    """No. At the last checkpoint it rejects the result; before, it asks the person what to change. `step` as for
    Approve."""

    checkpoint: Checkpoint | None = None
    digest: str = ""
    step: int = 0


@dataclass(frozen=True)
class Cancel(Human):
    """Stop all of it. `step` as for Approve: a button stops only what its card showed."""

    step: int = 0


@dataclass(frozen=True)
class Retry(Human):
    """The failed step once more. A run is offered again at checkpoint 3: it needs a new yes. `step` as for Approve."""

    step: int = 0


@dataclass(frozen=True)
class Revise(Human):
    """Back to the plan, after a failure or an end. `step` as for Approve."""

    step: int = 0


@dataclass(frozen=True)
class TakeOffer(Human):
    """What a failed run offers instead shall be planned. `offer` is the digest of the offer, or its first 12 digits.
    `step` as for Approve."""

    offer: str
    step: int = 0


@dataclass(frozen=True)
class GiveOrder(Human):
    """An order to a runner. It moves no conversation. `step` as for Approve: another step may be of another runner."""

    order: Order
    step: int = 0


@dataclass(frozen=True)
class Remark(Human):
    """Words that decide nothing: a question, or nothing that was understood.

    `unread` are the words that stopped it, and `hint` says what may be written instead. `answer` is what the
    conversation's own documents say to a question. `queues` are the runners whose queues it asks about: they know.
    """

    text: str
    is_question: bool = False
    unread: str = ""
    hint: str = ""
    answer: str = ""
    queues: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a runner said to the question of a step."""

    step: int
    at: datetime


@dataclass(frozen=True)
class Analysed(Answer):
    """The model was analysed."""

    document: ModelAnalysis
    digest: str
    proposed_output: str


@dataclass(frozen=True)
class Planned(Answer):
    """A plan was made."""

    document: QuantPlan
    digest: str


@dataclass(frozen=True)
class Prepared(Answer):
    """The exact command was derived."""

    document: RunManifest
    digest: str


@dataclass(frozen=True)
class Submitted(Answer):
    """The runner has the run."""

    run: Run


@dataclass(frozen=True)
class StepFailed(Answer):
    """The runner refused; asking the same again would not help."""

    trouble: Trouble


@dataclass(frozen=True)
class Delayed(Answer):
    """The runner does not answer. It is asked again until it does, or until a person stops it."""

    trouble: Trouble


@dataclass(frozen=True)
class BetterAnalysis:
    """The engine's own list of layers arrived: an analysis that is better than the one whose digest is `of`, which was
    made from the headers of the weights and is `before`."""

    of: str
    at: datetime
    before: ModelAnalysis
    document: ModelAnalysis
    digest: str


@dataclass(frozen=True)
class NoBetterAnalysis:
    """There is no better analysis than the one whose digest is `of`, and why."""

    of: str
    at: datetime
    trouble: Trouble


@dataclass(frozen=True)
class RunNews:
    """The run as the runner knows it now."""

    run: Run
    at: datetime


@dataclass(frozen=True)
class RunSilent:
    """There is no news of the run, and why."""

    run: str
    trouble: Trouble
    at: datetime


@dataclass(frozen=True)
class RunMissing:
    """The runner answers, and does not know the run."""

    run: str
    trouble: Trouble
    at: datetime


@dataclass(frozen=True)
class Expire:
    """Nobody decided for too long. `step` and `kind` are those of the state that is meant."""

    step: int
    kind: str
    at: datetime


Command = (
    Approve
    | Change
    | Reject
    | Cancel
    | Retry
    | Revise
    | TakeOffer
    | GiveOrder
    | Remark
    | Analysed
    | Planned
    | Prepared
    | Submitted
    | StepFailed
    | Delayed
    | BetterAnalysis
    | NoBetterAnalysis
    | RunNews
    | RunSilent
    | RunMissing
    | Expire
)
