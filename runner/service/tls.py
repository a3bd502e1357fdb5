"""TLS of the API: the certificate that it shows, whether its key fits, and how this host's own programs trust it.

The standard library reads no certificate by itself. Who wants to know what stands in one shakes hands with it in
memory, with a client that trusts this certificate and no other.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from runner.errors import Broken
from runner.settings import TlsSettings

_ONE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_LARGEST = 1 << 20  # bytes of a PEM file
_STEPS = 20  # of a handshake, which needs four


@dataclass(frozen=True)
class Certificate:
    """What stands in a certificate: the names that it is for, and until when. `wrong` says why nobody would take it."""

    names: tuple[str, ...] = ()
    until: datetime | None = None
    wrong: str = ""


def server_context(tls: TlsSettings) -> ssl.SSLContext:
    """What the daemon listens with. Raises Broken [bad_certificate] with what is wrong with the two files."""
    for setting, path in (("tls.certificate", tls.certificate), ("tls.key", tls.key)):
        _text(setting, path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except _Protected:
        raise _wrong(
            f"tls.key {tls.key} is protected by a password, which nobody could type when the daemon starts",
            f"Write it without one, readable for the runner alone: openssl pkey -in {tls.key} -out NEW_FILE",
        ) from None
    except (ssl.SSLError, OSError, ValueError) as error:
        if "KEY_VALUES_MISMATCH" in str(error):
            why, hint = (
                f"tls.key {tls.key} does not fit the certificate {tls.certificate}",
                "Name the key it came with.",
            )
        else:
            why = f"tls.certificate {tls.certificate} and tls.key {tls.key} are not both PEM files that TLS can use"
            hint = "The certificate begins with -----BEGIN CERTIFICATE-----, the key with -----BEGIN PRIVATE KEY-----."
        raise _wrong(why, hint) from None
    return context


def client_context(certificate: Path) -> ssl.SSLContext:
    """Trusts whoever shows exactly this certificate: for programs of the same host, which can read the runner's own.

    The name in it does not matter then: they call the runner by the address on which it listens. Raises Broken.
    """
    first = _ONE.search(_text("tls.certificate", certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # One that an authority signed is trusted without its authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=first.group(0) if first else "")
    except (ssl.SSLError, ValueError):
        raise _wrong(f"tls.certificate {certificate} holds no certificate in PEM form") from None
    return context


def read_certificate(tls: TlsSettings) -> Certificate:
    """What stands in the certificate. Raises Broken [bad_certificate] where the daemon could not listen with it."""
    server, client = server_context(tls), client_context(tls.certificate)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    try:
        for _ in range(_STEPS):
            if all([_shaken(ours.do_handshake), _shaken(theirs.do_handshake)]):
                break
    except ssl.SSLCertVerificationError as error:
        return Certificate(wrong=error.verify_message or "it cannot be verified")
    except ssl.SSLError as error:
        return Certificate(wrong=error.reason or str(error))
    found = ours.getpeercert() or {}
    names = [str(entry[1]) for entry in found.get("subjectAltName", ()) if len(entry) == 2]
    until = found.get("notAfter")
    return Certificate(
        names=tuple(names),
        until=datetime.fromtimestamp(ssl.cert_time_to_seconds(until), UTC) if isinstance(until, str) else None,
    )


class _Protected(Exception):
    """The key wants a password."""


def _no_password() -> NoReturn:
    raise _Protected


def _shaken(step: Callable[[], object]) -> bool:
    try:
        step()
    except ssl.SSLWantReadError:
        return False
    return True


def _text(setting: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError as error:
        raise _wrong(f"{setting} {path} cannot be read: {error.strerror}", "Correct it, or its permissions.") from None


def _wrong(why: str, hint: str = "") -> Broken:
    return Broken("bad_certificate", f"{why}.", hint)
