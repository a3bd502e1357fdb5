"""What can be looked at: the list of threads, one thread, all threads with filters, help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse

from bot.cards.form import Form
from bot.conversation.person import Person
from bot.errors import NotFound, StoreError
from bot.platforms.contract import Said
from bot.platforms.web.filling import filled
from bot.platforms.web.filters import OPEN, STATES, read_filters
from bot.platforms.web.library import Library
from bot.platforms.web.live import Live, TooManyFollowers
from bot.platforms.web.problems import PageProblem
from bot.platforms.web.rendering import Templates
from bot.platforms.web.standing import BUSY, WAITING, sayable, standing, standing_of, steps
from bot.platforms.web.views import asked_what, entries, listed, platform_name
from bot.store.records import Conversation, HistoryQuery, HistoryRow, StoredEvent

EXAMPLES = (
    "quantize Qwen/Qwen3-8B to fp8",
    "quantize /models/Llama-3.1-8B to int4_wo_128 with awq",
    "quantize Qwen/Qwen3-30B-A3B to mxfp4 and exclude lm_head",
)
_NUMBERS = frozenset(str(number) for number in range(1, len(EXAMPLES) + 1))
_MOST_OPEN = 200
_RECENT = 25


class Pages:
    """The handlers of what is only read."""

    def __init__(self, library: Library, templates: Templates, live: Live) -> None:
        self._library = library
        self._templates = templates
        self._live = live

    async def index(self, request: Request) -> Response:
        """The list of threads, and the form for a new request."""
        told = await self.told(request)
        if told is not None and told.conversation is not None:
            return RedirectResponse(f"/threads/{told.conversation}?told={told.id}", 303)
        example = request.query_params.get("example", "")
        text = EXAMPLES[int(example) - 1] if example in _NUMBERS else ""
        return await self.index_page(request, told=told, text=text)

    async def index_page(
        self, request: Request, status: int = 200, told: StoredEvent | None = None, text: str = "", problem: str = ""
    ) -> Response:
        """The list; `text` is what was typed already."""
        if told is not None and not text and isinstance(told.event.what, Said):
            text = told.event.what.text
        context = await self._threads(request) | {"told": told, "text": text, "problem": problem}
        return self._templates.page(request, "index.html", status, examples=EXAMPLES, **context)

    async def index_fragment(self, request: Request) -> Response:
        """What of the list may change while it is open."""
        return self._templates.page(
            request, "threads_fragment.html", told=await self.told(request), **await self._threads(request)
        )

    async def thread(self, request: Request) -> Response:
        """One thread."""
        return await self.thread_page(request, await self.wanted(request))

    async def thread_page(
        self, request: Request, conversation: Conversation, status: int = 200, text: str = "", problem: str = ""
    ) -> Response:
        """A thread; `text` is a reply that was typed already, `problem` why it could not be taken."""
        context = await self._thread(request, conversation)
        return self._templates.page(request, "thread.html", status, text=text, problem=problem, **context)

    async def thread_fragment(self, request: Request) -> Response:
        """What of a thread may change while it is open."""
        context = await self._thread(request, await self.wanted(request))
        return self._templates.page(request, "entries.html", problem="", **context)

    async def edit(self, request: Request) -> Response:
        """The form with everything that may be changed now."""
        conversation = await self.wanted(request)
        return await self.edit_page(request, conversation, await self.form(conversation))

    async def edit_page(
        self,
        request: Request,
        conversation: Conversation,
        form: Form,
        status: int = 200,
        typed: Mapping[str, str] | None = None,
        errors: Mapping[str, str] | None = None,
        problem: str = "",
    ) -> Response:
        """The edit form, filled with what applies now; `typed` lies over it, `errors` say what was not understood."""
        wrong = errors or {}
        return self._templates.page(
            request,
            "edit.html",
            status,
            conversation=conversation,
            form=form,
            sections=filled(form, typed or {}),
            errors=defaultdict(str, wrong),
            wrong=[field for field in form.fields if field.name in wrong],
            problem=problem,
        )

    async def form(self, conversation: Conversation) -> Form:
        """What may be changed of a conversation. Raises PageProblem when nothing may."""
        form = await self._library.form(conversation.id)
        if form is None:
            raise PageProblem(
                409,
                f"Nothing of thread {conversation.id} can be changed by a form at the moment.",
                "Go back to the thread: it says what it waits for.",
            )
        return form

    async def runs(self, request: Request) -> Response:
        """Everything that was ever asked for, with filters."""
        filters = read_filters(request.query_params)
        rows: list[HistoryRow] = []
        if filters.query is not None:
            rows = list(await self._library.history(filters.query))
        more = filters.query is not None and len(rows) == filters.query.limit
        rows = rows[: filters.shown]
        return self._templates.page(
            request,
            "runs.html",
            200 if filters.query is not None else 400,
            filters=filters,
            runs=listed(rows, _reader(request)),
            older=filters.older(rows[-1].id) if more and rows else "",
            kinds=[(kind, standing_of(kind).label) for kind in STATES if kind != OPEN],
        )

    async def help(self, request: Request) -> Response:
        """What can be said and done."""
        return self._templates.page(request, "help.html", examples=EXAMPLES)

    async def health(self, _: Request) -> Response:
        """Whether the page and its database work; for supervisors."""
        try:
            await self._library.check()
        except StoreError as error:
            return JSONResponse({"status": "failing", "code": error.code}, 503)
        return JSONResponse({"status": "ok"})

    async def live(self, request: Request) -> Response:
        """Hints that something changed: of one thread, or of any."""
        followed = (await self.wanted(request)).id if "id" in request.path_params else None
        if self._live.full():
            raise TooManyFollowers
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._live.stream(followed), media_type="text/event-stream", headers=headers)

    async def wanted(self, request: Request) -> Conversation:
        """The conversation that the address names. Raises NotFound."""
        name: str = request.path_params["id"]
        known = name.isascii() and name.isdecimal() and len(name) <= 15
        conversation = await self._library.conversation(int(name)) if known else None
        if conversation is None:
            raise NotFound("no_thread", f"There is no thread {name[:40]}.", "The list of threads has those that are.")
        return conversation

    async def told(self, request: Request) -> StoredEvent | None:
        """What came of the thing that this reader just did, as the address says; None for other people's."""
        number = request.query_params.get("told", "")
        if not (number.isascii() and number.isdecimal() and len(number) <= 15):
            return None
        stored = await self._library.event(int(number))
        return stored if stored is not None and stored.event.person.id == _reader(request).id else None

    async def _threads(self, request: Request) -> dict[str, Any]:
        me = _reader(request)
        tab = request.query_params.get("show", "all")
        open_rows = list(await self._library.history(HistoryQuery(state="open", limit=_MOST_OPEN)))
        waiting = [row for row in open_rows if row.state in WAITING and self._library.may_decide(me, row)]
        running = [row for row in open_rows if row.state in BUSY]
        ended: list[HistoryRow] = []
        if tab == "waiting":
            shown = waiting
        elif tab == "running":
            shown = running
        else:
            tab, shown = "all", open_rows
            known = {row.id for row in open_rows}
            recent = await self._library.history(HistoryQuery(limit=_RECENT))
            ended = [row for row in recent if row.id not in known]
        mine = {row.id for row in waiting}
        return {
            "tab": tab,
            "tabs": (
                ("all", "All", None),
                ("waiting", "Waiting for me", len(waiting)),
                ("running", "Running", len(running)),
            ),
            "open_threads": listed(sorted(shown, key=lambda row: (row.id not in mine, -row.id)), me),
            "ended_threads": listed(ended, me),
            "waiting_for_me": mine,
            "more_open": len(open_rows) == _MOST_OPEN,
        }

    async def _thread(self, request: Request, conversation: Conversation) -> dict[str, Any]:
        told = await self.told(request)
        return {
            "conversation": conversation,
            "entries": entries(conversation, await self._library.thread(conversation.id), _reader(request)),
            "standing": standing(conversation.state),
            "steps": steps(conversation.state),
            "platform": platform_name(conversation.place.platform),
            "run": getattr(conversation.state, "run", None),
            "scheme": _scheme(conversation),
            "asked": asked_what(conversation),
            "says": " · ".join(sayable(conversation.state)),
            "told": told if told is not None and told.conversation == conversation.id else None,
        }


def _reader(request: Request) -> Person:
    person: Person = request.state.person
    return person


def _scheme(conversation: Conversation) -> str:
    plan = getattr(conversation.state, "plan", None)
    asked = conversation.state.request.choices.get("global_scheme")
    return plan.scheme if plan is not None else asked if isinstance(asked, str) else ""
