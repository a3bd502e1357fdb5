"""One runner, as the bot asks it: every answer is checked, and every failure is a sentence for people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel

from bot.errors import BadSetting, BotError, NotFound
from bot.service.capabilities_memory import CapabilitiesMemory
from bot.service.connection import LARGEST_FILE, LARGEST_LOG_PIECE, Connection, Content
from bot.service.event_reader import EventReader, News, StrangeEvent, patiently
from schemas.api import (
    API_VERSION,
    CancelRequest,
    Capabilities,
    EnvironmentAnswer,
    Health,
    IntakeAnswer,
    IntakeRequest,
    ManifestAnswer,
    ManifestRequest,
    PlanAnswer,
    PlanRequest,
    PriorityRequest,
    Queue,
    QueueMode,
    QueueRequest,
    RunList,
    RunSubmission,
)
from schemas.digest import digest
from schemas.runs import QueuePriority, Run


@dataclass(frozen=True)
class Timeouts:
    """Seconds, each for a whole exchange. The first catalogue of a runner takes a minute, longer on a busy host.

    `silence` is how long a stream of events may say nothing before the runner is asked whether it still lives.
    """

    connect: float = 5.0
    health: float = 5.0
    question: float = 330.0
    submit: float = 60.0
    document: float = 30.0
    silence: float = 20.0


@dataclass(frozen=True)
class LogPiece:
    """A piece of a run's log. Offsets count bytes; `complete` says that nothing more will ever come after it."""

    content: bytes
    next_offset: int
    size: int
    complete: bool


