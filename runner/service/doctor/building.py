"""What Quark's kernels are compiled with when they are first used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from runner.service.doctor.subject import Subject, informs, warns
from schemas.artifacts.plan import Finding

# Where ROCm and CUDA put their compilers, beside PATH.
_COMPILERS = {"rocm": ("hipcc", "opt/rocm/bin/hipcc"), "cuda": ("nvcc", "usr/local/cuda/bin/nvcc")}
_PACKAGES = "On Debian and Ubuntu: apt install g++ ninja-build python3-dev, the latter of the interpreter's version."


def building(subject: Subject) -> Iterator[Finding]:
    """Compiler, ninja and headers, and the compiler for the GPU that torch was built for."""
    facts = subject.facts
    if facts is None:
        return
    parts = (
        ("C++ compiler", facts.compiler is not None),
        ("ninja", facts.ninja),
        ("Python.h", facts.python_headers is not False),
    )
    missing = [name for name, there in parts if not there]
    if missing:
        found = (
            f"The quantization interpreter finds no {' and no '.join(missing)}, with which Quark compiles its kernels."
        )
        yield warns("no_compiler", found, _PACKAGES)
    if (wanted := _COMPILERS.get(subject.backend)) is None:
        return
    name, usual = wanted
    found_at = shutil.which(name, path=subject.environment.get("PATH", os.defpath))
    if found_at is None and not (subject.root / usual).exists():
        yield warns(
            "no_gpu_compiler",
            f"{name} is neither on PATH nor in /{usual.rpartition('/')[0]}: Quark's kernels for the GPU cannot be "
            "compiled when they are first used.",
            f"Install {'ROCm' if name == 'hipcc' else 'the CUDA toolkit'} with its compiler, or add it to PATH.",
        )
    elif switch := subject.environment.get("QUARK_BUILD_DISABLE_JIT_FALLBACK"):
        yield informs("no_fallback", f"QUARK_BUILD_DISABLE_JIT_FALLBACK is {switch}: kernels are not compiled here.")
