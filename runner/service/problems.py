"""Errors as RFC 9457 problems: one sentence, a code, what to do next, and never a traceback."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from runner.errors import RunnerError
from runner.runs.redaction import Redactor
from schemas.api import Problem, problem_json
from schemas.documents import InvalidDocument, MissingDocument

log = logging.getLogger(__name__)


def problem_response(problem: Problem) -> Response:
    """The problem with its own media type."""
    return JSONResponse(problem_json(problem), status_code=problem.status, media_type="application/problem+json")


def problem_of(error: Exception) -> Problem:
    """What an error means to the caller."""
    match error:
        case RunnerError():
            return _problem(error.status, error.code, error.message, error.hint)
        case MissingDocument():
            return _problem(422, "missing_document", str(error), "Make it first and send it along.")
        case InvalidDocument():
            hint = "GET /openapi.json describes what is expected."
            return _problem(400, "bad_document", f"{error.name} is not valid at {error.path}: {error.problem}.", hint)
        case HTTPException():
            return _problem(error.status_code, "http", f"{error.detail}.")
        case _:
            return _problem(
                500,
                "internal",
                "The runner failed while it answered; nothing was changed by this request.",
                "The daemon's log has the details.",
            )


def shown_problem(request: Request, error: Exception, redactor: Redactor) -> Problem:
    """The problem as it may leave this host. A fault of the runner itself is logged with all its details."""
    problem = problem_of(error)
    if problem.code == "internal":
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    shown = {"detail": redactor.redact_text(problem.detail), "hint": redactor.redact_text(problem.hint)}
    return problem.model_copy(update=shown)


async def on_error(_: Request, error: Exception) -> Response:
    """Starlette's handler for places and methods that do not exist."""
    return problem_response(problem_of(error))


def _problem(status: int, code: str, detail: str, hint: str = "") -> Problem:
    return Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, code=code, hint=hint)
