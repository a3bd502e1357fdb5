"""Who uses the page, and under which names it may be called.

Without any token the page serves this machine only and everybody is the same person. With tokens each is a person's
own; a browser that showed one gets a session, signed with that token: a token that is no longer set ends its sessions.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.conversation.person import Person
from bot.errors import BadSetting

SESSION_LIFE = timedelta(days=30)
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

_SESSION = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{1,1100})\.([0-9a-f]{64})")


@dataclass(frozen=True)
class Holder:
    """A person and the token that only this person has."""

    person: Person
    token: str = field(repr=False)


@dataclass(frozen=True)
class Access:
    """Who may use the page. `local` is who everybody is when there are no tokens, and nobody when there are.

    `names` are the host names by which a browser may call it, besides addresses when there are tokens. A page that
    anybody's name could lead to would let a foreign site act as this one (DNS rebinding).
    """

    local: Person | None
    holders: tuple[Holder, ...]
    names: frozenset[str]
    port: int

    @property
    def cookie(self) -> str:
        """The session cookie's name. Browsers share cookies between the ports of a host, so the port is in it."""
        return f"ptq_session_{self.port}"

    def person_of_token(self, token: str) -> Person | None:
        """Whose token this is. Takes as long whoever's it is, and whether it is anybody's."""
        given = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        found = None
        for holder in self.holders:
            if hmac.compare_digest(given, hashlib.sha256(holder.token.encode()).digest()):
                found = holder.person
        return found

    def session(self, person: Person, now: datetime) -> str:
        """A session for somebody who showed a token. It does not contain the token."""
        holder = next(holder for holder in self.holders if holder.person.id == person.id)
        head = f"{int(now.timestamp())}.{urlsafe_b64encode(person.id.encode()).decode().rstrip('=')}"
        return f"{head}.{_signature(holder.token, head)}"

    def person_of_session(self, session: str, now: datetime) -> Person | None:
        """Whose session this is, while it lasts."""
        parts = _SESSION.fullmatch(session)
        if parts is None:
            return None
        begun, encoded, signature = parts.groups()
        age = now.timestamp() - int(begun)
        if not -60 <= age <= SESSION_LIFE.total_seconds():
            return None
        try:
            name = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        except ValueError:
            return None
        for holder in self.holders:
            # Two tokens may name one person: each signs for itself.
            expected = _signature(holder.token, f"{begun}.{encoded}")
            if holder.person.id == name and hmac.compare_digest(signature, expected):
                return holder.person
        return None

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this page."""
        name = host_name(host)
        return name in self.names or (bool(self.holders) and _is_address(name))


def access(
    host: str,
    port: int,
    token: str | None = None,
    people: Mapping[str, str] | None = None,
    names: Sequence[str] = (),
    local: str = "local",
) -> Access:
    """Who may use a page that listens on `host`.

    `people` gives names their tokens; `token` belongs to `local`, the person whose page it is. Raises BadSetting when
    others could reach the page and there is no token, and for tokens that are empty or belong to two people.
    """
    owner = Person(id="web:local", name=local)
    named = [Holder(Person(id=f"web:{name}", name=name), secret) for name, secret in (people or {}).items()]
    holders = ([Holder(owner, token)] if token is not None else []) + named
    if any(not holder.token.strip() for holder in holders):
        raise BadSetting("web_token", "A token of the page is empty.", "Give it a long random value, or leave it out.")
    if len({holder.token for holder in holders}) != len(holders):
        raise BadSetting("web_token", "Two people have the same token for the page.", "Give each a token of their own.")
    if len({holder.person.id for holder in holders}) != len(holders):
        raise BadSetting("web_token", "web.people names local, which is the holder of web.token.", "Use another name.")
    if not holders and not _is_loopback(host):
        raise BadSetting(
            "web_token",
            f"The page listens on {host}, where others can reach it, and has no token.",
            "Set web.token, or listen on 127.0.0.1.",
        )
    known = LOOPBACK_NAMES | {name.lower() for name in names}
    if holders:
        known |= {host.lower(), socket.gethostname().lower()}
    return Access(None if holders else owner, tuple(holders), frozenset(known), port)


def host_name(host: str) -> str:
    """A Host header without its port and brackets, in lower case."""
    named = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([^:\[\]]+)(?::[0-9]{1,5})?", host)
    return (named[1] or named[2]).lower().rstrip(".") if named else ""


def _signature(token: str, head: str) -> str:
    return hmac.new(token.encode(), f"ptq page session {head}".encode(), hashlib.sha256).hexdigest()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
