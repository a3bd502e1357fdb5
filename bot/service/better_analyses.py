"""Asks runners for the engine's own list of layers, beside whatever else conversations wait for. It takes a minute.

Nobody waits for it: a runner that is away is asked again without a word, and one that cannot is believed: for good, or
until the conversation takes its next step.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from bot.clock import Clock
from bot.conversation.commands import BetterAnalysis, Command, NoBetterAnalysis
from bot.conversation.work import AskBetterAnalysis
from bot.errors import BotError, NotFound, RunnerAway, RunnerError, RunnerForeign, StoreError
from bot.service.pause import Backoff, pause
from bot.service.run_followers import FIRST_SECONDS, MOST_SECONDS, Hear, trouble
from bot.service.runner_client import Runners
from bot.store.store import Store
from schemas.api import IntakeRequest
from schemas.artifacts.analysis import ModelAnalysis
from schemas.documents import read_document

log = logging.getLogger(__name__)

_AT_ONCE = 2
"""Questions at one runner: after a restart all conversations ask, and people's own questions must not wait for that."""

_ASKED_AGAIN = frozenset({"wrong_token"})
"""Refusals that say nothing about the model: an administrator corrects them."""


class BetterAnalyses:
    """`back` gives what is set when a runner, which was away, is there again."""

    def __init__(
        self, store: Store, runners: Runners, clock: Clock, hear: Hear, back: Callable[[str], asyncio.Event]
    ) -> None:
        self._store = store
        self._runners = runners
        self._clock = clock
        self._hear = hear
        self._back = back
        self._at_once: dict[str, asyncio.Semaphore] = {}

    async def until_answered(self, conversation: int, task: AskBetterAnalysis) -> None:
        """Ask until there is an answer, and tell the conversation."""
        backoff = Backoff(FIRST_SECONDS, MOST_SECONDS)
        while True:
            back = self._back(task.runner)  # before the attempt: whoever comes back during it is noticed
            if await self._attempt(conversation, task):
                return
            if await pause(backoff.seconds(), back):
                backoff.reset()

    async def _attempt(self, conversation: int, task: AskBetterAnalysis) -> bool:
        """Ask once. Whether that was all there is to do."""
        try:
            command = await self._answer(conversation, task)
            if command is None:
                return False
            await self._hear(conversation, command)
        except StoreError as error:
            log.error("a better analysis for conversation %s waits: %s", conversation, error.sentence())
            return False
        except Exception:
            # A fault of the bot's own. Nothing waits for this; when the conversation moves next, it is tried again.
            log.exception("a better analysis for conversation %s could not be had", conversation)
        return True

    async def _answer(self, conversation: int, task: AskBetterAnalysis) -> Command | None:
        """What the conversation is told; None where the runner has to be asked again."""
        try:
            return await self._ask(conversation, task)
        except RunnerAway:
            return None
        except (RunnerForeign, RunnerError, NotFound) as error:
            # Of another release, of another token, or taken out of the settings: administrators correct that.
            if _may_change(error):
                return None
            log.info("conversation %s gets no better analysis: %s", conversation, error.sentence())
            return NoBetterAnalysis(task.of, self._clock.now(), trouble(error))

    async def _ask(self, conversation: int, task: AskBetterAnalysis) -> Command:
        before = await self._before(conversation, task)
        request = IntakeRequest(
            model=task.model,
            # What a branch named when it was read first: the better analysis is one of the same files.
            revision=before.model.revision or task.revision,
            trust_remote_code=task.trust_remote_code,
            depth="modules",
        )
        async with self._at_once.setdefault(task.runner, asyncio.Semaphore(_AT_ONCE)):
            answer = await self._runners.get(task.runner).intake(request)
        return BetterAnalysis(task.of, self._clock.now(), before, answer.model_analysis, answer.digest)

    async def _before(self, conversation: int, task: AskBetterAnalysis) -> ModelAnalysis:
        document = await self._store.read(lambda reader: reader.artifact(conversation, "analysis", task.number))
        if document is None:
            raise NotFound("artifact_missing", f"The analysis {task.number} of thread {conversation} is missing.")
        return read_document(ModelAnalysis, document)


def _may_change(error: BotError) -> bool:
    if isinstance(error, RunnerError):
        return error.code in _ASKED_AGAIN
    return error.code not in {"artifact_missing", "strange_answer"}
