"""The rest of the bot as the page sees it, in memory: what is sent is kept, and answered as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.cards.card import Attachment, Card
from bot.cards.drawing import Documents, draw
from bot.cards.form import Form
from bot.conversation.decision import Verdict
from bot.conversation.person import Person, Place
from bot.conversation.state import State
from bot.errors import NotFound, StoreError
from bot.platforms.contract import Event, Receipt, Said
from bot.platforms.web.live import Live
from bot.store.records import Conversation, HistoryQuery, HistoryRow, Outcome, Shown, StoredEvent
from tests.bot.conversation.samples import NOON

Answer = Callable[[StoredEvent], Outcome | None]


def proceeds(stored: StoredEvent) -> Outcome | None:
    """An answer to everything: it is taken, and the cards say it."""
    del stored
    return Outcome(verdict="proceeded")


def refuses(text: str) -> Answer:
    """An answer to everything: it is refused with this sentence."""
    return lambda _: Outcome(verdict="refused", text=text)


@dataclass
class Desk:
    """`Inlet` and `Library` of the page. `answer` says what comes of an event; None leaves it unsettled."""

    live: Live = field(default_factory=Live)
    answer: Answer = proceeds
    conversations: dict[int, Conversation] = field(default_factory=dict)
    threads: dict[int, list[StoredEvent | Shown]] = field(default_factory=dict)
    events: dict[int, StoredEvent] = field(default_factory=dict)
    forms: dict[int, Form] = field(default_factory=dict)
    files: dict[tuple[str, int], bytes] = field(default_factory=dict)
    run_documents: dict[str, bytes] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)
    log_breaks: Exception | None = None
    rows: list[HistoryRow] | None = None
    asked: list[HistoryQuery] = field(default_factory=list)
    unwritable: StoreError | None = None
    unreadable: Exception | None = None
    decides: set[str] | None = None
    _numbers: int = 0

    # What tests put on the desk -----------------------------------------------------------------

    def begin(self, state: State, place: Place | None = None, at: datetime = NOON) -> int:
        """A conversation, and the cards of its state."""
        number = len(self.conversations) + 1
        where = place or Place(platform="web", channel="page", thread=f"ptq-{number}")
        self.conversations[number] = Conversation(number, where, state.requester, state, 1, at, at)
        self.threads[number] = []
        self._draw(number, None, state, None, Documents(), at)
        return number

    def go(
        self,
        number: int,
        state: State,
        verdict: Verdict | None = None,
        documents: Documents | None = None,
        at: datetime = NOON,
    ) -> None:
        """A conversation moves on."""
        before = self.conversations[number]
        self.conversations[number] = replace(before, state=state, version=before.version + 1, changed_at=at)
        self._draw(number, before.state, state, verdict, documents or Documents(), at)
        self.live.changed(number)

    def show(self, number: int, slot: str, what: Card | Attachment, at: datetime = NOON) -> Shown:
        """A message of a thread, new or drawn again."""
        thread = self.threads[number]
        for place, item in enumerate(thread):
            if isinstance(item, Shown) and item.slot == slot:
                again = replace(item, what=what, wanted=item.wanted + 1, changed_at=at)
                thread[place] = again
                return again
        self._numbers += 1
        new = Shown(self._numbers, number, slot, what, 1, 1, f"ptq-{number}-{slot}", at)
        thread.append(new)
        return new

    def said(self, number: int, person: Person, text: str, told: str = "", at: datetime = NOON) -> StoredEvent:
        """Words that a person said in a thread."""
        place = self.conversations[number].place
        event = Event(key=f"k{self._numbers}", person=person, place=place, at=at, what=Said(text=text))
        return self.keep(event, number, Outcome(verdict="refused" if told else "proceeded", text=told))

    def settle(self, inbox: int, outcome: Outcome, conversation: int | None = None) -> None:
        """An event was acted upon."""
        settled = replace(self.events[inbox], outcome=outcome, conversation=conversation)
        self.events[inbox] = settled
        for thread in self.threads.values():
            for place, item in enumerate(thread):
                if isinstance(item, StoredEvent) and item.id == inbox:
                    thread[place] = settled
        self.live.changed(conversation)

    @property
    def last(self) -> StoredEvent:
        """What was sent last."""
        return self.events[max(self.events)]

    # Inlet --------------------------------------------------------------------------------------

    async def receive(self, event: Event) -> Receipt:
        """Keep an event once."""
        if self.unwritable is not None:
            raise self.unwritable
        for known in self.events.values():
            if known.event.key == event.key:
                return Receipt(id=known.id, new=False)
        meant = next((one.id for one in self.conversations.values() if one.place == event.place), None)
        stored = self.keep(event, meant, None)
        outcome = self.answer(stored)
        if outcome is not None:
            self.settle(stored.id, outcome, self.events[stored.id].conversation)
        return Receipt(id=stored.id, new=True)

    # Library ------------------------------------------------------------------------------------

    async def check(self) -> None:
        """Whether it can be read."""
        self._read()

    async def conversation(self, conversation: int) -> Conversation | None:
        """One conversation."""
        self._read()
        return self.conversations.get(conversation)

    async def thread(self, conversation: int) -> Sequence[StoredEvent | Shown]:
        """What was said and shown in it."""
        self._read()
        return list(self.threads[conversation])

    async def history(self, query: HistoryQuery) -> Sequence[HistoryRow]:
        """Conversations; of the filters only the state, the model and the page are honoured."""
        self._read()
        self.asked.append(query)
        rows = self.rows if self.rows is not None else [_row(one) for one in reversed(self.conversations.values())]
        ends = {"accepted", "rejected", "cancelled", "expired"}
        kept = [row for row in rows if query.before is None or row.id < query.before]
        if query.state:
            kept = [
                row for row in kept if row.state == query.state or (query.state == "open" and row.state not in ends)
            ]
        return [row for row in kept if query.model.lower() in row.model.lower()][: query.limit]

    async def event(self, inbox: int) -> StoredEvent | None:
        """One event."""
        self._read()
        return self.events.get(inbox)

    async def file(self, conversation: int, attachment: Attachment) -> bytes:
        """A document."""
        if (attachment.artifact, attachment.number) not in self.files:
            raise NotFound("artifact_missing", f"{attachment.name} of thread {conversation} is missing.")
        return self.files[attachment.artifact, attachment.number]

    async def form(self, conversation: int) -> Form | None:
        """The edit form."""
        return self.forms.get(conversation)

    async def run_log(self, conversation: int) -> AsyncIterator[bytes]:
        """The run's output. Raises what stands in `unreadable` before the first byte."""
        self._read()
        if getattr(self.conversations[conversation].state, "run", None) is None:
            raise NotFound("no_run", f"Thread {conversation} has no run yet.")

        async def pieces() -> AsyncIterator[bytes]:
            for piece in self.log:
                yield piece
            if self.log_breaks is not None:
                raise self.log_breaks

        return pieces()

    async def run_file(self, conversation: int, name: str) -> bytes:
        """A document of the run."""
        if name not in self.run_documents:
            raise NotFound("no_such_file", f"The run of thread {conversation} has no document {name}.")
        return self.run_documents[name]

    def may_decide(self, person: Person, row: HistoryRow) -> bool:
        """Everybody may, unless a test names who."""
        del row
        return self.decides is None or person.id in self.decides

    # --------------------------------------------------------------------------------------------

    def _read(self) -> None:
        if self.unreadable is not None:
            raise self.unreadable

    def keep(self, event: Event, conversation: int | None, outcome: Outcome | None) -> StoredEvent:
        """An event becomes a row, and stands in its thread."""
        self._numbers += 1
        stored = StoredEvent(self._numbers, event, event.at, "", conversation, outcome)
        self.events[stored.id] = stored
        if conversation is not None:
            self.threads[conversation].append(stored)
        return stored

    def _draw(
        self,
        number: int,
        before: State | None,
        after: State,
        verdict: Verdict | None,
        documents: Documents,
        at: datetime,
    ) -> None:
        def look(slot: str) -> Card | None:
            found = [item.what for item in self.threads[number] if isinstance(item, Shown) and item.slot == slot]
            return found[0] if found and isinstance(found[0], Card) else None

        for drawn in draw(number, before, after, verdict, documents, look, at):
            self.show(number, drawn.slot, drawn.what, at)


def _row(conversation: Conversation) -> HistoryRow:
    state = conversation.state
    plan, run = getattr(state, "plan", None), getattr(state, "run", None)
    report = run.report if run is not None else None
    return HistoryRow(
        id=conversation.id,
        place=conversation.place,
        requester=conversation.requester,
        model=state.request.model,
        scheme=plan.scheme if plan is not None else "",
        runner=state.request.runner,
        state=state.ending if state.kind == "ended" else state.kind,
        created_at=conversation.created_at,
        changed_at=conversation.changed_at,
        run=run.id if run is not None else None,
        output_dir=run.output_dir if run is not None else None,
        size_bytes=report.size_bytes if report is not None else None,
        original_size_bytes=report.original_size_bytes if report is not None else None,
        perplexity=report.perplexity.quantized if report is not None and report.perplexity else None,
        original_perplexity=report.perplexity.original if report is not None and report.perplexity else None,
    )


def later(minutes: float) -> datetime:
    """So many minutes after the samples' noon."""
    return NOON + timedelta(minutes=minutes)
