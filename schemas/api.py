"""Requests, answers and problems of the runner's API (JSON over HTTP, by default on a unix socket)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.environment import Accelerator, EnvContext
from schemas.artifacts.installation import PytorchInstallResult, QuarkInstallResult
from schemas.artifacts.manifest import RunManifest, Sha256
from schemas.artifacts.plan import Decision, Estimates, Finding, PlanChoices, QuantPlan
from schemas.artifacts.workspace import WorkspaceContext
from schemas.base import Document
from schemas.catalog import Catalogue
from schemas.runs import QueuePriority, Run

API_VERSION = 1

ApprovedCheckpoint = Literal["analysis", "plan", "command"]


class Problem(Document):
    """RFC 9457 problem. `detail` is one sentence for a person, `hint` says what to do next."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""


class Health(Document):
    """Whether the daemon lives, what it is, and what it is busy with."""

    status: Literal["ok", "warming"]
    version: str
    api_version: int = API_VERSION
    started_at: datetime
    queued: int = 0
    active: int = 0


class EnvironmentAnswer(Document):
    """Facts of the host and its quantization interpreter."""

    env_context: EnvContext
    pytorch_install_result: PytorchInstallResult
    quark_install_result: QuarkInstallResult


class Capabilities(Document):
    """What may be asked of this runner."""

    catalogue: Catalogue
    entry_points: dict[str, str] = Field(description="Usable entry points and where they were found.")
    model_roots: list[str]
    output_roots: list[str]
    datasets: list[str] = Field(description="Calibration datasets that the mirror holds.")
    hub: bool
    remote_code: bool
    engine: str
    labels: list[str] = Field([], description='By which people may choose this runner, as in "on mi300x".')
    accelerator: Accelerator = "unknown"
    gpu_archs: list[str] = Field([], description='Architectures of its GPUs, each once: "gfx942", "sm_90".')
    gpu_count: int = 0
    gpu_memory_bytes: int | None = Field(None, description="Memory of its smallest GPU.")


class IntakeRequest(Document):
    """Ask for an analysis of a model."""

    model: Annotated[str, Field(min_length=1, max_length=4096)]
    revision: str | None = None
    trust_remote_code: bool = False
    output_dir: str | None = None
    depth: Literal["headers", "modules"] = "headers"


class IntakeAnswer(Document):
    """The validated workspace, the analysis, and the analysis' digest."""

    workspace_context: WorkspaceContext
    model_analysis: ModelAnalysis
    digest: Sha256


class PlanRequest(Document):
    """Ask for a plan."""

    model_analysis: ModelAnalysis
    request: PlanChoices = PlanChoices()


class PlanAnswer(Document):
    """The plan; its decisions, findings and estimates stand beside it for readers that want only those."""

    quant_plan: QuantPlan
    decisions: list[Decision]
    findings: list[Finding]
    estimates: Estimates
    digest: Sha256


class ManifestRequest(Document):
    """Ask for the exact command."""

    model_analysis: ModelAnalysis
    quant_plan: QuantPlan
    output_dir: Annotated[str, Field(min_length=1, max_length=4096)]


class ManifestAnswer(Document):
    """The manifest and its digest."""

    run_manifest: RunManifest
    digest: Sha256


class Approval(Document):
    """A person's yes to exactly one document."""

    checkpoint: ApprovedCheckpoint
    digest: Sha256
    by: Annotated[str, Field(min_length=1, max_length=200)]
    at: datetime
    where: Annotated[str, Field(max_length=500)] = ""


class RunSubmission(Document):
    """Ask to run a manifest that was approved. The same key is the same run, however often it is sent."""

    run_manifest: RunManifest
    approvals: Annotated[list[Approval], Field(max_length=50)]
    key: Annotated[str, Field(min_length=1, max_length=200)]


class CancelRequest(Document):
    """Ask to end a run for good."""

    by: Annotated[str, Field(min_length=1, max_length=200)] = "somebody"
    reason: Annotated[str, Field(max_length=1000)] = ""


class PriorityRequest(Document):
    """Ask for another place of a run that waits."""

    priority: QueuePriority
    by: Annotated[str, Field(min_length=1, max_length=200)] = "somebody"


QueueMode = Literal["open", "paused", "draining"]
"""Paused: runs are taken and none starts. Draining: no run is taken, and those that wait still run."""


class QueueRequest(Document):
    """Open, pause or drain the queue."""

    mode: QueueMode
    by: Annotated[str, Field(min_length=1, max_length=200)] = "somebody"
    reason: Annotated[str, Field(max_length=1000)] = ""


class GpuStanding(Document):
    """One GPU of the runner as it stands now."""

    name: str = Field(description='As in the `gpus` of a run: "3 (0000:c1:00.0)".')
    model: str = ""
    run: str = Field("", description="The run of this runner that has it; empty: none.")
    busy: str = Field("", description="Why no run would get it now, in a sentence; empty: it is free.")
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None


class Queue(Document):
    """What waits, what computes, and on what."""

    mode: QueueMode = "open"
    by: str = Field("", description="Who changed the mode last.")
    at: datetime | None = None
    reason: str = ""
    waiting: list[Run] = Field([], description="In the order in which they will start.")
    active: list[Run] = []
    gpus: list[GpuStanding] = []


class RunList(Document):
    """Runs, newest first."""

    runs: list[Run]


def problem_json(problem: Problem) -> dict[str, Any]:
    """The problem as the JSON object that goes over the wire (media type application/problem+json)."""
    return problem.model_dump(mode="json")
