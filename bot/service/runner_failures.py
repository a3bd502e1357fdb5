"""What can go wrong while a runner is asked, as the errors that people are told of."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from bot.errors import RunnerAway, RunnerError, RunnerForeign
from schemas.api import API_VERSION, Problem

_LONGEST_SENTENCE = 2000
_ABSENT = {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR, errno.ENOTSOCK, errno.EPROTOTYPE}


class Failures:
    """The sentences about one runner.

    Codes: runner_down (nothing listens), runner_slow (no answer in time), runner_broken (the connection was lost, or a
    status of 500 and above without a reason); strange_answer, api_version and bad_certificate for what is no runner of
    this release; wrong_token; and for problems the runner's own.
    """

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url

    def down(self, why: str) -> RunnerAway:
        """Nothing listens."""
        hint = f"Start it with `ptq-runner serve` on its host, or correct its url {self.url} in bot.yaml."
        return RunnerAway("runner_down", f"The runner {self.name} cannot be reached: {why}.", hint)

    def slow(self, seconds: float) -> RunnerAway:
        """It did not answer in time."""
        hint = "Look at the log of its daemon, and what else its host is doing."
        return RunnerAway("runner_slow", f"The runner {self.name} did not answer within {seconds:g} s.", hint)

    def broken(self, why: str) -> RunnerAway:
        """It was there, and then it was not."""
        hint = "It is asked again by itself; look at the log of its daemon if this stays."
        return RunnerAway("runner_broken", f"The connection to the runner {self.name} broke: {why}.", hint)

    def strange(self, why: str) -> RunnerForeign:
        """What answers is no runner, or none of this release."""
        return RunnerForeign(
            "strange_answer",
            f"What answers as the runner {self.name} is no runner that this bot understands: {_cut(why)}.",
            f"See what listens on {self.url}, and bring runner and bot to the same release.",
        )

    def other_version(self, release: str, api: str) -> RunnerForeign:
        """A runner, but one that speaks another version of the API."""
        return RunnerForeign(
            "api_version",
            f"The runner {self.name} is release {release[:40]} and speaks version {api[:20]} of the API; "
            f"this bot speaks version {API_VERSION}.",
            "Bring both to the same release of quark-ptq-bot.",
        )

    def refusal(self, status: int, problem: Problem | None) -> RunnerError | RunnerAway | RunnerForeign:
        """What an answer means that is no success. A runner gives a problem with every one of them."""
        if status == 401 or (status == 403 and problem is None):
            return RunnerError(
                "wrong_token",
                f"The runner {self.name} refuses this bot: its token is wrong or missing.",
                "Set the same token for it in bot.yaml (runners) and in its own runner.yaml (token).",
            )
        if problem is None:
            why = f"it answered {status} without saying why"
            return self.broken(why) if status >= 500 else self.strange(why)
        detail, hint = _cut(problem.detail), _cut(problem.hint)
        if problem.code == "api_version":
            return RunnerForeign(problem.code, f"The runner {self.name} is of another release. {detail}", hint)
        return RunnerError(problem.code[:100], detail, hint)

    @contextmanager
    def told(self, seconds: float) -> Iterator[None]:
        """Within it, what the library raises becomes what it means. `seconds` is the limit that a timeout names."""
        try:
            yield
        except (TimeoutError, httpx.TimeoutException):
            raise self.slow(seconds) from None
        except httpx.ConnectError as error:
            raise self._not_connected(error) from None
        except httpx.RemoteProtocolError as error:
            why = str(error).rstrip(".")
            if "disconnected" in why or "closed connection" in why:  # the library has one error for both
                raise self.broken(why[:1].lower() + why[1:]) from None
            raise self.strange(f"it does not speak HTTP: {why}") from None
        except httpx.HTTPError as error:
            raise self.broken(str(error) or type(error).__name__) from None

    def unreachable(self, error: OSError) -> RunnerAway:
        """A connection that could not be made."""
        if isinstance(error, socket.gaierror):
            return self.down("the name of its host is not known")
        if error.errno in _ABSENT:
            return self.down("nothing listens there")
        if error.errno is None:
            return self.down(str(error))
        return self.down(os.strerror(error.errno))

    def _not_connected(self, error: httpx.ConnectError) -> RunnerAway | RunnerForeign:
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLError):
                return self._unproven(cause)
            if isinstance(cause, OSError) and cause.errno is not None:
                return self.unreachable(cause)
        return self.down(str(error) or "for no reason that is known")

    def _unproven(self, cause: ssl.SSLError) -> RunnerForeign:
        why, hint = _why_unproven(cause)
        return RunnerForeign("bad_certificate", f"The runner {self.name} cannot prove over TLS who it is: {why}.", hint)


# By the number that OpenSSL gives to what is wrong with a certificate (X509_V_ERR_...): why, and what to do.
_RENEW = "Renew tls.certificate in its runner.yaml and restart it; see that the clocks of both hosts are right."
_TRUST = "Copy the certificate of its authority, or its own, to this host and name it as ca of the runner in bot.yaml."
_RENAME = "Name it in url by a name that its certificate has, or give it a certificate for the name in url."
_CERTIFICATE = {
    9: ("its certificate is not valid yet", _RENEW),
    10: ("its certificate has expired", _RENEW),
    18: ("its certificate is signed by itself, and this bot was not told to trust it", _TRUST),
    19: ("its certificate comes from an authority that this bot does not trust", _TRUST),
    20: ("its certificate comes from an authority that this bot does not trust", _TRUST),
    21: ("its certificate comes from an authority that this bot does not trust", _TRUST),
    62: ("its certificate is for another host name", _RENAME),
    64: ("its certificate is for another address", _RENAME),
}


def _why_unproven(cause: ssl.SSLError) -> tuple[str, str]:
    if isinstance(cause, ssl.SSLCertVerificationError):
        known = _CERTIFICATE.get(cause.verify_code)
        said = cause.verify_message.rstrip(".") or "its certificate cannot be verified"
        return known or (said, "Correct tls.certificate in its runner.yaml.")
    if cause.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG"}:
        return "it does not speak TLS", "Begin its url with http:// in bot.yaml, or set tls in its runner.yaml."
    return cause.reason or "it does not speak TLS", "Look at tls in its runner.yaml, and at its url in bot.yaml."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _cut(text: str) -> str:
    """Something else may answer than a runner, and at any length."""
    return text if len(text) <= _LONGEST_SENTENCE else f"{text[: _LONGEST_SENTENCE - 2]} …"
