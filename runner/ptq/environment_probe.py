"""Say what an interpreter has installed, quickly: nothing heavy is imported, versions are read as text.

    python environment_probe.py

Prints one line of JSON and exits with 0:

    python, executable, prefix     of the interpreter that runs this file
    packages                       distribution -> version, null where it is not installed
    torch_build                    {cuda, hip, tag}: "12.6", "7.1", and cpu, cu126, rocm7.1; all null without torch
    quark_path                     the folder of the engine's package, or null
    quark_cli                      the console script beside the interpreter, or null
    ninja, compiler,               what the engine needs to build its kernels: whether ninja is there, the path of a C++
    python_headers                 compiler or null, and whether Python.h is there
    requires_python                distribution -> the range of Python that it asks for, where it asks for one
    missing                        what amd-quark asks for and is not there: extra ("" for itself) -> names

Standard library only. Takes about 0.1 s.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

PACKAGES = (
    "torch",
    "torchvision",
    "torchaudio",
    "transformers",
    "amd-quark",
    "accelerate",
    "datasets",
    "onnxruntime",
    "huggingface_hub",
    "safetensors",
    "tokenizers",
    "sentencepiece",
    "tiktoken",
    "gguf",
    "numpy",
    "ninja",
    "timm",
    "evaluate",
    "lm_eval",
    "compressed-tensors",
)


_ENGINE = "amd-quark"
_BOUND = (_ENGINE, "torch", "transformers")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def main() -> int:
    """Print the document and return the exit status."""
    print(json.dumps(environment()), flush=True)
    return 0


def environment() -> dict[str, Any]:
    """The whole document."""
    scripts = Path(sys.executable).parent
    quark = package_folder("quark")
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "packages": {name: version(name) for name in PACKAGES},
        "torch_build": torch_build(),
        "quark_path": str(quark) if quark else None,
        "quark_cli": _program("quark-cli", scripts),
        "ninja": _program("ninja", scripts) is not None or shutil.which("ninja") is not None,
        "compiler": shutil.which(os.environ.get("CXX") or "c++") or shutil.which("g++") or shutil.which("clang++"),
        "python_headers": (Path(sysconfig.get_path("include")) / "Python.h").is_file(),
        "requires_python": {name: asked for name in _BOUND if (asked := required_python(name))},
        "missing": missing(_ENGINE),
    }


def version(distribution: str) -> str | None:
    """The installed version by the distribution's metadata; None where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def required_python(distribution: str) -> str | None:
    """The range of Python that an installed distribution asks for, such as ">=3.11,<3.14"."""
    try:
        asked = importlib.metadata.metadata(distribution).json.get("requires_python")
    except importlib.metadata.PackageNotFoundError:
        return None
    return asked if isinstance(asked, str) else None


def missing(distribution: str) -> dict[str, list[str]]:
    """What an installed distribution asks for and is not there, by extra; without the extras that lack nothing.

    A requirement with a condition of its own (a platform, a version of Python) is left out: it may not hold here.
    """
    try:
        requirements = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    absent: dict[str, list[str]] = {}
    for requirement in requirements:
        found = _REQUIREMENT.fullmatch(requirement.strip())
        if found is None:
            continue
        name, condition = found.group(1), (found.group(2) or "").strip()
        extra = _EXTRA.fullmatch(condition)
        if (not condition or extra) and version(name) is None:
            absent.setdefault(extra.group(1) if extra else "", []).append(name)
    return absent


def package_folder(name: str) -> Path | None:
    """Where a package would be imported from, without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


def torch_build() -> dict[str, str | None]:
    """What torch was built for, from the text of its version.py: {cuda, hip, tag}."""
    folder = package_folder("torch")
    try:
        text = (folder / "version.py").read_text(encoding="utf-8") if folder else ""
    except OSError:
        text = ""
    return read_torch_build(text)


def read_torch_build(text: str) -> dict[str, str | None]:
    """{cuda, hip, tag} from the text of a torch/version.py.

    The tag is the local part of the version, such as cpu or rocm7.1. A build without one is named by its CUDA or HIP.
    """
    whole, cuda, hip = (_assigned(text, name) for name in ("__version__", "cuda", "hip"))
    hip = ".".join(hip.split(".")[:2]) if hip else None  # "7.1.25424-4179531dcd": the rest names a build of HIP itself
    tag = whole.partition("+")[2] if whole else ""
    if not tag and cuda:
        tag = "cu" + cuda.replace(".", "")
    elif not tag and hip:
        tag = "rocm" + hip
    return {"cuda": cuda, "hip": hip, "tag": tag or None}


def _assigned(text: str, name: str) -> str | None:
    """The string assigned to a name at the start of a line, with or without an annotation."""
    found = re.search(rf"^{name}\s*(?::[^=\n]*)?=\s*['\"]([^'\"]*)['\"]", text, re.MULTILINE)
    return found.group(1) if found else None


def _program(name: str, folder: Path) -> str | None:
    path = folder / name
    return str(path) if path.is_file() and os.access(path, os.X_OK) else None


if __name__ == "__main__":
    sys.exit(main())
