"""bot.yaml and PTQ_BOT_*: what cannot be meant is refused in one line that names the setting."""

from __future__ import annotations

import getpass
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.errors import BadSetting
from bot.settings import BotSettings, load_settings

TOKEN = "0123456789abcdef"
OTHER = "fedcba9876543210"
SLACK = {"bot_token": "xoxb-1", "app_token": "xapp-1"}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PTQ_BOT_"):
            monkeypatch.delenv(name)


def load(values: Any, folder: Path) -> BotSettings:
    """The settings of a file with this content."""
    file = folder / "bot.yaml"
    file.write_text(values if isinstance(values, str) else yaml.safe_dump(values))
    return load_settings(file)


def refused(values: Any, folder: Path) -> BadSetting:
    with pytest.raises(BadSetting) as caught:
        load(values, folder)
    return checked(caught.value)


def checked(error: BadSetting) -> BadSetting:
    assert len(error.message.splitlines()) == 1
    assert len(error.message) < 600
    assert error.message.endswith(".")
    assert error.message.isprintable()
    return error


def _web(**values: Any) -> dict[str, Any]:
    return {"web": values}


def _runner(**values: Any) -> dict[str, Any]:
    return {"runners": [{"name": "gpu1", "url": "unix:///run/x.sock", **values}]}


def _approvals(**values: Any) -> dict[str, Any]:
    return {"roles": {"leads": ["slack:U1"]}, "approvals": values}


