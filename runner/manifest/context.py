"""What a manifest is made from, beside the analysis and the plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from runner.manifest.content import ContentStore
from runner.planning import HostView
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import FileFact
from schemas.catalog import Catalogue, Versions


@dataclass(frozen=True)
class ManifestContext:
    """This runner as it is now.

    `model_files` and `dataset_files` are what the model's files and the calibration's files are now. `made_by` is the
    name and version of this program.
    """

    settings: RunnerSettings
    catalogue: Catalogue
    host: HostView
    content: ContentStore
    made_by: str
    model_files: list[FileFact] = field(default_factory=list)
    dataset_files: list[FileFact] = field(default_factory=list)

    @property
    def versions(self) -> Versions:
        """What the quantization interpreter runs."""
        return self.catalogue.versions
