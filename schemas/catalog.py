"""What the installed engine offers. Always read from the installation, never from a list of ours."""

from __future__ import annotations

from pydantic import Field

from schemas.base import Document


class Versions(Document):
    """What the quantization interpreter runs."""

    python: str
    torch: str | None
    transformers: str | None
    quark: str | None
    torch_build: str | None = Field(None, description="cpu, cu126, rocm7.1, ...")


class TensorSpec(Document):
    """How one tensor of a layer is quantized, in Quark's own words."""

    dtype: str
    qscheme: str | None = None
    group_size: int | None = None
    ch_axis: int | None = None
    symmetric: bool | None = None
    is_dynamic: bool | None = None
    scale_type: str | None = None


class Scheme(Document):
    """A quantization scheme. Two-stage schemes have several specifications for one tensor."""

    name: str
    weight: list[TensorSpec] = []
    input: list[TensorSpec] = []
    output: list[TensorSpec] = []
    family: str = Field("", description='Heading for people: "Weight-only INT4", "FP8", ...')
    description: str = Field("", description="In a few words; empty where nobody has described it.")
    use_case: str = ""

    @property
    def group_size(self) -> int | None:
        """Weights that share one scale along the input dimension; None for per-tensor and per-channel schemes."""
        return next((spec.group_size for spec in self.weight if spec.group_size), None)


class Algorithm(Document):
    """A quantization algorithm in words; empty where nobody has described it."""

    name: str
    description: str = ""
    suits: str = Field("", description="The schemes that it is made for, in words.")


class Template(Document):
    """What Quark knows about a model family."""

    model_type: str
    kv_layers: list[str] = []
    q_layers: list[str] = []
    exclude_defaults: list[str] = []
    algorithms: list[str] = Field([], description="Algorithms with a built-in configuration for this family.")


class Catalogue(Document):
    """The installed engine's offer, as a probe of the quantization interpreter found it."""

    versions: Versions
    schemes: dict[str, Scheme]
    kv_cache_schemes: list[str]
    attention_schemes: list[str] = []
    algorithms: list[str]
    described_algorithms: dict[str, Algorithm] = {}
    templates: dict[str, Template]
    known_model_types: list[str] = Field([], description="model_type values that the installed transformers knows.")
    quark_cli: bool = False
