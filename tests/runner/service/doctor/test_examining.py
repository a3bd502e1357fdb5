"""The whole examination: every topic, whatever the host looks like, and what a program reads of it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from runner.errors import BadRequest, Broken
from runner.host.accelerators import hardware
from runner.host.tools import ToolAnswer
from runner.service.doctor import examine, examine_settings, view
from runner.service.doctor.examining import TOPICS, Examination, examined
from runner.service.doctor.subject import Subject, blocks, informs
from runner.settings import RunnerSettings
from schemas.artifacts.plan import Finding
from tests.runner.host.tools_on_path import tools
from tests.runner.service.doctor.hosts import CUDA, ROCM, facts, host

FILES = (
    "proc/meminfo",
    "proc/self/cgroup",
    "proc/self/mountinfo",
    "proc/sys/vm/max_map_count",
    "proc/1/cgroup",
    "proc/driver/nvidia/version",
    "sys/class/kfd/kfd/topology/nodes/1/properties",
    "sys/fs/cgroup/cgroup.subtree_control",
    "sys/fs/cgroup/memory.max",
    "dev/kfd",
    "dev/nvidiactl",
    "dev/dri/renderD128",
    "dev/shm",
    "opt/rocm/.info/version",
    "run/systemd/container",
    "Quark/quark/version.py",
    "Quark/examples/torch/language_modeling/llm_ptq/quantize_quark.py",
    "lib/amd_quark-0.13.dist-info/METADATA",
    "lib/quark/__init__.py",
)
TEXTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [b"gfx_target_version 90402\n", b"0::/a\n", b"max\n", b"65530\n", b"from quark.x import y\n", b"]" * 9]
    ),
)
ENVIRONMENT = st.dictionaries(
    st.sampled_from(
        ["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "container", "PATH", "HF_HOME"]
    ),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
)
SETTINGS = st.fixed_dictionaries(
    {
        "gpus": st.fixed_dictionaries(
            {"visible": st.none() | st.lists(st.text(max_size=4), max_size=3), "per_run": st.integers(1, 9)}
        ),
        "listen": st.sampled_from(["", "http://127.0.0.1:1", "http://h:1", "unix:///" + "y" * 200]),
    }
)
ANSWERS = st.dictionaries(
    st.sampled_from(["nvidia_smi", "amd_smi", "rocm_smi"]),
    st.text(max_size=40)
    | st.sampled_from(['{"gpu_data": [{"gpu": 0}]}', "0, H100, 1, 1, 5, GPU-1, 00000000:C1:00.0, 9.0\n"])
    | st.just(ToolAnswer(found=True, problem="did not answer within 15 s")),
)
FACTS = st.one_of(
    st.none(),
    st.builds(
        facts,
        torch_build=st.sampled_from([ROCM, CUDA]),
        python=st.text(max_size=8),
        quark_cli=st.none() | st.just("/x/quark-cli"),
        missing=st.dictionaries(st.sampled_from(["", "cli"]), st.lists(st.text(min_size=1, max_size=5), max_size=5)),
        requires_python=st.dictionaries(st.sampled_from(["torch", "amd-quark"]), st.text(max_size=9)),
        packages=st.dictionaries(
            st.sampled_from(["torch", "amd-quark", "transformers", "datasets"]), st.none() | st.text(max_size=8)
        ),
    ),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.dictionaries(st.sampled_from(FILES), TEXTS),
    answers=ANSWERS,
    chosen=SETTINGS,
    environment=ENVIRONMENT,
    told=FACTS,
)
def test_whatever_a_host_looks_like_every_check_ends_with_sentences(
    files: dict[str, bytes], answers: dict[str, Any], chosen: dict[str, Any], environment: dict[str, str], told: Any
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        for name, content in files.items():
            file = folder / "root" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        values = {**chosen, "token": "a-token-of-sixteen-letters", "quark": {"checkout": folder / "root/Quark"}}
        if told is not None:
            told = told.model_copy(update={"quark_path": str(folder / "root/lib/quark")})
        run = tools(**answers)
        found = hardware(told.witness if told else None, folder / "root", run)
        subject = _made(folder, values, facts=told, environment=environment, hardware=found, run=run)
        said = examined(subject)
        assert "check_failed" not in {finding.code for finding in said.findings}, said
        assert all(finding.message.endswith(".") for finding in said.findings)
        assert json.loads(said.as_json())["verdict"] == said.verdict
    finally:
        shutil.rmtree(folder)


def _made(folder: Path, values: dict[str, Any], **more: Any) -> Subject:
    """As `host`, but what lies in place of /dev/shm stays."""
    root = RunnerSettings.model_validate({"state_dir": folder / "state", **values})
    return Subject(root, root=folder / "root", **more)


def test_a_check_that_falls_says_so_and_hides_no_other(tmp_path: Path) -> None:
    def falls(_: Subject) -> Iterator[Finding]:
        yield informs("seen", "This was seen.")
        raise ValueError("two\nlines")

    def goes_on(_: Subject) -> Iterator[Finding]:
        yield blocks("later", "This was seen later.", "Mend it.")

    said = examined(host(tmp_path), {"odd": falls, "next": goes_on})
    assert [finding.code for finding in said.findings] == ["seen", "check_failed", "later"]
    assert said.exit_code == 1
    failed = next(finding for finding in said.findings if finding.code == "check_failed")
    assert "The check of odd could not be finished: ValueError: two lines." in failed.message


def test_a_host_without_an_interpreter_is_examined_all_the_same(tmp_path: Path) -> None:
    chosen = RunnerSettings.model_validate({"state_dir": tmp_path / "s", "quark": {"python": tmp_path / "none"}})
    said = examine(chosen, root=tmp_path, run=tools(), environment={})
    codes = {finding.code for finding in said.findings}
    assert said.verdict == "unfit"
    assert {"interpreter_missing", "no_roots", "accelerator_unknown", "no_shared_memory"} <= codes
    assert "check_failed" not in codes


def test_what_a_program_and_a_person_read() -> None:
    fit = Examination((informs("a", "All is well."),))
    unfit = examine_settings(BadRequest("bad_setting", "listen is wrong.", "Correct it."))
    assert (fit.verdict, fit.exit_code, unfit.verdict, unfit.exit_code) == ("fit", 0, "unfit", 1)
    assert json.loads(unfit.as_json()) == {
        "verdict": "unfit",
        "findings": [
            {"severity": "blocks", "code": "bad_setting", "message": "listen is wrong.", "hint": "Correct it."}
        ],
    }
    for said, words in ((fit, "Runs can work here."), (unfit, "Runs cannot work here: 1 of these block")):
        console = Console(width=200)
        with console.capture() as written:
            console.print(view(said))
        assert words in written.get()


@pytest.mark.parametrize("topic", TOPICS)
def test_an_engine_that_is_broken_stops_no_check(topic: str, tmp_path: Path) -> None:
    problem = Broken("engine_broken", "It does not load.", "Mend it.")
    said = examined(host(tmp_path, facts=None, problem=problem), {topic: TOPICS[topic]})
    assert "check_failed" not in {finding.code for finding in said.findings}
