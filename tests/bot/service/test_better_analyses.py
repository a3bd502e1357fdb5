"""The engine's own list of layers is asked for beside everything else, by any process, until there is an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.cards.card import Attachment, Card
from bot.clock import SystemClock
from bot.conversation.person import Place
from bot.conversation.policy import Policy
from bot.conversation.state import State
from bot.conversation.words.vocabulary import PUBLISHED
from bot.errors import BotError, RunnerAway, RunnerError, RunnerForeign
from bot.service.core import Core
from bot.service.worker import Worker
from bot.store.records import Conversation, Shown
from bot.store.store import Store
from schemas.api import IntakeAnswer, IntakeRequest, PlanAnswer, PlanRequest
from schemas.artifacts.analysis import ModelAnalysis
from schemas.digest import digest
from tests import samples
from tests.bot.conversation import samples as states
from tests.waiting import until

CLOCK = SystemClock()
HEADERS, SAME, MORE = samples.analysis(), samples.exact_analysis(), samples.exact_analysis(count=144)


class Runner:
    """A runner that answers by headers at once, and by modules as it is told: `may_answer` holds that up."""

    known_capabilities = None

    def __init__(self, modules: ModelAnalysis | BotError = SAME) -> None:
        self.modules = modules
        self.may_answer = asyncio.Event()
        self.may_plan = asyncio.Event()
        self.asked: list[IntakeRequest] = []
        self.at_once = self.most_at_once = 0

    def get(self, name: str) -> Any:
        """It is the only one."""
        del name
        return self

    async def intake(self, request: IntakeRequest) -> IntakeAnswer:
        """Headers, or modules."""
        self.asked.append(request)
        if request.depth == "headers":
            return _answer(HEADERS)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.may_answer.wait()
        finally:
            self.at_once -= 1
        if isinstance(self.modules, BotError):
            raise self.modules
        return _answer(self.modules)

    async def plan(self, request: PlanRequest) -> PlanAnswer:
        """A plan for whatever analysis."""
        await self.may_plan.wait()
        plan = samples.plan(
            model=samples.plan().model.model_copy(update={"analysis_digest": digest(request.model_analysis)})
        )
        return PlanAnswer(quant_plan=plan, decisions=[], findings=[], estimates=plan.estimates, digest=digest(plan))

    @property
    def depths(self) -> list[str]:
        """What was asked, in order."""
        return [request.depth for request in self.asked]


def _answer(analysis: ModelAnalysis) -> IntakeAnswer:
    return IntakeAnswer(workspace_context=samples.workspace(), model_analysis=analysis, digest=digest(analysis))


class Play:
    """One database, and a bot's core and worker on it."""

    def __init__(self, store: Store, runner: Runner) -> None:
        self.store = store
        self.runner = runner
        self.core = Core(store, Policy(runners=("local",)), CLOCK, lambda: PUBLISHED)
        runners: Any = runner
        self.worker = Worker(store, runners, CLOCK, self.core.answer)
        self.core.on_move(self.worker.consider)

    async def put(self, state: State, thread: str = "t1") -> Conversation:
        """A conversation in a state, with the documents that it has."""
        place = Place(platform="chat", channel="c", thread=thread)

        def begin(unit: Any) -> Conversation:
            conversation: Conversation = unit.begin(place, states.ADA, state, CLOCK.now())
            documents = {"analysis": HEADERS, "plan": samples.plan(), "manifest": samples.manifest()}
            for kind in documents.keys() & state.revisions.keys():
                document = documents[kind]
                unit.add_artifact(conversation.id, kind, 1, digest(document), document, CLOCK.now())
            return conversation

        return await self.store.write(begin)

    async def state(self, conversation: int) -> Any:
        """How it stands."""
        there = await self.store.read(lambda reader: reader.conversation(conversation))
        assert there is not None
        return there.state

    async def until(self, conversation: int, condition: Callable[[Any], bool]) -> Any:
        """Its state, once that is so."""
        with self.store.subscribe() as changed:
            async with asyncio.timeout(20):
                while not condition(state := await self.state(conversation)):
                    await changed.next()
        return state

    async def shown(self, conversation: int) -> dict[str, Card | Attachment]:
        """What its thread shows, by slot."""
        entries = await self.store.read(lambda reader: reader.thread(conversation))
        return {entry.slot: entry.what for entry in entries if isinstance(entry, Shown)}

    async def kept(self, conversation: int) -> list[tuple[str, int, str]]:
        """The documents of it that are analyses."""
        found = await self.store.read(lambda reader: reader.artifacts(conversation))
        return [(one.kind, one.number, one.digest) for one in found if one.kind == "analysis"]


