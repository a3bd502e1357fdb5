"""The Containerfiles: what they copy exists, what they start is a program of this project, nobody is root."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from tests.deploy.files import DEPLOY, ROOT, SOCKET_FOLDER, Instruction, containerfile, project

NAMES = ["bot.Containerfile", "runner.Containerfile"]
KNOWN = {"FROM", "ARG", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD"}


def _of(instructions: list[Instruction], name: str) -> list[Instruction]:
    return [one for one in instructions if one.name == name]


def _defaults(instructions: list[Instruction]) -> dict[str, str]:
    return dict(one.rest.split("=", 1) for one in _of(instructions, "ARG"))


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_known(name: str) -> None:
    instructions = containerfile(name)
    assert {one.name for one in instructions} <= KNOWN
    assert instructions[-1].name == "CMD"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_copied_exists(name: str) -> None:
    instructions = containerfile(name)
    stages = {one.words[2] for one in _of(instructions, "FROM") if one.words[1:2] == ["AS"]}
    for copy in _of(instructions, "COPY"):
        if copy.words[0].startswith("--from="):
            assert copy.words[0].removeprefix("--from=") in stages
        else:
            missing = [source for source in copy.words[:-1] if not (ROOT / source).exists()]
            assert not missing, f"{name} copies {missing}"


@pytest.mark.parametrize("name", NAMES)
def test_what_the_package_is_built_from_is_copied(name: str) -> None:
    copied = {source for copy in _of(containerfile(name), "COPY") for source in copy.words[:-1]}
    needed = {"pyproject.toml", project()["readme"], *project()["license-files"], "schemas", "runner", "bot"}
    assert needed <= copied


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_declared_in_its_stage(name: str) -> None:
    instructions = containerfile(name)
    for run in _of(instructions, "RUN"):
        declared = {one.rest.partition("=")[0] for one in _of(instructions, "ARG") if one.stage == run.stage}
        assert set(re.findall(r"\$\{?([A-Z_]+)", run.rest)) <= declared


@pytest.mark.parametrize("name", NAMES)
def test_the_program_runs_as_a_user_without_rights(name: str) -> None:
    instructions = containerfile(name)
    last = instructions[-1].stage
    users = [one.rest for one in _of(instructions, "USER") if one.stage == last]
    assert users == ["ptq"]
    makes = " ".join(one.rest for one in _of(instructions, "RUN") if one.stage == last)
    assert '--uid "$UID" --gid ptq' in makes
    assert SOCKET_FOLDER in makes  # an empty volume takes owner and mode of the image's folder
    assert _defaults(instructions)["UID"] == _defaults(containerfile(NAMES[0]))["UID"] != "0"


@pytest.mark.parametrize(("name", "program"), [(NAMES[0], "ptq-bot"), (NAMES[1], "ptq-runner")])
def test_the_program_is_one_of_this_project(name: str, program: str) -> None:
    command = json.loads(containerfile(name)[-1].rest)
    assert program in project()["scripts"]
    assert command[-4:] == [program, "--config", f"/etc/quark-ptq/{program.removeprefix('ptq-')}.yaml", "serve"]


def test_the_bot_has_its_platforms_and_no_engine() -> None:
    installs = [one.rest for one in _of(containerfile("bot.Containerfile"), "RUN") if "pip install" in one.rest]
    asked = {extra for line in installs for found in re.findall(r"\[([a-z,]+)\]", line) for extra in found.split(",")}
    assert asked == {"slack", "discord"}
    assert asked <= set(project()["optional-dependencies"])


def test_the_runner_has_the_torch_that_the_engine_is_pinned_to() -> None:
    torch = _defaults(containerfile("runner.Containerfile"))["TORCH"]
    assert torch in project()["optional-dependencies"]["quark"]


def test_the_runner_keeps_the_engine_out_of_its_own_environment() -> None:
    runs = " ".join(one.rest for one in _of(containerfile("runner.Containerfile"), "RUN"))
    assert "--python /opt/quark/bin/python '/src[quark]'" in runs
    assert "--python /opt/ptq/bin/python /src" in runs


def test_the_shell_script_is_sound() -> None:
    script = DEPLOY / "containers" / "keep-runner.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    script = DEPLOY / "containers" / "keep-runner.sh"
    told = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
    assert not told.stdout
