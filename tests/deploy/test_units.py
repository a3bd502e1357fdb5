"""The systemd units: programs that exist, runs that survive a restart, GPUs that stay visible."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.settings import load_settings as load_bot_settings
from runner.settings import load_settings as load_runner_settings
from tests.deploy.files import DEPLOY, SOCKET_FOLDER, project, unit

RUNNER, BOT, TUNNEL = "ptq-runner.service", "ptq-bot.service", "ptq-tunnel@.service"
UNITS = [RUNNER, BOT, TUNNEL]


def test_these_are_the_units() -> None:
    assert sorted(path.name for path in (DEPLOY / "systemd").iterdir()) == sorted(UNITS)


@pytest.mark.parametrize(("name", "program"), [(RUNNER, "ptq-runner"), (BOT, "ptq-bot")])
def test_the_program_is_one_of_this_project(name: str, program: str) -> None:
    (command,) = unit(name)["ExecStart"]
    config = f"/etc/quark-ptq/{program.removeprefix('ptq-')}.yaml"
    assert shlex.split(command) == [f"/opt/ptq/bin/{program}", "--config", config, "serve"]
    assert program in project()["scripts"]


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_is_always_started_again_and_never_root(name: str) -> None:
    settings = unit(name)
    assert settings["Restart"] == ["always"]
    assert settings["StartLimitIntervalSec"] == ["0"]  # else systemd gives up after a few restarts
    assert settings["Type"] == ["exec"]  # nothing of ours tells systemd when it is ready
    assert settings["User"] == ["ptq"]
    assert settings["NoNewPrivileges"] == ["yes"]


def test_runs_outlive_their_daemon() -> None:
    settings = unit(RUNNER)
    assert settings["KillMode"] == ["process"]
    assert settings["OOMPolicy"] == ["continue"]
    # systemd empties a private /tmp when the daemon stops, and removes shared memory, while runs still use both.
    assert not {"PrivateTmp", "RemoveIPC", "DynamicUser", "RuntimeMaxSec"} & set(settings)


def test_a_run_may_get_a_memory_limit_of_its_own() -> None:
    settings = unit(RUNNER)
    assert settings["Delegate"] == ["memory"]
    assert "ProtectControlGroups" not in settings  # it makes the delegated group read-only
    assert "ReadWritePaths" in settings  # ProtectSystem=strict leaves /sys as it is


def test_runs_see_gpus_and_may_compile() -> None:
    # ProtectClock allows one device, and with that forbids all others.
    hiding = {"PrivateDevices", "DevicePolicy", "DeviceAllow", "ProtectClock"}
    forbidding = {"MemoryDenyWriteExecute", "SystemCallFilter", "NoExecPaths", "PrivateUsers"}
    settings = unit(RUNNER)
    assert not (hiding | forbidding) & set(settings)
    assert set(settings["SupplementaryGroups"][0].split()) == {"video", "render"}
    (path,) = settings["Environment"]
    python = load_runner_settings(DEPLOY / "runner.example.yaml").quark.python
    assert path.startswith("PATH=")
    assert str(python.parent) in path.removeprefix("PATH=").split(":")


def test_the_runner_may_write_where_its_example_says() -> None:
    example, settings = load_runner_settings(DEPLOY / "runner.example.yaml"), unit(RUNNER)
    assert settings["ProtectSystem"] == ["strict"]
    writable = {path.removeprefix("-") for line in settings["ReadWritePaths"] for path in line.split()}
    assert {str(root) for root in example.outputs.roots} | {"/tmp", "/var/tmp"} <= writable
    assert example.state_dir == Path("/var/lib") / settings["StateDirectory"][0]
    assert settings["StateDirectoryMode"] == ["0700"]


def test_the_socket_lies_where_the_bot_looks_for_it() -> None:
    example, settings = load_runner_settings(DEPLOY / "runner.example.yaml"), unit(RUNNER)
    assert str(example.socket_path) == f"{SOCKET_FOLDER}/runner.sock"
    assert f"/run/{settings['RuntimeDirectory'][0]}" == SOCKET_FOLDER
    assert settings["RuntimeDirectoryMode"] == ["0700"]
    bot = load_bot_settings(DEPLOY / "bot.example.yaml")
    assert bot.runners[0].url == example.listen_url
    # Its mode is 0600, so only this user reaches it.
    assert unit(BOT)["User"] == settings["User"]


def test_the_bot_has_its_state_and_not_the_runners() -> None:
    settings = unit(BOT)
    assert load_bot_settings(DEPLOY / "bot.example.yaml").state_dir == Path("/var/lib") / settings["StateDirectory"][0]
    runner = load_runner_settings(DEPLOY / "runner.example.yaml")
    assert settings["InaccessiblePaths"] == [f"-{runner.state_dir}"]
    assert "ReadWritePaths" not in settings


def test_the_tunnel_joins_the_two_sockets() -> None:
    settings = unit(TUNNEL)
    words = shlex.split(settings["ExecStart"][0])
    near, far = words[words.index("-L") + 1].split(":")
    assert near == f"/run/{settings['RuntimeDirectory'][0]}/runner.sock"
    assert far == str(load_runner_settings(DEPLOY / "runner.example.yaml").socket_path)
    assert {"BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes"} <= set(words)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / name).read_text(encoding="utf-8")
    for program in ("/opt/ptq/bin/ptq-runner", "/opt/ptq/bin/ptq-bot", "/usr/bin/ssh"):
        text = text.replace(program, sys.executable)  # it looks whether the program is there
    copy = tmp_path / name.replace("@", "@gpu1")
    copy.write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(copy)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr.strip()) == (0, "")
