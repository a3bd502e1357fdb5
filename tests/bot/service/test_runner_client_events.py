"""The stream of events: resumed without a gap, and given up when nobody is at its other end any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.errors import BotError, RunnerAway, RunnerForeign
from bot.service.event_reader import News
from bot.service.runner_client import RunnerClient, Timeouts
from schemas.api import Health
from schemas.runs import RunEvent, RunState, StateChanged
from tests.e2e.host import running_host
from tests.peers.raw_http import Asked, RawPeer, Reply, answer, hanging, listening, saying, telling
from tests.waiting import until

AT = datetime(2026, 1, 2, tzinfo=UTC)
HEALTH = Health(status="ok", version="0.1.0", started_at=AT)
LATER = HEALTH.model_copy(update={"started_at": AT + timedelta(hours=1)})
EVENT = RunEvent(run="run-1", number=1, at=AT, what=StateChanged(state=RunState.QUEUED))
QUICK = Timeouts(connect=5, health=0.5, silence=0.05)

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    return f"{len(text.encode()):x}\r\n{text}\r\n".encode()


def event(place: str) -> bytes:
    return chunk(f"id: {place}\nevent: run\ndata: {EVENT.model_dump_json()}\n\n")


def routed(stream: Reply, *healths: Reply) -> Reply:
    """A peer that streams so, and says of its health each of these in turn, then always the last."""
    left = list(healths)

    async def reply(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/v1/events":
            await stream(asked, writer)
        else:
            await (left.pop(0) if len(left) > 1 else left[0])(asked, writer)

    return reply


def silent_after(*parts: bytes) -> Reply:
    async def reply(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await saying(_HEAD, *parts)(asked, writer)
        await hanging(asked, writer)

    return reply


@asynccontextmanager
async def listened(reply: Reply, timeouts: Timeouts = QUICK) -> AsyncIterator[tuple[RunnerClient, RawPeer]]:
    async with listening(reply) as peer:
        client = RunnerClient("gpu1", peer.url, timeouts=timeouts)
        try:
            yield client, peer
        finally:
            await client.close()


def heard_until_it_ends(
    reply: Reply, timeouts: Timeouts = QUICK, after: str | None = None
) -> tuple[list[News], BotError]:
    """What is heard of a peer, and why it ends."""

    heard: list[News] = []

    async def listen(client: RunnerClient) -> None:
        async with aclosing(client.events(after)) as news:
            async for one in news:
                heard.append(one)  # noqa: PERF401 - what was heard before it ended counts

    async def whole() -> BotError:
        async with listened(reply, timeouts) as (client, _):
            with pytest.raises(BotError) as caught:
                await listen(client)
            return caught.value

    return heard, asyncio.run(whole())


def test_events_of_a_daemon_are_resumed_without_a_gap(tmp_path: Path) -> None:
    async def listen(client: RunnerClient, after: str | None, most: int) -> list[News]:
        heard: list[News] = []
        async with aclosing(client.events(after)) as news:
            async for one in news:
                heard.append(one)
                if len(heard) > most:
                    break
        return heard

    async def whole(url: str) -> None:
        client = RunnerClient("gpu1", url)
        first = asyncio.create_task(listen(client, None, 2))
        await until(lambda: client.known_health is not None)
        run = await asyncio.to_thread(lambda: host.submit(host.manifest()))
        ended = await asyncio.to_thread(host.wait_for, run.id, RunState.SUCCEEDED)
        heard = [news.event.number for news in await first if news.event]
        place = (await first)[-1].place
        rest = await listen(client, place, ended.last_event - heard[-1])
        numbers = heard + [news.event.number for news in rest if news.event]
        assert numbers == list(range(numbers[0], ended.last_event + 1))
        assert rest[0] == News(place, None)

        await asyncio.to_thread(host.kill)
        await asyncio.to_thread(host.start)
        after_restart = await listen(client, rest[-1].place, 1)
        assert [news.event for news in after_restart] == [None, None]
        assert after_restart[1].place not in {None, rest[-1].place}
        await client.close()

    with running_host(tmp_path / "h") as host:
        asyncio.run(whole(host.settings.listen_url))


def test_what_is_heard_and_where_to_go_on() -> None:
    async def whole() -> None:
        async with listened(routed(silent_after(event("e.1"), event("e.2")), telling(HEALTH))) as (client, peer):
            async with aclosing(client.events("e.0")) as news:
                heard = [await anext(news) for _ in range(3)]
            assert heard == [News("e.0", None), News("e.1", EVENT), News("e.2", EVENT)]
            places = [asked.headers.get("last-event-id") for asked in peer.asked if asked.path == "/v1/events"]
            assert places == ["e.0"]

    asyncio.run(whole())


def test_silence_of_a_runner_that_lives_is_no_loss() -> None:
    async def whole() -> int:
        goes_on = asyncio.Event()

        async def stream(asked: Asked, writer: asyncio.StreamWriter) -> None:
            await saying(_HEAD)(asked, writer)
            await goes_on.wait()
            writer.write(event("e.1"))
            await hanging(asked, writer)

        async with listened(routed(stream, telling(HEALTH))) as (client, peer):
            async with aclosing(client.events()) as news:
                assert await anext(news) == News(None, None)
                waiting = asyncio.create_task(anext(news))
                await until(lambda: len(peer.asked) >= 5)
                goes_on.set()
                assert await waiting == News("e.1", EVENT)
            return len(peer.asked)

    assert asyncio.run(whole()) >= 5


DEAD = {
    "it does not answer": (hanging, RunnerAway, "runner_slow"),
    "it hangs up": (saying(), RunnerAway, "runner_broken"),
    "another daemon answers": (telling(LATER), RunnerAway, "runner_broken"),
    "something else answers": (saying(answer(b"<html>", 200, "text/html")), RunnerForeign, "strange_answer"),
}


@pytest.mark.parametrize(("then", "kind", "code"), DEAD.values(), ids=DEAD.keys())
def test_silence_of_a_runner_that_is_gone_is_noticed(then: Reply, kind: type[BotError], code: str) -> None:
    began = time.monotonic()
    heard, error = heard_until_it_ends(routed(silent_after(event("e.1")), telling(HEALTH), then))
    assert heard == [News(None, None), News("e.1", EVENT)]
    assert (type(error), error.code) == (kind, code)
    assert time.monotonic() - began < 5


ENDS = {
    "ended in order": (saying(_HEAD, event("e.1"), b"0\r\n\r\n"), RunnerAway, "runner_broken"),
    "cut off": (saying(_HEAD, event("e.1")), RunnerAway, "runner_broken"),
    "nonsense": (saying(_HEAD, event("e.1"), chunk("event: run\ndata: 1\n\n")), RunnerForeign, "strange_answer"),
    "no chunks": (saying(_HEAD, event("e.1"), b"hello\r\n"), RunnerForeign, "strange_answer"),
}


@pytest.mark.parametrize(("stream", "kind", "code"), ENDS.values(), ids=ENDS.keys())
def test_a_stream_that_ends_is_an_error(stream: Reply, kind: type[BotError], code: str) -> None:
    heard, error = heard_until_it_ends(routed(stream, telling(HEALTH)), Timeouts())
    assert (type(error), error.code) == (kind, code)
    assert News("e.1", EVENT) in heard


BEGINNINGS = {
    "it never begins": (hanging, "runner_slow"),
    "a page": (saying(answer(b"<html>", 200, "text/html")), "strange_answer"),
    "packed": (saying(_HEAD.replace(b"Transfer", b"Content-Encoding: gzip\r\nTransfer"), event("e")), "strange_answer"),
    "not found": (saying(answer(b"", 404, "text/plain")), "strange_answer"),
    "refused": (saying(answer(b"", 401, "text/plain")), "wrong_token"),
}


@pytest.mark.parametrize(("stream", "code"), BEGINNINGS.values(), ids=BEGINNINGS.keys())
def test_a_stream_that_does_not_begin_is_an_error(stream: Reply, code: str) -> None:
    assert heard_until_it_ends(routed(stream, telling(HEALTH)))[1].code == code


def test_whoever_stops_listening_leaves_nothing_open() -> None:
    async def drips(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await saying(_HEAD)(asked, writer)
        while True:
            writer.write(chunk(": alive\n"))
            await writer.drain()
            await asyncio.sleep(0)

    async def whole() -> None:
        async with listened(routed(drips, telling(HEALTH))) as (client, peer):
            before = len(asyncio.all_tasks())

            async def listen() -> None:
                async with aclosing(client.events()) as news:
                    async for _ in news:
                        pass

            listening_to = asyncio.create_task(listen())
            await until(lambda: peer.open == 1 and any(asked.path == "/v1/events" for asked in peer.asked))
            listening_to.cancel()
            await asyncio.wait({listening_to})
            assert listening_to.cancelled()
            await until(lambda: peer.open == 0)
            await until(lambda: len(asyncio.all_tasks()) <= before)

    asyncio.run(whole())
