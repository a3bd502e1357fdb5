"""A browser without windows: it sends what a real one would, and reads pages as a parser does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, TypeVar

import httpx
from starlette.applications import Starlette

from bot.clock import Clock
from bot.conversation.person import Person
from bot.platforms.web import Access, access, make_app
from bot.platforms.web.guard import HEADERS
from tests.bot.conversation.samples import ADA, NOON
from tests.bot.platforms.web.desk import Desk

HOME = "http://127.0.0.1:8321"
SHORT = 0.05  # seconds that a form waits, in tests where nothing comes of it

_T = TypeVar("_T")
_VOID = frozenset({"area", "br", "hr", "img", "input", "link", "meta"})


class Noon:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> Any:
        """Noon, until a test says otherwise."""
        return self.at


def local_access(person: Person = ADA) -> Access:
    """A page for this machine alone, where everybody is `person`."""
    return Access(person, (), access("127.0.0.1", 8321).names, 8321)


@dataclass(eq=False)
class Element:
    """One element of a page, with the text inside it."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None = None
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What can be read in it, with blanks as one."""
        return re.sub(r"\s+", " ", "".join(self.pieces)).strip()

    @property
    def classes(self) -> list[str]:
        """Its classes."""
        return self.attributes.get("class", "").split()

    def within(self, tag: str) -> Element | None:
        """The nearest element of that kind around it."""
        around = self.parent
        while around is not None and around.tag != tag:
            around = around.parent
        return around


class Page(HTMLParser):
    """A page. Fails for one whose elements are not closed as they were opened, or whose names occur twice."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self._open, f"never closed: {[element.tag for element in self._open]}"
        names = [element.attributes["id"] for element in self.elements if "id" in element.attributes]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Part of HTMLParser."""
        assert len({name for name, _ in attrs}) == len(attrs), f"<{tag}> has an attribute twice: {attrs}"
        element = Element(tag, {name: value or "" for name, value in attrs}, self._open[-1] if self._open else None)
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Part of HTMLParser."""
        raise AssertionError(f"<{tag}/> is no HTML: {attrs}")

    def handle_endtag(self, tag: str) -> None:
        """Part of HTMLParser."""
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        """Part of HTMLParser."""
        for element in self._open:
            element.pieces.append(data)

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Elements of a kind with these attributes; `class_` is one of the classes."""
        wanted = attributes.pop("class_", None)
        return [
            element
            for element in self.elements
            if (not tag or element.tag == tag)
            and (wanted is None or wanted in element.classes)
            and all(element.attributes.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag: str = "", **attributes: str) -> Element:
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of <{tag} {attributes}>"
        return found[0]

    def fields(self, form: Element) -> dict[str, str]:
        """What a form would send as it stands."""
        sent: dict[str, str] = {}
        for element in self.elements:
            name = element.attributes.get("name")
            owner = element.attributes.get("form")
            if not name or (element.within("form") is not form and (not owner or owner != form.attributes.get("id"))):
                continue
            match element.tag:
                case "input" if element.attributes.get("type") == "checkbox":
                    if "checked" in element.attributes:
                        sent[name] = element.attributes["value"]
                case "input":
                    sent[name] = element.attributes.get("value", "")
                case "textarea":
                    sent[name] = "".join(element.pieces).removeprefix("\n")
                case "select":
                    options = [one for one in self.all("option") if one.within("select") is element]
                    chosen = [one for one in options if "selected" in one.attributes] or options[:1]
                    sent[name] = chosen[0].attributes["value"]
        return sent

    def form(self, action: str) -> Element:
        """The only form that sends there."""
        return self.one("form", action=action)


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def page(self) -> Page:
        """As a page."""
        return Page(self.content.decode())

    @property
    def text(self) -> str:
        """What can be read on it."""
        return Page("<div>" + self.content.decode().removeprefix("<!doctype html>") + "</div>").elements[0].text

    @property
    def target(self) -> str:
        """Where it leads."""
        assert self.status == 303, (self.status, self.content[:300])
        return self.headers["location"]


class Browser:
    """Visits one page application. Cookies are kept as a browser keeps them."""

    def __init__(
        self,
        desk: Desk,
        access: Access | None = None,
        clock: Clock | None = None,
        wait_seconds: float = SHORT,
        monotonic: Any = None,
    ) -> None:
        self.desk = desk
        more = {"monotonic": monotonic} if monotonic else {}
        self.app: Starlette = make_app(
            desk, desk, access or local_access(), clock or Noon(), desk.live, wait_seconds=wait_seconds, **more
        )
        self.cookies = httpx.Cookies()
        self.client = ("127.0.0.1", 50_000)

    async def ask(self, method: str, path: str, **more: Any) -> Answer:
        """Send a request; redirects are not followed."""
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True, client=self.client)
        async with httpx.AsyncClient(transport=transport, base_url=HOME, cookies=self.cookies) as client:
            answer = await client.request(method, path, **more)
            self.cookies = client.cookies
        for name, value in HEADERS.items():
            assert answer.headers.get(name), name
            if name != "Content-Security-Policy":
                assert answer.headers[name] == value, name
        return Answer(answer.status_code, answer.headers, answer.content)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Open an address."""
        return run(self.ask("GET", path, headers=headers))

    def post(self, path: str, fields: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        """Send a form, as from a page of the application itself."""
        return run(self.post_later(path, fields, headers))

    async def post_later(
        self, path: str, fields: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The same in a test that does other things meanwhile."""
        own = {"Origin": HOME, "Sec-Fetch-Site": "same-origin"} if headers is None else headers
        return await self.ask("POST", path, data=fields, headers=own)

    def submit(self, page: Page, action: str, **typed: Any) -> Answer:
        """Fill in the form of a page that sends to `action`, and send it."""
        form = page.form(action)
        return self.post(action, page.fields(form) | typed)

    def follow(self, answer: Answer) -> Answer:
        """Go where an answer leads."""
        return self.get(answer.target.partition("#")[0])


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Do something asynchronous in a test that is not."""
    return asyncio.run(work)
