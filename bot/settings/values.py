"""The kinds of values in the bot's settings, each with what is wrong with those that cannot be meant."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

PLATFORMS = ("slack", "discord", "web", "script")

# What an HTTP header carries unchanged, and long enough that nobody guesses it.
_TOKEN = re.compile(r"[!-~]{16,512}")
_KEY = re.compile(r"[!-~]{1,512}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ROLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_LONGEST_SOCKET = 107  # bytes; the kernel has room for no more


class Wrong(ValueError):
    """A value that cannot be meant. `setting` is its path beneath the section that was checked; empty for itself."""

    def __init__(self, setting: str, why: str) -> None:
        super().__init__(why)
        self.setting = setting


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _token(token: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(token.get_secret_value()):
        raise ValueError("a token is 16 to 512 ASCII letters, digits and marks on one line, without spaces")
    return token


def _key(token: SecretStr) -> SecretStr:
    if not _KEY.fullmatch(token.get_secret_value()):
        raise ValueError("it has to be as the platform shows it: on one line, without spaces")
    return token


def _text(value: Any) -> Any:
    """Ids that look like numbers are written without quotation marks in YAML."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _id(value: str) -> str:
    if not _KEY.fullmatch(value):
        raise ValueError("an id has no spaces and is not empty")
    return value


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError(
            "a name is 1 to 64 letters, digits, dots, lines and underscores, and begins with the former two"
        )
    return value


def _role(value: str) -> str:
    if not _ROLE.fullmatch(value):
        raise ValueError("the name of a role is 1 to 64 letters, digits, spaces, dots, lines and underscores")
    return value


def _person_name(value: str) -> str:
    if not value.strip() or value != value.strip() or not value.isprintable() or len(value) > 100:
        raise ValueError("a person's name is 1 to 100 visible characters")
    return value


def _person_id(value: str) -> str:
    platform, colon, name = value.partition(":")
    if not colon or platform not in PLATFORMS or not name.strip() or not name.isprintable() or len(value) > 200:
        raise ValueError(
            f"a person is named as PLATFORM:ID, such as slack:U012AB3CD or web:ada, and not {value[:80]!r}"
        )
    return value


def _person_or_role(value: str) -> str:
    return _person_id(value) if ":" in value else _role(value)


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("it is no name and no address of a host")
    return value


def _runner_url(url: str) -> str:
    if any(not letter.isprintable() for letter in url):
        raise ValueError("it has invisible characters")
    if url.startswith("unix://"):
        path = url.removeprefix("unix://")
        if not path.startswith("/"):
            raise ValueError("a unix socket is named by its whole path, as in unix:///run/quark-ptq-runner/runner.sock")
        if len(os.fsencode(path)) > _LONGEST_SOCKET:
            raise ValueError(f"the path of a unix socket has room for {_LONGEST_SOCKET} bytes")
        return url
    bare = _web_address(url)
    parts = urlsplit(bare)
    if parts.path:
        raise ValueError("an address of a runner ends after its port")
    if parts.scheme == "http" and not parts.port:
        raise ValueError("it has to name the port that the runner listens on")
    return bare


def _web_address(url: str) -> str:
    """An http(s) address without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isprintable() or " " in url:
        raise ValueError("it has to be an address such as https://host:port")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("an address holds no password and no question")
    if parts.port == 0:
        raise ValueError("0 is no port")
    return url.rstrip("/")


def _database(url: str) -> str:
    from sqlalchemy.engine import make_url  # not every command needs the database
    from sqlalchemy.exc import ArgumentError

    try:
        make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(
            "it is no address of a database, such as sqlite:////var/lib/quark-ptq-bot/bot.sqlite3"
        ) from None
    return url


def _whole(path: Path) -> Path:
    if not str(path).isprintable():
        raise ValueError("it has invisible characters")
    try:
        return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links
    except RuntimeError:
        raise ValueError(f"{path.parts[0]} is nobody's home folder") from None


Token = Annotated[SecretStr, AfterValidator(_token)]
PlatformKey = Annotated[SecretStr, AfterValidator(_key)]
PlatformId = Annotated[str, BeforeValidator(_text), AfterValidator(_id)]
RunnerName = Annotated[str, AfterValidator(_name)]
RunnerUrl = Annotated[str, AfterValidator(_runner_url)]
RunnerLabel = Annotated[str, BeforeValidator(_text), AfterValidator(_name)]
RoleName = Annotated[str, AfterValidator(_role)]
PersonName = Annotated[str, AfterValidator(_person_name)]
PersonId = Annotated[str, AfterValidator(_person_id)]
PersonOrRole = Annotated[str, AfterValidator(_person_or_role)]
Host = Annotated[str, AfterValidator(_host)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
BaseAddress = Annotated[WebAddress, AfterValidator(lambda url: f"{url}/")]
WholePath = Annotated[Path, AfterValidator(_whole)]
DatabaseUrl = Annotated[str, AfterValidator(_database)]
