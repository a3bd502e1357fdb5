"""What every request passes before a page sees it: the page's name, the sender's site, the person."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.clock import Clock
from bot.platforms.web.identity import Access, host_name
from bot.platforms.web.rendering import Templates

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it browsers hide the Origin of forms that are sent to this page itself.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
LOGIN = "/login"
HEALTH = "/health"

_THREAD = re.compile(r"/threads/[0-9]{1,15}(?=/|$)")
_LOOPBACK = ("127.", "::1", "::ffff:127.")


class Guard:
    """ASGI middleware. Whoever passes it is known to the pages as `request.state.person`."""

    def __init__(self, app: ASGIApp, access: Access, templates: Templates, clock: Clock) -> None:
        self._app = app
        self._access = access
        self._templates = templates
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        # Each request gets a state of its own: the server's is shared by all of them.
        scope["state"] = dict(scope.get("state") or {})
        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        if request.url.path == HEALTH:
            return None  # a supervisor may call by any name, and learns nothing but whether the page works
        host = request.headers.get("host", "")
        if not self._access.answers_to(host):
            name = host_name(host) or "without a name"
            return self._templates.problem(
                request,
                421,
                f"This page is not called {name[:100]}.",
                "Open it by the address that the bot printed, or add the name to web.names in bot.yaml.",
            )
        if request.method not in {"GET", "HEAD"} and not _from_this_page(request.headers, host):
            return self._templates.problem(
                request,
                403,
                "This was sent from another site, so it was not taken.",
                "Open the page itself and send it from there.",
            )
        return self._without_person(request)

    def _without_person(self, request: Request) -> Response | None:
        access, path = self._access, request.url.path
        if access.local is not None:
            if request.client is not None and not request.client.host.startswith(_LOOPBACK):
                return self._templates.problem(
                    request, 403, "This page serves only the machine that it runs on.", "Set web.token to open it."
                )
            request.state.person = access.local
            return None
        person = access.person_of_session(request.cookies.get(access.cookie, ""), self._clock.now())
        if person is not None:
            request.state.person, request.state.signed_in = person, True
            return None
        if path == LOGIN or path.startswith("/static/"):
            return None
        return login_page(self._templates, request, 401, wanted_page(request))


def login_page(templates: Templates, request: Request, status: int, wanted: str, message: str = "") -> Response:
    """Asks for the token.

    A browser does not send the session when a link on another site led here. Then the page asks once more by itself,
    which counts as coming from here.
    """
    led_here = request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site"
    again = f"{LOGIN}?next={quote(wanted, safe='')}" if led_here else ""
    return templates.page(request, "login.html", status, wanted=wanted, message=message, again=again)


def wanted_page(request: Request) -> str:
    """The page to show after signing in: what was asked for, or the thread in which something was sent."""
    if request.method == "GET" and not request.url.path.endswith(("/live", "/fragment")):
        return request.url.path + (f"?{request.url.query}" if request.url.query else "")
    thread = _THREAD.match(request.url.path)
    return thread[0] if thread else "/"


def safe_target(wanted: str) -> str:
    """An address on this page, whatever was asked for."""
    fits = re.fullmatch(r"/(?![/\\])[!-\[\]-~]*", wanted) is not None
    return wanted if fits and len(wanted) < 2000 and not wanted.startswith((LOGIN, "/logout")) else "/"


def _from_this_page(headers: Headers, host: str) -> bool:
    """Whether a browser says that a form was sent from this page. One that says nothing is not believed."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    if origin is not None:
        scheme, _, sender = origin.partition("://")
        return scheme in {"http", "https"} and sender.lower() == host.lower()
    return site is not None


class Attempts:
    """How often an address showed a wrong token lately. Times are monotonic seconds."""

    def __init__(
        self, monotonic: Callable[[], float], most: int = 10, window_seconds: float = 60.0, remembered: int = 1000
    ) -> None:
        self._monotonic = monotonic
        self._most = most
        self._window = window_seconds
        self._remembered = remembered
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._failed)

    def too_many(self, address: str) -> bool:
        """Whether the address has to wait."""
        since = self._monotonic() - self._window
        recent = [at for at in self._failed.get(address, []) if at > since]
        if recent:
            self._failed[address] = recent
        else:
            self._failed.pop(address, None)
        return len(recent) >= self._most

    def failed(self, address: str) -> None:
        """Count one more."""
        self._failed.setdefault(address, []).append(self._monotonic())
        self._failed.move_to_end(address)
        while len(self._failed) > self._remembered:
            self._failed.popitem(last=False)
