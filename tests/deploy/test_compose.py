"""compose.yaml: what it mounts, starts and asks fits the images, the settings and the programs."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bot.settings import WebSettings
from runner.settings import load_settings
from tests.deploy.files import DEPLOY, ROOT, SOCKET_FOLDER, compose, containerfile, with_defaults

RUNNERS = {"cpu": "runner-cpu", "amd": "runner-amd", "nvidia": "runner-nvidia"}
SERVICES = ["bot", *RUNNERS.values()]


def _service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = compose()["services"][name]
    return found


def _mounts(name: str) -> dict[str, str]:
    """Places in the container, each with what is mounted there."""
    mounts = {}
    for mount in _service(name)["volumes"]:
        source, target = mount.split(":")[:2] if isinstance(mount, str) else (mount["source"], mount["target"])
        mounts[with_defaults(target)] = with_defaults(source)
    return mounts


def test_these_are_the_services() -> None:
    assert sorted(compose()["services"]) == sorted(SERVICES)
    assert {profile: name for name in RUNNERS.values() for profile in _service(name)["profiles"]} == RUNNERS
    assert "profiles" not in _service("bot")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_kept_running_reaped_and_given_time(name: str) -> None:
    service = _service(name)
    assert (service["init"], service["restart"]) == (True, "unless-stopped")
    grace = load_settings(DEPLOY / "runner.example.yaml").limits.grace_seconds
    assert int(service["stop_grace_period"].removesuffix("s")) >= 2 * grace


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_built_from_files_that_are_there(name: str) -> None:
    build = _service(name)["build"]
    context = (DEPLOY / build["context"]).resolve()
    assert context == ROOT
    file = context / build["dockerfile"]
    assert file.is_file()
    declared = dict(one.rest.partition("=")[::2] for one in containerfile(file.name) if one.name == "ARG")
    for argument, value in build["args"].items():
        assert with_defaults(value) == declared[argument], "without variables compose builds what docker build does"


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_declared_and_paths_have_to_exist(name: str) -> None:
    for mount in _service(name)["volumes"]:
        if isinstance(mount, str):
            assert mount.split(":")[0] in compose()["volumes"]
        else:
            assert mount["bind"] == {"create_host_path": False}


def test_bot_and_runner_share_the_socket_and_nothing_else() -> None:
    bot = _mounts("bot")
    for name in RUNNERS.values():
        runner = _mounts(name)
        assert set(bot.items()) & set(runner.items()) == {(SOCKET_FOLDER, "socket")}
    assert _service("bot")["build"]["args"]["UID"] == _service("runner-cpu")["build"]["args"]["UID"]


def test_the_runner_finds_what_its_example_names() -> None:
    settings = load_settings(DEPLOY / "runner.example.yaml")
    for name in RUNNERS.values():
        mounts = _mounts(name)
        assert mounts[str(settings.state_dir)] == "runner-state"
        leases = str(settings.gpus.lease_dir)
        assert mounts[leases] == leases, "two daemons of one host would share out the same GPU"
        for folder in (*settings.models.roots, *settings.outputs.roots, settings.datasets.mirror):
            assert mounts[str(folder)] == str(folder), "people see paths on cards: the same inside and outside"
    assert str(settings.quark.python) == "/opt/quark/bin/python"


def test_models_and_datasets_are_only_read() -> None:
    settings = load_settings(DEPLOY / "runner.example.yaml")
    written = {str(root) for root in (*settings.outputs.roots, settings.gpus.lease_dir)}
    for mount in _service("runner-cpu")["volumes"]:
        if isinstance(mount, dict):
            assert mount.get("read_only", False) is (with_defaults(mount["target"]) not in written)


def test_amd_gets_its_devices_and_groups_by_number() -> None:
    service = _service("runner-amd")
    assert service["devices"] == ["/dev/kfd", "/dev/dri"]
    # A name would be looked up in the image, where it has another number or none.
    assert all(with_defaults(group).isdecimal() for group in service["group_add"])


def test_nvidia_gets_its_devices_through_the_toolkit() -> None:
    (device,) = _service("runner-nvidia")["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}


@pytest.mark.parametrize("name", SERVICES)
def test_healthchecks_are_programs(name: str) -> None:
    how, program, option, code = _service(name)["healthcheck"]["test"]
    assert (how, program, option) == ("CMD", "/opt/ptq/bin/python", "-c")
    ast.parse(code)


def test_the_page_is_asked_and_published_where_it_listens() -> None:
    port = WebSettings().port
    bot = _service("bot")
    assert f"http://127.0.0.1:{port}/health" in bot["healthcheck"]["test"][-1]
    assert bot["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_every_variable_is_explained() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    readme = (DEPLOY / "README.md").read_text(encoding="utf-8")
    assert not {name for name in used if name not in readme}


def _compose_program() -> list[str] | None:
    for program in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(program[0]) is not None:
            asked = subprocess.run([*program, "version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return program
    return None


@pytest.mark.optional
@pytest.mark.parametrize("profile", RUNNERS)
def test_compose_itself_accepts_it(profile: str, tmp_path: Path) -> None:
    program = _compose_program()
    if program is None:
        pytest.skip("Docker Compose is not installed")
    asked = subprocess.run(
        [*program, "--project-directory", str(tmp_path), "-f", str(DEPLOY / "compose.yaml"), "config", "--services"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COMPOSE_PROFILES": profile},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr
    assert sorted(asked.stdout.split()) == ["bot", RUNNERS[profile]]
