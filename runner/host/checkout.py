"""Whether a Quark checkout fits the installed package: its script is read as text, never imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from runner.host.entry_points import IN_CHECKOUT
from runner.host.interpreter_facts import InterpreterFacts
from runner.settings import RunnerSettings

_SHOWN = 3  # names in a sentence
_LARGEST = 4 << 20  # bytes of a source file that is looked at
_VERSION = re.compile(r"^__version__\s*=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)


def unfit_entry_points(settings: RunnerSettings, facts: InterpreterFacts | None) -> dict[str, str]:
    """The entry points that are there and would end at their start, each with why, as the end of a sentence.

    A checkout of another release may take from Quark what the installed package does not have. Looked at once for each
    state of the script and of the package.
    """
    checkout, installed = settings.quark.checkout, facts.quark_path if facts else None
    if checkout is None or facts is None or installed is None:
        return {}
    try:
        status = (checkout / IN_CHECKOUT).stat()
    except OSError:
        return {}
    lacking = _lacking(checkout, installed, (status.st_mtime_ns, status.st_size, facts.quark))
    if not lacking:
        return {}
    shown = ", ".join(lacking[:_SHOWN]) + (f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else "")
    return {"quantize_quark": f"needs {shown}, which the installed Quark does not have"}


@lru_cache(maxsize=8)
def _lacking(checkout: Path, installed: str, _: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(missing_names(checkout, installed))


def checkout_version(checkout: Path) -> str | None:
    """The version in the checkout's quark/version.py; None where the file, which a build writes, is not there."""
    found = _VERSION.search(_text(checkout / "quark" / "version.py"))
    return found.group(1) if found else None


def missing_names(checkout: Path, installed: str | None) -> list[str]:
    """What quantize_quark.py takes from Quark and the installed package does not have.

    As `module.name` for what it imports, and as `name(keyword=)` for what it hands to a function that it imports.
    `installed` is the package's folder. A name counts as there when its module's text has it as a word, and a function
    is looked at only where it is defined once: a script that works is never suspected. Empty where either side cannot
    be read.
    """
    if installed is None or not Path(installed).is_dir():
        return []
    package = Path(installed).parent
    script = _parsed(_text(checkout / IN_CHECKOUT))
    imported = list(_imports(script))
    absent = [f"{module}.{name}" for module, name in imported if not _has(package, module, name)]
    return [*absent, *_unknown_keywords(script, imported, package)]


def _unknown_keywords(script: ast.Module, imported: list[tuple[str, str]], package: Path) -> Iterator[str]:
    modules = {name: module for module, name in imported}
    calls = [node for node in ast.walk(script) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    handed: dict[str, set[str]] = {}
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        if name in modules:
            handed.setdefault(name, set()).update(keyword.arg for keyword in call.keywords if keyword.arg)
    for name, keywords in handed.items():
        taken = _parameters(package, modules[name], name)
        if taken is not None:
            yield from (f"{name}({keyword}=)" for keyword in sorted(keywords - taken))


def _parameters(package: Path, module: str, name: str) -> set[str] | None:
    """The parameters of a function of a module or of what lies below it; None where that is not certain."""
    place = package.joinpath(*module.split("."))
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    texts = (text for text in map(_text, files) if f"def {name}(" in text)
    found = [
        node for text in texts for node in _parsed(text).body if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    if len(found) != 1 or found[0].args.kwarg is not None:
        return None
    arguments = found[0].args
    return {argument.arg for argument in (*arguments.args, *arguments.kwonlyargs)}


def _parsed(text: str) -> ast.Module:
    """The syntax of a text; of nothing where it is no program."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.parse("")


def _imports(script: ast.Module) -> Iterator[tuple[str, str]]:
    for node in script.body:  # those within functions run only when they are needed
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "quark":
            yield from ((node.module, alias.name) for alias in node.names if alias.name != "*")


def _has(package: Path, module: str, name: str) -> bool:
    place = package.joinpath(*module.split("."))
    inside = place.is_dir()
    if inside and ((place / name).is_dir() or (place / f"{name}.py").is_file()):
        return True
    text = _text(place / "__init__.py" if inside else place.with_suffix(".py"))
    return re.search(rf"\b{re.escape(name)}\b", text) is not None or "import *" in text


def _text(path: Path) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8") if path.is_file() and path.stat().st_size <= _LARGEST else ""
    except (OSError, UnicodeDecodeError):
        return ""
