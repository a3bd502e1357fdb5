"""Templates and static files of the page. Everything that a template is given is escaped."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from bot.cards import amounts, texts
from bot.conversation.person import Person
from bot.platforms.web.text import exact, told, when, words
from bot.platforms.web.views import grouped, new_key

HERE = Path(__file__).parent
STATIC = HERE / "static"


@dataclass(frozen=True)
class Kept:
    """What a person typed into a form that could not be taken: shown again, ready to be sent again."""

    action: str
    text: str = ""
    hidden: tuple[tuple[str, str], ...] = ()
    send: str = "Send again"


class Templates:
    """The page's templates, read once."""

    def __init__(self) -> None:
        self._environment = _environment()

    def page(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page, or a part of one. `me` is the reader; nobody on the pages before signing in."""
        me: Person | None = getattr(request.state, "person", None)
        signed_in: bool = getattr(request.state, "signed_in", False)
        shown = {"me": me, "signed_in": signed_in, "path": request.url.path, **context}
        return HTMLResponse(self._environment.get_template(name).render(shown), status)

    def problem(
        self, request: Request, status: int, message: str, hint: str = "", kept: Kept | None = None
    ) -> HTMLResponse:
        """A page that says in a sentence what is in the way."""
        title = _TITLES.get(status, "This did not work")
        return self.page(request, "problem.html", status, title=title, message=message, hint=hint, kept=kept)


_TITLES = {
    403: "Not from here",
    404: "Not here",
    405: "Not like this",
    409: "Not yet",
    413: "Too long",
    421: "Not under this name",
    429: "Too many tries",
    502: "The runner does not answer",
    503: "The database does not answer",
}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "words": words,
        "told": told,
        "exact": exact,
        "when": when,
        "plain": texts.plain,
        "doubts": texts.exact,
        "grouped": grouped,
        "size": amounts.size,
        "measured": amounts.number,
        "change": amounts.change,
    }
    environment.globals |= {"static": _addresses(), "new_key": new_key}
    return environment


def _addresses() -> dict[str, str]:
    """Static files by name, under addresses that change with their content, so that browsers may keep them."""
    return {
        path.name: f"/static/{path.name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
        for path in sorted(STATIC.iterdir())
        if path.is_file()
    }
