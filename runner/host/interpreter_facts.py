"""What the quantization interpreter has installed, and what its engine offers, read from the probes' documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from runner.host import descriptions
from runner.host.accelerators import TorchWitness
from schemas.catalog import Catalogue, Scheme, Template, TensorSpec, Versions


class TorchBuild(BaseModel):
    """What torch was built for: versions of CUDA and HIP, and the wheel's tag (cpu, cu126, rocm7.1)."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    cuda: str | None = None
    hip: str | None = None
    tag: str | None = None


class InterpreterFacts(BaseModel):
    """The quantization interpreter: its version, its packages' versions (None where one is missing), torch's build."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    python: str
    executable: str
    packages: dict[str, str | None]
    torch_build: TorchBuild = TorchBuild()
    quark_path: str | None = None
    quark_cli: str | None = None
    ninja: bool = False
    compiler: str | None = None
    python_headers: bool | None = None
    requires_python: dict[str, str] = {}
    """Distribution -> the range of Python that it asks for."""
    missing: dict[str, list[str]] = {}
    """What amd-quark asks for and is not there: extra, or "" for amd-quark itself -> names."""

    @property
    def torch(self) -> str | None:
        """Version of torch."""
        return self.packages.get("torch")

    @property
    def transformers(self) -> str | None:
        """Version of transformers."""
        return self.packages.get("transformers")

    @property
    def quark(self) -> str | None:
        """Version of amd-quark."""
        return self.packages.get("amd-quark")

    @property
    def witness(self) -> TorchWitness | None:
        """Torch as a witness of the accelerator; None without torch."""
        build = self.torch_build
        return TorchWitness(tag=build.tag, cuda=build.cuda, hip=build.hip) if self.torch else None

    def versions(self) -> Versions:
        """The versions that a manifest binds."""
        return Versions(
            python=self.python,
            torch=self.torch,
            transformers=self.transformers,
            quark=self.quark,
            torch_build=self.torch_build.tag,
        )


def read_catalogue(document: Mapping[str, Any], versions: Versions) -> Catalogue:
    """The catalogue from the catalogue probe's document.

    The versions come from the installed packages' metadata, as everywhere else, so that two documents never differ in
    how they spell one installation. The words for schemes and algorithms are our own. Raises ValueError, TypeError,
    KeyError or AttributeError for another document.
    """
    return Catalogue(
        versions=versions,
        schemes={name: _scheme(name, parts) for name, parts in document["schemes"].items()},
        kv_cache_schemes=document["kv_cache_schemes"],
        attention_schemes=document.get("attention_schemes", []),
        algorithms=document["algorithms"],
        described_algorithms={
            name: words for name in document["algorithms"] if (words := descriptions.of_algorithm(name)) is not None
        },
        templates={
            name: Template(
                model_type=name,
                kv_layers=parts["kv_layers"],
                q_layers=parts["q_layers"],
                exclude_defaults=parts["exclude_defaults"],
                algorithms=parts["algorithms"],
            )
            for name, parts in document["templates"].items()
        },
        known_model_types=document["model_types_known_to_transformers"],
        quark_cli=document["quark_cli"],
    )


def read_algorithm_configs(document: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Model type -> algorithm -> built-in configuration; empty where the probe did not tell."""
    return {
        str(model_type): {str(name): dict(content) for name, content in algorithms.items()}
        for model_type, algorithms in document.get("algorithm_configs", {}).items()
    }


def _scheme(name: str, parts: Mapping[str, Any]) -> Scheme:
    words = descriptions.of_scheme(name)
    return Scheme(
        name=name,
        weight=_stages(parts.get("weight")),
        input=_stages(parts.get("input")),
        output=_stages(parts.get("output")),
        family=words.family,
        description=words.description,
        use_case=words.use_case,
    )


def _stages(tensor: Any) -> list[TensorSpec]:
    """None, one specification, or one for each stage. The probe tells more of a tensor than the catalogue holds."""
    stages = [] if tensor is None else tensor if isinstance(tensor, list) else [tensor]
    return [TensorSpec(**{field: stage.get(field) for field in TensorSpec.model_fields}) for stage in stages]
