"""The environment of this host as the published documents: env_context, pytorch_ and quark_install_result."""

from __future__ import annotations

import asyncio

from runner.errors import RunnerError
from runner.host.accelerators import hardware
from runner.host.entry_points import entry_points
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.software import software
from runner.settings import RunnerSettings
from schemas.api import EnvironmentAnswer
from schemas.artifacts.environment import EnvContext, Hardware, Software
from schemas.artifacts.installation import (
    PytorchInstallResult,
    PytorchVerification,
    QuarkEnvironment,
    QuarkExtras,
    QuarkInstallResult,
    QuarkVerification,
    Status,
)
from schemas.catalog import Catalogue

_LLM_PACKAGES = ("transformers", "accelerate", "datasets")
_NO_TORCH = "torch is not installed in the quantization interpreter."
_NO_QUARK = "amd-quark is not installed in the quantization interpreter."
_NOT_LOADED_YET = "The engine is installed and was not loaded yet, so nothing is proven."


async def environment_answer(
    settings: RunnerSettings, interpreter: Interpreter, *, wait: bool = False
) -> EnvironmentAnswer:
    """Facts of the host and of its quantization interpreter. What is broken is said in the documents, not raised.

    Loading the engine takes up to a minute: without `wait` only what is known already of that is told.
    """
    facts: InterpreterFacts | None = None
    problem: RunnerError | None = None
    try:
        facts = await interpreter.facts()
        if wait:
            await interpreter.catalogue()
    except RunnerError as error:
        problem = error
    witness = facts.witness if facts else None
    found = await asyncio.to_thread(hardware, witness)
    described = await asyncio.to_thread(
        software, facts.python if facts else "unknown", facts.executable if facts else str(interpreter.python)
    )
    catalogue = interpreter.known_catalogue
    if catalogue and facts and catalogue.versions != facts.versions():
        catalogue = None  # it tells of packages that have been replaced since
    return described_environment(
        facts=facts,
        catalogue=catalogue,
        problem=problem,
        host=(described, found),
        programs=entry_points(settings, facts),
    )


def described_environment(
    *,
    facts: InterpreterFacts | None,
    catalogue: Catalogue | None,
    problem: RunnerError | None,
    host: tuple[Software, Hardware],
    programs: dict[str, str],
) -> EnvironmentAnswer:
    """Put the documents together from what was found."""
    described, found = host
    return EnvironmentAnswer(
        env_context=EnvContext(environment=described, hardware=found),
        pytorch_install_result=_pytorch(facts, catalogue, problem),
        quark_install_result=_quark(
            facts, catalogue, problem, (described.python, described.python_executable), programs
        ),
    )


def _pytorch(
    facts: InterpreterFacts | None, catalogue: Catalogue | None, problem: RunnerError | None
) -> PytorchInstallResult:
    if facts is None or facts.torch is None:
        return PytorchInstallResult(
            status="failed",
            pytorch_version=None,
            accelerator_tag=None,
            verification=PytorchVerification(import_ok=False),
            failure_reason=str(problem) if facts is None and problem else _NO_TORCH,
        )
    status, reason = _outcome(catalogue, problem)
    return PytorchInstallResult(
        status=status,
        pytorch_version=facts.torch,
        accelerator_tag=facts.torch_build.tag,
        torchvision_version=facts.packages.get("torchvision"),
        torchaudio_version=facts.packages.get("torchaudio"),
        # The engine's catalogue cannot be read without importing torch; GPUs are counted by the run itself.
        verification=PytorchVerification(import_ok=catalogue is not None),
        failure_reason=reason,
    )


def _quark(
    facts: InterpreterFacts | None,
    catalogue: Catalogue | None,
    problem: RunnerError | None,
    python: tuple[str, str],
    programs: dict[str, str],
) -> QuarkInstallResult:
    witness = facts.witness if facts else None
    packages = facts.packages if facts else {}
    status, reason = _outcome(catalogue, problem)
    if problem is None and facts and facts.quark is None:
        status, reason = "failed", _NO_QUARK
    return QuarkInstallResult(
        status=status,
        quark_version=facts.quark if facts else None,
        environment=QuarkEnvironment(
            python_executable=python[1],
            python_version=python[0],
            quark_module_path=facts.quark_path if facts else None,
            torch_version=facts.torch if facts else None,
            torch_backend=witness.backend if witness else "unknown",
            transformers_version=facts.transformers if facts else None,
        ),
        extras_installed=QuarkExtras(
            onnxruntime=packages.get("onnxruntime") is not None,
            llm_ptq_deps=all(packages.get(name) for name in _LLM_PACKAGES),
        ),
        # What is proven: a catalogue needs the engine's import. Nothing else was tried.
        verification=QuarkVerification(import_ok=catalogue is not None),
        entry_points=programs,
        failure_reason=reason,
    )


def _outcome(catalogue: Catalogue | None, problem: RunnerError | None) -> tuple[Status, str | None]:
    """Whether the engine is shown to load. "skipped" says that nobody tried yet, since that takes a minute."""
    if problem:
        return "failed", str(problem)
    return ("ok", None) if catalogue else ("skipped", _NOT_LOADED_YET)
