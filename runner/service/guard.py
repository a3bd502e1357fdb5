"""What every request passes before it is looked at: the token and the API's version."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from runner.service.problems import problem_response
from schemas.api import API_VERSION, Problem

VERSION_HEADER = "PTQ-API-Version"


class Guard:
    """ASGI middleware that refuses before anything of the request is read."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it with a problem."""
        problem = self._against(Headers(scope=scope)) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await problem_response(problem)(scope, receive, send)

    def _against(self, headers: Headers) -> Problem | None:
        if self._token is not None:
            given = headers.get("authorization", "").removeprefix("Bearer ").strip()
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return Problem(
                    title="Unauthorized",
                    status=401,
                    code="unauthorized",
                    detail="This runner wants a token, and the one given is absent or wrong.",
                    hint="Send it as `Authorization: Bearer TOKEN`.",
                )
        version = headers.get(VERSION_HEADER)
        if version is not None and version != str(API_VERSION):
            return Problem(
                title="Conflict",
                status=409,
                code="api_version",
                detail=f"The caller speaks version {version[:20]} of the API, this runner speaks {API_VERSION}.",
                hint="Bring both to the same release of quark-ptq-bot.",
            )
        return None
