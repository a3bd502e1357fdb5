"""The quantization interpreter: Python, torch, transformers and Quark, and whether their versions fit each other."""

from __future__ import annotations

from collections.abc import Iterator

from runner.host.interpreter_facts import InterpreterFacts
from runner.intake.versions import VersionRange, required_range
from runner.service.doctor.subject import Subject, blocks, informs, told, warns
from schemas.artifacts.plan import Finding

# Source: the installation check that amd-quark 0.13 carries; its metadata does not name torch.
_TORCH = VersionRange(">=2.2")


def engine(subject: Subject) -> Iterator[Finding]:
    """Whether the interpreter loads its engine, and whether it is one that the engine is made for."""
    python, facts = subject.settings.quark.python, subject.facts
    if subject.problem is not None:
        yield told(subject.problem)
    if subject.catalogue is not None:
        offer, versions = subject.catalogue, subject.catalogue.versions
        yield informs(
            "engine",
            f"{python} has Quark {versions.quark}, torch {versions.torch} and transformers "
            f"{versions.transformers}: {len(offer.schemes)} schemes, {len(offer.templates)} families.",
        )
    if facts is not None:
        yield from _python(facts)
        yield from _torch(facts)
        yield from _transformers(facts)
        yield from _requirements(facts)


def _python(facts: InterpreterFacts) -> Iterator[Finding]:
    for distribution, asked in facts.requires_python.items():
        if not VersionRange(asked).holds(facts.python):
            yield blocks(
                "python_range",
                f"{facts.executable} is Python {facts.python}, and {distribution} "
                f"{facts.packages.get(distribution) or ''} is made for Python {asked}.",
                "Make an environment with such a Python, install the engine there, and set quark.python to it.",
            )


def _torch(facts: InterpreterFacts) -> Iterator[Finding]:
    if facts.torch and not _TORCH.holds(facts.torch):
        yield blocks(
            "torch_range",
            f"torch {facts.torch} is older than {_TORCH.text.removeprefix('>=')}, which Quark needs.",
            f"Install a newer torch for the same accelerator with {facts.executable} -m pip.",
        )


def _transformers(facts: InterpreterFacts) -> Iterator[Finding]:
    wanted = required_range("transformers", "amd-quark", facts.quark_path)
    if wanted is not None and facts.transformers and not wanted.holds(facts.transformers):
        yield warns(
            "transformers_range",
            f"transformers {facts.transformers} is outside of {wanted.text}, the range of amd-quark {facts.quark}: "
            "models may not load, or load wrongly.",
            f"Run: {facts.executable} -m pip install 'transformers{wanted.text}'",
        )


def _requirements(facts: InterpreterFacts) -> Iterator[Finding]:
    absent = facts.missing.get("", [])
    if facts.quark and absent:
        yield warns(
            "requirements_missing",
            f"amd-quark {facts.quark} asks for {_listed(absent)}, not installed beside it.",
            f"Run: {facts.executable} -m pip install amd-quark=={facts.quark}",
        )
    for name, what in (
        ("accelerate", "Quark loads models with accelerate"),
        ("datasets", "Named calibration and evaluation data are read with datasets"),
    ):
        if facts.quark and facts.packages.get(name) is None:
            run = f"Run: {facts.executable} -m pip install {name}"
            yield warns(f"{name}_missing", f"{what}, which the quantization interpreter does not have.", run)
    if facts.quark and "gguf" in facts.packages and facts.packages["gguf"] is None:
        run = f"Where it is wanted, run: {facts.executable} -m pip install gguf"
        yield informs("gguf_missing", "Nothing can be exported as GGUF: the package gguf is not installed.", run)


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
