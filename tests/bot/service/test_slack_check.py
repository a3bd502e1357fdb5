"""`ptq-bot check` says who the bot is in Slack, and what it lacks."""

from __future__ import annotations

import asyncio

import pytest

from bot.platforms.slack.scopes import SCOPES
from bot.service.slack_check import look
from tests.bot.platforms.slack.stand import slack_settings
from tests.peers.slack import running_slack
from tests.peers.slack_state import SCOPES as GIVEN

pytestmark = pytest.mark.slack


def test_what_is_well_and_what_is_missing() -> None:
    with running_slack() as peer:
        settings = slack_settings(peer, "socket")
        well = asyncio.run(look(settings))
        assert [fit for _, fit, _, _ in well] == [True, True, True]
        assert "Home (T0HOME)" in well[0][2]
        peer.api.scopes -= {"files:write", "users:read"}
        (_, fit, message, hint) = asyncio.run(look(settings))[1]
        assert not fit
        assert "files:write (to post the documents of a thread)" in message
        assert "users:read" in message
        assert "install the app again" in hint


def test_tokens_that_slack_does_not_know() -> None:
    with running_slack() as peer:
        unknown = slack_settings(peer, "socket", bot_token="xoxb-other", app_token="xapp-other")
        found = asyncio.run(look(unknown))
        assert [(what, fit) for what, fit, _, _ in found] == [("slack", False), ("slack socket", False)]
        assert "invalid_auth" in found[0][2]


def test_the_peer_gives_exactly_what_is_asked_for() -> None:
    assert set(GIVEN) == set(SCOPES)
