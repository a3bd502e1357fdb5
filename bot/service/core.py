"""The core: every event and every answer goes through here, one transaction each, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel

from bot.cards.card import Card
from bot.cards.drawing import Documents, draw
from bot.cards.texts import line
from bot.clock import Clock
from bot.conversation.approvals import who_may_run
from bot.conversation.commands import (
    Analysed,
    BetterAnalysis,
    Change,
    Command,
    GiveOrder,
    Human,
    Planned,
    Prepared,
    Remark,
    RunNews,
)
from bot.conversation.decide import begin, decide
from bot.conversation.decision import Ignore, Proceed, Refuse
from bot.conversation.explaining import explain_runners, queues_asked
from bot.conversation.policy import Policy
from bot.conversation.request import Request
from bot.conversation.runner_choice import KnownRunner, placed, placed_changes
from bot.conversation.state import Running, State
from bot.conversation.words.understand import Intent, Understood, understand
from bot.conversation.words.vocabulary import Vocabulary
from bot.errors import OutputTaken, RowUnreadable, StoreError
from bot.platforms.contract import Clicked, Edited, Event, Platform, Receipt, Said
from bot.service.errands import Errands
from bot.service.explaining import Offers, answered, nothing_known
from bot.service.orders import Errand, Orders, Question, errand_of
from bot.service.output_folder import output_taken
from bot.service.pause import pause
from bot.service.reading import NO_OFFER, command_of, where
from bot.store.records import Conversation, Outcome, StoredEvent
from bot.store.store import Store
from bot.store.unit import Unit
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.digest import digest

log = logging.getLogger(__name__)

_AT_ONCE = 50  # events looked at per round; each has a transaction of its own
_STORE_PAUSE_SECONDS = 1.0
_WHISPER_SECONDS = 30.0
_MOST_WHISPERS = 100

NO_MODEL = (
    "No model was found in this. "
    "Name one, as in: quantize Qwen/Qwen3-8B to fp8, or: quantize /models/my-model to int4_wo_32."
)
NO_THREAD = "This is no thread of mine. Ask for a model in a new one, as in: quantize Qwen/Qwen3-8B to fp8."
NO_RUNNERS = "There are no runners here to give an order to."
BROKEN = "This could not be acted upon because of a fault of the bot; it was logged. Nothing was changed."


@dataclass(frozen=True)
class _Acted:
    """What came of one event: its outcome, and the conversation that moved."""

    outcome: Outcome
    conversation: Conversation | None = None
    errand: Errand | Question | None = None
    """What has to be done before there is an outcome: the event stays open until then."""


class Core:
    """Turns events and answers into decisions. It is the `Inlet` of every platform."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Clock,
        vocabulary: Callable[[], Vocabulary],
        patience: timedelta | None = None,
        offers: Offers = nothing_known,
        runners: Callable[[], Sequence[KnownRunner]] = tuple,
        orders: Orders | None = None,
    ) -> None:
        self._store = store
        self._patience = patience
        self._policy = policy
        self._clock = clock
        self._vocabulary = vocabulary
        self._offers = offers
        self._runners = runners
        self._errands = Errands(store, policy, clock, orders, self._whisper_soon) if orders is not None else None
        self._work = asyncio.Event()
        self._moved: list[Callable[[Conversation], None]] = []
        self._platforms: dict[str, Platform] = {}
        self._whispers: set[asyncio.Task[None]] = set()

    def serve(self, platform: Platform) -> None:
        """Let a platform's people be answered there."""
        self._platforms[platform.name] = platform

    def on_move(self, listener: Callable[[Conversation], None]) -> None:
        """Be told of every conversation that has a new state, after it is committed."""
        self._moved.append(listener)

    async def receive(self, event: Event) -> Receipt:
        """Keep the event, then act on it soon. Raises StoreError when it is not kept."""
        receipt = await self._store.write(lambda unit: unit.receive(event, self._clock.now()))
        self._work.set()
        return receipt

    async def run(self) -> None:
        """Act on what comes in, for ever; first on what an earlier process left."""
        try:
            while True:
                self._work.clear()
                try:
                    more = await self._round()
                except StoreError as error:
                    log.error("the inbox waits: %s", error.sentence())
                    await pause(_STORE_PAUSE_SECONDS)
                    more = True
                if not more:
                    await self._work.wait()
        finally:
            if self._errands is not None:
                await self._errands.stop()

    async def answer(self, conversation: int, command: Command) -> None:
        """A runner's answer, or time's. Raises StoreError when it could not be kept; it may be given again."""
        moved = await self._store.write(lambda unit: self._hear(unit, conversation, command))
        if moved is not None:
            self._tell(moved)

    async def _round(self) -> bool:
        under_way = self._errands if self._errands is not None else ()
        found = await self._store.read(lambda reader: reader.waiting_events(_AT_ONCE + len(under_way)))
        waiting = [stored for stored in found if stored.id not in under_way]
        for stored in waiting:
            acted = await self._act(stored)
            if acted.errand is not None and self._errands is not None:
                self._errands.send(stored, acted.errand, acted.conversation.id if acted.conversation else None)
                continue
            if acted.conversation is not None:
                self._tell(acted.conversation)
            if acted.outcome.text:
                self._whisper_soon(stored.event, acted.outcome.text)
        return bool(waiting)

    async def _act(self, stored: StoredEvent) -> _Acted:
        # One event that this program cannot digest, or whose thread it cannot, must not keep all others waiting.
        try:
            return await self._store.write(lambda unit: self._settle(unit, stored))
        except RowUnreadable as error:
            log.error("event %s could not be acted upon: %s", stored.event.key, error.sentence())
            broken = Outcome(verdict="refused", text=f"Nothing was changed. {error.sentence()}")
        except StoreError:
            raise
        except Exception:
            log.exception("event %s could not be acted upon", stored.event.key)
            broken = Outcome(verdict="refused", text=BROKEN)
        await self._store.write(lambda unit: unit.settle(stored.id, broken, stored.conversation, self._clock.now()))
        return _Acted(broken)

    def _settle(self, unit: Unit, stored: StoredEvent) -> _Acted:
        """Decide one event, in one transaction."""
        now = self._clock.now()
        conversation = _meant(unit, stored.event)
        if conversation is None:
            acted = self._begin(unit, stored.event, now)
        else:
            command = command_of(stored.event, conversation.state, stored.seen, self._vocabulary())
            if command is None:
                acted = _Acted(Outcome(verdict="ignored"), conversation)
            else:
                command = answered(command, unit, conversation, self._offers, self._runners())
                command = self._placed(command, conversation.state)
                acted = self._errand(unit, command, conversation, now) or self._decide(
                    unit, conversation, command, stored.id, now
                )
        if acted.errand is not None:
            return acted
        spoken_of = acted.conversation or conversation
        unit.settle(stored.id, acted.outcome, spoken_of.id if spoken_of else None, now)
        return acted

    def _begin(self, unit: Unit, event: Event, now: datetime) -> _Acted:
        if not isinstance(event.what, Said) or event.place.thread:
            return _Acted(Outcome(verdict="refused", text=NO_THREAD))
        understood = understand(event.what.text, None, self._vocabulary())
        changes = understood.changes
        if understood.order is not None and understood.order.kind == "offer":
            return _Acted(Outcome(verdict="refused", text=NO_OFFER))
        if understood.order is not None:
            order = GiveOrder(event.person, event.at, where(event.place), understood.order)
            return self._ordered(unit, order, None, now)
        asks = understood.intent is Intent.QUESTION and not understood.unread
        if asks and self._errands is not None and (queues := queues_asked(event.what.text, self._runners())):
            return _Acted(Outcome(verdict="ignored"), errand=Question(queues))
        if asks and (told := explain_runners(event.what.text, self._runners())):
            return _Acted(Outcome(verdict="refused", text=told))
        if understood.intent is not Intent.REQUEST or changes.model is None:
            return _Acted(Outcome(verdict="refused", text=_no_request(understood)))
        request = Request(text=event.what.text[:2000], model=changes.model).changed(changes)
        request = placed(request, self._runners())
        match begin(request, event.person, event.place, self._policy):
            case Refuse(trouble=trouble):
                return _Acted(Outcome(verdict="refused", text=trouble.sentence()))
            case Proceed(state=state):
                conversation = unit.begin(event.place, event.person, state, now)
                unit.audit(event.person.id, "asked", conversation.id, {"text": request.text}, now)
                self._draw(unit, conversation, None, Proceed(state), Documents(), now)
                return _Acted(Outcome(verdict="proceeded"), conversation)

    def _errand(self, unit: Unit, command: Command, conversation: Conversation, now: datetime) -> _Acted | None:
        """What a command asks of a runner beside the conversation; None for one that is about the conversation."""
        if isinstance(command, Remark) and command.queues and self._errands is not None:
            return _Acted(Outcome(verdict="ignored"), conversation, Question(command.queues))
        # An order of an older card is refused as any button of it.
        if isinstance(command, GiveOrder) and command.step in (0, conversation.state.step):
            return self._ordered(unit, command, conversation, now)
        return None

    def _ordered(self, unit: Unit, command: GiveOrder, conversation: Conversation | None, now: datetime) -> _Acted:
        """What an order means; it is carried out later, and its event stays open until then."""
        state = conversation.state if conversation is not None else None
        errand = NO_RUNNERS if self._errands is None else errand_of(command, state, self._policy, self._runners())
        if not isinstance(errand, str):
            return _Acted(Outcome(verdict="ignored"), conversation, errand)
        did = {"order": command.order.model_dump(exclude_defaults=True), "why": errand}
        unit.audit(command.by.id, "order_refused", conversation.id if conversation else None, did, now)
        return _Acted(Outcome(verdict="refused", text=errand))

    def _placed(self, command: Command, state: State) -> Command:
        """A change that asks for a runner, with the one that it means by what is known now; any other as it is."""
        if not isinstance(command, Change):
            return command
        return replace(command, changes=placed_changes(command.changes, state.request, self._runners()))

    def _decide(
        self, unit: Unit, conversation: Conversation, command: Command, inbox_id: int | None, now: datetime
    ) -> _Acted:
        decision = decide(conversation.state, command, self._policy)
        who = command.by.id if isinstance(command, Human) else "runner"
        did = type(command).__name__.lower()
        match decision:
            case Ignore(why=why):
                log.debug("conversation %s ignored %s: %s", conversation.id, did, why)
                return _Acted(Outcome(verdict="ignored"))
            case Refuse(trouble=trouble):
                unit.audit(who, f"{did}_refused", conversation.id, {"code": trouble.code}, now)
                return _Acted(Outcome(verdict="refused", text=trouble.sentence()))
            case Proceed():
                moved = self._proceed(unit, conversation, command, decision, inbox_id, now)
                if not _is_only_progress(conversation.state, moved.state):
                    unit.audit(who, did, moved.id, {"state": moved.state.kind, "step": moved.state.step}, now)
                return _Acted(Outcome(verdict="proceeded", text=decision.told), moved)

    def _proceed(
        self,
        unit: Unit,
        conversation: Conversation,
        command: Command,
        decision: Proceed,
        inbox_id: int | None,
        now: datetime,
    ) -> Conversation:
        moved = unit.save(conversation.id, decision.state, conversation.version, now)
        for kind, document in _artifacts(command, conversation.state, decision.state):
            unit.add_artifact(moved.id, kind, decision.state.revisions[_COUNTED[kind]], digest(document), document, now)
        if decision.verdict is not None:
            place = command.where if isinstance(command, Human) else where(conversation.place)
            unit.record(moved.id, decision.verdict, inbox_id, place, now)
        self._draw(unit, moved, conversation.state, decision, _documents(unit, moved, command), now)
        return moved

    def _draw(
        self,
        unit: Unit,
        conversation: Conversation,
        before: State | None,
        decision: Proceed,
        documents: Documents,
        now: datetime,
    ) -> None:
        def shown(slot: str) -> Card | None:
            there = unit.shown(conversation.id, slot)
            return there.what if there is not None and isinstance(there.what, Card) else None

        verdict, after = decision.verdict, decision.state
        approvers = who_may_run(after, self._policy)
        for one in draw(conversation.id, before, after, verdict, documents, shown, now, self._patience, approvers):
            unit.show(conversation.id, one.slot, one.what, now, one.asks)

    def _hear(self, unit: Unit, conversation_id: int, command: Command) -> Conversation | None:
        conversation = unit.conversation(conversation_id)
        if conversation is None:
            return None
        if isinstance(command, Prepared):
            _check_output_is_free(unit, conversation, command)
        return self._decide(unit, conversation, command, None, self._clock.now()).conversation

    def _tell(self, conversation: Conversation) -> None:
        for listener in self._moved:
            listener(conversation)

    def _whisper_soon(self, event: Event, text: str) -> None:
        """Beside everything else: a platform that hangs must hold up nobody's decision."""
        if len(self._whispers) < _MOST_WHISPERS:
            whisper = asyncio.create_task(self._whisper(event, text))
            self._whispers.add(whisper)
            whisper.add_done_callback(self._whispers.discard)

    async def _whisper(self, event: Event, text: str) -> None:
        # Where the person is: on the page somebody may act in a thread of another platform.
        platform = self._platforms.get(event.person.id.partition(":")[0])
        if platform is None:
            return
        try:
            async with asyncio.timeout(_WHISPER_SECONDS):
                await platform.whisper(event, text)
        except Exception as error:  # losing a whisper loses nothing that was promised
            log.warning("%s could not be told: %s", event.person.id, error)


