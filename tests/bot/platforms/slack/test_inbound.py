"""What Slack delivers, read: who spoke, in which words, and whether they may."""

from __future__ import annotations

from typing import Any

import pytest

from bot.platforms.slack.calls import Identity
from bot.platforms.slack.gate import ELSEWHERE, STRANGER, Gate
from bot.platforms.slack.inbound import command_origin, origin_of, spoken, words_of, workspace_of
from bot.settings.model import SlackSettings

pytestmark = pytest.mark.slack

ME = Identity("U0BOT", "B0BOT", "T0HOME", "Home", "https://home.slack.test/", "E0ORG", frozenset())
MESSAGE: dict[str, Any] = {"type": "message", "user": "U0ADA", "text": "ok", "ts": "1.1", "channel": "C1", "team": "T0"}


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        ("<@U0BOT> quantize a/model to fp8", "quantize a/model to fp8"),
        ("<@U0BOT|ptq> ok", "ok"),
        ("ask <@U0BOB|bob> in <#C1|quant>", "ask @bob in #quant"),
        ("<https://hf.co/a/model|hf.co/a/model> to fp8", "hf.co/a/model to fp8"),
        ("<https://hf.co/a/model>", "https://hf.co/a/model"),
        ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        ("&lt;@U0BOT&gt; is not a mention", "<@U0BOT> is not a mention"),
        ("exclude “lm_head” and `*gate*`", 'exclude "lm_head" and *gate*'),
        ("<!channel> look", "@channel look"),
        ("", ""),
    ],
)
def test_text_is_read_as_it_was_typed(raw: str, typed: str) -> None:
    assert spoken(raw, "U0BOT") == typed


@pytest.mark.parametrize(
    "change",
    [
        {"subtype": "message_changed"},
        {"subtype": "channel_join"},
        {"bot_id": "B9"},
        {"user": "U0BOT"},
        {"user": None},
    ],
)
def test_what_no_person_said_is_nothing(change: dict[str, Any]) -> None:
    assert words_of(MESSAGE, ME) is not None
    assert words_of(MESSAGE | change, ME) is None


def test_a_message_has_one_name_in_all_its_events() -> None:
    message, mention = words_of(MESSAGE, ME), words_of(MESSAGE | {"type": "app_mention"}, ME)
    assert message is not None
    assert mention is not None
    assert message.key == mention.key
    assert message.key != getattr(words_of(MESSAGE | {"ts": "1.2"}, ME), "key", "")


def test_a_click_is_named_by_its_trigger_and_else_by_its_time() -> None:
    body = {"user": {"id": "U0ADA"}, "channel": {"id": "C1"}, "actions": [{"action_ts": "5.5"}]}
    assert origin_of(body | {"trigger_id": "7"}).key == "slack:trigger:7"
    assert origin_of(body).key.endswith("5.5")
    assert command_origin({"user_id": "U0ADA", "trigger_id": "8"}).key == "slack:trigger:8"


def test_the_workspace_is_that_of_the_token() -> None:
    gate = Gate(SlackSettings.model_validate({"bot_token": "xoxb-a", "app_token": "xapp-a"}), ME)
    assert gate.ours("T0HOME", "")
    assert not gate.ours("T0OTHER", "E0ORG")
    assert gate.ours("", "E0ORG")  # an installation for the whole organisation
    assert not gate.ours("", "E0OTHER")
    assert not gate.ours("", "")
    assert workspace_of({"team": {"id": "T1"}, "enterprise": None}) == ("T1", "")
    assert workspace_of({"team": None, "enterprise": {"id": "E1"}}) == ("", "E1")


def test_strangers_and_other_channels_are_kept_out() -> None:
    values: dict[str, Any] = {"bot_token": "xoxb-a", "app_token": "xapp-a", "channels": ["C1"]}
    gate = Gate(SlackSettings.model_validate(values), ME)
    assert gate.against("C1", "T0HOME") == ""
    assert gate.against("C2", "T0HOME") == ELSEWHERE
    assert gate.against("D1", "T0HOME") == ""
    assert gate.against("C1", "T0OTHER") == STRANGER
    assert Gate(SlackSettings.model_validate(values | {"strangers": True}), ME).against("C1", "T0OTHER") == ""
