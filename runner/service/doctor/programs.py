"""The entry points: which of the programs that can quantize are usable here, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.errors import NotHere
from runner.host.checkout import checkout_version, unfit_entry_points
from runner.host.entry_points import EntryPointName, entry_point
from runner.service.doctor.subject import Subject, blocks, informs, warns
from schemas.artifacts.plan import Finding

_RELEASE = "Check out the release that is installed, or let our own script run (quark.entry_point own)."
_NAMES: tuple[EntryPointName, ...] = ("quantize_quark", "quark_cli", "own", "site")


def programs(subject: Subject) -> Iterator[Finding]:
    """One finding for each entry point, and what is odd about the checkout."""
    unfit = unfit_entry_points(subject.settings, subject.facts)
    for name in _NAMES:
        yield from _program(name, subject, unfit.get(name))
    yield from _release(subject)


def _program(name: EntryPointName, subject: Subject, unfit: str | None) -> Iterator[Finding]:
    settings, facts = subject.settings, subject.facts
    wanted = settings.quark.entry_point == name
    try:
        path = entry_point(name, settings, facts)
    except NotHere as problem:
        configured = {"quantize_quark": settings.quark.checkout, "site": settings.quark.script}.get(name)
        if wanted or configured is not None:
            yield blocks(problem.code, problem.message, problem.hint)
        elif name != "site":
            yield informs("entry_point_absent", f"{name} is not usable here: {problem.message}", problem.hint)
        return
    if unfit is not None:
        say = blocks if wanted else warns
        message = f"{name} of the checkout {settings.quark.checkout} {unfit}: it would end at its start"
        yield say("checkout_differs", f"{message}{'' if wanted else ', so that auto does not take it'}.", _RELEASE)
        return
    if name == "quark_cli":
        yield from _command_line(subject, path, wanted)
    else:
        yield informs("entry_point", f"{name} is usable: {path}.")


def _command_line(subject: Subject, path: Path, wanted: bool) -> Iterator[Finding]:
    """quark-cli needs an extra of its own and a GPU. Source: quark-cli of amd-quark 0.13."""
    facts, say = subject.facts, blocks if wanted else informs
    absent = facts.missing.get("cli", []) if facts else []
    if facts is not None and absent:
        shown = ", ".join(absent[:4]) + (f" and {len(absent) - 4} more" if len(absent) > 4 else "")
        run = f"Run: {facts.executable} -m pip install 'amd-quark[cli]=={facts.quark}'"
        yield say("cli_extra_missing", f"quark_cli ({path}) cannot start: its extra lacks {shown}.", run)
    elif subject.hardware.accelerator == "cpu" or subject.backend == "cpu":
        yield say("cli_without_gpu", f"quark_cli ({path}) does not work without a GPU.", "Let another entry point run.")
    else:
        yield informs("entry_point", f"quark_cli is usable: {path}.")


def _release(subject: Subject) -> Iterator[Finding]:
    """A checkout of another release may call what the installed package does not have, or the other way round."""
    checkout, facts = subject.settings.quark.checkout, subject.facts
    if checkout is None or facts is None or facts.quark is None:
        return
    version = checkout_version(checkout)
    if version is not None and version != facts.quark:
        message = f"The checkout {checkout} is of Quark {version}, and the interpreter has {facts.quark}."
        yield warns("checkout_differs", message, _RELEASE)
