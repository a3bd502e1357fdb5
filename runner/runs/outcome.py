"""How a run ended: one document, written once by the daemon when nothing more can happen to the run."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from schemas.artifacts.report import ValidationReport
from schemas.base import Document
from schemas.runs import Progress, RunState

OUTCOME_FILE = "outcome.json"

VERDICT_FILE = "verdict.json"
"""The same before what the run left is set apart: a daemon that falls in between must not judge an empty folder."""


class Outcome(Document):
    """The end of a run: its last state, why, and the report on what it produced."""

    state: Literal[RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.LOST]
    code: str = ""
    reason: str = ""
    at: datetime
    started_at: datetime | None = None
    exit_code: int | None = None
    progress: Progress = Progress()
    gpus: list[str] = []
    job: str = ""
    partial_output: str = Field("", description="Where what it left was set apart; empty: nothing was.")
    report: ValidationReport | None = None
