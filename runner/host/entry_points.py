"""The programs that can quantize on this host: the checkout's quantize_quark.py, quark-cli, our own, a site's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import runner
from runner.errors import NotHere, RunnerError
from runner.host.interpreter_facts import InterpreterFacts
from runner.settings import RunnerSettings, script_misplaced

EntryPointName = Literal["quantize_quark", "quark_cli", "own", "site"]

OWN_SCRIPT = Path(runner.__file__).resolve().parent / "ptq" / "quantize.py"
IN_CHECKOUT = Path("examples/torch/language_modeling/llm_ptq/quantize_quark.py")


def entry_points(settings: RunnerSettings, facts: InterpreterFacts | None) -> dict[str, str]:
    """The entry points that are there and where, by name. Those that are not there are left out."""
    found: dict[str, str] = {}
    names: tuple[EntryPointName, ...] = ("quantize_quark", "quark_cli", "own", "site")
    for name in names:
        try:
            found[name] = str(entry_point(name, settings, facts))
        except NotHere:
            continue
    return found


def entry_point(name: EntryPointName, settings: RunnerSettings, facts: InterpreterFacts | None) -> Path:
    """The program of an entry point. Raises NotHere [entry_point_missing] with a sentence that says what is missing."""
    match name:
        case "own":
            return OWN_SCRIPT
        case "quantize_quark":
            return _quantize_quark(settings.quark.checkout)
        case "quark_cli":
            return _quark_cli(settings, facts)
        case "site":
            return _site(settings)


def wanted_entry_point_problem(settings: RunnerSettings, facts: InterpreterFacts | None) -> RunnerError | None:
    """What is wrong with the entry point or the checkout that runner.yaml names; None when nothing is."""
    wanted = settings.quark.entry_point
    names: list[EntryPointName] = [] if wanted == "auto" else [wanted]
    if settings.quark.checkout is not None and wanted == "auto":
        names = ["quantize_quark"]
    if settings.quark.script is not None and wanted != "site":
        names.append("site")
    try:
        for name in names:
            entry_point(name, settings, facts)
    except NotHere as problem:
        return problem
    return None


def _quantize_quark(checkout: Path | None) -> Path:
    if checkout is None:
        raise NotHere(
            "entry_point_missing",
            "quantize_quark.py is in no package, and no Quark checkout is configured.",
            "Clone amd/Quark on this host and set quark.checkout in runner.yaml to that folder.",
        )
    script = checkout / IN_CHECKOUT
    if not os.path.isfile(script):  # noqa: PTH113 - false, not an error, where looking is not allowed
        raise NotHere(
            "entry_point_missing",
            f"The Quark checkout {checkout} has no {IN_CHECKOUT}.",
            "Set quark.checkout in runner.yaml to the top folder of a clone of amd/Quark.",
        )
    return script


def _quark_cli(settings: RunnerSettings, facts: InterpreterFacts | None) -> Path:
    if facts is None or facts.quark_cli is None:
        raise NotHere(
            "entry_point_missing",
            f"There is no quark-cli beside the interpreter {settings.quark.python}.",
            f"Install it: {settings.quark.python} -m pip install 'amd-quark[cli]'.",
        )
    return Path(facts.quark_cli)


def _site(settings: RunnerSettings) -> Path:
    script = settings.quark.script
    if script is None:
        raise NotHere(
            "entry_point_missing",
            "No script of this site is configured.",
            "Set quark.script in runner.yaml to a script in a folder of its own.",
        )
    misplaced = script_misplaced(settings)
    if misplaced is not None:
        raise NotHere("entry_point_missing", f"{misplaced}.", "Put it into a folder of its own.")
    if not os.path.isfile(script) or os.path.islink(script):  # noqa: PTH113, PTH114 - false where looking is not allowed
        raise NotHere(
            "entry_point_missing",
            f"The script {script} of this site is not there, or is no regular file.",
            "Correct quark.script in runner.yaml, or put the script back.",
        )
    return script
