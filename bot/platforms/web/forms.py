"""What people do on the page: every form becomes one event, and the answer leads back to where it shows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bot.cards.card import Action, ActionKind, decode_action
from bot.cards.form import FormErrors, read_form
from bot.clock import Clock
from bot.conversation.person import Person, Place
from bot.conversation.state import asked_at
from bot.errors import StoreError
from bot.platforms.contract import Clicked, Edited, Event, Inlet, Receipt, Said
from bot.platforms.web.adapter import CHANNEL, NAME
from bot.platforms.web.body import LONGEST_TEXT, Sent, read_sent, too_long
from bot.platforms.web.filling import misplaced, touched
from bot.platforms.web.library import Library
from bot.platforms.web.live import Live
from bot.platforms.web.pages import Pages
from bot.platforms.web.problems import PageProblem
from bot.platforms.web.rendering import Kept, Templates
from bot.platforms.web.views import asked_what, find_button
from bot.store.records import Conversation, StoredEvent

WAIT_SECONDS = 3.0
_MOST_REMEMBERED = 1000
_NOTHING = "nothing"  # is no digest: words for a page that asked nothing say yes to nothing
NOT_RECORDED = "This was not recorded: the database cannot keep it at the moment."
OUTDATED_FORM = (
    "The thread went on while this form was open, so nothing was sent. The form now shows what applies, with your "
    "changes in it: look at them, then send it again."
)
SEND_AGAIN = "Send it again; the same thing sent twice counts once."


class Forms:
    """The handlers of what is sent."""

    def __init__(
        self,
        inlet: Inlet,
        library: Library,
        templates: Templates,
        live: Live,
        pages: Pages,
        clock: Clock,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._inlet = inlet
        self._library = library
        self._templates = templates
        self._live = live
        self._pages = pages
        self._clock = clock
        self._wait = wait_seconds
        # What was sent lately: the second half of a double click finds a thread that went on, and must not be told off.
        self._taken: OrderedDict[str, int] = OrderedDict()

    async def ask(self, request: Request) -> Response:
        """A new request. Leads to its thread, or back with the sentence that says why there is none."""
        sent = await read_sent(request)
        text = sent.one("text").strip()
        key = sent.key(text)
        if not text:
            return await self._pages.index_page(request, 422, problem="Say which model shall be quantized.")
        if len(text) > LONGEST_TEXT:
            return await self._pages.index_page(request, 413, text=text, problem=too_long().message)
        kept = Kept("/requests", text, (("key", sent.one("key")),))
        event = Event(
            key=key,
            person=_sender(request),
            place=Place(platform=NAME, channel=CHANNEL),
            at=self._clock.now(),
            what=Said(text=text),
        )
        settled, receipt = await self._take(event, kept)
        if settled is not None and settled.conversation is not None:
            return RedirectResponse(f"/threads/{settled.conversation}", 303)
        return RedirectResponse(f"/?told={receipt.id}#told", 303)

    async def reply(self, request: Request) -> Response:
        """Words in a thread."""
        conversation = await self._pages.wanted(request)
        sent = await read_sent(request)
        text = sent.one("text").strip()
        key = sent.key(text)
        if not text:
            return await self._pages.thread_page(request, conversation, 422, problem="Write something first.")
        if len(text) > LONGEST_TEXT:
            return await self._pages.thread_page(request, conversation, 413, text, too_long().message)
        if (known := self._taken.get(key)) is not None:
            return _back(conversation, known)
        if sent.one("asked") != asked_what(conversation):
            # Words are taken for the card that asks now, and this one the person has not seen.
            problem = "The thread went on while you wrote. Look at what it asks now, then send your words again."
            return await self._pages.thread_page(request, conversation, 409, text, problem)
        opened = await self._opened(conversation)
        if opened is None:
            problem = "The thread is not open on its platform yet, so it takes no words. Try again in a moment."
            return await self._pages.thread_page(request, conversation, 409, text, problem)
        kept = Kept(request.url.path, text, (("key", sent.one("key")), ("asked", sent.one("asked"))))
        asked = asked_at(conversation.state)  # what the page showed, as was seen above; by now more may have happened
        return await self._send(request, opened, key, Said(text=text, asked=asked[1] if asked else _NOTHING), kept)

    async def act(self, request: Request) -> Response:
        """A button. One that asks first gets its question answered on a page of its own when there was no dialog."""
        conversation = await self._pages.wanted(request)
        sent = await read_sent(request)
        action = _action(sent, conversation)
        encoded = action.encoded()
        key = sent.key(encoded)
        if action.kind is ActionKind.EDIT:
            return RedirectResponse(f"/threads/{conversation.id}/edit", 303)
        if sent.one("confirmed") != "yes":
            there = find_button(await self._library.thread(conversation.id), encoded)
            if there is not None and there[1].confirm:
                card, button = there
                return self._templates.page(
                    request, "confirm.html", conversation=conversation, card=card, button=button, key=sent.one("key")
                )
        hidden = (("key", sent.one("key")), ("action", encoded), ("confirmed", sent.one("confirmed")))
        kept = Kept(request.url.path, hidden=hidden)
        return await self._send(request, conversation, key, Clicked(action=action), kept)

    async def edit(self, request: Request) -> Response:
        """The edit form. What does not fit is said at its field, and everything typed stays."""
        conversation = await self._pages.wanted(request)
        sent = await read_sent(request)
        form = await self._pages.form(conversation)
        opened_from = sent.one("digest")
        typed = touched(form, sent)
        key = sent.key(opened_from, *(f"{name}={value}" for name, value in typed.items()))

        def again(status: int, problem: str = "", errors: Mapping[str, str] | None = None) -> Awaitable[Response]:
            return self._pages.edit_page(request, conversation, form, status, typed, errors, problem)

        if (known := self._taken.get(key)) is not None:
            return _back(conversation, known)
        if opened_from != form.digest:
            return await again(409, OUTDATED_FORM)
        if any(len(value) > LONGEST_TEXT for value in typed.values()):
            return await again(413, too_long().message)
        changes = read_form(form, typed)
        wrong = misplaced(form, typed) | (changes.errors if isinstance(changes, FormErrors) else {})
        if wrong or isinstance(changes, FormErrors):
            return await again(422, errors=wrong)
        if changes.nothing:
            return await again(422, "Nothing was changed, so nothing was sent.")
        try:
            what = Edited(conversation=conversation.id, digest=opened_from, changes=changes)
            return await self._send(request, conversation, key, what, None)
        except PageProblem as problem:
            return await again(problem.status, f"{problem.message} {problem.hint}")

    async def _send(
        self, request: Request, conversation: Conversation, key: str, what: Said | Clicked | Edited, kept: Kept | None
    ) -> Response:
        event = Event(key=key, person=_sender(request), place=conversation.place, at=self._clock.now(), what=what)
        _, receipt = await self._take(event, kept)
        return _back(conversation, receipt.id)

    async def _take(self, event: Event, kept: Kept | None) -> tuple[StoredEvent | None, Receipt]:
        """Hand an event over, then wait a moment for what comes of it; None when that takes longer."""
        try:
            receipt = await self._inlet.receive(event)
        except StoreError:
            raise PageProblem(503, NOT_RECORDED, SEND_AGAIN, kept) from None
        self._taken[event.key] = receipt.id
        if len(self._taken) > _MOST_REMEMBERED:
            self._taken.popitem(last=False)

        async def settled() -> StoredEvent | None:
            stored = await self._library.event(receipt.id)
            return stored if stored is not None and stored.outcome is not None else None

        try:
            return await self._live.until(settled, self._wait), receipt
        except StoreError:
            return None, receipt  # it is recorded; the next page says what came of it

    async def _opened(self, conversation: Conversation) -> Conversation | None:
        """The conversation once its platform has opened the thread: before that, words in it belong to nothing."""

        async def opened() -> Conversation | None:
            there = await self._library.conversation(conversation.id)
            return there if there is not None and there.place.thread else None

        return conversation if conversation.place.thread else await self._live.until(opened, self._wait)


def _back(conversation: Conversation, inbox: int) -> Response:
    """To the thread, which says what came of the event."""
    return RedirectResponse(f"/threads/{conversation.id}?told={inbox}#told", 303)


def _action(sent: Sent, conversation: Conversation) -> Action:
    """The action of a sent button, which has to be one of this thread."""
    action = decode_action(sent.one("action"))
    if action is None:
        raise PageProblem(400, "This button is not one of this page.", "Load the thread again and use its buttons.")
    if action.conversation != conversation.id:
        raise PageProblem(400, "This button belongs to another thread.", "Load the thread again and use its buttons.")
    return action


def _sender(request: Request) -> Person:
    person: Person = request.state.person
    return person
