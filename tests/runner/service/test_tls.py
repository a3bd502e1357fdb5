"""The API over TLS: a real daemon, real certificates, and one sentence for everything that is wrong with them."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from runner.errors import Broken, RunnerError
from runner.service.client import Client
from runner.service.tls import client_context, read_certificate, server_context
from runner.settings import TlsSettings, load_settings
from tests.e2e.host import running_host
from tests.peers.certificates import Pair, authority, needs_openssl, protected, self_signed

pytestmark = needs_openssl
TOKEN = "a-token-of-sixteen-letters"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def tls(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate, key=pair.key)


def test_the_command_line_speaks_tls_to_its_daemon(tmp_path: Path) -> None:
    pair = authority(tmp_path / "ca").sign("runner", names="DNS:gpu1.example")
    url = f"https://127.0.0.1:{free_port()}"
    with running_host(tmp_path / "h", listen=url, token=TOKEN, tls=pair.settings) as host:
        assert host.client.health().status in {"warming", "ok"}
        renewed = self_signed(tmp_path / "other")
        settings = host.settings.model_copy(update={"tls": tls(renewed)})
        with pytest.raises(RunnerError) as caught:
            Client(settings).health()
        assert caught.value.code == "bad_certificate"
        assert "does not show the certificate of tls.certificate" in caught.value.message
        assert "listening on https://" in host.daemon_log()


def test_only_the_current_versions_of_tls_are_spoken(tmp_path: Path) -> None:
    context = server_context(tls(self_signed(tmp_path)))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def _no_certificate(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate.with_name("gone.pem"), key=pair.key)


def _no_key(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate, key=pair.key.with_name("gone.key"))


def _other_key(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate, key=self_signed(pair.key.parent / "other").key)


def _swapped(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.key, key=pair.certificate)


def _folder(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate.parent, key=pair.key)


def _empty(pair: Pair) -> TlsSettings:
    pair.certificate.write_text("")
    return tls(pair)


def _locked(pair: Pair) -> TlsSettings:
    return TlsSettings(certificate=pair.certificate, key=protected(pair.key))


WRONG = [
    (_no_certificate, "gone.pem cannot be read: No such file or directory."),
    (_no_key, "gone.key cannot be read: No such file or directory."),
    (_other_key, "does not fit the certificate"),
    (_swapped, "are not both PEM files"),
    (_folder, "cannot be read: Is a directory."),
    (_empty, "are not both PEM files"),
    (_locked, "is protected by a password"),
]


@pytest.mark.parametrize(("make", "words"), WRONG, ids=lambda value: getattr(value, "__name__", ""))
def test_wrong_files_are_one_sentence_at_the_start(
    make: Callable[[Pair], TlsSettings], words: str, tmp_path: Path
) -> None:
    chosen = make(self_signed(tmp_path))
    with pytest.raises(Broken) as caught:
        server_context(chosen)
    assert (caught.value.code, words in caught.value.message) == ("bad_certificate", True), caught.value.message
    config = tmp_path / "runner.yaml"
    files = {"certificate": str(chosen.certificate), "key": str(chosen.key)}
    values = {
        "state_dir": str(tmp_path / "s"),
        "listen": f"https://127.0.0.1:{free_port()}",
        "token": TOKEN,
        "tls": files,
    }
    config.write_text(yaml.safe_dump(values))
    command = [sys.executable, "-m", "runner.service", "--config", str(config), "serve"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (1, True, False), done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_the_certificate_is_read(tmp_path: Path) -> None:
    found = read_certificate(tls(self_signed(tmp_path, days=20)))
    assert found.names == ("localhost", "127.0.0.1")
    assert found.until is not None
    assert timedelta(days=19) < found.until - datetime.now(UTC) < timedelta(days=21)
    assert found.wrong == ""


def test_one_of_an_authority_is_read_without_it(tmp_path: Path) -> None:
    found = read_certificate(tls(authority(tmp_path).sign("runner", until="20400101000000Z")))
    assert (found.until, found.wrong) == (datetime(2040, 1, 1, tzinfo=UTC), "")


def test_one_that_nobody_would_take_says_why(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    assert read_certificate(tls(ours.sign("old", until="20250102000000Z"))).wrong == "certificate has expired"
    assert "purpose" in read_certificate(tls(ours.sign("client", use="clientAuth"))).wrong


def test_only_the_first_certificate_of_a_chain_is_trusted(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    runner, other = ours.sign("runner"), ours.sign("other")
    chain = tmp_path / "chain.pem"
    chain.write_text(runner.certificate.read_text() + ours.pair.certificate.read_text())
    assert _accepts(client_context(chain), server_context(tls(runner)))
    assert not _accepts(client_context(chain), server_context(tls(other)))


def _accepts(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    one, two = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(one, two), server.wrap_bio(two, one, server_side=True)]
    for _ in range(10):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return sides[0].version() is not None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"listen": "https://0.0.0.0:8470", "token": TOKEN}, "listen on https needs tls"),
        ({"listen": "https://0.0.0.0:8470", "tls": {"certificate": "a", "key": "b"}}, "listen on TCP needs a token"),
        (
            {"listen": "http://127.0.0.1:8470", "token": TOKEN, "tls": {"certificate": "a", "key": "b"}},
            "do nothing here",
        ),
        ({"tls": {"certificate": "a", "key": "b"}}, "do nothing here"),
        ({"listen": "https://0.0.0.0:8470", "token": TOKEN, "tls": {"certificate": "a"}}, "tls.key"),
        ({"listen": "https://0.0.0.0", "token": TOKEN}, "listen must be unix:///path, https://host:port"),
    ],
)
def test_settings_that_cannot_be_meant_are_told(values: dict[str, object], words: str, tmp_path: Path) -> None:
    config = tmp_path / "runner.yaml"
    config.write_text(yaml.safe_dump(values))
    with pytest.raises(RunnerError, match=words):
        load_settings(config)


def test_paths_are_made_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "runner.yaml"
    files = {"certificate": "c.pem", "key": "~/k.pem"}
    config.write_text(yaml.safe_dump({"listen": "https://h:1", "token": TOKEN, "tls": files}))
    settings = load_settings(config)
    assert settings.tls == TlsSettings(certificate=tmp_path / "c.pem", key=Path.home() / "k.pem")
