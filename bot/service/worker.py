"""Asks the runners what the states of the conversations imply. Nothing here has to be remembered.

Intake, plan and manifest only read, a submission is one run however often it is sent, and so is a cancellation: after a
restart every conversation that waits for a runner is simply asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Hashable
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel

from bot.clock import Clock
from bot.conversation.commands import (
    Analysed,
    Command,
    Delayed,
    Planned,
    Prepared,
    RunMissing,
    RunNews,
    RunSilent,
    StepFailed,
    Submitted,
)
from bot.conversation.state import Preparing, State, Submitting
from bot.conversation.work import AskIntake, AskManifest, AskPlan, Submit, Task, Watch, background, work
from bot.errors import BotError, NotFound, OutputTaken, RunnerAway, RunnerError, RunnerForeign, StoreError
from bot.service.better_analyses import BetterAnalyses
from bot.service.output_folder import candidates, output_taken
from bot.service.pause import Backoff, pause
from bot.service.run_followers import FIRST_SECONDS, MOST_SECONDS, UNKNOWN_RUN, Hear, RunFollowers, trouble
from bot.service.runner_client import RunnerClient, Runners
from bot.store.records import Conversation
from bot.store.store import Store
from schemas.api import IntakeRequest, ManifestRequest, PlanRequest, RunSubmission
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.documents import read_document
from schemas.runs import Run

log = logging.getLogger(__name__)

Kept = TypeVar("Kept", bound=BaseModel)


_ENDS_A_CANCEL = UNKNOWN_RUN | {"already_ended"}


class _Kind(StrEnum):
    """What a conversation may have going on at the same time."""

    STEP = "step"  # what its state waits for
    BESIDE = "beside"  # what nobody waits for


class Worker:
    """For each conversation one task that asks what its state waits for, or cancels its run, and one beside."""

    def __init__(self, store: Store, runners: Runners, clock: Clock, hear: Hear) -> None:
        self._store = store
        self._runners = runners
        self._clock = clock
        self._hear = hear
        self._tasks: dict[tuple[int, _Kind], tuple[Hashable, asyncio.Task[None]]] = {}
        self._back: dict[str, asyncio.Event] = {}
        self._versions: dict[int, int] = {}
        self._better = BetterAnalyses(store, runners, clock, hear, self._comes_back)
        self.followers = RunFollowers(runners, clock, hear)

    async def resume(self) -> None:
        """Go on with everything that an earlier process left."""
        left = await self._store.read(lambda reader: [*reader.working(), *reader.asking()])
        for conversation in left:
            self.consider(conversation)

    async def stop(self) -> None:
        """End all tasks; what they did not finish is asked again by the next process."""
        tasks = [task for _, task in self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self.followers.stop(), return_exceptions=True)

    def wake(self, runner: str) -> None:
        """A runner is back: whoever waits to ask it again does so now."""
        self._back.pop(runner, asyncio.Event()).set()

    def consider(self, conversation: Conversation) -> None:
        """Do what the conversation's state asks for, and stop what an earlier state asked for."""
        # People and two tasks move a conversation: what is told late must not stop what came of something newer.
        if conversation.version < self._versions.get(conversation.id, 0):
            return
        self._versions[conversation.id] = conversation.version
        task, beside = work(conversation.state), background(conversation.state)
        self.followers.follow(conversation.id, task)
        if task is not None and not (isinstance(task, Watch) and not task.cancel):
            self._keep(conversation.id, _Kind.STEP, task, self._until_answered(conversation, task))
        else:
            self._end(conversation.id, _Kind.STEP)
        if beside is not None:
            self._keep(conversation.id, _Kind.BESIDE, beside, self._better.until_answered(conversation.id, beside))
        else:
            self._end(conversation.id, _Kind.BESIDE)

    def _keep(self, conversation: int, kind: _Kind, wanted: Hashable, doing: Coroutine[Any, Any, None]) -> None:
        """Let a task be under way that does what is wanted: the one that does, or a new one."""
        current = self._tasks.get((conversation, kind))
        if current is not None and current[0] == wanted:
            doing.close()
            return
        self._end(conversation, kind)
        running = asyncio.create_task(doing)
        self._tasks[conversation, kind] = (wanted, running)
        running.add_done_callback(lambda done: self._forget(conversation, kind, done))

    def _end(self, conversation: int, kind: _Kind) -> None:
        current = self._tasks.pop((conversation, kind), None)
        # A task may be hearing its own answer just now: that moves the conversation, and has to come to its end.
        if current is not None and current[1] is not asyncio.current_task():
            current[1].cancel()

    def _forget(self, conversation: int, kind: _Kind, done: asyncio.Task[None]) -> None:
        current = self._tasks.get((conversation, kind))
        if current is not None and current[1] is done:
            del self._tasks[conversation, kind]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.critical("the work for conversation %s fell", conversation, exc_info=error)

    def _comes_back(self, runner: str) -> asyncio.Event:
        """What is set when a runner is there again."""
        return self._back.setdefault(runner, asyncio.Event())

    async def _until_answered(self, conversation: Conversation, task: Task) -> None:
        """Ask until there is an answer. A runner that is away is asked again; people see why it takes longer."""
        backoff = Backoff(FIRST_SECONDS, MOST_SECONDS)
        while True:
            # Taken before the attempt: a runner that comes back during it wakes this task all the same.
            back = self._comes_back(task.runner)
            if await self._attempt(conversation, task):
                return
            if await pause(backoff.seconds(), back):
                backoff.reset()

    async def _attempt(self, conversation: Conversation, task: Task) -> bool:
        """Ask once, and tell the conversation. Whether that was all there is to do."""
        answer: Command | None
        try:
            answer, finished = await self._ask(conversation, task), True
        except (RunnerAway, RunnerForeign) as error:
            answer, finished = self._delayed(task, error), False
        except RunnerError as error:
            # A wrong token is an administrator's task, and a cancel is asked for until the run has ended.
            again = error.code == "wrong_token" or (isinstance(task, Watch) and error.code not in _ENDS_A_CANCEL)
            answer, finished = (self._delayed(task, error), False) if again else (self._refused(task, error), True)
        except NotFound as error:
            # A runner that was taken out of the settings: people choose another, or an administrator puts it back.
            answer, finished = self._delayed(task, error), False
        except StoreError as error:
            log.error("conversation %s waits: %s", conversation.id, error.sentence())
            return False
        except Exception as error:
            # People have to see that it goes on no further; it is tried again, since a restart would try it as well.
            log.exception("the question for conversation %s failed", conversation.id)
            answer, finished = self._delayed(task, _fault(error)), False
        if answer is None:
            return finished
        try:
            await self._hear(conversation.id, answer)
        except OutputTaken:
            return False  # asked again, the folder is seen to be taken: another one, or a sentence where it was named
        except StoreError as error:
            log.error("an answer for conversation %s waits: %s", conversation.id, error.sentence())
            return False
        except Exception as error:
            log.exception("an answer for conversation %s could not be taken", conversation.id)
            with contextlib.suppress(Exception):  # said above; people are told where that is possible
                await self._hear(conversation.id, self._delayed(task, _fault(error)))
            return False
        return finished

    async def _ask(self, conversation: Conversation, task: Task) -> Command | None:
        state = conversation.state
        client = self._runners.get(task.runner)
        match task:
            case AskIntake():
                return await self._intake(client, task, state)
            case AskPlan():
                analysis = await self._kept(conversation, "analysis", ModelAnalysis)
                choices = state.request.choices_on(analysis.quantization_targets.exclude_defaults)
                plan = await client.plan(PlanRequest(model_analysis=analysis, request=choices))
                return Planned(task.step, self._clock.now(), plan.quant_plan, plan.digest)
            case AskManifest():
                return await self._manifest(client, task, conversation)
            case Submit():
                run = await self._submit(client, conversation)
                return Submitted(task.step, self._clock.now(), run)
            case Watch():
                by = getattr(state, "cancelled_by", None)
                run = await client.cancel(task.run, by.name if by else "somebody", "cancelled in the conversation")
                return RunNews(run, self._clock.now())

    async def _intake(self, client: RunnerClient, task: AskIntake, state: State) -> Command:
        request = IntakeRequest(
            model=task.model,
            revision=task.revision,
            trust_remote_code=task.trust_remote_code,
            output_dir=state.request.output_dir,
        )
        answer = await client.intake(request)
        proposed = answer.workspace_context.output_dir
        return Analysed(task.step, self._clock.now(), answer.model_analysis, answer.digest, proposed)

    async def _manifest(self, client: RunnerClient, task: AskManifest, conversation: Conversation) -> Command:
        """The exact command, into the folder that was named, or into the first free one."""
        state = conversation.state
        assert isinstance(state, Preparing)
        analysis = await self._kept(conversation, "analysis", ModelAnalysis)
        plan = await self._kept(conversation, "plan", QuantPlan)
        refused: RunnerError | None = None
        for folder in candidates(state, client.known_capabilities):
            request = ManifestRequest(model_analysis=analysis, quant_plan=plan, output_dir=folder)
            try:
                answer = await client.manifest(request)
            except RunnerError as error:
                if error.code not in {"output_not_empty", "output_is_file"}:
                    raise
                refused = error
                continue
            # The runner's own name of the folder: what was typed may be relative, or lead there by another way.
            where = answer.run_manifest.outputs.output_dir
            if (holder := await self._taken(task.runner, where, conversation.id)) is None:
                return Prepared(task.step, self._clock.now(), answer.run_manifest, answer.digest)
            refused = RunnerError("output_taken", *output_taken(holder, where))
        assert refused is not None
        raise refused

    async def _taken(self, runner: str, folder: str, besides: int) -> int | None:
        return await self._store.read(lambda reader: reader.output_taken(runner, folder, besides))

    async def _submit(self, client: RunnerClient, conversation: Conversation) -> Run:
        state = conversation.state
        assert isinstance(state, Submitting)
        manifest = await self._kept(conversation, "manifest", RunManifest)
        # The database's own name in the key: another bot on the same runner has conversations of the same numbers.
        key = f"{self._store.name}-{conversation.id}-{state.key}"
        try:
            return await client.submit(RunSubmission(run_manifest=manifest, approvals=list(state.approvals), key=key))
        except RunnerError:
            # An earlier attempt may have been taken, and its answer lost. Only the runner's list says that it was not.
            known = next((run for run in await client.runs() if run.key == key), None)
            if known is None:
                raise
            return known

    async def _kept(self, conversation: Conversation, kind: str, model: type[Kept]) -> Kept:
        revision: Any = getattr(conversation.state, kind)
        document = await self._store.read(lambda reader: reader.artifact(conversation.id, kind, revision.number))
        if document is None:
            raise NotFound("artifact_missing", f"The {kind} {revision.number} of thread {conversation.id} is missing.")
        return read_document(model, document)

    def _delayed(self, task: Task, error: BotError) -> Command:
        if isinstance(task, Watch):
            return RunSilent(task.run, trouble(error), self._clock.now())
        return Delayed(task.step, self._clock.now(), trouble(error))

    def _refused(self, task: Task, error: RunnerError) -> Command | None:
        if not isinstance(task, Watch):
            return StepFailed(task.step, self._clock.now(), trouble(error))
        if error.code in UNKNOWN_RUN:
            return RunMissing(task.run, trouble(error), self._clock.now())
        return None  # it has ended already; its own news say how


def _fault(error: Exception) -> BotError:
    about = " ".join(str(error).split())[:200]
    return BotError(
        "bot_fault", f"The bot failed here: {type(error).__name__}: {about}.", "It tries again; see its log."
    )
