"""The Hub: whether it answers, and whose token it is asked with. One request, bounded in time and size."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from runner import __version__
from runner.errors import RunnerError
from runner.host.hub_account import HubToken, endpoint, offline_by, token
from runner.service.doctor.subject import Subject, informs, told, warns
from schemas.artifacts.plan import Finding

_SECONDS = 15.0
_LARGEST = 1 << 18  # bytes of the answer


class _Answer(NamedTuple):
    status: int
    account: str = ""


def hub(subject: Subject) -> Iterator[Finding]:
    """Nothing where models.hub is false: then nothing here asks the Hub."""
    if not subject.settings.models.hub:
        return
    if variable := offline_by():
        message = f"models.hub is true, but {variable} in the runner's environment forbids to ask the Hub."
        yield warns(
            "hub_offline", message, f"Remove {variable} from the runner's environment, or set models.hub to false."
        )
        return
    try:
        address, held = endpoint(), token()
    except RunnerError as error:
        yield told(error)
        return
    seconds = min(_SECONDS, subject.settings.models.hub_timeout_seconds)
    try:
        answer = asyncio.run(_asked(address, held, seconds))
    except TimeoutError:
        yield _away(address, f"it did not answer within {seconds:g} s")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        yield _away(address, " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__)
    else:
        yield _judged(address, held, answer)


async def _asked(address: str, held: HubToken | None, seconds: float) -> _Answer:
    """Who the token belongs to, or without one whether anybody answers. No redirect is followed with a token."""
    headers = {"User-Agent": f"quark-ptq-bot/{__version__}", "Accept-Encoding": "identity"}
    if held is not None:
        headers["Authorization"] = f"Bearer {held.value}"
    path = "/api/whoami-v2" if held is not None else "/api/models?limit=1"
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds, headers=headers) as client,
        client.stream("GET", f"{address}{path}") as answer,
    ):
        content = bytearray()
        async for piece in answer.aiter_raw():
            content += piece
            if len(content) > _LARGEST:
                break
    return _Answer(answer.status_code, _name_in(bytes(content)) if answer.is_success else "")


def _judged(address: str, held: HubToken | None, answer: _Answer) -> Finding:
    if answer.status in {401, 403} and held is not None:
        message = f"{address} refuses {held.owner}: status {answer.status}."
        return warns("hub_token_refused", message, "Set HF_TOKEN in the runner's environment to a token that is valid.")
    if answer.status >= 500 or answer.status in {401, 403, 407, 429}:
        return _away(address, f"it answered with status {answer.status}")
    if held is None:
        message = f"{address} answers. There is no token, so that gated and private models cannot be read."
        return informs("hub", message, "Where they are wanted, set HF_TOKEN in the runner's environment.")
    account = f" as {answer.account}" if answer.account else ", without saying whose it is"
    return informs("hub", f"{address} answers, and knows {held.owner}{account}.")


def _away(address: str, why: str) -> Finding:
    hint = "Look at this host's network and proxies, or set models.hub to false and take models from folders only."
    return warns("hub_unreachable", f"models.hub is true, but {address} cannot be asked: {why}.", hint)


def _name_in(content: bytes) -> str:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    name = document.get("name") if isinstance(document, dict) else None
    return name[:100] if isinstance(name, str) and name.isprintable() else ""
