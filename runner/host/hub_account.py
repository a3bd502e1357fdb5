"""Which Hub this runner asks, and with whose token: the environment and the account that it runs in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from runner.errors import BadRequest, Refused

COMMIT = re.compile(r"[0-9a-f]{40}")
_DEFAULT_ENDPOINT = "https://huggingface.co"


@dataclass(frozen=True)
class HubToken:
    """A token and whose it is. Its value shows nowhere."""

    value: str = field(repr=False)
    owner: str = ""


class Place(NamedTuple):
    """What tells one server from another."""

    scheme: str
    host: str
    port: int | None


def place_of(url: str) -> Place | None:
    """The server of an address; None where it has none."""
    try:
        parts = urlsplit(url)
        return Place(parts.scheme, parts.hostname, parts.port) if parts.hostname else None
    except ValueError:
        return None


def endpoint() -> str:
    """The address of the Hub: HF_ENDPOINT of the runner's environment, or the public one."""
    address = (os.environ.get("HF_ENDPOINT") or _DEFAULT_ENDPOINT).rstrip("/")
    place = place_of(address)
    if place is None or place.scheme not in {"http", "https"} or "@" in address or not address.isprintable():
        raise BadRequest(
            "hub_endpoint_wrong",
            f"HF_ENDPOINT in the runner's environment is {ascii(address)[:100]}, which is no address of a Hub.",
            "Set it to an address as https://huggingface.co, or remove it.",
        )
    return address


def token() -> HubToken | None:
    """The token that Hugging Face programs of this account would use, with whose it is; None without one.

    Takes a third of a second the first time: call it in a thread.
    """
    from huggingface_hub import get_token  # late: the daemon starts without it

    value = get_token()
    if not value:
        return None
    named = next((name for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") if os.environ.get(name)), None)
    owner = f"{named} of the runner" if named else "the token file of the runner's account"
    if not value.isascii() or not value.isprintable() or " " in value:
        raise Refused(
            "hub_token_unusable",
            f"{owner[0].upper()}{owner[1:]} is no token: it has characters that no token has.",
            "Set it to a token of the Hub, which begins with hf_.",
        )
    return HubToken(value, owner)


def offline_by() -> str | None:
    """The variable by which the runner's environment forbids to ask the Hub; None where it may be asked."""
    return next((name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if _is_on(name)), None)


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "").upper() in {"1", "ON", "YES", "TRUE"}