def _is_only_progress(before: State, after: State) -> bool:
    """Whether a run is merely further: a long one would fill the record with it."""
    return isinstance(before, Running) and isinstance(after, Running) and before.run.state == after.run.state


def _no_request(understood: Understood) -> str:
    """Why nothing was begun, and how it is asked."""
    example = "Ask as in: quantize Qwen/Qwen3-8B to fp8."
    if understood.unread:
        what = f"I did not understand {line(understood.unread, 80)!r} in this, so nothing was begun."
        return " ".join(part for part in (what, line(understood.hint), example) if part)
    return NO_MODEL


def _check_output_is_free(unit: Unit, conversation: Conversation, answer: Prepared) -> None:
    """Two conversations that were asked at once must not both be offered the same folder. Raises OutputTaken."""
    folder = answer.document.outputs.output_dir
    holder = unit.output_taken(conversation.state.request.runner, folder, conversation.id)
    if holder is not None:
        raise OutputTaken("output_taken", *output_taken(holder, folder))


_COUNTED = {"analysis": "analysis", "plan": "plan", "manifest": "manifest", "report": "run"}


def _meant(unit: Unit, event: Event) -> Conversation | None:
    """The conversation that an event is about: named by its button or form, or the one that its thread belongs to."""
    match event.what:
        case Clicked(action=action):
            return unit.conversation(action.conversation)
        case Edited(conversation=conversation):
            return unit.conversation(conversation)
        case Said():
            return unit.conversation_at(event.place) if event.place.thread else None


