"""quant_plan: every decision of a quantization, its reason, and what the engine is known to do with it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from schemas.base import Document

Priority = Literal["accuracy", "size", "speed", "cpu", "gguf"]
EntryPointChoice = Literal["auto", "quantize_quark", "quark_cli", "own", "site"]
Device = Literal["cuda", "cpu"]
EvaluationIntent = Literal["none", "smoke", "full"]
ModelExport = Literal["hf_format", "onnx", "gguf"]
DataType = Literal["auto", "float16", "bfloat16", "float32"]
MultiGpu = Literal["auto", "balanced"]


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


class LayerMatch(Document):
    """What one pattern of the plan means for this model: how many linear layers it matches, and some of them."""

    pattern: str
    role: Literal["exclude", "override"]
    count: Annotated[int, Field(ge=0)]
    examples: list[str] = Field([], description="A few of the names that it matches.")
    exact: bool = Field(False, description="Counted in the engine's own list of modules, not in names of files.")


class AlgorithmConfig(Document):
    """The configuration file of an algorithm that the engine has none for in this family."""

    algorithm: str
    derived_from: str = Field(description="The family whose built-in configuration it follows.")
    content: dict[str, JsonValue] = Field(description="What the file holds, as --quant_algo_config_file reads it.")
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(description="Of the file's bytes.")


class Estimates(Document):
    """What the run will need, as far as it can be computed, beside what is there. Bytes and seconds."""

    output_bytes: int | None = None
    source_bytes: int | None = None
    download_bytes: int | None = Field(None, description="What the run has to fetch from the Hub first.")
    dataset_bytes: int | None = Field(None, description="Datasets that the run has to fetch from the Hub first.")
    disk_bytes_needed: int | None = Field(
        None,
        description="Output with 5 % to spare, and what is downloaded. Downloads go to the Hub's cache, which may be "
        "another file system than that of the output.",
    )
    disk_bytes_free: int | None = Field(None, description="Free where the output goes.")
    gpu_memory_bytes: int | None = Field(
        None, description="Peak on the run's GPUs together; null where the run uses none."
    )
    gpu_memory_bytes_there: int | None = Field(None, description="Of the GPUs that the run may use together.")
    gpu_memory_bytes_free: int | None = Field(None, description="Of these, what nobody used when the plan was made.")
    host_memory_bytes: int | None = Field(None, description="Peak of main memory.")
    host_memory_bytes_there: int | None = Field(None, description="All of it, or as much as this host's processes may.")
    host_memory_bytes_free: int | None = Field(None, description="What was available when the plan was made.")
    flow: Literal["standard", "file2file"] | None = Field(None, description="How the weights pass through memory.")
    seconds_least: float | None = Field(None, description="The quickest finished run of the same kind here.")
    seconds_most: float | None = Field(None, description="The slowest finished run of the same kind here.")
    runs_of_this_kind: int = Field(0, description="Finished runs that the time comes from; 0: no history.")


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
    write_algorithm_config: bool = Field(
        False, description="Write a configuration for algorithms that the engine has none for in this family."
    )
    attention_dtype: str | None = None
    data_type: DataType = "auto"
    multi_gpu: MultiGpu | None = None
    multi_device: bool = Field(False, description="Weights that no GPU has room for stay in main memory: slow.")
    file2file_quantization: bool = False
    num_eval_data: Annotated[int, Field(ge=1)] | None = Field(None, description="Samples of the evaluation data.")
    evaluation_dataset: str | None = None
    tasks: str | None = Field(None, description="Evaluation tasks, joined by commas.")
    template_file: str | None = Field(None, description="A template of the site for a family that the engine lacks.")
    tensor_parallel: Annotated[int, Field(ge=1)] | None = Field(
        None, description="GPUs among which a server will split each layer."
    )
    requires_confirmation: bool = True
    decisions: list[Decision] = []
    layer_matches: list[LayerMatch] = []
    algorithm_configs: list[AlgorithmConfig] = []
    findings: list[Finding] = []
    risks: list[str] = Field([], description="Codes of the warnings that whoever approves this plan accepts.")
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
    write_algorithm_config: bool | None = None
    attention_dtype: str | None = None
    data_type: DataType | None = None
    multi_gpu: MultiGpu | None = None
    multi_device: bool | None = None
    file2file_quantization: bool | None = None
    num_eval_data: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    evaluation_dataset: str | None = None
    tasks: str | None = None
    template_file: str | None = None
    tensor_parallel: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        None, description="GPUs among which a server will split each layer."
    )

    def asks(self, field: str) -> bool:
        """Whether the person said anything about the field, be it null."""
        return field in self.model_fields_set
