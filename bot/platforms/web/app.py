"""The page as an ASGI application: one table of addresses."""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from bot.clock import Clock
from bot.platforms.contract import Inlet
from bot.platforms.web.files import Files
from bot.platforms.web.forms import WAIT_SECONDS, Forms
from bot.platforms.web.guard import HEALTH, LOGIN, Guard
from bot.platforms.web.identity import Access
from bot.platforms.web.library import Library
from bot.platforms.web.live import Live
from bot.platforms.web.pages import Pages
from bot.platforms.web.problems import Handler, answering, unknown_address
from bot.platforms.web.rendering import Templates
from bot.platforms.web.sessions import Sessions


def make_app(
    inlet: Inlet,
    library: Library,
    access: Access,
    clock: Clock,
    live: Live,
    wait_seconds: float = WAIT_SECONDS,
    monotonic: Callable[[], float] = time.monotonic,
) -> Starlette:
    """The page.

    `live.changed` has to be called after every commit that shows: open pages, and forms that wait up to `wait_seconds`
    for what comes of them, look again only then. Call `live.close` before the server stops.
    """
    templates = Templates()
    pages = Pages(library, templates, live)
    forms = Forms(inlet, library, templates, live, pages, clock, wait_seconds)
    files = Files(library, pages)
    sessions = Sessions(access, templates, clock, monotonic)
    gets: dict[str, Handler] = {
        "/": pages.index,
        "/fragment": pages.index_fragment,
        "/live": pages.live,
        "/threads/{id}": pages.thread,
        "/threads/{id}/fragment": pages.thread_fragment,
        "/threads/{id}/live": pages.live,
        "/threads/{id}/edit": pages.edit,
        "/threads/{id}/files/{artifact}/{number}/{name}": files.document,
        "/threads/{id}/said/{event}": files.said,
        "/threads/{id}/run/log": files.log,
        "/threads/{id}/run/files/{name}": files.run_document,
        "/runs": pages.runs,
        "/help": pages.help,
        "/static/{name}": files.static,
        LOGIN: sessions.show,
        HEALTH: pages.health,
    }
    posts: dict[str, Handler] = {
        "/requests": forms.ask,
        "/threads/{id}/reply": forms.reply,
        "/threads/{id}/act": forms.act,
        "/threads/{id}/edit": forms.edit,
        LOGIN: sessions.enter,
        "/logout": sessions.leave,
    }
    unknown = unknown_address(templates)
    return Starlette(
        routes=[
            Route(path, answering(handler, templates), methods=[method])
            for method, table in (("GET", gets), ("POST", posts))
            for path, handler in table.items()
        ],
        middleware=[Middleware(Guard, access=access, templates=templates, clock=clock)],
        exception_handlers={404: unknown, 405: unknown},
    )
