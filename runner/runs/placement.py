"""Where a run computes: written before its supervisor is started, so that the next daemon knows it too."""

from __future__ import annotations

from runner.errors import Broken
from runner.runs.folder import RunFolder
from schemas.base import Document

PLACEMENT_FILE = "placement.json"


class Placement(Document):
    """The GPUs that a run got, by the names of `Run.gpus`, and the variables that show it those and no others."""

    gpus: list[str] = []
    mask: dict[str, str] = {}


def read_placement(folder: RunFolder) -> Placement:
    """Where the run of this folder was placed; nowhere when it was not, or when that cannot be read any more."""
    try:
        return folder.read_as(PLACEMENT_FILE, Placement) or Placement()
    except Broken:
        return Placement()
