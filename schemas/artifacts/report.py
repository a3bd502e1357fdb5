"""validation_report: what a finished run produced, held against what was planned."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue

from schemas.base import Document


class FailureClass(StrEnum):
    """What kind of thing failed."""

    ENVIRONMENT = "environment"
    LOAD = "load"
    COMPATIBILITY = "compatibility"
    MEMORY = "memory"
    CONFIGURATION = "configuration"
    QUANTIZATION = "quantization"
    EXPORT = "export"
    EVALUATION = "evaluation"
    KILLED = "killed"
    HOST = "host"
    UNKNOWN = "unknown"


class Check(Document):
    """One thing that was looked at: `ok`, `failed`, or `skipped` with the reason in `detail`."""

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    detail: str


class OutputFile(Document):
    """A file of the quantized model."""

    name: str
    size_bytes: Annotated[int, Field(ge=0)]
    mode: str = Field(description='Who may read it, as in "-rw-r-----".')


class TensorCount(Document):
    """How many tensors of one dtype the output holds, and their bytes."""

    dtype: str
    tensors: int
    size_bytes: int


class Perplexity(Document):
    """Perplexity of the original and of the quantized model on the same tokens."""

    dataset: str
    tokens: int | None = Field(None, description="Number of tokens that were scored.")
    original: float | None = None
    quantized: float | None = None

    @property
    def change(self) -> float | None:
        """Relative change, such as 0.02 for two percent worse; None while one of the two is missing."""
        if self.original is None or self.quantized is None or self.original <= 0:
            return None
        return self.quantized / self.original - 1.0


class Measured(Document):
    """What the run really took, for comparison with what was estimated. Null where nobody could measure it."""

    seconds: float | None = Field(None, description="From the command's start to its end.")
    host_memory_bytes: int | None = Field(
        None,
        description="Largest resident set of the command's processes: exact for the largest of them; for all of them "
        "together as often as it was looked at, with shared pages counted once.",
    )
    gpu_memory_bytes: int | None = Field(
        None, description="Largest memory that torch had allocated on each GPU of the run, added up."
    )
    gpu_arch: str | None = Field(None, description="The GPU that it ran on; null for a run on the CPU.")


class Offer(Document):
    """A change of the plan that may help after a failure. It is never made by itself: it needs a new approval."""

    label: Annotated[str, Field(max_length=75)] = Field(description='What would be done: "Plan with 128 samples".')
    reason: str = Field(description="Why it may help, in a sentence.")
    choices: dict[str, JsonValue] = Field(
        description="Fields of plan_choices that change, laid over what was asked for; calibration field by field."
    )


class ValidationReport(Document):
    """The published validation_report, and what this project adds: checks, files, dtypes, size and perplexity."""

    status: Literal["success", "partial", "failed"]
    summary: str
    evidence: list[str] = []
    applied_fixes: list[str] = []
    next_actions: list[str] = []
    failure: FailureClass | None = Field(
        None, alias="class", description="Only for failures: what kind of thing failed."
    )
    cause: str = ""
    offers: list[Offer] = Field([], description="Only for failures: what may help, the smallest change first.")
    checks: list[Check] = []
    output_dir: str = ""
    files: list[OutputFile] = []
    tensors: list[TensorCount] = []
    size_bytes: int | None = Field(None, description="Bytes of all output files together.")
    original_size_bytes: int | None = Field(None, description="Bytes of the original's files together.")
    perplexity: Perplexity | None = None
    measured: Measured | None = None

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)
