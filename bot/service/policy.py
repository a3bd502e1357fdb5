"""The policy that the settings mean."""

from __future__ import annotations

from bot.conversation.policy import Policy
from bot.settings import BotSettings


def policy_of(settings: BotSettings) -> Policy:
    """Who may do what: roles become the people in them, and a platform that names no channels allows all of its own."""
    approvals = settings.approvals
    listed = {
        "slack": settings.slack.channels if settings.slack else None,
        "discord": settings.discord.channels if settings.discord else None,
    }
    return Policy(
        approvers=settings.people(approvals.command.approvers),
        remote_code=settings.people(approvals.remote_code.approvers),
        admins=settings.people(approvals.admins),
        channels={platform: tuple(channels) for platform, channels in listed.items() if channels is not None},
        runners=settings.runner_names,
    )
