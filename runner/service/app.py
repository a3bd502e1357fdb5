"""The runner's HTTP API: one table of endpoints, from which routes and the OpenAPI description are made."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from runner import __version__
from runner.errors import BadRequest, TooLarge
from runner.runs.gpus import GpuPool
from runner.runs.redaction import Redactor
from runner.runs.table import RunTable
from runner.service.guard import Guard
from runner.service.metrics import metrics_text
from runner.service.openapi import Endpoint, Handler, describe
from runner.service.problems import on_error, problem_response, shown_problem
from runner.service.workflow import Workflow
from runner.settings import RunnerSettings
from schemas.api import (
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
    QueueRequest,
    RunList,
    RunSubmission,
)
from schemas.documents import read_document
from schemas.runs import Run

Body = TypeVar("Body", bound=BaseModel)
Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

_LOG_PIECE_BYTES = 1 << 20


class Api:
    """The handlers. Each reads its request, asks the workflow or the table of runs, and answers."""

    def __init__(self, settings: RunnerSettings, workflow: Workflow, runs: RunTable, pool: GpuPool | None) -> None:
        """`pool` shares out this host's GPUs; None where another scheduler does that elsewhere."""
        self._settings = settings
        self._workflow = workflow
        self._runs = runs
        self._pool = pool
        self._started = time.monotonic()
        self._started_at = workflow.clock.now()

    def endpoints(self) -> list[Endpoint]:
        """Every operation, once."""
        plain, prometheus, events = "text/plain", "text/plain; version=0.0.4", "text/event-stream"
        return [
            Endpoint("GET", "/v1/health", self.health, "Whether the daemon lives", Health),
            Endpoint("GET", "/v1/environment", self.environment, "Facts of this host", EnvironmentAnswer),
            Endpoint("GET", "/v1/capabilities", self.capabilities, "What may be asked", Capabilities),
            Endpoint("POST", "/v1/intake", self.intake, "Step 1: analyse a model", IntakeAnswer, IntakeRequest),
            Endpoint("POST", "/v1/plan", self.plan, "Step 2: plan a quantization", PlanAnswer, PlanRequest),
            Endpoint("POST", "/v1/manifest", self.manifest, "Step 3: the command", ManifestAnswer, ManifestRequest),
            Endpoint("POST", "/v1/runs", self.submit, "Step 4: run what was approved", Run, RunSubmission, status=201),
            Endpoint("GET", "/v1/runs", self.list_runs, "Runs, newest first", RunList, query=("state", "limit")),
            Endpoint("GET", "/v1/runs/{id}", self.show, "One run", Run),
            Endpoint("GET", "/v1/runs/{id}/log", self.log, "The log from a byte offset", plain, query=("offset",)),
            Endpoint(
                "GET", "/v1/runs/{id}/files/{name}", self.file, "A document of the run", "application/octet-stream"
            ),
            Endpoint("POST", "/v1/runs/{id}/cancel", self.cancel, "End a run for good", Run, CancelRequest),
            Endpoint("POST", "/v1/runs/{id}/priority", self.set_priority, "Another place", Run, PriorityRequest),
            Endpoint("GET", "/v1/queue", self.queue, "What waits, what computes, and on what", Queue),
            Endpoint("POST", "/v1/queue", self.set_queue, "Open, pause or drain the queue", Queue, QueueRequest),
            Endpoint("GET", "/v1/events", self.events, "Events as they happen", events),
            Endpoint("GET", "/metrics", self.metrics, "Counters for Prometheus", prometheus),
        ]

    async def health(self, _: Request) -> Response:
        """Answers also while the interpreter is still being looked at."""
        counts = self._runs.counts()
        return _json(
            Health(
                status="ok" if self._workflow.ready else "warming",
                version=__version__,
                started_at=self._started_at,
                queued=counts.queued,
                active=counts.active,
            )
        )

    async def environment(self, _: Request) -> Response:
        """env_context, pytorch_install_result and quark_install_result."""
        return _json(await self._workflow.environment())

    async def capabilities(self, _: Request) -> Response:
        """The catalogue and the runner's own law."""
        return _json(await self._workflow.capabilities())

    async def intake(self, request: Request) -> Response:
        """Step 1."""
        return _json(await self._workflow.intake(await self._body(request, IntakeRequest)))

    async def plan(self, request: Request) -> Response:
        """Step 2."""
        return _json(await self._workflow.plan(await self._body(request, PlanRequest)))

    async def manifest(self, request: Request) -> Response:
        """Step 3."""
        return _json(await self._workflow.manifest(await self._body(request, ManifestRequest)))

    async def submit(self, request: Request) -> Response:
        """Step 4: 201 for a new run, 200 for the run of that key."""
        run, new = await self._runs.submit(await self._body(request, RunSubmission))
        return _json(run, 201 if new else 200)

    async def list_runs(self, request: Request) -> Response:
        """Runs, newest first."""
        limit = _whole_number(request, "limit", 100)
        return _json(RunList(runs=self._runs.newest(request.query_params.get("state"), limit)))

    async def show(self, request: Request) -> Response:
        """One run."""
        return _json(await self._runs.show(request.path_params["id"]))

    async def log(self, request: Request) -> Response:
        """A piece of the log; X-Next-Offset says where the next one begins."""
        offset = _whole_number(request, "offset", 0)
        piece = await self._runs.log(request.path_params["id"], offset, _LOG_PIECE_BYTES)
        headers = {"X-Next-Offset": str(piece.next_offset), "X-Log-Size": str(piece.size)}
        headers["X-Log-Complete"] = "true" if piece.complete else "false"
        return Response(piece.content, media_type="text/plain; charset=utf-8", headers=headers)

    async def file(self, request: Request) -> Response:
        """One of the run's documents, by its exact name."""
        content = await self._runs.file(request.path_params["id"], request.path_params["name"])
        return Response(content, media_type="application/octet-stream")

    async def cancel(self, request: Request) -> Response:
        """Asking twice is the same as asking once."""
        body = await self._body(request, CancelRequest, empty={})
        return _json(await self._runs.cancel(request.path_params["id"], body.by, body.reason))

    async def set_priority(self, request: Request) -> Response:
        """Only a run that waits has a place."""
        body = await self._body(request, PriorityRequest)
        return _json(self._runs.set_priority(request.path_params["id"], body.priority, body.by))

    async def queue(self, _: Request) -> Response:
        """Runs in the order of their start, and every GPU as it stands."""
        return _json(await self._queue())

    async def set_queue(self, request: Request) -> Response:
        """Asking twice is the same as asking once."""
        body = await self._body(request, QueueRequest)
        self._runs.set_mode(body.mode, body.by, body.reason)
        return _json(await self._queue())

    async def _queue(self) -> Queue:
        standing = self._runs.standing()
        users = {name: run.id for run in standing.active for name in run.gpus}
        gpus = await self._pool.standings() if self._pool else []
        told = [gpu.model_copy(update={"run": users.get(gpu.name, "")}) for gpu in gpus]
        return standing.model_copy(update={"gpus": told})

    async def events(self, request: Request) -> Response:
        """Server-sent events; `event: reset` says that the reader has to ask for its runs again."""
        place = request.headers.get("last-event-id")
        return StreamingResponse(self._event_lines(place), media_type="text/event-stream")

    async def metrics(self, _: Request) -> Response:
        """Prometheus text."""
        text = metrics_text(self._runs.counts(), time.monotonic() - self._started)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def _event_lines(self, place: str | None) -> AsyncIterator[str]:
        yield ": connected\n\n"
        async for sent in self._runs.stream.read(place):
            kind, data = ("reset", "{}") if sent.event is None else ("run", sent.event.model_dump_json())
            yield f"id: {sent.id}\nevent: {kind}\ndata: {data}\n\n"

    async def _body(self, request: Request, model: type[Body], empty: Any = None) -> Body:
        limit = self._settings.limits.request_bytes
        declared = request.headers.get("content-length", "")
        content = bytearray()
        if not declared.isdecimal() or int(declared) <= limit:
            async for chunk in request.stream():
                content += chunk
                if len(content) > limit:
                    break
        if len(content) > limit or (declared.isdecimal() and int(declared) > limit):
            raise TooLarge(
                "request_too_large",
                f"The request is larger than the {limit} bytes that this runner reads.",
                "Documents of this workflow are small; limits.request_bytes in runner.yaml is the bound.",
            )
        return read_document(model, _parsed(bytes(content)) if content else empty)


def make_app(api: Api, settings: RunnerSettings, redactor: Redactor, lifespan: Lifespan) -> Starlette:
    """The ASGI application."""
    endpoints = api.endpoints()
    description = describe(endpoints, __version__)

    async def openapi(_: Request) -> Response:
        return JSONResponse(description)

    routes = [Route(e.path, _answering(e.handler, redactor), methods=[e.method]) for e in endpoints]
    routes.append(Route("/openapi.json", openapi, methods=["GET"]))
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, token=settings.token)],
        exception_handlers={404: on_error, 405: on_error},
        lifespan=lifespan,
    )


def _answering(handler: Handler, redactor: Redactor) -> Handler:
    """The handler with its errors turned into problems, so that none reaches the server as a traceback."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:  # the edge of the program: every error becomes a problem and is logged
            return problem_response(shown_problem(request, error, redactor))

    return answer


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadRequest("bad_json", f"The request's body is not JSON: {error}.") from None


def _whole_number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise BadRequest("bad_query", f"{name} has to be a whole number from 0.")
    return int(text)


def _json(document: BaseModel, status: int = 200) -> Response:
    return Response(document.model_dump_json(), status_code=status, media_type="application/json")
