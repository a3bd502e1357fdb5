"""Documents, pictures and outputs to take away."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse

from bot.cards.card import Attachment
from bot.errors import BotError, NotFound
from bot.platforms.contract import Said
from bot.platforms.web.library import Library
from bot.platforms.web.pages import Pages
from bot.platforms.web.rendering import STATIC
from bot.store.records import Shown

_PICTURES = {".png": "image/png"}
_STATIC = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_RUN_DOCUMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
# Nothing in a document is of this page: were a browser to show one, it would be in a world of its own.
_APART = {"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'"}


class Files:
    """The handlers of what is taken away."""

    def __init__(self, library: Library, pages: Pages) -> None:
        self._library = library
        self._pages = pages

    async def document(self, request: Request) -> Response:
        """A file of the thread, exactly as one of its messages names it."""
        conversation = await self._pages.wanted(request)
        parts = request.path_params
        number = parts["number"]
        wanted = (parts["artifact"], int(number) if number.isdecimal() and len(number) <= 9 else 0, parts["name"])
        for item in await self._library.thread(conversation.id):
            if isinstance(item, Shown) and isinstance(item.what, Attachment):
                file = item.what
                if (file.artifact, file.number, file.name) == wanted:
                    return _taken(file.name, await self._library.file(conversation.id, file))
        raise NotFound("no_file", f"Thread {conversation.id} has no such file.", "Its messages have the ones that are.")

    async def said(self, request: Request) -> Response:
        """All of what a person said, where the thread shows its beginning."""
        conversation = await self._pages.wanted(request)
        number = request.path_params["event"]
        stored = await self._library.event(int(number)) if number.isdecimal() and len(number) <= 15 else None
        if stored is None or stored.conversation != conversation.id or not isinstance(stored.event.what, Said):
            raise NotFound("no_words", f"Nothing of this number was said in thread {conversation.id}.", "Look there.")
        content = stored.event.what.text.encode("utf-8", "replace")
        return Response(content, media_type="text/plain; charset=utf-8", headers=_APART)

    async def log(self, request: Request) -> Response:
        """The output of the run so far, as text."""
        conversation = await self._pages.wanted(request)
        pieces = await self._library.run_log(conversation.id)
        return StreamingResponse(_to_the_end(pieces), media_type="text/plain; charset=utf-8", headers=_APART)

    async def run_document(self, request: Request) -> Response:
        """A document of the run."""
        conversation = await self._pages.wanted(request)
        name = request.path_params["name"]
        if _RUN_DOCUMENT.fullmatch(name) is None:
            raise NotFound("no_file", "A run has no document of such a name.", "Its thread links the ones that are.")
        return _taken(name, await self._library.run_file(conversation.id, name))

    async def static(self, request: Request) -> Response:
        """Style, script and icon. Their addresses change with their content, so browsers may keep them."""
        path = STATIC / request.path_params["name"]
        kind = _STATIC.get(path.suffix)
        if kind is None or path.parent != STATIC or not path.is_file():
            raise NotFound("no_file", "There is no such file.", "")
        kept = "private, max-age=31536000, immutable" if "v" in request.query_params else "no-cache"
        return FileResponse(path, media_type=kind, headers={"Cache-Control": kept})


async def _to_the_end(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces; where the runner stops answering in between, a last line that says so."""
    try:
        async for piece in pieces:
            yield piece
    except BotError as error:
        yield f"\n[The rest could not be read: {error.sentence()}]\n".encode("utf-8", "replace")


def _taken(name: str, content: bytes) -> Response:
    """A picture is shown; everything else is saved, whatever it claims to be."""
    suffix = "." + name.rpartition(".")[2].lower()
    picture = _PICTURES.get(suffix)
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:120]
    saved = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    headers = _APART | {"Content-Disposition": "inline" if picture else saved}
    return Response(content, media_type=picture or "application/octet-stream", headers=headers)
