"""model_analysis: what the model is and what of it would be quantized. Made without reading weights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.artifacts.workspace import ModelSource
from schemas.base import Document


class ModelFacts(Document):
    """What config.json and the tensor headers say of the model."""

    model_path: str
    model_type: str
    source: ModelSource = "local"
    revision: str | None = Field(None, description="Commit of a Hub model; null for a local folder.")
    downloaded: bool = Field(True, description="The weights are on this host; else the run downloads them first.")
    hub_token: str = Field("", description="Whose token the Hub was asked with; empty where it was asked with none.")
    architectures: list[str] = []
    transformers_version: str = Field("", description="The version that wrote config.json.")
    trust_remote_code: bool = Field(False, description="The model brings code of its own that loading it would run.")
    remote_code: list[str] = Field([], description="Where that code is named (file: class -> module).")
    hidden_layers: int | None = None
    hidden_size: int | None = None
    vocab_size: int | None = None
    max_positions: int | None = Field(None, description="Tokens of the longest text that the model was made for.")
    dtype: str | None = Field(None, description="dtype of most weight bytes, as safetensors names it (BF16).")
    tied_embeddings: bool = False
    is_moe: bool = False
    experts: int | None = Field(None, description="Routed experts per layer.")
    modalities: list[str] = Field([], description="Sub-configurations beside text: vision, audio, ...")
    quantized_by: str | None = Field(None, description="Method of an input that is quantized already.")


class LinearGroup(Document):
    """Linear layers of one name pattern and one shape. `*` stands for a layer or expert number."""

    pattern: str
    count: Annotated[int, Field(ge=1)]
    in_features: Annotated[int, Field(ge=1)]
    out_features: Annotated[int, Field(ge=1)]
    dtype: str
    excluded_by_default: bool = False
    provisional: bool = Field(False, description="The engine may see these layers differently (fused experts).")
    never_quantized: bool = Field(
        False, description="The engine leaves these alone whatever a plan says, such as a router of a class of its own."
    )
    numbers: list[str] = Field(
        [],
        description='The numbers of each `*`, as in ["3-60", "0-255"]; the group is every combination.',
    )


class QuantizationTargets(Document):
    """The linear layers of the model and which of them the engine leaves alone by default."""

    linear_layer_count: Annotated[int, Field(ge=0)] = Field(
        description="Linear layers that are quantized with the default exclusions."
    )
    has_non_linear_experts: bool = False
    exclude_defaults: list[str] = Field(description="Default exclusions of the installed template.")
    groups: list[LinearGroup] = []
    provisional: bool = False
    norms: list[str] = Field([], description="Patterns of the normalisation layers, which algorithms scale.")
    method: Literal["headers", "modules"] = "headers"


class FileFact(Document):
    """A file of the model as it was when it was analysed. Sizes in bytes, times in ns since 1970."""

    name: str
    size_bytes: Annotated[int, Field(ge=0)]
    mtime_ns: int = Field(0, description="0 for files on the Hub, which a commit pins.")
    sha256: str | None = Field(None, description="Of the whole file: under 16 MB, and where the Hub tells it.")
    header_sha256: str | None = Field(None, description="Of a safetensors header.")


class ModelSize(Document):
    """How large the model is."""

    weight_bytes: Annotated[int, Field(ge=0)]
    parameters: Annotated[int, Field(ge=0)]
    files: list[FileFact] = []


class Compatibility(Document):
    """Whether the installed engine can quantize this model at all."""

    status: Literal["ok", "doubtful", "unsupported"]
    message: str
    template: str | None = None
    quark_version: str | None = None
    transformers_version: str | None = None


class Risk(Document):
    """Something that a person should know before going on."""

    severity: Literal["low", "medium", "high"]
    code: str
    message: str
    recovery_hint: str = ""


class ModelAnalysis(Document):
    """The published model_analysis, with groups of layers, files and compatibility added."""

    analysis_status: Literal["complete", "partial"]
    model: ModelFacts
    quantization_targets: QuantizationTargets
    size: ModelSize
    compatibility: Compatibility
    risks: list[Risk] = []
