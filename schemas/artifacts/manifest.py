"""run_manifest: the exact command, and all that it is bound to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schemas.artifacts.analysis import FileFact, ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.artifacts.workspace import ModelSource
from schemas.base import Document
from schemas.catalog import Versions

MANIFEST_VERSION = 1

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ManifestInputs(Document):
    """What goes into the run. Analysis and plan are carried whole, so that the command can be derived again."""

    model_path: str
    model_source: ModelSource
    model_revision: str | None = None
    analysis_digest: Sha256
    plan_digest: Sha256
    model_analysis: ModelAnalysis
    quant_plan: QuantPlan


class ManifestOutputs(Document):
    """What comes out of the run."""

    output_dir: str
    expected_files: list[str]


class Checkpoint(Document):
    """A place where the workflow stops for a person."""

    id: Literal["analysis", "plan", "command", "result"]
    reason: str


class Step(Document):
    """One step of the workflow; `command` is the shell-quoted form of `argv`, for reading only."""

    name: str
    kind: Literal["analyze", "plan", "generate", "run", "validate", "summarize"]
    command: str | None = None
    argv: list[str] | None = None
    produces: list[str] = []


class EntryPoint(Document):
    """The program that quantizes, and the digest of its file."""

    name: Literal["quantize_quark", "quark_cli", "own", "site"]
    path: str
    sha256: Sha256
    reason: str = ""
    files: dict[str, Sha256] = Field({}, description="Other files in the folder of a site's script.")


class Deviation(Document):
    """Where the command is not the published mapping, letter by letter, and why."""

    flag: str
    reason: str


class RunManifest(Document):
    """The published run_manifest. Its digest is what checkpoint 3 approves."""

    workflow: Literal["quark-torch-ptq"] = "quark-torch-ptq"
    manifest_version: Literal[1] = 1
    made_by: str = Field(description="Name and version of the program that made this manifest.")
    inputs: ManifestInputs
    outputs: ManifestOutputs
    checkpoints: list[Checkpoint]
    blocked_by: list[str] = []
    steps: list[Step]
    argv: list[str] = Field(description="The exact argument list; no shell ever sees it.")
    command: str = Field(description="The argument list shell-quoted, for people.")
    environment: dict[str, str] = Field(description="Variables that the run always gets.")
    secrets: list[str] = Field([], description="Names of secret variables that the run may see; never their values.")
    entry_point: EntryPoint
    deviations: list[Deviation] = []
    versions: Versions
    model_files: list[FileFact]
    dataset_files: list[FileFact] = Field([], description="Calibration files of the mirror that the run reads.")
