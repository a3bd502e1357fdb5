"""An answer is taken only when it is about what was asked, and is what its digest says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bot.errors import RunnerForeign
from bot.service.runner_client import RunnerClient
from schemas.api import (
    IntakeAnswer,
    IntakeRequest,
    ManifestAnswer,
    ManifestRequest,
    PlanAnswer,
    PlanRequest,
    RunSubmission,
)
from schemas.digest import digest
from schemas.runs import Run, RunState
from tests import samples
from tests.bot.service.asking import AT, PATIENT, TOKEN, Work, client_of, failing_with
from tests.peers.raw_http import Asked, Reply, answer, listening, saying, telling


def _run(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "id": "run-1", "key": "key", "state": RunState.QUEUED, "since": AT, "submitted_at": AT, "model": "m",
        "scheme": "fp8", "output_dir": "/o", "manifest_digest": digest(samples.manifest()),
    }  # fmt: skip
    return Run(**{**values, **changes})


_SUBMISSION = RunSubmission(run_manifest=samples.manifest(), approvals=[], key="key")
_WRONG = "0" * 64


async def intake(client: RunnerClient) -> Any:
    return await client.intake(IntakeRequest(model="m"))


async def plan(client: RunnerClient) -> Any:
    return await client.plan(PlanRequest(model_analysis=samples.analysis()))


async def manifest(client: RunnerClient) -> Any:
    asked = ManifestRequest(model_analysis=samples.analysis(), quant_plan=samples.plan(), output_dir="/o")
    return await client.manifest(asked)


async def submit(client: RunnerClient) -> Any:
    return await client.submit(_SUBMISSION)


async def run(client: RunnerClient) -> Any:
    return await client.run("run-1")


async def log(client: RunnerClient) -> Any:
    return await client.log("run-1")


def _intake_answer(**changes: Any) -> IntakeAnswer:
    analysis = samples.analysis()
    values: dict[str, Any] = {"workspace_context": samples.workspace(), "model_analysis": analysis}
    return IntakeAnswer(**{**values, "digest": digest(analysis), **changes})


def _plan_answer(**changes: Any) -> PlanAnswer:
    made = samples.plan()
    values: dict[str, Any] = {"quant_plan": made, "decisions": [], "findings": [], "estimates": made.estimates}
    return PlanAnswer(**{**values, "digest": digest(made), **changes})


def _manifest_answer(**changes: Any) -> ManifestAnswer:
    made = samples.manifest(**changes)
    return ManifestAnswer(run_manifest=made, digest=digest(made))


def _bound_to(**changes: Any) -> ManifestAnswer:
    return _manifest_answer(inputs=samples.manifest().inputs.model_copy(update=changes))


GOOD = [
    (_intake_answer(), intake),
    (_plan_answer(), plan),
    (_manifest_answer(), manifest),
    (_run(), submit),
    (_run(), run),
]


@pytest.mark.parametrize(("document", "work"), GOOD, ids=[work.__name__ for _, work in GOOD])
def test_what_fits_is_taken(document: Any, work: Work) -> None:
    async def whole() -> Any:
        async with listening(telling(document)) as peer, client_of(peer.url, PATIENT) as client:
            return await work(client)

    assert asyncio.run(whole()) == document


SPOILT = [
    (_intake_answer(digest=_WRONG), intake, "the analysis is another one than its digest says"),
    (_plan_answer(digest=_WRONG), plan, "the plan is another one"),
    (ManifestAnswer(run_manifest=samples.manifest(), digest=_WRONG), manifest, "the manifest is another one"),
    (_bound_to(analysis_digest=_WRONG), manifest, "the manifest's analysis is another one"),
    (_bound_to(plan_digest=_WRONG), manifest, "the manifest's plan is another one"),
    (_run(key="other"), submit, "the run of another key"),
    (_run(manifest_digest=_WRONG), submit, "the run's manifest is another one"),
    (_run(id="run-2"), run, "asked for run-1 and answered with run-2"),
]


@pytest.mark.parametrize(("document", "work", "words"), SPOILT, ids=[words for _, _, words in SPOILT])
def test_an_answer_about_something_else_is_refused(document: Any, work: Work, words: str) -> None:
    error = failing_with(telling(document), work, PATIENT)
    assert (type(error), error.code) == (RunnerForeign, "strange_answer")
    assert words in error.message


def _piece(content: bytes, following: str = "3", size: str = "3", complete: str = "true") -> Reply:
    headers = {"X_Next_Offset": following, "X_Log_Size": size, "X_Log_Complete": complete}
    return saying(answer(content, 200, "text/plain; charset=utf-8", **headers))


def test_a_piece_of_a_log_says_where_it_belongs() -> None:
    async def whole() -> Any:
        async with listening(_piece(b"\xff\x00a")) as peer, client_of(peer.url, PATIENT) as client:
            piece = await client.log("run-1", 7)
            assert peer.asked[0].path == "/v1/runs/run-1/log?offset=7"
            return piece.content, piece.next_offset, piece.complete

    assert asyncio.run(whole()) == (b"\xff\x00a", 3, True)


@pytest.mark.parametrize(
    "reply",
    [
        _piece(b"x" * (1 << 20) + b"x"),
        _piece(b"abc", following=""),
        _piece(b"abc", following="-1"),
        _piece(b"abc", following="9" * 40),
        _piece(b"abc", size="many"),
        _piece(b"abc", complete="yes"),
    ],
)
def test_a_log_that_is_none_is_refused(reply: Reply) -> None:
    error = failing_with(reply, log, PATIENT)
    assert (type(error), error.code) == (RunnerForeign, "strange_answer")


def test_what_is_sent() -> None:
    async def whole() -> list[Asked]:
        async with listening(telling(_run())) as peer, client_of(peer.url, PATIENT) as client:
            await client.cancel("run-1", "a" * 300, "b" * 2000)
            await submit(client)
            return peer.asked

    cancelled, submitted = asyncio.run(whole())
    assert (cancelled.method, cancelled.path) == ("POST", "/v1/runs/run-1/cancel")
    assert json.loads(cancelled.body) == {"by": "a" * 200, "reason": "b" * 1000}
    assert cancelled.headers["authorization"] == f"Bearer {TOKEN}"
    assert cancelled.headers["ptq-api-version"] == "1"
    assert cancelled.headers["accept-encoding"] == "identity"
    assert RunSubmission.model_validate_json(submitted.body) == _SUBMISSION
