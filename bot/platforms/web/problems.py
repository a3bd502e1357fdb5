"""Errors become pages with one sentence. None reaches a person, or the server, as a traceback."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bot.errors import BotError, NotFound, RunnerAway, RunnerError, RunnerForeign, StoreError
from bot.platforms.web.live import TooManyFollowers
from bot.platforms.web.rendering import Kept, Templates

log = logging.getLogger(__name__)

Handler = Callable[[Request], Awaitable[Response]]


class PageProblem(Exception):
    """A request that cannot be answered as it was meant. `kept` is what the person typed."""

    def __init__(self, status: int, message: str, hint: str = "", kept: Kept | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint
        self.kept = kept


def answering(handler: Handler, templates: Templates) -> Handler:
    """The handler with its errors turned into pages."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:  # the edge of the program: every error is shown in a sentence, and logged if ours
            shown = _shown(error, request)
            return templates.problem(request, shown.status, shown.message, shown.hint, shown.kept)

    return answer


def unknown_address(templates: Templates) -> Callable[[Request, Exception], Awaitable[Response]]:
    """What is answered where no page is, or no form of that kind."""

    async def answer(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        message = "There is no page at this address." if status == 404 else "This address does not take that."
        return templates.problem(request, status, message, "The list of threads leads to everything.")

    return answer


def _shown(error: Exception, request: Request) -> PageProblem:
    match error:
        case PageProblem():
            return error
        case NotFound():
            return PageProblem(404, error.message, error.hint)
        case StoreError():
            log.error("%s: %s", request.url.path, error.sentence())
            return PageProblem(503, error.message, error.hint or "Load the page again in a moment.")
        case RunnerAway() | RunnerForeign():
            return PageProblem(502, error.message, error.hint or "Try again in a moment.")
        case RunnerError():
            return PageProblem(404, error.message, error.hint)
        case TooManyFollowers():
            return PageProblem(503, "Too many pages are open.", "Close some; this one still works when it is reloaded.")
        case BotError():
            log.error("%s: %s", request.url.path, error.sentence())
            return PageProblem(500, error.message, error.hint)
        case _:
            log.exception("%s %s failed", request.method, request.url.path)
            return PageProblem(
                500, "A fault of the bot kept this page from being made; it was logged.", "Try it again."
            )
