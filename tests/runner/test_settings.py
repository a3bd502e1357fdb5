"""runner.yaml: what cannot be meant is refused in one line that names the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import BadRequest
from runner.settings import load_settings

_TOKEN = "0123456789abcdef"
_TCP = f"listen: http://127.0.0.1:8470\ntoken: {_TOKEN}\n"

WRONG = [
    ("token: tök-0123456789abcdef", "token"),
    ("token: short", "token"),
    ("token: 'has a space 0123456789'", "token"),
    ("token: |\n  0123456789abcdef\n", "token"),
    ('token: "0123456789abcdef\\r\\nX-Other: 1"', "token"),
    (f"token: {'a' * 513}", "token"),
    ("token: 12345678901234567890", "token"),
    ("listen: 127.0.0.1:80", "listen"),
    ("listen: unix://runner.sock", "listen"),
    ('listen: "unix:///x\\ny"', "listen"),
    (f"listen: http://127.0.0.1\ntoken: {_TOKEN}", "listen"),
    (f"listen: http://127.0.0.1:99999\ntoken: {_TOKEN}", "listen"),
    (f"listen: http://127.0.0.1:x\ntoken: {_TOKEN}", "listen"),
    (f"listen: 'http://[::1:80'\ntoken: {_TOKEN}", "listen"),
    (f"listen: http://me@127.0.0.1:80\ntoken: {_TOKEN}", "listen"),
    (f"listen: http://127.0.0.1:80/api\ntoken: {_TOKEN}", "listen"),
    ("listen: http://127.0.0.1:8470", "token"),
    ("state_dir: ~nosuchuser/x", "~nosuchuser"),
    ("models: {roots: [~nosuchuser/x]}", "~nosuchuser"),
    ('state_dir: "/x\\0y"', "invisible"),
    ('state_dir: "/x\\x1by"', "invisible"),
    ("outputs: {mode: rw-r}", "outputs.mode"),
    ("quark: {entry_point: site}", "needs quark.script"),
    ("quark: {entry_point: other}", "quark.entry_point"),
    ("quark: {script: /q/my/ptq.py, checkout: /q}", "/q/my/ptq.py lies in the Quark checkout /q"),
    ("quark: {script: /m/ptq.py}\nmodels: {roots: [/x, /m]}", "/m/ptq.py lies in a folder of models /m"),
    ("quark: {script: /o/a/b.py}\noutputs: {roots: [/o/a]}", "/o/a/b.py lies in a folder of results /o/a"),
    ("quark: {script: /d/ptq.py}\ndatasets: {mirror: /d}", "/d/ptq.py lies in the dataset mirror /d"),
    ("quark: {script: /s/content/x/ptq.py}\nstate_dir: /s", "lies in the runner's state folder /s"),
    ("quark: {script: /srv/ptq.py}\noutputs: {roots: [/srv/out]}", "also holds a folder of results /srv/out"),
    ("no_such: 1", "no_such"),
    ("_env_prefix: X", "_env_prefix"),
    ("_cli_parse_args: true", "_cli_parse_args"),
    ("[" * 10_000, "nested too deeply"),
    ("[1", "not YAML"),
    ("2026-99-99", "YAML"),
    ("- 1", "mapping"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_a_wrong_setting_is_named_in_one_line(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "runner.yaml"
    file.write_text(text)
    with pytest.raises(BadRequest) as caught:
        load_settings(file)
    assert words in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert len(caught.value.message) < 600


def test_a_script_of_the_site_may_lie_in_a_folder_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "runner.yaml"
    file.write_text("quark: {script: ptq/our.py, checkout: q, entry_point: site}\nmodels: {roots: [m]}\nstate_dir: s\n")
    assert load_settings(file).quark.script == Path.cwd() / "ptq" / "our.py"


def test_a_link_does_not_bring_a_script_out_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "Quark" / "examples").mkdir(parents=True)
    (tmp_path / "site").symlink_to(tmp_path / "Quark" / "examples")
    file = tmp_path / "runner.yaml"
    file.write_text(f"quark: {{script: {tmp_path}/site/ptq.py, checkout: {tmp_path}/Quark}}\n")
    with pytest.raises(BadRequest, match="lies in the Quark checkout"):
        load_settings(file)


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "runner.yaml"
    file.write_bytes(b"token: \xff\n")
    with pytest.raises(BadRequest, match="is not YAML"):
        load_settings(file)


def test_a_variable_that_is_no_json_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTQ_RUNNER_MODELS", "[")
    with pytest.raises(BadRequest) as caught:
        load_settings(None)
    assert "models" in caught.value.message
    assert len(caught.value.message.splitlines()) == 1


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    file = tmp_path / "runner.yaml"
    file.write_text("token: sécret-0123456789\n")
    with pytest.raises(BadRequest) as caught:
        load_settings(file)
    assert "cret-0123" not in str(caught.value)
    file.write_text(_TCP)
    assert _TOKEN not in repr(load_settings(file))


@pytest.mark.parametrize("listen", ["http://127.0.0.1:8470", "http://[::1]:80", "http://runner.example:8470/"])
def test_an_address_with_its_port_is_taken(listen: str, tmp_path: Path) -> None:
    file = tmp_path / "runner.yaml"
    file.write_text(f"listen: '{listen}'\ntoken: {_TOKEN}\n")
    assert load_settings(file).listen_url == listen


def test_switches_of_the_program_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTQ_RUNNER_DEBUG", "1")
    monkeypatch.setenv("PTQ_RUNNER_CONFIG", "/x")
    assert load_settings(None).engine == "local"