class RunnerClient:
    """Asks one runner. Raises RunnerAway, RunnerForeign and RunnerError, with the codes of `Failures`.

    Asking is safe to repeat: intake, plan and manifest only read, and a submission is one run by its key.
    """

    def __init__(
        self,
        name: str,
        url: str,
        token: str | None = None,
        timeouts: Timeouts | None = None,
        *,
        ca: Path | None = None,
    ) -> None:
        self.name = name
        self.url = url
        self._seconds = timeouts or Timeouts()
        self._connection = Connection(name, url, token, self._seconds.connect, ca)
        self._capabilities = CapabilitiesMemory(name, self._ask_capabilities)
        self._health: Health | None = None
        self._trouble: BotError | None = None

    async def close(self) -> None:
        """Close whatever is open."""
        await self._capabilities.close()
        await self._connection.close()

    @property
    def known_health(self) -> Health | None:
        """What it said of itself last; None before the first time."""
        return self._health

    @property
    def known_trouble(self) -> BotError | None:
        """Why it did not answer when it was asked for its health last; None where it did, and before the first time."""
        return self._trouble

    @property
    def known_capabilities(self) -> Capabilities | None:
        """What it offered last, without asking; None before the first time."""
        return self._capabilities.known

    async def health(self) -> Health:
        """Whether it lives. Another daemon than before means that its offer is asked for again."""
        try:
            health = await self._connection.document("GET", "/v1/health", Health, self._seconds.health)
            if health.api_version != API_VERSION:
                raise self._connection.fail.other_version(health.version, str(health.api_version))
        except BotError as error:
            self._trouble = error
            raise
        self._trouble = None
        before, self._health = self._health, health
        if before is None or _identity(before) != _identity(health):
            self._capabilities.outdate()
        return health

    async def capabilities(self, fresh: bool = False) -> Capabilities:
        """What may be asked of it. What it said last is given at once, while a newer answer is on its way.

        `fresh` waits for an answer that is asked for now.
        """
        return await self._capabilities.get(fresh=fresh)

    def refresh(self) -> None:
        """It was away, and its offer may have changed: ask for it again, in the background."""
        if not self._capabilities.asking:  # what is being asked for was asked for after it came back
            self._capabilities.outdate()

    def renew(self) -> None:
        """Ask for its offer again, in the background, where it could not be had some time ago."""
        self._capabilities.renew()

    async def environment(self) -> EnvironmentAnswer:
        """Facts of its host."""
        return await self._connection.document("GET", "/v1/environment", EnvironmentAnswer, self._seconds.question)

    async def intake(self, request: IntakeRequest) -> IntakeAnswer:
        """Step 1."""
        answer = await self._connection.document("POST", "/v1/intake", IntakeAnswer, self._seconds.question, request)
        await self._check_digest("the analysis", answer.model_analysis, answer.digest)
        return answer

    async def plan(self, request: PlanRequest) -> PlanAnswer:
        """Step 2. A plan that cannot run is answered too: its findings say by what it is blocked."""
        answer = await self._connection.document("POST", "/v1/plan", PlanAnswer, self._seconds.question, request)
        await self._check_digest("the plan", answer.quant_plan, answer.digest)
        return answer

    async def manifest(self, request: ManifestRequest) -> ManifestAnswer:
        """Step 3: the exact command for exactly this analysis and this plan."""
        seconds = self._seconds.question
        answer = await self._connection.document("POST", "/v1/manifest", ManifestAnswer, seconds, request)
        await self._check_digest("the manifest", answer.run_manifest, answer.digest)
        inputs = answer.run_manifest.inputs
        await self._check_digest("the manifest's analysis", request.model_analysis, inputs.analysis_digest)
        await self._check_digest("the manifest's plan", request.quant_plan, inputs.plan_digest)
        return answer

    async def submit(self, submission: RunSubmission) -> Run:
        """Step 4. The same key is the same run, however often it is sent."""
        run = await self._connection.document("POST", "/v1/runs", Run, self._seconds.submit, submission)
        if run.key != submission.key:
            raise self._connection.fail.strange(f"it answered with the run of another key, {run.id[:80]}")
        await self._check_digest("the run's manifest", submission.run_manifest, run.manifest_digest)
        return run

    async def runs(self, limit: int = 200) -> list[Run]:
        """The latest runs, newest first."""
        path = f"/v1/runs?limit={limit}"
        return (await self._connection.document("GET", path, RunList, self._seconds.document)).runs

    async def run(self, run: str) -> Run:
        """How a run stands."""
        return self._same(run, await self._connection.document("GET", _path(run), Run, self._seconds.document))

    async def cancel(self, run: str, by: str, reason: str = "") -> Run:
        """End a run for good. Asking twice is the same as asking once."""
        request = CancelRequest(by=by[:200] or "somebody", reason=reason[:1000])
        path = f"{_path(run)}/cancel"
        return self._same(run, await self._connection.document("POST", path, Run, self._seconds.document, request))

    async def queue(self) -> Queue:
        """What waits, what computes, and on what."""
        return await self._connection.document("GET", "/v1/queue", Queue, self._seconds.document)

    async def set_queue(self, mode: QueueMode, by: str, reason: str = "") -> Queue:
        """Open, pause or drain its queue. Asking twice is the same as asking once."""
        request = QueueRequest(mode=mode, by=by[:200] or "somebody", reason=reason[:1000])
        return await self._connection.document("POST", "/v1/queue", Queue, self._seconds.document, request)

    async def set_priority(self, run: str, priority: QueuePriority, by: str) -> Run:
        """Give a run that waits another place."""
        request = PriorityRequest(priority=priority, by=by[:200] or "somebody")
        path = f"{_path(run)}/priority"
        return self._same(run, await self._connection.document("POST", path, Run, self._seconds.document, request))

    async def log(self, run: str, offset: int = 0) -> LogPiece:
        """At most a megabyte of the log, from a byte offset."""
        content = await self._connection.content(
            "GET", f"{_path(run)}/log?offset={offset}", "text/plain", self._seconds.document, LARGEST_LOG_PIECE
        )
        following, size = _number(content, "X-Next-Offset"), _number(content, "X-Log-Size")
        complete = content.headers.get("X-Log-Complete")
        if following is None or size is None or complete not in {"true", "false"}:
            raise self._connection.fail.strange("it sent a piece of a log without saying where it belongs")
        return LogPiece(content.body, following, size, complete == "true")

    async def file(self, run: str, name: str) -> bytes:
        """One of the run's documents, by its exact name; at most 64 MiB."""
        path = f"{_path(run)}/files/{_segment(name)}"
        content = await self._connection.content(
            "GET", path, "application/octet-stream", self._seconds.document, LARGEST_FILE
        )
        return content.body

    async def events(self, after: str | None = None) -> AsyncGenerator[News, None]:
        """What happens to its runs, over one connection; the first news, without an event, says that it stands.

        `after` is the place of the latest news, to go on from there. It never ends by itself: it raises RunnerAway when
        the connection is lost, when the runner is silent and does not answer either, or when it is another daemon than
        at the beginning. Whoever reads connects again; close it with `aclosing`.
        """
        fail, reader = self._connection.fail, EventReader(after)
        headers = {"Last-Event-ID": after} if after else {}
        daemon = _identity(await self.health())
        async with self._connection.stream("/v1/events", "text/event-stream", self._seconds.health, headers) as pieces:
            yield News(after, None)
            with fail.told(self._seconds.silence):
                async with aclosing(patiently(pieces, self._seconds.silence)) as arriving:
                    async for piece in arriving:
                        if piece is None:
                            if _identity(await self.health()) != daemon:
                                raise fail.broken("another daemon stands in its place")
                            continue
                        try:
                            found = reader.read(piece)
                        except StrangeEvent as error:
                            raise fail.strange(str(error)) from None
                        for news in found:
                            yield news
            raise fail.broken("it ended the stream of its events")

    async def _ask_capabilities(self) -> Capabilities:
        return await self._connection.document("GET", "/v1/capabilities", Capabilities, self._seconds.question)

    async def _check_digest(self, what: str, document: BaseModel, said: str) -> None:
        """What people approve is named by its digest, so that this program computes it too. Raises RunnerForeign."""
        if await asyncio.to_thread(digest, document) != said:
            raise self._connection.fail.strange(f"{what} is another one than its digest says")

    def _same(self, asked: str, run: Run) -> Run:
        if run.id != asked:
            raise self._connection.fail.strange(f"it was asked for {asked[:80]} and answered with {run.id[:80]}")
        return run