WRONG: list[tuple[Any, str, str]] = [
    (_web(host="0.0.0.0"), "web.token", "others can reach 0.0.0.0"),
    (_web(host="::"), "web.token", "needs a token"),
    (_web(host="bot.example"), "web.token", "needs a token"),
    (_web(host="bad host"), "web.host", "no name and no address"),
    (_web(host=""), "web.host", "no name"),
    (_web(port=70000), "web.port", "65535"),
    (_web(port="http"), "web.port", "integer"),
    (_web(token="short"), "web.token", "16 to 512"),
    (_web(token="tök-0123456789abcdef"), "web.token", "16 to 512"),
    (_web(token="has a space 0123456789"), "web.token", "without spaces"),
    (_web(token=12345678901234567890), "web.token", "valid string"),
    (_web(people={"ada": "short"}), "web.people.ada", "16 to 512"),
    (_web(people={"ada": TOKEN, "bob": TOKEN}), "web.people", "same token"),
    (_web(token=TOKEN, people={"ada": TOKEN}), "web.people", "same token"),
    (_web(people={"local": TOKEN}), "web.people.local", "own person"),
    (_web(people={" ada": TOKEN}), "web.people. ada", "visible"),
    (_web(person=""), "web.person", "1 to 100 visible"),
    (_web(person="a\nb"), "web.person", "visible"),
    (_web(colour="red"), "web.colour", "not permitted"),
    ({"slack": {}}, "slack.bot_token", "required"),
    ({"slack": {"bot_token": "xoxb-1"}}, "slack.app_token", "mode socket needs"),
    ({"slack": {**SLACK, "mode": "http"}}, "slack.signing_secret", "mode http needs"),
    ({"slack": {**SLACK, "mode": "rtm"}}, "slack.mode", "socket"),
    ({"slack": {"bot_token": "xapp-1", "app_token": "xoxb-1"}}, "slack.bot_token", "app token"),
    ({"slack": {"bot_token": "xoxb-1", "app_token": "xoxb-1"}}, "slack.app_token", "begins with xapp-"),
    ({"slack": {"bot_token": "xoxb 1", "app_token": "xapp-1"}}, "slack.bot_token", "without spaces"),
    ({"slack": {**SLACK, "api_base_url": "slack.com"}}, "slack.api_base_url", "https://host:port"),
    ({"slack": {**SLACK, "channels": [""]}}, "slack.channels.0", "not empty"),
    ({"discord": {"token": "t", "guilds": [True]}}, "discord.guilds.0", "string"),
    ({"discord": {"token": "t", "api_base_url": "http://me:pw@x"}}, "discord.api_base_url", "no password"),
    ({"runners": []}, "runners", "at least 1"),
    ({"runners": {"name": "a"}}, "runners", "list"),
    (_runner(name=""), "runners.0.name", "1 to 64"),
    (_runner(name="a b"), "runners.0.name", "1 to 64"),
    (_runner(url="unix://run/x"), "runners.0.url", "whole path"),
    (_runner(url="unix:///" + "x" * 120), "runners.0.url", "107 bytes"),
    (_runner(url="unix:///x\ny"), "runners.0.url", "invisible"),
    (_runner(url="gpu1:8470", token=TOKEN), "runners.0.url", "https://host:port"),
    (_runner(url="http://gpu1", token=TOKEN), "runners.0.url", "port"),
    (_runner(url="http://gpu1:99999", token=TOKEN), "runners.0.url", "ort"),
    (_runner(url="http://gpu1:0", token=TOKEN), "runners.0.url", "0 is no port"),
    (_runner(url="http://gpu1:8470/api", token=TOKEN), "runners.0.url", "ends after its port"),
    (_runner(url="http://me:secret@gpu1:8470", token=TOKEN), "runners.0.url", "no password"),
    (_runner(url="http://[::1:80", token=TOKEN), "runners.0.url", "IPv6"),
    (_runner(url="http://gpu1:8470"), "runners.0.token", "runner.yaml"),
    (_runner(token="short"), "runners.0.token", "16 to 512"),
    (_runner(labels="h100"), "runners.0.labels", "list"),
    (_runner(labels=["h 100"]), "runners.0.labels.0", "1 to 64"),
    (_runner(labels=["ok", ""]), "runners.0.labels.1", "1 to 64"),
    (
        {
            "runners": [
                {"name": "gpu-1", "url": "unix:///a"},
                {"name": "b", "url": "unix:///b", "labels": ["x", "GPU_1"]},
            ]
        },
        "runners.1.labels.1",
        "another runner is called gpu-1",
    ),
    (_runner(user="me"), "runners.0.user", "not permitted"),
    ({"runners": [{"name": "a", "url": "unix:///a"}, {"name": "a", "url": "unix:///b"}]}, "runners.1.name", "already"),
    ({"roles": {"leads": ["U1"]}}, "roles.leads.0", "PLATFORM:ID"),
    ({"roles": {"leads": ["irc:me"]}}, "roles.leads.0", "PLATFORM:ID"),
    ({"roles": {"leads": ["slack:"]}}, "roles.leads.0", "PLATFORM:ID"),
    ({"roles": {"leads": []}}, "roles.leads", "nobody"),
    ({"roles": {"a:b": ["slack:U1"]}}, "roles.a:b", "name of a role"),
    (_approvals(command={"approvers": ["boss"]}), "approvals.command.approvers.0", "no role 'boss'; roles: leads"),
    (_approvals(remote_code={"approvers": ["leads", "x"]}), "approvals.remote_code.approvers.1", "no role 'x'"),
    (_approvals(admins=["x"]), "approvals.admins.0", "no role 'x'"),
    (_approvals(admins=["irc:x"]), "approvals.admins.0", "PLATFORM:ID"),
    (_approvals(command={"approvers": []}), "approvals.command.approvers", "nobody could approve"),
    (_approvals(expire_after_days=0), "approvals.expire_after_days", "greater"),
    ({"database": "nonsense"}, "database", "no address of a database"),
    ({"database": "postgresql://x:y"}, "database", "no address of a database"),
    ({"state_dir": "~nosuchuser/x"}, "state_dir", "nobody's home"),
    ('state_dir: "/x\\x1by"', "state_dir", "invisible"),
    ({"slak": {}}, "slak", "no setting of the bot"),
    ({"_env_prefix": "X"}, "_env_prefix", "no setting"),
    ("[" * 10_000, "bot.yaml", "nested too deeply"),
    ("[1", "bot.yaml", "not YAML: line 1"),
    ("2026-99-99", "bot.yaml", "not YAML"),
    ("- 1", "bot.yaml", "mapping"),
]


@pytest.mark.parametrize(("values", "setting", "why"), WRONG, ids=[f"{setting}-{why}" for _, setting, why in WRONG])
def test_a_wrong_setting_is_named_in_one_line(values: Any, setting: str, why: str, tmp_path: Path) -> None:
    error = refused(values, tmp_path)
    assert setting in error.message
    assert why in error.message
    assert "bot.yaml" in error.message


