"""What `ptq-bot check` asks Slack: who the bot is, what it may, and whether the app token opens a socket."""

from __future__ import annotations

from bot.errors import PlatformError
from bot.platforms.slack.calls import Calls
from bot.platforms.slack.scopes import missing
from bot.settings.model import SlackSettings

Told = tuple[str, bool, str, str]
"""What was looked at, whether it is fit, a message and a hint."""


async def look(settings: SlackSettings) -> list[Told]:
    """Look once. Nothing is changed, and nothing is posted."""
    calls = Calls(settings)
    try:
        return [*await _token(calls), *(await _socket(calls, settings) if settings.mode == "socket" else ())]
    finally:
        await calls.close()


async def _token(calls: Calls) -> list[Told]:
    try:
        me = await calls.identity()
    except PlatformError as error:
        return [("slack", False, error.message, error.hint)]
    found: list[Told] = [("slack", True, f"workspace {me.team_name} ({me.team}), as {me.user}.", "")]
    lacking = missing(me.scopes)
    if lacking:
        uses = "; ".join(f"{scope} ({use})" for scope, use in lacking.items())
        hint = "Add them under OAuth & Permissions, and install the app again."
        found.append(("slack scopes", False, f"the bot token lacks {uses}.", hint))
    else:
        found.append(("slack scopes", True, "all that are needed.", ""))
    return found


async def _socket(calls: Calls, settings: SlackSettings) -> list[Told]:
    assert settings.app_token is not None
    try:
        await calls.open_socket(settings.app_token.get_secret_value())
    except PlatformError as error:
        hint = "Make an app token with the scope connections:write, switch Socket Mode on, and set slack.app_token."
        return [("slack socket", False, error.message, hint)]
    return [("slack socket", True, "the app token opens one.", "")]
