"""The command line's own client of the daemon: the same API that everybody else uses."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel

from runner.errors import Broken, RunnerError
from runner.service.guard import VERSION_HEADER
from runner.service.tls import client_context
from runner.settings import RunnerSettings
from schemas.api import (
    API_VERSION,
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
    Problem,
    Queue,
    QueueRequest,
    RunList,
    RunSubmission,
)
from schemas.documents import InvalidDocument, MissingDocument, read_document
from schemas.runs import Run

Answer = TypeVar("Answer", bound=BaseModel)

# The first catalogue of an interpreter takes up to a minute and longer on a busy host.
_TIMEOUT = httpx.Timeout(330.0, connect=5.0)

# The runner is not there at the moment: the same question may be answered later.
ABSENT = frozenset({"runner_down", "runner_slow", "runner_broken"})


class Client:
    """Asks the daemon. Every failure is a RunnerError with a sentence for the person."""

    def __init__(self, settings: RunnerSettings) -> None:
        socket = settings.socket_path
        # Loading the certificates of all authorities takes a tenth of a second; none of them is asked here.
        tls = client_context(settings.tls.certificate) if settings.tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        transport = httpx.HTTPTransport(verify=tls, uds=str(socket) if socket else None)
        headers = {VERSION_HEADER: str(API_VERSION)}
        if settings.token:
            headers["Authorization"] = f"Bearer {settings.token}"
        self._url = settings.listen_url
        base = "http://runner" if socket else settings.listen_url
        self._http = httpx.Client(base_url=base, transport=transport, timeout=_TIMEOUT, headers=headers)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def health(self) -> Health:
        """Whether the daemon lives."""
        return self._ask("GET", "/v1/health", Health)

    def environment(self) -> EnvironmentAnswer:
        """Facts of the daemon's host."""
        return self._ask("GET", "/v1/environment", EnvironmentAnswer)

    def capabilities(self) -> Capabilities:
        """What may be asked of it."""
        return self._ask("GET", "/v1/capabilities", Capabilities)

    def intake(self, request: IntakeRequest) -> IntakeAnswer:
        """Step 1."""
        return self._ask("POST", "/v1/intake", IntakeAnswer, request)

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """Step 2."""
        return self._ask("POST", "/v1/plan", PlanAnswer, request)

    def manifest(self, request: ManifestRequest) -> ManifestAnswer:
        """Step 3."""
        return self._ask("POST", "/v1/manifest", ManifestAnswer, request)

    def submit(self, submission: RunSubmission) -> Run:
        """Step 4."""
        return self._ask("POST", "/v1/runs", Run, submission)

    def runs(self, state: str | None, limit: int) -> list[Run]:
        """Runs, newest first."""
        query = {"limit": str(limit)} | ({"state": state} if state else {})
        return self._ask("GET", f"/v1/runs?{httpx.QueryParams(query)}", RunList).runs

    def run(self, run: str) -> Run:
        """One run."""
        return self._ask("GET", f"/v1/runs/{_segment(run)}", Run)

    def cancel(self, run: str, by: str) -> Run:
        """End a run for good."""
        return self._ask("POST", f"/v1/runs/{_segment(run)}/cancel", Run, {"by": by})

    def queue(self) -> Queue:
        """What waits, what computes, and on what."""
        return self._ask("GET", "/v1/queue", Queue)

    def set_queue(self, request: QueueRequest) -> Queue:
        """Open, pause or drain the queue."""
        return self._ask("POST", "/v1/queue", Queue, request)

    def set_priority(self, run: str, request: PriorityRequest) -> Run:
        """Give a run that waits another place."""
        return self._ask("POST", f"/v1/runs/{_segment(run)}/priority", Run, request)

    def log(self, run: str, offset: int) -> tuple[bytes, int, bool]:
        """A piece of the log: its bytes, the next offset, and whether that was all there will ever be."""
        with self._failing():
            answer = self._http.get(f"/v1/runs/{_segment(run)}/log", params={"offset": offset})
        self._check(answer)
        try:
            following = int(answer.headers["X-Next-Offset"])
            return answer.content, following, answer.headers["X-Log-Complete"] == "true"
        except (KeyError, ValueError):
            raise self._strange("it sent a log without its place") from None

    def _ask(
        self, method: str, path: str, model: type[Answer], body: BaseModel | dict[str, Any] | None = None
    ) -> Answer:
        content = body.model_dump(mode="json", exclude_unset=True) if isinstance(body, BaseModel) else body
        with self._failing():
            answer = self._http.request(method, path, json=content)
        self._check(answer)
        try:
            return read_document(model, answer.json())
        except (ValueError, RecursionError, InvalidDocument, MissingDocument) as error:
            raise self._strange(str(error)) from None

    def _strange(self, why: str) -> Broken:
        return Broken(
            "strange_answer",
            f"What answers on {self._url} is not a runner of this version: {why}.",
            "Bring the daemon and this program to the same release.",
        )

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            if "SSL" in str(error):  # the library keeps the text of the error and not the error
                raise Broken(
                    "bad_certificate",
                    f"What listens on {self._url} does not show the certificate of tls.certificate: {error}.",
                    "Restart the runner after its certificate was renewed.",
                ) from None
            raise Broken(
                "runner_down", f"No runner listens on {self._url}.", "Start it with `ptq-runner serve`."
            ) from None
        except httpx.TimeoutException:
            raise Broken(
                "runner_slow", f"The runner on {self._url} did not answer in time.", "Look at its log."
            ) from None
        except httpx.HTTPError as error:
            raise Broken("runner_broken", f"Talking to {self._url} failed: {error}.", "Ask again.") from None
        except httpx.InvalidURL as error:
            raise Broken(
                "bad_address", f"{self._url} is no address of a runner: {error}.", "Correct `listen`."
            ) from None

    def _check(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        try:
            problem = Problem.model_validate(answer.json())
        except (ValueError, RecursionError):
            raise Broken(
                "strange_answer", f"{self._url} answered {answer.status_code} without saying why.", "Is it a runner?"
            ) from None
        raise RunnerError(problem.code, problem.detail, problem.hint)


def _segment(text: str) -> str:
    """A run's name as one segment of a path, whatever somebody typed."""
    return quote(text, safe="")