def test_a_misspelt_setting_is_helped_with(tmp_path: Path) -> None:
    assert refused({"slak": {}}, tmp_path).hint == "Did you mean slack?"
    assert "runners" in refused({"xyzzy": {}}, tmp_path).hint


def test_a_file_that_is_missing_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.yaml")
    (tmp_path / "bot.yaml").write_bytes(b"token: \xff\n")
    with pytest.raises(BadSetting, match="not YAML: it is not UTF-8 text"):
        load_settings(tmp_path / "bot.yaml")


def test_everything_has_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    settings = load_settings(None)
    assert settings.state_dir == Path("/state/quark-ptq-bot")
    assert settings.database_url == "sqlite:////state/quark-ptq-bot/bot.sqlite3"
    assert [(runner.name, runner.url) for runner in settings.runners] == [
        ("local", "unix:///state/quark-ptq-runner/runner.sock")
    ]
    assert settings.runner_names == ("local",)
    assert (settings.slack, settings.discord) == (None, None)
    web = settings.web
    assert (web.enabled, web.host, web.port, web.token, web.person) == (
        True,
        "127.0.0.1",
        8765,
        None,
        getpass.getuser(),
    )
    assert settings.approvals.expire_after_days == 14
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # the standard says to ignore it
    assert load_settings(None).state_dir == Path.home() / ".local/state/quark-ptq-bot"


def test_somebody_without_a_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert load_settings(None).web.person == f"user {os.getuid()}"


def test_all_of_it_can_be_set(tmp_path: Path) -> None:
    settings = load(
        {
            "database": "postgresql+psycopg://bot:pw@db/ptq",
            "state_dir": "~/bot",
            "slack": {**SLACK, "api_base_url": "http://127.0.0.1:9/api", "channels": ["C1"]},
            "discord": {"token": "t", "api_base_url": "http://127.0.0.1:9/api/", "guilds": [123456789012345678]},
            "web": {"host": "0.0.0.0", "port": 0, "people": {"Ada Lovelace": TOKEN}, "names": ["bot.example"]},
            "runners": [{"name": "a", "url": "https://a.example/", "token": TOKEN}, {"name": "b", "url": "unix:///b"}],
            "roles": {"leads": ["slack:U1", "web:Ada Lovelace"]},
            "approvals": {"command": {"approvers": ["leads", "slack:U1", "discord:5"]}, "admins": ["leads"]},
        },
        tmp_path,
    )
    assert settings.database_url == "postgresql+psycopg://bot:pw@db/ptq"
    assert settings.state_dir == Path.home() / "bot"
    assert settings.slack is not None
    assert settings.slack.api_base_url == "http://127.0.0.1:9/api/"
    assert settings.discord is not None
    assert (settings.discord.api_base_url, settings.discord.guilds) == (
        "http://127.0.0.1:9/api",
        ["123456789012345678"],
    )
    assert settings.runners[0].url == "https://a.example"
    assert settings.people(settings.approvals.command.approvers) == ("slack:U1", "web:Ada Lovelace", "discord:5")
    assert settings.people(settings.approvals.remote_code.approvers) == ()


def test_a_page_that_is_switched_off_needs_no_token(tmp_path: Path) -> None:
    assert load(_web(enabled=False, host="0.0.0.0"), tmp_path).web.enabled is False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST"])
def test_this_machine_alone_needs_no_token(host: str, tmp_path: Path) -> None:
    assert load(_web(host=host), tmp_path).web.host == host


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    values = {
        "database": "postgresql://bot:hidden-password@db/ptq",
        "slack": {"bot_token": "xoxb-hidden", "app_token": "xapp-hidden", "signing_secret": "hidden-too"},
        "discord": {"token": "hidden-discord"},
        "web": {"token": "hidden-0123456789", "people": {"ada": "hidden-9876543210"}},
        "runners": [{"name": "a", "url": "http://a:1", "token": "hidden-abcdefghijk"}],
    }
    settings = load(values, tmp_path)
    assert "hidden" not in repr(settings)
    assert "hidden" not in str(settings)
    assert "hidden" not in json.dumps(settings.model_dump(mode="json", exclude={"database"}))
    for spoilt in (_web(token="hidden tókèn 0123456789"), {**values, "web": {"token": "hidden"}}, {"slack": "hidden"}):
        assert "hidden" not in refused(spoilt, tmp_path).sentence()
    assert "hidden" not in refused("web: {token: hidden: 1}", tmp_path).sentence()


