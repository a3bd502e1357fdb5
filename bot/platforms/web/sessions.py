"""Signing in and out."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.clock import Clock
from bot.platforms.web.body import read_sent
from bot.platforms.web.guard import Attempts, login_page, safe_target
from bot.platforms.web.identity import SESSION_LIFE, Access
from bot.platforms.web.rendering import Templates

WRONG = "No person of this page has that token."
MANY_WRONG = f"{WRONG} Many wrong ones came from here within a minute: copy it from the settings instead of trying."


class Sessions:
    """The handlers of the sign-in page. A token comes in by a form only: never in an address, never into a log."""

    def __init__(self, access: Access, templates: Templates, clock: Clock, monotonic: Callable[[], float]) -> None:
        self._access = access
        self._templates = templates
        self._clock = clock
        self._attempts = Attempts(monotonic)

    async def show(self, request: Request) -> Response:
        """The sign-in page, or the page that was wanted for somebody who is signed in."""
        wanted = safe_target(request.query_params.get("next", "/"))
        if getattr(request.state, "person", None) is not None:
            return RedirectResponse(wanted, 303)
        return login_page(self._templates, request, 200, wanted)

    async def enter(self, request: Request) -> Response:
        """Take a token, give a session."""
        sent = await read_sent(request)
        wanted = safe_target(sent.one("next") or "/")
        if getattr(request.state, "person", None) is not None and not self._access.holders:
            return RedirectResponse(wanted, 303)  # nobody needs a token here
        # The token first: behind a proxy a team shares one address, and the wrong tokens of one lock nobody else out.
        person = self._access.person_of_token(sent.one("token").strip())
        if person is None:
            return self._wrong(request, wanted)
        response = RedirectResponse(wanted, 303)
        response.set_cookie(
            self._access.cookie,
            self._access.session(person, self._clock.now()),
            max_age=int(SESSION_LIFE.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    def _wrong(self, request: Request, wanted: str) -> Response:
        """Nobody's token. Too many of them are told so, and are not counted on and on."""
        address = request.client.host if request.client else ""
        if self._attempts.too_many(address):
            return login_page(self._templates, request, 429, wanted, MANY_WRONG)
        self._attempts.failed(address)
        return login_page(self._templates, request, 401, wanted, WRONG)

    async def leave(self, _: Request) -> Response:
        """Forget the session in this browser."""
        response = RedirectResponse("/login", 303)
        response.delete_cookie(self._access.cookie, httponly=True, samesite="strict")
        return response
