"""The scopes of the bot token, and what each is for. None is there that nothing here uses."""

from __future__ import annotations

from typing import Final

SCOPES: Final = {
    "app_mentions:read": "to hear requests that mention the bot",
    "channels:history": "to read answers in its threads, and to find what it posted before a crash",
    "channels:join": "to enter a public channel in which somebody asked with the command",
    "chat:write": "to post and change its cards",
    "commands": "to take /quantize",
    "files:write": "to post the documents of a thread",
    "groups:history": "the same as channels:history, in private channels",
    "im:history": "to read requests and answers in direct messages",
    "im:write": "to write to people directly where their channel is closed",
    "users:read": "to show people's names",
}


def missing(scopes: frozenset[str]) -> dict[str, str]:
    """The scopes that a token lacks, with what each is for."""
    return {scope: use for scope, use in SCOPES.items() if scope not in scopes}