def test_variables_win_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "PTQ_BOT_SLACK__BOT_TOKEN": "xoxb-from-variable",
        "PTQ_BOT_SLACK__APP_TOKEN": "xapp-from-variable",
        "PTQ_BOT_DISCORD__TOKEN": "",
        "PTQ_BOT_WEB__PORT": "9000",
        "PTQ_BOT_WEB__TOKEN": "",
        "PTQ_BOT_RUNNERS__1__TOKEN": TOKEN,
        "PTQ_BOT_ROLES": '{"ops": ["web:ada"]}',
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    runners = [{"name": "a", "url": "unix:///a"}, {"name": "b", "url": "http://b:1", "token": OTHER}]
    settings = load(
        {
            "slack": {"bot_token": "xoxb-file", "channels": ["C1"]},
            "web": {"port": 1, "person": "Ada"},
            "runners": runners,
        },
        tmp_path,
    )
    assert settings.slack is not None
    assert settings.slack.bot_token.get_secret_value() == "xoxb-from-variable"
    assert settings.slack.channels == ["C1"]
    assert settings.discord is None
    assert (settings.web.port, settings.web.person, settings.web.token) == (9000, "Ada", None)
    assert [runner.token and runner.token.get_secret_value() for runner in settings.runners] == [None, TOKEN]
    assert settings.roles == {"ops": ["web:ada"]}


def test_what_a_caller_says_wins_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTQ_BOT_WEB__PORT", "9000")
    monkeypatch.setenv("PTQ_BOT_STATE_DIR", "/elsewhere")
    settings = BotSettings.model_validate({"state_dir": "/here", "web": {"port": 8000}})
    assert (settings.state_dir, settings.web.port) == (Path("/here"), 8000)
    assert BotSettings(state_dir=Path("/here")).state_dir == Path("/here")


BAD_VARIABLES = [
    ("PTQ_BOT_SLAK__BOT_TOKEN", "xoxb-1", "PTQ_BOT_SLAK__BOT_TOKEN"),
    ("PTQ_BOT_SLACK__BOT_TOKN", "xoxb-1", "slack."),
    ("PTQ_BOT_WEB__PORT", "many", "web.port"),
    ("PTQ_BOT_ROLES", "[", "roles"),
    ("PTQ_BOT_RUNNERS", "unix:///x", "runners"),
    ("PTQ_BOT_RUNNERS__0__TOKEN", TOKEN, "runners"),
    ("PTQ_BOT_STATE_DIR", "~nosuchuser/x", "state_dir"),
]


@pytest.mark.parametrize(("name", "value", "setting"), BAD_VARIABLES)
def test_a_wrong_variable_is_named(name: str, value: str, setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting) as caught:
        load_settings(None)
    assert setting in checked(caught.value).message
    assert "the environment" in caught.value.message


def test_a_wrong_variable_is_not_blamed_on_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTQ_BOT_WEB__PORT", "many")
    assert "web.port in the environment" in refused(_web(person="Ada"), tmp_path).message


def test_switches_and_what_a_cluster_sets_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PTQ_BOT_DEBUG", "PTQ_BOT_CONFIG", "PTQ_BOT_PORT", "PTQ_BOT_SERVICE_HOST", "PTQ_BOT_PORT_80_TCP"):
        monkeypatch.setenv(name, "tcp://10.0.0.1:80")
    assert load_settings(None).web.port == 8765


def test_several_runners_may_have_the_same_label(tmp_path: Path) -> None:
    runners = [
        {"name": "a", "url": "unix:///a", "labels": ["mi300x", "a"]},
        {"name": "b", "url": "unix:///b", "labels": ["mi300x", 300]},
    ]
    settings = load({"runners": runners}, tmp_path)
    assert [runner.labels for runner in settings.runners] == [["mi300x", "a"], ["mi300x", "300"]]
