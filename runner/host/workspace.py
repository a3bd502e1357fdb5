"""The workspace of a request: model, output and script, as the published workspace_context."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from runner.host.model_location import ModelLocation
from runner.host.output_location import OutputLocation
from schemas.artifacts.workspace import RequiredPath, WorkspaceContext


def workspace_context(
    location: ModelLocation,
    output: OutputLocation,
    *,
    trust_remote_code_required: bool = False,
    quark_script: Path | str | None = None,
) -> WorkspaceContext:
    """Put the validated paths together. `quark_script` is the quantize_quark.py of a checkout, where there is one."""
    required = [
        *([_looked_at(location.asked or str(location.path), location.path)] if location.downloaded else []),
        _looked_at("config.json", location.path / "config.json"),
        _looked_at(output.asked, output.path),
        *([_looked_at(str(quark_script), Path(quark_script))] if quark_script else []),
    ]
    return WorkspaceContext(
        model_path=location.model_path,
        model_source=location.source,
        trust_remote_code_required=trust_remote_code_required,
        output_dir=str(output.path),
        output_dir_exists=output.exists,
        output_dir_parent_writable=output.parent_writable,
        output_dir_state=output.state,
        disk_space_gb_free=None if output.free_bytes is None else round(output.free_bytes / 1e9, 3),
        quark_script_path=str(quark_script) if quark_script else None,
        required_paths=required,
    )


def _looked_at(asked: str, path: Path) -> RequiredPath:
    exists = os.path.exists(path)  # noqa: PTH110 - false, not an error, where looking is not allowed
    kind: Literal["file", "directory"] | None = ("directory" if path.is_dir() else "file") if exists else None
    return RequiredPath(input=asked, resolved_path=str(path), exists=exists, kind=kind)