def play(folder: Path, scene: Callable[[Play], Awaitable[None]], modules: ModelAnalysis | BotError = SAME) -> None:
    """Play a scene, and stop the worker after it."""

    async def whole() -> None:
        store = await Store.open(f"sqlite:///{folder / 'bot.sqlite3'}", CLOCK)
        there = Play(store, Runner(modules))
        try:
            await scene(there)
        finally:
            await there.worker.stop()
            await store.close()

    asyncio.run(whole())


def _is_exact(state: Any) -> bool:
    return bool(state.analysis.exact)


def _is_settled(state: Any) -> bool:
    return state.analysis is not None and state.analysis.better == "none"


def test_the_card_is_drawn_again_once_the_exact_list_is_there(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        place = Place(platform="chat", channel="c", thread="t1")
        begun = await there.store.write(lambda unit: unit.begin(place, states.ADA, states.analysing(), CLOCK.now()))
        there.worker.consider(begun)
        await there.until(begun.id, lambda state: state.kind == "reviewing_analysis")
        await until(lambda: there.runner.depths == ["headers", "modules"])
        before = await there.shown(begun.id)
        there.runner.may_answer.set()
        state = await there.until(begun.id, _is_exact)
        after = await there.shown(begun.id)
        assert (state.kind, state.step, state.analysis.number) == ("reviewing_analysis", 1, 2)
        assert await there.kept(begun.id) == [("analysis", 1, digest(HEADERS)), ("analysis", 2, digest(SAME))]
        assert before["analysis:1"] != after["analysis:1"]
        assert sorted(after) == ["analysis:1", "analysis:1:2:file", "analysis:1:file"]
        assert there.runner.depths == ["headers", "modules"]

    play(tmp_path, scene)


def test_the_question_is_about_the_very_files_that_were_read(tmp_path: Path) -> None:
    pinned = HEADERS.model_copy(update={"model": HEADERS.model.model_copy(update={"revision": "0123abcd"})})

    async def scene(there: Play) -> None:
        asked = states.REQUEST.model_copy(
            update={"revision": "main", "choices": {"trust_remote_code": True}, "output_dir": "/out/taken"}
        )
        place = Place(platform="chat", channel="c", thread="t1")
        state = states.reviewing_plan(request=asked)
        begun = await there.store.write(lambda unit: unit.begin(place, states.ADA, state, CLOCK.now()))
        await there.store.write(
            lambda unit: unit.add_artifact(begun.id, "analysis", 1, states.ANALYSIS.digest, pinned, CLOCK.now())
        )
        there.worker.consider(begun)
        await until(lambda: there.runner.asked)
        (request,) = there.runner.asked
        assert request == IntakeRequest(
            model="Qwen/Qwen3-8B", revision="0123abcd", trust_remote_code=True, depth="modules"
        )

    play(tmp_path, scene)


@pytest.mark.parametrize("kind", ["reviewing_analysis", "reviewing_plan", "reviewing_command"])
def test_another_process_asks_again(tmp_path: Path, kind: str) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.all_states()[kind])
        there.runner.may_answer.set()
        await there.worker.resume()
        await there.until(conversation.id, _is_settled)
        assert [number for _, number, _ in await there.kept(conversation.id)] == [1, 2]

    play(tmp_path, scene)


def test_the_step_goes_on_meanwhile_and_the_question_is_asked_once(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.planning())
        there.worker.consider(conversation)
        await until(lambda: there.runner.depths == ["modules"])
        there.runner.may_plan.set()
        await there.until(conversation.id, lambda state: state.kind == "reviewing_plan")
        there.runner.may_answer.set()
        state = await there.until(conversation.id, _is_settled)
        assert state.kind == "reviewing_plan"
        assert state.analysis.confirmed.number == 2
        assert state.plan.number == 1
        assert there.runner.depths == ["modules"]

    play(tmp_path, scene)


def test_other_targets_stop_what_was_being_made(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.planning())
        there.worker.consider(conversation)
        await until(lambda: there.runner.depths == ["modules"])
        there.runner.may_answer.set()
        state = await there.until(conversation.id, _is_exact)
        assert (state.kind, state.step) == ("reviewing_analysis", 3)
        there.runner.may_plan.set()
        cards = await there.shown(conversation.id)
        assert sorted(cards) == ["analysis:3", "analysis:3:file"]
        assert (await there.state(conversation.id)).kind == "reviewing_analysis"

    play(tmp_path, scene, MORE)


@pytest.mark.parametrize("code", ["depth_not_offered", "modules_need_code", "probe_failed"])
def test_a_refusal_is_believed_and_blocks_nothing(tmp_path: Path, code: str) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.planning())
        there.runner.may_answer.set()
        there.worker.consider(conversation)
        await there.until(conversation.id, _is_settled)
        there.runner.may_plan.set()
        state = await there.until(conversation.id, lambda state: state.kind == "reviewing_plan")
        assert state.analysis.no_better == ("" if code == "depth_not_offered" else "Not here.")
        assert there.runner.depths == ["modules"]
        assert [number for _, number, _ in await there.kept(conversation.id)] == [1]

    play(tmp_path, scene, RunnerError(code, "Not here."))


