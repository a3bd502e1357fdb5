"""The policy that settings mean."""

from __future__ import annotations

import pytest

from bot.conversation.policy import Policy
from bot.service.policy import policy_of
from bot.settings import BotSettings


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTQ_BOT_APPROVALS", raising=False)


def test_nothing_configured() -> None:
    assert policy_of(BotSettings()) == Policy(runners=("local",))


def test_roles_become_people_and_channels_are_kept() -> None:
    settings = BotSettings.model_validate(
        {
            "roles": {"leads": ["slack:U1", "discord:7"], "ops": ["web:ada", "slack:U1"]},
            "approvals": {
                "command": {"approvers": ["leads", "slack:U9", "ops"]},
                "remote_code": {"approvers": ["ops"]},
                "admins": ["web:root"],
            },
            "slack": {"bot_token": "xoxb-1", "app_token": "xapp-1", "channels": ["C1"]},
            "discord": {"token": "t", "channels": []},
            "runners": [{"name": "a", "url": "unix:///a"}, {"name": "b", "url": "unix:///b"}],
        }
    )
    assert policy_of(settings) == Policy(
        approvers=("slack:U1", "discord:7", "slack:U9", "web:ada"),
        remote_code=("web:ada", "slack:U1"),
        admins=("web:root",),
        channels={"slack": ("C1",), "discord": ()},
        runners=("a", "b"),
    )
