"""Who may speak to the bot at all, before it is asked what they may decide."""

from __future__ import annotations

from bot.platforms.slack.calls import Identity
from bot.platforms.slack.whispering import HOME
from bot.settings.model import SlackSettings

ELSEWHERE = "I do not work in this channel. Ask where I do, or ask whoever runs me to add it to slack.channels."
STRANGER = "People of other workspaces cannot use me here. Ask somebody of this workspace."


class Gate:
    """The one workspace, and the channels of the settings. Direct messages are open to all people of the workspace."""

    def __init__(self, settings: SlackSettings, me: Identity) -> None:
        self._channels = frozenset(settings.channels) if settings.channels is not None else None
        self._strangers = settings.strangers
        self._me = me

    def ours(self, team: str, enterprise: str) -> bool:
        """Whether a delivery is for the workspace of the token."""
        if team:
            return team == self._me.team
        # An installation for a whole organisation names no workspace.
        return bool(enterprise) and enterprise == self._me.enterprise

    def against(self, channel: str, team: str) -> str:
        """Why somebody of a workspace may not speak in a channel; empty when they may."""
        if team and team != self._me.team and not self._strangers:
            return STRANGER
        if self._channels is None or channel in self._channels or channel == HOME or channel.startswith("D"):
            return ""
        return ELSEWHERE
