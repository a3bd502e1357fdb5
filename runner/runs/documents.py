"""The documents of a run that may be fetched by name."""

from __future__ import annotations

from pathlib import Path

import yaml

from runner.errors import NotHere, Refused
from runner.intake.reading import opened, read_fully
from runner.runs.folder import RunFolder
from runner.runs.redaction import Redactor
from runner.runs.submission import read_submission
from schemas.runs import Run

# Small files of the quantized model that people ask for; weights are fetched from the disk, not through this API.
_OUTPUT_FILES = ("config.json", "generation_config.json", "quark_profile.yaml")
_OUTPUT_FILE_LIMIT = 16 << 20


def names(run: Run) -> list[str]:
    """What `read_run_file` knows of this run."""
    documents = ["model_analysis.json", "quant_plan.json", "run_manifest.yaml", "run_manifest.json", "approvals.json"]
    if run.report is not None:
        written = {file.name for file in run.report.files if file.mode.startswith("-")}  # no links, no pipes
        documents += ["validation_report.json", *(name for name in _OUTPUT_FILES if name in written)]
    return documents


def read_run_file(folder: RunFolder, run: Run, name: str, redactor: Redactor) -> bytes:
    """The document's bytes, redacted. Raises NotHere for any name that is not one of `names`."""
    if name not in names(run):
        known = ", ".join(names(run))
        raise NotHere("no_such_file", f"Run {run.id} has no document {name[:80]!r}.", f"It has: {known}.")
    if name in _OUTPUT_FILES:
        return redactor.redact(_output_file(Path(run.output_dir) / name))
    submission = read_submission(folder)
    manifest = submission.run_manifest
    match name:
        case "model_analysis.json":
            text = manifest.inputs.model_analysis.model_dump_json(indent=2)
        case "quant_plan.json":
            text = manifest.inputs.quant_plan.model_dump_json(indent=2)
        case "run_manifest.json":
            text = manifest.model_dump_json(indent=2)
        case "run_manifest.yaml":
            text = yaml.safe_dump(manifest.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        case "approvals.json":
            text = "[\n" + ",\n".join(approval.model_dump_json() for approval in submission.approvals) + "\n]\n"
        case _:
            text = run.report.model_dump_json(indent=2) if run.report else ""
    return redactor.redact(text.encode())


def _output_file(path: Path) -> bytes:
    """What lies there now, which may be something else than when the report was written."""
    hint = f"Look at {path.parent} on the runner's host."
    if path.parent.is_symlink():
        raise NotHere(
            "no_such_file", f"{path.parent} is a link and no folder that a run wrote, so it is not read.", hint
        )
    try:
        with opened(path, follow_links=False) as (descriptor, size):
            return read_fully(descriptor, min(size, _OUTPUT_FILE_LIMIT), 0)
    except (NotHere, Refused) as error:
        raise NotHere("no_such_file", error.message, hint) from None
    except OSError as error:
        raise NotHere("no_such_file", f"{path} cannot be read any more: {error.strerror}.", hint) from None
