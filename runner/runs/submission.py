"""What was handed in: the manifest, who approved it, and the key that makes it one run."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Annotated

from pydantic import Field

from runner.errors import Broken
from runner.runs.folder import RunFolder
from schemas.api import Approval
from schemas.artifacts.manifest import RunManifest, Sha256
from schemas.base import Document

SUBMISSION_FILE = "submission.json"


class Submission(Document):
    """A run's first document, written once when its folder is made."""

    id: str
    key: str
    number: Annotated[int, Field(ge=1)] = Field(description="Order of arrival at this runner; the queue follows it.")
    submitted_at: datetime
    manifest_digest: Sha256
    run_manifest: RunManifest
    approvals: list[Approval]


def run_id(key: str) -> str:
    """The run's id, and the name of its folder. The same key is the same run."""
    return "run-" + hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_submission(folder: RunFolder) -> Submission:
    """The submission of a run's folder. Raises Broken where it is gone or damaged."""
    submission = folder.read_as(SUBMISSION_FILE, Submission)
    if submission is None:
        raise Broken("document_damaged", f"{folder.path} has no {SUBMISSION_FILE}.", "It is not a run's folder.")
    return submission