def test_a_probe_that_failed_is_asked_again_in_the_next_step(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        there.runner.may_answer.set()
        conversation = await there.put(states.reviewing_plan())
        there.worker.consider(conversation)
        state = await there.until(conversation.id, _is_settled)
        await there.worker.resume()  # the same step after a restart
        assert there.runner.depths == ["modules"]
        there.runner.modules = SAME
        later = state.model_copy(update={"step": state.step + 1})
        known = await there.store.read(lambda reader: reader.conversation(conversation.id))
        assert known is not None
        there.worker.consider(
            await there.store.write(lambda unit: unit.save(known.id, later, known.version, CLOCK.now()))
        )
        state = await there.until(conversation.id, lambda state: state.analysis.confirmed is not None)
        assert state.analysis.no_better == ""
        assert there.runner.depths == ["modules", "modules"]

    play(tmp_path, scene, RunnerError("modules_not_built", "No memory."))


@pytest.mark.parametrize(
    "error",
    [
        RunnerAway("runner_down", "Nothing listens there."),
        RunnerError("wrong_token", "Its token is wrong."),
        RunnerForeign("api_version", "It speaks version 2."),
    ],
    ids=lambda error: error.code,
)
def test_a_runner_that_is_away_is_asked_again_without_a_word(tmp_path: Path, error: BotError) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.reviewing_analysis())
        there.runner.may_answer.set()
        there.worker.consider(conversation)
        await until(lambda: len(there.runner.asked) >= 2, 20)
        assert await there.state(conversation.id) == conversation.state
        there.runner.modules = SAME
        there.worker.wake("local")
        assert (await there.until(conversation.id, _is_exact)).kind == "reviewing_analysis"

    play(tmp_path, scene, error)


def test_an_answer_that_makes_no_sense_is_no_better_analysis(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.reviewing_plan())
        there.runner.may_answer.set()
        there.worker.consider(conversation)
        state = await there.until(conversation.id, _is_settled)
        assert state.analysis.no_better == "It is no runner."

    play(tmp_path, scene, RunnerForeign("strange_answer", "It is no runner."))


def test_an_analysis_that_is_missing_is_not_improved(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        place = Place(platform="chat", channel="c", thread="t1")
        state = states.reviewing_plan()
        begun = await there.store.write(lambda unit: unit.begin(place, states.ADA, state, CLOCK.now()))
        there.worker.consider(begun)
        assert "is missing" in (await there.until(begun.id, _is_settled)).analysis.no_better
        assert there.runner.asked == []

    play(tmp_path, scene)


def test_a_fault_of_the_bot_ends_only_the_question(tmp_path: Path) -> None:
    broken: Any = ValueError("broken")

    async def scene(there: Play) -> None:
        there.runner.may_plan.set()

        async def intake(request: IntakeRequest) -> IntakeAnswer:
            there.runner.asked.append(request)
            raise broken

        there.runner.intake = intake  # type: ignore[method-assign]
        conversation = await there.put(states.planning())
        there.worker.consider(conversation)
        await there.until(conversation.id, lambda state: state.kind == "reviewing_plan")
        # Once before it moved, and once after: a fault is not asked about again and again.
        assert len(there.runner.asked) <= 2

    play(tmp_path, scene)


def test_what_is_handed_over_is_not_improved_any_more(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        conversation = await there.put(states.reviewing_command())
        there.worker.consider(conversation)
        await until(lambda: there.runner.at_once == 1)
        moved = await there.store.write(
            lambda unit: unit.save(conversation.id, states.running(), conversation.version, CLOCK.now())
        )
        there.worker.consider(moved)
        await until(lambda: there.runner.at_once == 0)

    play(tmp_path, scene)


def test_after_a_restart_not_all_ask_at_once(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        conversations = [await there.put(states.reviewing_plan(), f"t{number}") for number in range(7)]
        await there.worker.resume()
        await until(lambda: there.runner.at_once == 2)
        there.runner.may_answer.set()
        for conversation in conversations:
            await there.until(conversation.id, _is_settled)
        assert there.runner.most_at_once == 2

    play(tmp_path, scene)


def test_what_is_told_late_stops_nothing_newer(tmp_path: Path) -> None:
    async def scene(there: Play) -> None:
        old = await there.put(states.reviewing_analysis())
        new = await there.store.write(lambda unit: unit.save(old.id, states.planning(), old.version, CLOCK.now()))
        there.worker.consider(new)
        there.worker.consider(old)
        there.runner.may_plan.set()
        await there.until(new.id, lambda state: state.kind == "reviewing_plan")

    play(tmp_path, scene)
