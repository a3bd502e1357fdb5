"""What the Hub says when it does not give what was asked for, in sentences for the person.

Source: the status codes and the headers X-Error-Code and X-Error-Message of the Hub, as its own client reads them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from runner.errors import Broken, NotHere, Refused, RunnerError

_RESET = re.compile(r"r\s*=\s*0\s*;\s*t\s*=\s*(\d{1,9})")  # of the header RateLimit: nothing remains for t seconds
_SET_TOKEN = "set HF_TOKEN in the runner's environment to a token of an account that may read it"


@dataclass(frozen=True)
class Asked:
    """What the Hub was asked for: a repository, its revision and a file of it (or none), by whom and where."""

    endpoint: str
    repository: str
    revision: str = ""
    file: str = ""
    token: str = ""

    @property
    def host(self) -> str:
        """The Hub in a sentence."""
        return self.endpoint.partition("://")[2] or self.endpoint

    @property
    def by(self) -> str:
        """Whose token it was asked with, in a sentence."""
        return f"with {self.token}" if self.token else "without a token"


def refusal(status: int, headers: Mapping[str, str], asked: Asked) -> RunnerError:
    """The error for an answer that is none. `headers` has lower-case names."""
    code, said = headers.get("x-error-code", ""), headers.get("x-error-message", "")
    if status == 429:
        return _rate_limited(headers, asked)
    if code == "GatedRepo":
        return _gated(asked)
    if status == 401:
        if not asked.token:
            return _hidden(asked)
        return _missing(asked) if code == "RepoNotFound" else _token_refused(asked)
    if code == "RevisionNotFound" or (status in {400, 404} and re.search(r"\brev(ision)?\b", said, re.IGNORECASE)):
        return NotHere(
            "hub_revision_missing",
            f"{asked.repository} on the Hub has no revision {asked.revision}.",
            "Name a branch, a tag or a commit of it; without one, its main branch is taken.",
        )
    if code == "EntryNotFound":
        return NotHere(
            "hub_file_missing",
            f"{asked.repository}@{asked.revision[:7]} on the Hub has no file {asked.file}.",
            "Ask again; name another revision if it stays away.",
        )
    if status == 404:
        return _missing(asked)
    if status == 403:
        return Refused(
            "hub_forbidden",
            f"The Hub forbids {asked.repository} to the runner, which asked {asked.by}.",
            f"See {asked.endpoint}/{asked.repository} in a browser, and give the token the permission to read it."
            if asked.token
            else f"See {asked.endpoint}/{asked.repository} in a browser; if it can be had, {_SET_TOKEN}.",
        )
    if status >= 500:
        return Broken(
            "hub_failed",
            f"{asked.host} failed with status {status} when it was asked for {asked.repository}.",
            "Ask again in a few minutes.",
        )
    return Broken(
        "hub_refused",
        f"{asked.host} answered with status {status} when it was asked for {asked.repository}.",
        "Check the model's name and revision, and HF_ENDPOINT in the runner's environment.",
    )


def unreachable(asked: Asked, why: str) -> RunnerError:
    """No connection at all."""
    return Broken(
        "hub_unreachable",
        f"{asked.host} cannot be reached from this host{f': {why}' if why else ''}.",
        "Check the runner's network, its proxy (HTTPS_PROXY) and HF_ENDPOINT; or download the model to this host and "
        "name its folder.",
    )


def offline(asked: Asked, variable: str) -> RunnerError:
    """The runner's own environment forbids to ask."""
    return Refused(
        "hub_offline",
        f"{asked.repository} is not on this host, and {variable} in the runner's environment keeps it offline.",
        f"Remove {variable}, or download the model to this host and name its folder.",
    )


def too_slow(asked: Asked, seconds: float) -> RunnerError:
    """An answer that did not come, or not to its end."""
    return Broken(
        "hub_timeout",
        f"{asked.host} did not answer for {asked.repository} within {seconds:g} seconds.",
        "Ask again; raise models.hub_timeout_seconds in runner.yaml if its network is that slow.",
    )


def half_answer(asked: Asked, what: str) -> RunnerError:
    """An answer that broke off or is not what was asked for."""
    whole = f"{asked.file} of {asked.repository}" if asked.file else asked.repository
    return Broken(
        "hub_answer_broken",
        f"The answer of {asked.host} for {whole} is of no use: {what}.",
        "Ask again; check the proxy or mirror between this host and the Hub if it stays so.",
    )


def range_ignored(asked: Asked) -> RunnerError:
    """A server that would send gigabytes where some kilobytes were asked for."""
    return Broken(
        "hub_range_ignored",
        f"{asked.host} would send all of {asked.file} of {asked.repository} instead of its header, so nothing was "
        "taken.",
        "Set HF_ENDPOINT to a mirror that answers range requests, or download the model and name its folder.",
    )


def _gated(asked: Asked) -> RunnerError:
    page = f"{asked.endpoint}/{asked.repository}"
    if asked.token:
        return Refused(
            "hub_gated",
            f"{asked.repository} is gated, and the account of {asked.token} has no access to it.",
            f"Ask for access at {page} with that account, or give the runner a token of one that has it.",
        )
    return Refused(
        "hub_gated",
        f"{asked.repository} is gated: only accounts that accepted its terms get its files, and the runner asked "
        "without a token.",
        f"Accept the terms at {page}, and {_SET_TOKEN}.",
    )


def _token_refused(asked: Asked) -> RunnerError:
    return Refused(
        "hub_token_refused",
        f"The Hub does not accept {asked.token}: it is wrong, expired or was withdrawn.",
        "Make a new one with permission to read at the Hub's settings, and start the runner with it.",
    )


def _hidden(asked: Asked) -> RunnerError:
    """Without a token the Hub gives the same answer for both, so nobody can say which it is."""
    return NotHere(
        "hub_private_or_missing",
        f"The Hub shows no {asked.repository} to whoever asks without a token: it does not exist, or it is private.",
        f"Check the spelling; if it is private, {_SET_TOKEN}.",
    )


def _missing(asked: Asked) -> RunnerError:
    hidden = f", or the account of {asked.token} may not see it" if asked.token else ", or it is private"
    return NotHere(
        "hub_model_missing",
        f"There is no model {asked.repository} on the Hub{hidden}.",
        "Check the spelling of the owner and the name, upper and lower case too.",
    )


def _rate_limited(headers: Mapping[str, str], asked: Asked) -> RunnerError:
    seconds = _wait(headers)
    wait = f"{seconds} seconds" if seconds is not None else "a few minutes"
    more = "" if asked.token else f" Asked with a token it answers more often: {_SET_TOKEN}."
    return Broken(
        "hub_rate_limited",
        f"{asked.host} answers no more questions of this host for now; it asks to wait "
        f"{'without saying how long' if seconds is None else wait}.",
        f"Ask again in {wait}.{more}",
    )


def _wait(headers: Mapping[str, str]) -> int | None:
    """Seconds to wait: Retry-After as a number or a date, or else when the Hub's own limit is reset."""
    after = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", after):
        return int(after)
    if after:
        try:
            at = parsedate_to_datetime(after)
            return max(0, round((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()))
        except (ValueError, OverflowError, TypeError):
            pass  # neither a number nor a date: as good as not said
    reset = _RESET.search(headers.get("ratelimit", ""))
    return int(reset[1]) if reset else None
