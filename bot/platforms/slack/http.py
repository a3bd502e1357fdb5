"""HTTP mode: Slack's signed requests, and what supervisors ask."""

from __future__ import annotations

from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from bot.platforms.slack.metrics import Metrics

EVENTS = "/slack/events"
_MOST_BYTES = 1 << 20


def web_app(app: AsyncApp, metrics: Metrics) -> Starlette:
    """Where Slack posts. Nothing else is there: a reverse proxy with TLS stands before it."""
    handler = AsyncSlackRequestHandler(app)

    async def events(request: Request) -> Response:
        size = request.headers.get("content-length", "")
        if not size.isdecimal() or int(size) > _MOST_BYTES:
            return PlainTextResponse("A request of Slack says its size, which is under 1 MiB.", 413)
        return await handler.handle(request)

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def numbers(_: Request) -> Response:
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    return Starlette(
        routes=[
            Route(EVENTS, events, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
            Route("/metrics", numbers, methods=["GET"]),
        ]
    )