@dataclass(frozen=True)
class Look:
    """How a runner answers just now: its health, or why there is none."""

    name: str
    url: str
    health: Health | None = None
    trouble: BotError | None = None


class Runners:
    """The runners of this bot, by name, in the order of its settings. Raises BadSetting without any."""

    def __init__(self, clients: Sequence[RunnerClient]) -> None:
        self._clients = {client.name: client for client in clients}
        if not clients or len(self._clients) < len(clients):
            raise BadSetting("bad_setting", "runners has to name at least one runner, and each name once.")

    def __iter__(self) -> Iterator[RunnerClient]:
        return iter(self._clients.values())

    @property
    def names(self) -> list[str]:
        """In order."""
        return list(self._clients)

    @property
    def first(self) -> RunnerClient:
        """The one that is meant where none is named."""
        return next(iter(self._clients.values()))

    def get(self, name: str) -> RunnerClient:
        """The runner of that name; the first for an empty one. Raises NotFound."""
        if not name:
            return self.first
        try:
            return self._clients[name]
        except KeyError:
            known = ", ".join(self._clients)
            raise NotFound("no_such_runner", f"There is no runner {name[:80]!r}.", f"There is {known}.") from None

    def known_capabilities(self) -> Capabilities | None:
        """The offer of the first runner that told its own; None before any did. Never waits."""
        return next((client.known_capabilities for client in self if client.known_capabilities), None)

    async def look(self) -> list[Look]:
        """How each one answers, all asked at once: its version, or that it is away or of another release."""
        return list(await asyncio.gather(*(_look(client) for client in self)))

    async def close(self) -> None:
        """Close all."""
        await asyncio.gather(*(client.close() for client in self))


async def _look(client: RunnerClient) -> Look:
    try:
        return Look(client.name, client.url, health=await client.health())
    except BotError as error:
        return Look(client.name, client.url, trouble=error)


def _identity(health: Health) -> tuple[object, ...]:
    """Which daemon it is."""
    return health.version, health.api_version, health.started_at


def _path(run: str) -> str:
    return f"/v1/runs/{_segment(run)}"


def _segment(text: str) -> str:
    """A name as one segment of a path, whatever is in it; dots alone would lead to another path."""
    return quote(text, safe="").replace(".", "%2E")


def _number(content: Content, header: str) -> int | None:
    text = content.headers.get(header, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
