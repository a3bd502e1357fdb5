"""A runner behind TLS: whom the bot trusts, and a clear sentence for each certificate that it does not."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import yaml

from bot.errors import BadSetting, BotError, RunnerForeign
from bot.service.runner_client import RunnerClient
from bot.settings import load_settings
from tests.bot.service.asking import HEALTH, PATIENT, TOKEN, checked
from tests.peers.certificates import Pair, authority, needs_openssl, self_signed
from tests.peers.raw_http import listening, telling

pytestmark = needs_openssl


def serving(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def asked(pair: Pair, ca: Path | None, host: str = "127.0.0.1") -> BotError | None:
    """The error of asking for the health of a runner that shows this certificate; None where it answered."""

    async def whole() -> BotError | None:
        async with listening(telling(HEALTH), tls=serving(pair)) as peer:
            client = RunnerClient("gpu1", peer.url.replace("127.0.0.1", host), TOKEN, PATIENT, ca=ca)
            try:
                assert (await client.health()).status == "ok"
            except BotError as error:
                return error
            finally:
                await client.close()
            return None

    return asyncio.run(whole())


def test_a_runner_of_a_trusted_authority_is_asked(tmp_path: Path) -> None:
    ours = authority(tmp_path)
    assert asked(ours.sign("runner"), ours.pair.certificate) is None
    assert asked(ours.sign("named", names="DNS:localhost"), ours.pair.certificate, "localhost") is None


def test_a_certificate_may_be_trusted_by_itself(tmp_path: Path) -> None:
    own, signed = self_signed(tmp_path), authority(tmp_path / "ca").sign("runner")
    assert asked(own, own.certificate) is None
    assert asked(signed, signed.certificate) is None


@pytest.mark.parametrize(
    ("case", "words", "hint"),
    [
        ("expired", "its certificate has expired", "Renew tls.certificate"),
        ("not trusted", "is signed by itself, and this bot was not told to trust it", "name it as ca"),
        ("other authority", "comes from an authority that this bot does not trust", "name it as ca"),
        ("other name", "is for another host name", "Name it in url"),
        ("other address", "is for another address", "Name it in url"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_said(case: str, words: str, hint: str, tmp_path: Path) -> None:
    ours, theirs = authority(tmp_path / "ours"), authority(tmp_path / "theirs")
    trusted = ours.pair.certificate
    match case:
        case "expired":
            error = asked(ours.sign("old", until="20250102000000Z"), trusted)
        case "not trusted":
            error = asked(self_signed(tmp_path / "own"), None)
        case "other authority":
            error = asked(theirs.sign("runner"), trusted)
        case "other name":
            error = asked(ours.sign("gpu2", names="DNS:gpu2.example"), trusted, "localhost")
        case _:
            error = asked(ours.sign("gpu2", names="DNS:gpu2.example"), trusted)
    assert error is not None
    assert (type(checked(error)), error.code) == (RunnerForeign, "bad_certificate")
    assert error.message.startswith("The runner gpu1 cannot prove over TLS who it is: its certificate ")
    assert words in error.message
    assert hint in error.hint


def test_nothing_is_sent_to_who_cannot_prove_who_it_is(tmp_path: Path) -> None:
    async def whole() -> int:
        own = self_signed(tmp_path)
        async with listening(telling(HEALTH), tls=serving(own)) as peer:
            client = RunnerClient("gpu1", peer.url, TOKEN, PATIENT)
            with pytest.raises(RunnerForeign):
                await client.health()
            await client.close()
            return len(peer.asked)

    assert asyncio.run(whole()) == 0


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read: No such file"), (b"", "holds no certificate"), (b"\xff", "holds no")]
)
def test_a_file_that_holds_no_certificates_is_told_at_the_start(
    content: bytes | None, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadSetting, match="ca of the runner gpu1") as caught:
        RunnerClient("gpu1", "https://gpu1.example:8470", TOKEN, ca=file)
    assert words in caught.value.message


def test_the_setting_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "bot.yaml"
    runner = {"name": "gpu1", "url": "https://gpu1.example:8470", "token": TOKEN, "ca": "ca.pem"}
    config.write_text(yaml.safe_dump({"runners": [runner]}))
    assert load_settings(config).runners[0].ca == tmp_path / "ca.pem"
    config.write_text(yaml.safe_dump({"runners": [{**runner, "url": "http://gpu1.example:8470"}]}))
    with pytest.raises(BadSetting, match=r"runners\.0\.ca in .* is wrong: it is for a url that begins with https"):
        load_settings(config)
