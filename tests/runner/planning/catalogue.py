"""What amd-quark 0.13 offers, as recorded from an installation, and parts of it for tests."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from schemas.catalog import Catalogue

RECORDED = Path(__file__).parents[2] / "data" / "catalogue-0.13.json"


@cache
def recorded() -> Catalogue:
    """The whole recorded catalogue; its torch is a build for the CPU."""
    return Catalogue.model_validate(json.loads(RECORDED.read_text(encoding="utf-8")))


def with_gpu_torch() -> Catalogue:
    """The same engine with a torch that uses GPUs."""
    return with_versions(torch="2.13.0+rocm7.1", torch_build="rocm7.1")


def with_versions(**changes: Any) -> Catalogue:
    """The same engine with other versions."""
    found = recorded()
    return found.model_copy(update={"versions": found.versions.model_copy(update=changes)})


def without_schemes(*names: str) -> Catalogue:
    """An engine that lacks some schemes."""
    found = with_gpu_torch()
    kept = {name: scheme for name, scheme in found.schemes.items() if name not in names}
    return found.model_copy(update={"schemes": kept})