def _artifacts(command: Command, before: State, after: State) -> list[tuple[str, BaseModel]]:
    """The documents that a command brings, by kind."""
    match command:
        case Analysed(document=document):
            return [("analysis", document)]
        case BetterAnalysis(document=document) if before.revisions != after.revisions:
            return [("analysis", document)]
        case Planned(document=document):
            return [("plan", document)]
        case Prepared(document=document):
            return [("manifest", document)]
        case RunNews(run=run) if run.report is not None and run.state.ended:
            return [("report", run.report)]
        case _:
            return []


def _documents(unit: Unit, conversation: Conversation, command: Command) -> Documents:
    """The documents that the cards of this step show: the command's own, else what the state points to."""
    match command:
        case Analysed(document=document):
            return Documents(analysis=document)
        case Planned(document=document):
            return Documents(plan=document)
        case Prepared(document=document):
            return Documents(manifest=document)
        case RunNews(run=run) if run.state.ended:
            return Documents(plan=_kept(unit, conversation, "plan", QuantPlan))
        case _:
            return _needed(unit, conversation, conversation.state)


def _needed(unit: Unit, conversation: Conversation, state: State) -> Documents:
    """What a card that is drawn again needs, such as an analysis whose request was changed."""
    match state.kind:
        case "reviewing_analysis":
            return Documents(analysis=_kept(unit, conversation, "analysis", ModelAnalysis))
        case "reviewing_plan":
            return Documents(plan=_kept(unit, conversation, "plan", QuantPlan))
        case "reviewing_command":
            return Documents(manifest=_kept(unit, conversation, "manifest", RunManifest))
        case _:
            return Documents()


def _kept(unit: Unit, conversation: Conversation, kind: str, model: type[Any]) -> Any:
    revision = getattr(conversation.state, kind, None)
    stored = unit.artifact(conversation.id, kind, revision.number) if revision is not None else None
    return model.model_validate(stored) if stored is not None else None
