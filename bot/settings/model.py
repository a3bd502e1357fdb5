"""bot.yaml and the environment variables PTQ_BOT_*.

A variable names a setting by its path, as in PTQ_BOT_SLACK__BOT_TOKEN or PTQ_BOT_RUNNERS__0__TOKEN, and wins over the
file; an empty one counts as not set. Lists and mappings are JSON there.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from bot.settings.values import (
    BaseAddress,
    DatabaseUrl,
    Host,
    PersonId,
    PersonName,
    PersonOrRole,
    PlatformId,
    PlatformKey,
    RoleName,
    RunnerLabel,
    RunnerName,
    RunnerUrl,
    Token,
    WebAddress,
    WholePath,
    Wrong,
    is_loopback,
)

Port = Annotated[int, Field(ge=0, le=65535)]


def default_state_dir() -> Path:
    """Where the bot keeps its database when nothing is configured: the user's state folder (XDG)."""
    return _user_state() / "quark-ptq-bot"


def default_runner_url() -> str:
    """Where a runner of the same user listens when nothing is configured on its side either."""
    return f"unix://{_user_state() / 'quark-ptq-runner' / 'runner.sock'}"


def login_name() -> str:
    """Who is logged in on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user number need not have a name
        return f"user {os.getuid()}"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class SlackSettings(_Section):
    """A Slack workspace. `channels` are ids; without the setting the bot listens wherever it was invited.

    `strangers` lets people of other workspaces act in channels that are shared with them. In mode http the bot takes
    Slack's requests on `host` and `port`, under /slack/events.
    """

    bot_token: PlatformKey
    app_token: PlatformKey | None = None
    signing_secret: PlatformKey | None = None
    mode: Literal["socket", "http"] = "socket"
    api_base_url: BaseAddress = "https://slack.com/api/"
    channels: list[PlatformId] | None = None
    strangers: bool = False
    host: Host = "127.0.0.1"
    port: Port = 3000

    @model_validator(mode="after")
    def _has_what_its_mode_needs(self) -> SlackSettings:
        if self.bot_token.get_secret_value().startswith("xapp-"):
            raise Wrong("bot_token", "it begins with xapp-, which is an app token; a bot token begins with xoxb-")
        if self.app_token is not None and self.app_token.get_secret_value().startswith("xox"):
            raise Wrong("app_token", "it begins with xox, which is a bot or user token; an app token begins with xapp-")
        if self.mode == "socket" and self.app_token is None:
            raise Wrong("app_token", "mode socket needs an app token with the scope connections:write")
        if self.mode == "http" and self.signing_secret is None:
            raise Wrong("signing_secret", "mode http needs the app's signing secret, to tell Slack from others")
        return self


class DiscordSettings(_Section):
    """A Discord application. `guilds` and `channels` are ids; without the settings all are listened to."""

    token: PlatformKey
    api_base_url: WebAddress = "https://discord.com/api/v10"
    guilds: list[PlatformId] | None = None
    channels: list[PlatformId] | None = None


class WebSettings(_Section):
    """The page. Without tokens it serves this machine only, and everybody there is `person`.

    `token` is that person's own; `people` gives others theirs, by name. `names` are further host names of the page.
    """

    enabled: bool = True
    host: Host = "127.0.0.1"
    port: Port = 8765
    token: Token | None = None
    person: PersonName = Field(default_factory=login_name)
    people: dict[PersonName, Token] = {}
    names: list[Host] = []

    @model_validator(mode="after")
    def _is_safe(self) -> WebSettings:
        if self.enabled and not (is_loopback(self.host) or self.token or self.people):
            raise Wrong("token", f"others can reach {self.host}, so the page needs a token, or people with tokens")
        if "local" in self.people:
            raise Wrong("people.local", "this name is that of the page's own person")
        tokens = [token.get_secret_value() for token in (self.token, *self.people.values()) if token is not None]
        if len(set(tokens)) < len(tokens):
            raise Wrong("people", "two people have the same token, so that nobody could tell them apart")
        return self


class RunnerAddress(_Section):
    """A runner by its name, and the token that it wants on TCP.

    `ca` is a PEM file with the certificates that are trusted over https: the runner's own, or its authority's. Without
    it these are the authorities that this host knows.
    `labels` are what people may say instead of its name, as in "on mi300x": several runners may have the same, and a
    runner may tell more of its own.
    """

    name: RunnerName
    url: RunnerUrl
    token: Token | None = None
    ca: WholePath | None = None
    labels: list[RunnerLabel] = []

    @model_validator(mode="after")
    def _is_safe(self) -> RunnerAddress:
        if self.token is None and not self.url.startswith("unix:"):
            raise Wrong("token", "a runner on TCP has a token, which is `token` in its runner.yaml")
        if self.ca is not None and not self.url.startswith("https:"):
            raise Wrong("ca", "it is for a url that begins with https://, and would do nothing here")
        return self


class ApproverSettings(_Section):
    """Who: ids such as slack:U012AB3CD, and names of roles."""

    approvers: list[PersonOrRole] | None = None


class ApprovalSettings(_Section):
    """Who may approve what. Without `command.approvers` the requester may; without `remote_code.approvers` nobody."""

    command: ApproverSettings = ApproverSettings()
    remote_code: ApproverSettings = ApproverSettings()
    admins: list[PersonOrRole] = []
    expire_after_days: int = Field(14, ge=1, le=3650, description="Days without a decision that end a conversation.")

    @model_validator(mode="after")
    def _nobody_is_not_everybody(self) -> ApprovalSettings:
        if self.command.approvers is not None and not self.command.approvers:
            raise Wrong("command.approvers", "it is empty, so nobody could approve; without it the requester may")
        return self


class BotSettings(BaseSettings):
    """All settings of the bot."""

    model_config = SettingsConfigDict(
        env_prefix="PTQ_BOT_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )

    database: DatabaseUrl | None = Field(None, repr=False, description="SQLAlchemy URL; default: a file in state_dir.")
    state_dir: WholePath = Field(default_factory=default_state_dir, validate_default=True)
    slack: SlackSettings | None = None
    discord: DiscordSettings | None = None
    web: WebSettings = Field(default_factory=WebSettings)
    runners: list[RunnerAddress] = Field(
        default_factory=lambda: [RunnerAddress(name="local", url=default_runner_url())], min_length=1
    )
    roles: dict[RoleName, list[PersonId]] = {}
    approvals: ApprovalSettings = ApprovalSettings()

    @model_validator(mode="after")
    def _names_fit(self) -> BotSettings:
        names = self.runner_names
        for place, name in enumerate(names):
            if name in names[:place]:
                raise Wrong(f"runners.{place}.name", f"another runner is called {name} already")
        for place, runner in enumerate(self.runners):
            for number, label in enumerate(runner.labels):
                others = [name for name in names if name != runner.name and _spoken(name) == _spoken(label)]
                if others:
                    why = f"another runner is called {others[0]}, so nobody could tell which is meant"
                    raise Wrong(f"runners.{place}.labels.{number}", why)
        for role, people in self.roles.items():
            if not people:
                raise Wrong(f"roles.{role}", "nobody is in it")
        approvals = self.approvals
        for path, entries in (
            ("command.approvers", approvals.command.approvers),
            ("remote_code.approvers", approvals.remote_code.approvers),
            ("admins", approvals.admins),
        ):
            for place, entry in enumerate(entries or []):
                if ":" not in entry and entry not in self.roles:
                    known = ", ".join(self.roles) or "none"
                    raise Wrong(f"approvals.{path}.{place}", f"there is no role {entry!r}; roles: {known}")
        return self

    @property
    def database_url(self) -> str:
        """Where conversations are kept; it may hold a password."""
        if self.database is not None:
            return self.database
        from sqlalchemy.engine import URL  # not every command needs the database

        file = URL.create("sqlite", database=str(self.state_dir / "bot.sqlite3"))
        return file.render_as_string(hide_password=False)

    @property
    def runner_names(self) -> tuple[str, ...]:
        """In order; the first is meant where nobody names one."""
        return tuple(runner.name for runner in self.runners)

    def people(self, entries: Iterable[str] | None) -> tuple[str, ...]:
        """The ids of the people that ids and names of roles mean, each once."""
        ids = [person for entry in entries or () for person in ([entry] if ":" in entry else self.roles[entry])]
        return tuple(dict.fromkeys(ids))


def _spoken(name: str) -> str:
    """A name as people type it: they take "GPU-1" and "gpu_1" for one another."""
    return name.lower().replace("-", "_")


def _user_state() -> Path:
    named = Path(os.environ.get("XDG_STATE_HOME") or "")
    return named if named.is_absolute() else Path.home() / ".local" / "state"
