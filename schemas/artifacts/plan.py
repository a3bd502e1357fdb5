"""quant_plan: every decision of a quantization, its reason, and what the engine is known to do with it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from schemas.base import Document

Priority = Literal["accuracy", "size", "speed", "cpu", "gguf"]
EntryPointChoice = Literal["auto", "quantize_quark", "quark_cli", "own"]
Device = Literal["cuda", "cpu"]
EvaluationIntent = Literal["none", "smoke", "full"]
ModelExport = Literal["hf_format", "onnx", "gguf"]


class Severity(StrEnum):
    """What a finding does: it stops the plan, it warns, or it only tells."""

    BLOCKS = "blocks"
    WARNS = "warns"
    INFORMS = "informs"


class Finding(Document):
    """One thing that is known about a plan before anybody spends time on it."""

    severity: Severity
    code: str
    message: str
    hint: str = ""


class Decision(Document):
    """One row of the decision table."""

    decision: str
    value: JsonValue
    reason: str
    source: Literal["request", "published", "engine", "host", "default"]


class Calibration(Document):
    """The calibration data: a named dataset, or a file in the runner's dataset mirror."""

    dataset: str = "pileval"
    num_calib_data: Annotated[int, Field(ge=1, le=1_000_000)] = Field(128, description="Samples.")
    seq_len: Annotated[int, Field(ge=1, le=1_048_576)] = Field(512, description="Tokens of one sample.")
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 1


class Estimates(Document):
    """What the run will need, as far as it can be computed. Bytes."""

    output_bytes: int | None = None
    source_bytes: int | None = None
    disk_bytes_needed: int | None = None
    disk_bytes_free: int | None = None


class PlannedModel(Document):
    """Which analysis the plan was made from."""

    model_type: str
    analysis_ref: str = "./model_analysis.json"
    analysis_digest: str
    model_path: str


class QuantPlan(Document):
    """The published quant_plan. It carries its reasons and findings: its digest covers all that a person saw."""

    model: PlannedModel
    global_scheme: str
    kv_cache_scheme: str | None = None
    min_kv_scale: Annotated[float, Field(ge=0)] | None = None
    kv_cache_post_rope: bool = False
    exclude_layers: list[str]
    exclude_layers_changed: bool = Field(False, description="A person replaced the engine's default exclusions.")
    layer_quant_config: dict[str, str] = {}
    algorithm: str | None = Field(None, description='One string; several joined by commas: "awq,smoothquant".')
    calibration: Calibration = Calibration()
    evaluation_intent: EvaluationIntent = "smoke"
    model_export: ModelExport = "hf_format"
    entry_point: EntryPointChoice = "auto"
    device: Device = "cuda"
    trust_remote_code: bool = False
    requires_confirmation: bool = True
    decisions: list[Decision] = []
    findings: list[Finding] = []
    estimates: Estimates = Estimates()

    @property
    def algorithms(self) -> list[str]:
        """The algorithms in the order in which they are applied."""
        return self.algorithm.split(",") if self.algorithm else []

    @property
    def blocked_by(self) -> list[Finding]:
        """The findings that stop this plan."""
        return [finding for finding in self.findings if finding.severity is Severity.BLOCKS]


class CalibrationChanges(Document):
    """What a person says about calibration; what is absent keeps its default."""

    dataset: str | None = None
    num_calib_data: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seq_len: Annotated[int, Field(ge=1, le=1_048_576)] | None = None
    batch_size: Annotated[int, Field(ge=1, le=65_536)] | None = None


class PlanChoices(Document):
    """What a person asked for. A field that is absent was not asked for; null asks for none of it."""

    priority: Priority | None = None
    hardware: str | None = Field(None, description="The GPU that will serve the model, such as MI300X or H100.")
    global_scheme: str | None = None
    kv_cache_scheme: str | None = None
    min_kv_scale: Annotated[float, Field(ge=0)] | None = None
    kv_cache_post_rope: bool | None = None
    exclude_layers: list[str] | None = None
    layer_quant_config: dict[str, str] | None = None
    algorithm: str | None = None
    calibration: CalibrationChanges | None = None
    evaluation_intent: EvaluationIntent | None = None
    model_export: ModelExport | None = None
    entry_point: EntryPointChoice | None = None
    trust_remote_code: bool | None = None

    def asks(self, field: str) -> bool:
        """Whether the person said anything about the field, be it null."""
        return field in self.model_fields_set
