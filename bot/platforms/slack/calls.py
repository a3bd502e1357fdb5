"""Calls of Slack's Web API, and what their refusals mean to a delivery.

Nothing is sent a second time here: a lost answer may belong to a call that was done. The outbox looks first.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import PlatformAway, PlatformDenied, PlatformError, SurfaceGone
from bot.settings.model import SlackSettings

log = logging.getLogger(__name__)

Body = dict[str, Any]

_TIMEOUT_SECONDS: Final = 20
_RATE_LIMITED_SECONDS: Final = 30.0  # where Slack does not say how long
_JSON = ("chat.", "views.")

_MESSAGE_GONE = frozenset(
    {"message_not_found", "cant_update_message", "edit_window_closed", "is_inactive", "thread_not_found"}
)
_CHANNEL_CLOSED = frozenset(
    {"is_archived", "channel_not_found", "not_in_channel", "restricted_action", "restricted_action_read_only_channel"}
)
_BLOCKS_REFUSED = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "invalid_attachments"}
)
# A token can be renewed; cards that wait for it must not be lost.
TOKEN_REFUSED = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"}
)
_AWAY = frozenset(
    {
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_access_not_granted",
        "ratelimited",
    }
)


class ChannelClosed(SurfaceGone):
    """Nothing can be posted into this channel: archived, not there, or the bot is not in it. `code` is Slack's."""


class BlocksRefused(PlatformDenied):
    """Slack does not take these blocks."""


class TriggerExpired(PlatformDenied):
    """More than three seconds went by since the person clicked, or the trigger was used already."""


class ViewGone(SurfaceGone):
    """The person has closed the view, or it has changed since."""


@dataclass(frozen=True)
class Identity:
    """Who the bot is, by auth.test. `scopes` are those of its token."""

    user: str
    bot: str
    team: str
    team_name: str
    url: str
    enterprise: str | None
    scopes: frozenset[str]


class Calls:
    """A client with the bot's token. Close it."""

    def __init__(self, settings: SlackSettings) -> None:
        self._settings = settings
        self._session: aiohttp.ClientSession | None = None
        self._identity: Identity | None = None

    def client(self, *, with_token: bool = True) -> AsyncWebClient:
        """A client of the SDK. Its own retries are off: they would post again what was posted."""
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS))
        return AsyncWebClient(
            token=self._settings.bot_token.get_secret_value() if with_token else None,
            base_url=self._settings.api_base_url,
            timeout=_TIMEOUT_SECONDS,
            session=self._session,
            retry_handlers=[],
        )

    async def close(self) -> None:
        """Give connections back."""
        if self._session is not None:
            await self._session.close()

    async def identity(self) -> Identity:
        """Who the bot is; asked once. Raises PlatformError."""
        if self._identity is None:
            answer, scopes = await self._call("auth.test", {})
            self._identity = Identity(
                user=answer["user_id"],
                bot=answer.get("bot_id", ""),
                team=answer["team_id"],
                team_name=answer.get("team", ""),
                url=answer.get("url", ""),
                enterprise=answer.get("enterprise_id"),
                scopes=frozenset(scope.strip() for scope in scopes.split(",") if scope.strip()),
            )
        return self._identity

    async def call(self, method: str, **body: Any) -> Body:
        """Slack's answer. Raises PlatformError."""
        return (await self._call(method, body))[0]

    async def open_socket(self, app_token: str) -> None:
        """Whether an app token opens a socket. Raises PlatformError."""
        try:
            await self.client(with_token=False).apps_connections_open(app_token=app_token)
        except SlackApiError as error:
            raise _refusal("apps.connections.open", error) from None
        except (aiohttp.ClientError, TimeoutError, SlackClientError) as error:
            raise PlatformAway("slack_away", f"Slack did not answer: {_about(error)}.") from None

    async def upload(self, url: str, content: bytes) -> None:
        """A file's bytes to the address that Slack gave for them. Raises PlatformError."""
        self.client()
        assert self._session is not None
        try:
            async with self._session.post(url, data=content) as answer:
                if answer.status != 200:
                    raise PlatformAway("slack_upload", f"Slack refused the bytes of a file with {answer.status}.")
        except (aiohttp.ClientError, TimeoutError) as error:
            raise PlatformAway("slack_away", f"Slack did not take the bytes of a file: {_about(error)}.") from None

    async def _call(self, method: str, body: Body) -> tuple[Body, str]:
        sent: Body = {"json": body} if method.startswith(_JSON) and method != "chat.getPermalink" else {"data": body}
        try:
            answer = await self.client().api_call(method, **sent)
        except SlackApiError as error:
            raise _refusal(method, error) from None
        except (aiohttp.ClientError, TimeoutError, SlackClientError, asyncio.IncompleteReadError) as error:
            raise PlatformAway("slack_away", f"Slack did not answer {method}: {_about(error)}.") from None
        data = answer.data
        if not isinstance(data, dict):
            raise PlatformAway("slack_foreign", f"Slack's answer to {method} is not JSON.")
        return data, _header(answer.headers, "x-oauth-scopes")


def _refusal(method: str, error: SlackApiError) -> PlatformError:
    """What an answer that is not ok means."""
    response = error.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0) or 0)
    data = getattr(response, "data", None)
    told = data if isinstance(data, dict) else {}
    name = str(told.get("error", "")) or f"status {status}"
    message = f"Slack refused {method}: {name}."
    if status == 429 or name == "ratelimited":
        return PlatformAway("slack_rate_limited", f"Slack takes no more {method} for now.", "", _seconds(response))
    if name == "missing_scope":
        needed = told.get("needed", "one that it does not name")
        hint = f"Add the scope to the app, and install it again: {needed}."
        return PlatformDenied("missing_scope", f"Slack refused {method}: the bot token lacks the scope {needed}.", hint)
    if name in ("expired_trigger_id", "invalid_trigger_id", "exchanged_trigger_id"):
        return TriggerExpired(name, message)
    if method.startswith("views.") and name in ("not_found", "hash_conflict", "view_not_found"):
        return ViewGone(name, message)
    if name in _BLOCKS_REFUSED:
        return BlocksRefused(name, message)
    if name in _CHANNEL_CLOSED:
        return ChannelClosed(name, message)
    if name in _MESSAGE_GONE:
        return SurfaceGone(name, message)
    if name in TOKEN_REFUSED:
        return PlatformAway(name, message, "Set slack.bot_token to the token of an installed app, and restart the bot.")
    if name in _AWAY or status >= 500 or not told:
        return PlatformAway("slack_away", message)
    return PlatformDenied(name, message)


def _seconds(response: Any) -> float:
    """Retry-After, as Slack gives it."""
    try:
        return max(float(_header(response.headers, "retry-after")), 0.0)
    except (AttributeError, ValueError):
        return _RATE_LIMITED_SECONDS


def _header(headers: Any, name: str) -> str:
    return next((str(value) for key, value in headers.items() if str(key).lower() == name), "")


def _about(error: BaseException) -> str:
    return str(error) or type(error).__name__
