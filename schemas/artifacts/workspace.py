"""workspace_context: the validated paths of a request."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Document

ModelSource = Literal["local", "huggingface_id", "ambiguous"]


class OutputState(StrEnum):
    """What stands where the quantized model shall go. Only absent and empty ones can be used."""

    ABSENT = "absent"
    EMPTY = "empty"
    NOT_EMPTY = "not_empty"
    FILE = "file"
    EQUALS_MODEL = "equals_model"
    INSIDE_MODEL = "inside_model"
    ABOVE_MODEL = "above_model"


class RequiredPath(Document):
    """A path that was looked at."""

    input: str
    resolved_path: str
    exists: bool
    kind: Literal["file", "directory"] | None = None


class WorkspaceContext(Document):
    """The published workspace_context."""

    model_path: str
    model_source: ModelSource
    trust_remote_code_required: bool = False
    output_dir: str
    output_dir_exists: bool = False
    output_dir_parent_writable: bool = False
    output_dir_state: OutputState = OutputState.ABSENT
    disk_space_gb_free: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Free space where the output goes, in GB (10^9 bytes)."
    )
    quark_script_path: str | None = None
    required_paths: list[RequiredPath] = []
