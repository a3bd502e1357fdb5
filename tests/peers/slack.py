"""A local Slack: the Web API with state, Socket Mode, and signed delivery over HTTP. It runs in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import hmac
import itertools
import json
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.peers.slack_api import SlackApi
from tests.peers.slack_faults import Faults
from tests.peers.slack_people import Delivery, People
from tests.peers.slack_record import Record, parsed
from tests.peers.slack_state import SIGNING_SECRET, Refused, Whispered, Workspace

_T = TypeVar("_T")

ACK_SECONDS = 3.0
_START_SECONDS = 10.0


@dataclass(frozen=True)
class Ack:
    """What the app said to a delivery, and after how many seconds. `payload` is empty for a bare one."""

    payload: dict[str, Any]
    seconds: float


class SlackPeer:
    """One workspace. `app_url` is where the app takes signed requests; empty for Socket Mode."""

    def __init__(self) -> None:
        self.workspace = Workspace()
        self.record = Record()
        self.app_url = ""
        self.deaf = False
        self.hellos = 0
        self._sockets: list[web.WebSocketResponse] = []
        self._turn = itertools.count()
        self._acks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(_START_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self.faults = Faults()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_post("/response/{name}", self._response)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.origin = f"http://{host}:{port}"
        self.api_base_url = f"{self.origin}/api/"
        self.api = SlackApi(self.workspace, self.origin)
        self.people = People(self.workspace, self.origin)
        self._session = aiohttp.ClientSession()
        self._started.set()
        await self._stopped.wait()
        for socket in self._sockets:
            await socket.close()
        await self._session.close()
        await runner.cleanup()

    def close(self) -> None:
        """End the server."""
        self._loop.call_soon_threadsafe(self.faults.released.set)
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_START_SECONDS)

    @property
    def connected(self) -> int:
        """How many sockets are open."""
        return sum(not socket.closed for socket in self._sockets)

    def submit(self, work: Coroutine[Any, Any, _T]) -> concurrent.futures.Future[_T]:
        """Have the server's loop do something. Asynchronous tests wrap the future, so that their loop goes on."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def deliver(self, delivery: Delivery, attempt: int = 0) -> concurrent.futures.Future[Ack | None]:
        """Hand something to the app once; what it said within three seconds, or None."""
        return self.submit(self._deliver(delivery, attempt))

    def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the app to come again, then close what it had."""
        self.submit(self._disconnect(reason)).result(5)

    def drop_sockets(self) -> None:
        """As a network does that fails."""
        self.submit(self._drop()).result(5)

    async def _deliver(self, delivery: Delivery, attempt: int) -> Ack | None:
        began = time.monotonic()
        sent = self._signed(delivery, attempt) if self.app_url else self._enveloped(delivery, attempt)
        try:
            async with asyncio.timeout(ACK_SECONDS):
                payload = await sent
        except (TimeoutError, aiohttp.ClientError):
            return None
        return Ack(payload, time.monotonic() - began) if payload is not None else None

    async def _enveloped(self, delivery: Delivery, attempt: int) -> dict[str, Any] | None:
        name = f"envelope-{self.workspace.number()}"
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._acks[name] = answer
        envelope = {
            "envelope_id": name,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
            "retry_attempt": attempt,
            "retry_reason": "timeout" if attempt else "",
        }
        open_ones = [socket for socket in self._sockets if not socket.closed]
        if not open_ones:
            return None
        await open_ones[next(self._turn) % len(open_ones)].send_json(envelope)
        return await answer

    async def _signed(self, delivery: Delivery, attempt: int) -> dict[str, Any] | None:
        kind = "application/x-www-form-urlencoded"
        match delivery.kind:
            case "events_api":
                body, kind = json.dumps(delivery.payload), "application/json"
            case "interactive":
                body = urlencode({"payload": json.dumps(delivery.payload)})
            case "slash_commands":
                body = urlencode(delivery.payload)
        headers = {"Content-Type": kind, **signature(body)}
        if attempt:
            headers |= {"X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": "http_timeout"}
        async with self._session.post(self.app_url, data=body.encode(), headers=headers) as answer:
            if answer.status != 200:
                return None
            text = await answer.text()
            if "json" in answer.headers.get("Content-Type", ""):
                payload: dict[str, Any] = json.loads(text)
                return payload
            return {"text": text} if text else {}

    async def _disconnect(self, reason: str) -> None:
        for socket in [socket for socket in self._sockets if not socket.closed]:
            await socket.send_json({"type": "disconnect", "reason": reason})

    async def _drop(self) -> None:
        for socket in self._sockets:
            await socket.close()

    async def _call(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.content_type == "application/json":
            body = await request.json()
        else:
            body = {**request.query, **await request.post()}
        body = parsed(body)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.record.add(method, body)
        fault = self.faults.next(method, body)
        match fault.kind if fault is not None else None:
            case "error":
                assert fault is not None
                return web.json_response({"ok": False, "error": fault.error})
            case "ratelimited":
                assert fault is not None
                headers = {"Retry-After": f"{fault.seconds:g}"}
                return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
            case "broken":
                return web.Response(status=503, text="Service unavailable")
            case "hangs":
                await self.faults.released.wait()
        answer = self._answered(method, token, body)
        if fault is not None and fault.kind == "lost" and request.transport is not None:
            request.transport.close()
        return web.json_response(answer, headers={"x-oauth-scopes": ",".join(sorted(self.api.scopes))})

    def _answered(self, method: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"ok": True} | self.api.answer(method, token, body)
        except Refused as refused:
            return {"ok": False, "error": refused.error} | refused.beside

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self.api.sockets:
            raise web.HTTPForbidden
        self.api.sockets.discard(ticket)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        self._sockets.append(socket)
        await socket.send_json({"type": "hello", "num_connections": self.connected, "connection_info": {}})
        self.hellos += 1
        async for message in socket:
            if message.type == aiohttp.WSMsgType.PING and not self.deaf:
                await socket.pong(message.data)
            elif message.type == aiohttp.WSMsgType.TEXT:
                self._acked(json.loads(message.data))
        return socket

    def _acked(self, answer: dict[str, Any]) -> None:
        waiting = self._acks.pop(answer.get("envelope_id", ""), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.get("payload") or {})

    async def _upload(self, request: web.Request) -> web.Response:
        self.record.add("upload", {"file": request.match_info["file"]})
        self.workspace.contents[request.match_info["file"]] = await request.read()
        return web.Response(text="OK")

    async def _response(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.record.add("response_url", body)
        self.workspace.whispers.append(Whispered("", "", body.get("text", "")))
        return web.json_response({"ok": True})


def signature(body: str, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """The headers by which an app tells Slack from others."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{stamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}


@contextmanager
def running_slack() -> Iterator[SlackPeer]:
    """A peer, and nothing left of it afterwards."""
    peer = SlackPeer()
    with contextlib.closing(peer):
        yield peer
