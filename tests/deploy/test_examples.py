"""The example settings and the set-up page: what a person copies works as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from bot.errors import BadSetting
from bot.settings import BotSettings, load_settings
from runner.service.tls import read_certificate
from runner.settings import TlsSettings
from runner.settings import load_settings as load_runner_settings
from tests.deploy.files import DEPLOY, ROOT
from tests.peers.certificates import needs_openssl

EXAMPLE = DEPLOY / "bot.example.yaml"
README = DEPLOY / "README.md"
TOKENS = {
    "PTQ_BOT_SLACK__BOT_TOKEN": "xoxb-1",
    "PTQ_BOT_SLACK__APP_TOKEN": "xapp-1",
    "PTQ_BOT_DISCORD__TOKEN": "token",
    "PTQ_BOT_WEB__TOKEN": "0123456789abcdef",
    "PTQ_BOT_WEB__PEOPLE": '{"grace": "the-token-of-grace"}',
    "PTQ_BOT_RUNNERS__2__TOKEN": "fedcba9876543210",
}


def _everything_on(folder: Path) -> Path:
    """The example with every "#" taken away that stands right before a setting."""
    file = folder / "bot.yaml"
    file.write_text(re.sub(r"(?m)^#(?=\S| {2,}\S)", "", EXAMPLE.read_text(encoding="utf-8")), encoding="utf-8")
    return file


def test_the_example_works_as_it_stands() -> None:
    settings = load_settings(EXAMPLE)
    assert settings.slack is None
    assert settings.discord is None
    assert settings.web == type(settings.web)(), "what is not commented out is as it would be without it"


def test_every_setting_that_is_off_can_be_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TOKENS.items():
        monkeypatch.setenv(name, value)
    settings = load_settings(_everything_on(tmp_path))
    assert settings.model_fields_set == set(BotSettings.model_fields), "the example shows every section"
    assert settings.slack is not None
    assert settings.discord is not None
    assert settings.runner_names == ("gpu1", "gpu2", "gpu3")
    assert settings.people(settings.approvals.command.approvers) == ("web:ada", "web:grace")


@pytest.mark.parametrize("variable", TOKENS)
def test_the_example_holds_no_token(variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in TOKENS.keys() - {variable}:
        monkeypatch.setenv(name, TOKENS[name])
    if variable == "PTQ_BOT_WEB__TOKEN":
        assert load_settings(_everything_on(tmp_path)).web.token is None
        return
    with pytest.raises(BadSetting, match=r"token|grace"):
        load_settings(_everything_on(tmp_path))


def test_the_runners_example_shows_how_to_listen_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DEPLOY / "runner.example.yaml").read_text(encoding="utf-8")
    before, with_tls = text.split("\nlisten: unix", 1)[0], text.split("# listen: http://")[0].split("sock", 1)[1]
    lines = [
        line.removeprefix("# ") for line in with_tls.splitlines() if line.startswith(("# listen", "# tls", "#   "))
    ]
    file = tmp_path / "runner.yaml"
    file.write_text(before + "\n" + "\n".join(lines), encoding="utf-8")
    monkeypatch.setenv("PTQ_RUNNER_TOKEN", "0123456789abcdef")
    settings = load_runner_settings(file)
    assert settings.listen_url == "https://0.0.0.0:8470"
    assert settings.tls is not None
    assert str(settings.tls.key) == "/etc/quark-ptq/runner.key"


@needs_openssl
def test_the_certificate_of_the_set_up_page_is_one_that_the_bot_trusts(tmp_path: Path) -> None:
    (block,) = re.findall(r"openssl req .*?(?=\n   chown)", README.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run(shlex.split(block.replace("\\\n", " ")), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    tls = TlsSettings(certificate=tmp_path / "runner.pem", key=tmp_path / "runner.key")
    assert read_certificate(tls).names == ("gpu3.example",)


def test_the_set_up_page_names_files_that_are_there() -> None:
    text = README.read_text(encoding="utf-8")
    named = re.findall(r"\bdeploy/[\w./*@-]+|\bcontainers/[\w.-]+", text)
    assert len(named) > 3
    for name in named:
        path = name if name.startswith("deploy/") else f"deploy/{name}"
        assert list(ROOT.glob(path)), f"README.md names {name}"


def test_the_set_up_page_leads_to_its_own_sections() -> None:
    text = README.read_text(encoding="utf-8")
    sections = {
        re.sub(r"[^a-z -]", "", line[3:].lower()).replace(" ", "-") for line in text.splitlines() if line[:3] == "## "
    }
    assert set(re.findall(r"\]\(#([a-z-]+)\)", text)) <= sections


@pytest.mark.parametrize("variable", sorted(set(re.findall(r"PTQ_BOT_\w+__\w+", README.read_text(encoding="utf-8")))))
def test_the_variables_of_the_set_up_page_are_settings(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TOKENS.items():
        monkeypatch.setenv(name, value)
    read = []
    for token in ("the-first-token-of-two", "the-second-token-of-two"):
        monkeypatch.setenv(variable, f'{{"grace": "{token}"}}' if variable.endswith("PEOPLE") else token)
        read.append(load_settings(_everything_on(tmp_path)))
    assert read[0] != read[1]
