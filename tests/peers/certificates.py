"""Certificates for tests, made by the openssl program: an authority's, self-signed, expired, for other names."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the openssl program is not installed")

# Without these a day that begins now may begin a second late for a clock that is behind.
_BEGINS = "20250101000000Z"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        """As `tls` of runner.yaml."""
        return {"certificate": str(self.certificate), "key": str(self.key)}


def self_signed(folder: Path, *, days: int = 365, names: str = "DNS:localhost,IP:127.0.0.1") -> Pair:
    """A certificate that vouches for itself."""
    pair = _pair(folder, "own")
    _openssl(
        *("req", "-x509", "-new", "-key", pair.key, "-out", pair.certificate, "-subj", "/CN=runner"),
        *("-days", days, "-addext", f"subjectAltName={names}"),
    )
    return pair


@dataclass(frozen=True)
class Authority:
    """Signs certificates. Its own is what a client has to trust."""

    folder: Path
    pair: Pair

    def sign(
        self, name: str, *, names: str = "DNS:localhost,IP:127.0.0.1", until: str = "20990101000000Z", use: str = ""
    ) -> Pair:
        """A certificate for these names; `until` as ASN.1 writes a time."""
        pair = _pair(self.folder, name)
        request = self.folder / f"{name}.csr"
        _openssl("req", "-new", "-key", pair.key, "-out", request, "-subj", f"/CN={name}")
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\n" + (f"extendedKeyUsage={use}\n" if use else ""))
        database = self.folder / f"{name}.index"
        database.write_text("")
        config = self.folder / f"{name}.cnf"
        config.write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={database}\nnew_certs_dir={self.folder}\ndefault_md=sha256\n"
            "policy=p\nrand_serial=yes\n[p]\ncommonName=supplied\n"
        )
        _openssl(
            *("ca", "-batch", "-config", config, "-cert", self.pair.certificate, "-keyfile", self.pair.key),
            *("-in", request, "-out", pair.certificate, "-notext", "-extfile", extensions),
            *("-startdate", _BEGINS, "-enddate", until),
        )
        return pair


def authority(folder: Path) -> Authority:
    """A new authority."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = _pair(folder, "authority")
    _openssl(
        *("req", "-x509", "-new", "-key", pair.key, "-out", pair.certificate, "-subj", "/CN=Tests", "-days", "30"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
    )
    return Authority(folder, pair)


def protected(key: Path) -> Path:
    """The same key behind a password."""
    other = key.with_suffix(".locked")
    _openssl("ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out", other)
    return other


def _pair(folder: Path, name: str) -> Pair:
    folder.mkdir(parents=True, exist_ok=True)
    key = folder / f"{name}.key"
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    return Pair(folder / f"{name}.pem", key)


def _openssl(*arguments: object) -> None:
    done = subprocess.run(
        ["openssl", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
