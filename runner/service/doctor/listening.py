"""Where the API listens: who can reach it, with what, and whether its certificate holds."""

from __future__ import annotations

import ipaddress
import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from runner.errors import Broken
from runner.host.paths import nearest_existing
from runner.service.doctor.subject import Subject, blocks, informs, told, warns
from runner.service.tls import read_certificate
from runner.settings import TlsSettings
from schemas.artifacts.plan import Finding

_SOON = timedelta(days=30)
_LONGEST_SOCKET = 107  # bytes; the kernel has room for no more


def listening(subject: Subject) -> Iterator[Finding]:
    """The socket's folder, or the address, the token's way and the certificate."""
    settings = subject.settings
    if settings.socket_path is not None:
        yield from _socket(settings.socket_path)
        return
    host = urlsplit(settings.listen_url).hostname or ""
    if settings.tls is not None:
        yield from _certificate(settings.tls, subject)
    elif not _only_here(host):
        yield warns(
            "plain_http",
            f"The API listens on {settings.listen_url} without TLS: others on the way can read its token.",
            "Listen on https with tls.certificate and tls.key, or on 127.0.0.1 behind a proxy or a tunnel.",
        )


def _socket(path: Path) -> Iterator[Finding]:
    if len(os.fsencode(path)) > _LONGEST_SOCKET:
        message = f"The socket {path} has a path of more than {_LONGEST_SOCKET} bytes, which is all that fits."
        yield blocks("cannot_listen", message, "Name a shorter one in listen, or a shorter state_dir.")
    place = nearest_existing(path.parent)
    if not os.path.isdir(place) or not os.access(place, os.W_OK | os.X_OK, effective_ids=True):  # noqa: PTH112
        message = f"The runner's user may not make the socket {path}: {place} is closed to it."
        yield blocks("cannot_listen", message, "Give it that folder, or name another socket in listen.")


def _certificate(tls: TlsSettings, subject: Subject) -> Iterator[Finding]:
    renew = "Renew tls.certificate and restart the daemon; runs go on."
    try:
        found = read_certificate(tls)
    except Broken as error:
        yield told(error)
        return
    if found.wrong:
        message = f"Nobody will trust tls.certificate {tls.certificate}: {found.wrong}."
        yield blocks("bad_certificate", message, renew)
    elif found.until is not None and found.until - subject.now < _SOON:
        days = max((found.until - subject.now).days, 0)
        message = f"tls.certificate {tls.certificate} expires in {days} days, on {found.until:%Y-%m-%d}."
        yield warns("certificate_expires", message, renew)
    else:
        until = f"until {found.until:%Y-%m-%d}" if found.until else "without an end"
        names = ", ".join(found.names[:8]) or "no name, so that no caller takes it"
        yield (informs if found.names else warns)("certificate", f"tls.certificate holds {until}, for {names}.")
    if (mode := _mode(tls.key)) & (stat.S_IRWXG | stat.S_IRWXO) & ~stat.S_IRGRP:
        message = f"Others may use tls.key {tls.key} (mode {mode:o}), and could answer in this runner's name."
        yield warns("key_open", message, f"Run: chmod 600 {tls.key}")


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0  # that it cannot be read was told


def _only_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
