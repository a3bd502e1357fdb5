from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from runner.errors import Broken
from runner.host.facts import described_environment, environment_answer
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts, TorchBuild
from schemas.api import EnvironmentAnswer
from schemas.artifacts.environment import Hardware, Software
from schemas.catalog import Catalogue
from tests.runner.host.probes import FACTS as PROBED
from tests.runner.host.probes import Probes
from tests.runner.host.settings import settings_in
from tests.runner.intake.engine import CATALOGUE, FACTS

HOST = (Software(os="Debian", python="3.11.7", containerized=False), Hardware(accelerator="cpu"))


def described(
    facts: InterpreterFacts | None, catalogue: Catalogue | None = None, problem: Broken | None = None
) -> EnvironmentAnswer:
    return described_environment(
        facts=facts, catalogue=catalogue, problem=problem, host=HOST, programs={"own": "/q.py"}
    )


def test_a_catalogue_proves_that_torch_and_the_engine_load() -> None:
    answer = described(FACTS, CATALOGUE)
    torch, quark = answer.pytorch_install_result, answer.quark_install_result
    assert (torch.status, torch.pytorch_version, torch.accelerator_tag) == ("ok", "2.13.0+cpu", "cpu")
    assert torch.verification.import_ok
    assert (quark.status, quark.quark_version) == ("ok", "0.13")
    assert quark.verification.import_ok
    assert quark.verification.kernel_ok is None, "nobody looked at the kernels"
    assert quark.environment.torch_backend == "cpu"
    assert quark.extras_installed.llm_ptq_deps
    assert not quark.extras_installed.onnxruntime
    assert quark.entry_points == {"own": "/q.py"}


def test_what_was_not_tried_is_not_called_good() -> None:
    answer = described(FACTS)
    assert answer.quark_install_result.status == "skipped"
    assert answer.pytorch_install_result.status == "skipped"
    assert not answer.quark_install_result.verification.import_ok
    assert "not loaded yet" in str(answer.quark_install_result.failure_reason)


def test_an_engine_that_fails_to_load_failed() -> None:
    answer = described(FACTS, None, Broken("engine_broken", "amd-quark cannot be loaded.", "Repair it."))
    assert answer.quark_install_result.status == "failed"
    assert answer.quark_install_result.failure_reason == "amd-quark cannot be loaded. Repair it."


def test_missing_packages_are_failures_of_their_own() -> None:
    packages = FACTS.packages | {"torch": None, "amd-quark": None}
    answer = described(FACTS.model_copy(update={"packages": packages}))
    assert answer.pytorch_install_result.status == "failed"
    assert "torch is not installed" in str(answer.pytorch_install_result.failure_reason)
    assert answer.quark_install_result.status == "failed"
    assert "amd-quark is not installed" in str(answer.quark_install_result.failure_reason)
    assert answer.quark_install_result.environment.torch_backend == "unknown"


def test_a_missing_interpreter_is_told_in_both_documents() -> None:
    answer = described(None, None, Broken("interpreter_missing", "It cannot be started.", "Set quark.python."))
    for document in (answer.pytorch_install_result, answer.quark_install_result):
        assert document.status == "failed"
        assert document.failure_reason == "It cannot be started. Set quark.python."


def test_the_backend_of_torch() -> None:
    for build, backend in ((TorchBuild(hip="7.1", tag="rocm7.1"), "rocm"), (TorchBuild(cuda="12.6"), "cuda")):
        facts = FACTS.model_copy(update={"torch_build": build})
        assert described(facts, CATALOGUE).quark_install_result.environment.torch_backend == backend


def test_the_whole_answer_of_a_host(tmp_path: Path) -> None:
    probes = Probes(tmp_path / "probes")
    interpreter = Interpreter(Path(sys.executable), tmp_path / "cache", probes=probes.folder)
    settings = settings_in(tmp_path)
    before = asyncio.run(environment_answer(settings, interpreter))
    assert before.quark_install_result.status == "skipped"
    assert probes.starts("catalogue") == 0, "nobody waits for the engine who only asks for facts"
    after = asyncio.run(environment_answer(settings, interpreter, wait=True))
    assert after.quark_install_result.status == "ok"
    assert after.env_context.environment.python == "3.11.7"
    assert after.env_context.hardware.evidence


def test_a_catalogue_of_replaced_packages_proves_nothing(tmp_path: Path) -> None:
    probes = Probes(tmp_path / "probes")
    interpreter = Interpreter(Path(sys.executable), tmp_path / "cache", probes=probes.folder)

    async def steps() -> EnvironmentAnswer:
        await interpreter.catalogue()
        probes.tell_facts(PROBED | {"packages": PROBED["packages"] | {"amd-quark": "0.14"}})
        await interpreter.facts(force=True)
        return await environment_answer(settings_in(tmp_path), interpreter)

    answer = asyncio.run(steps())
    assert (answer.quark_install_result.status, answer.quark_install_result.quark_version) == ("skipped", "0.14")


def test_a_broken_interpreter_is_an_answer_and_no_error(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path / "python", tmp_path / "cache")
    answer = asyncio.run(environment_answer(settings_in(tmp_path), interpreter))
    assert answer.env_context.environment.python == "unknown"
    assert answer.env_context.environment.python_executable == str(tmp_path / "python")
    assert answer.quark_install_result.status == "failed"
