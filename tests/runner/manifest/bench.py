"""A small runner with a model, scripts and a mirror in one folder, for tests of manifests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.intake.files import fingerprint
from runner.manifest import ContentStore, ManifestContext, make_manifest
from runner.planning import HostView, make_plan
from runner.settings import DatasetSettings, ModelSettings, QuarkSettings, RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import PlanChoices, QuantPlan
from tests.runner.planning.catalogue import recorded, with_gpu_torch
from tests.runner.planning.hosts import CPU, MI300X
from tests.runner.planning.models import analysis_of, decoder, head
from tests.tiny_models import make_tiny_model

PYTHON = Path("/opt/venv/bin/python")
MADE_BY = "quark-ptq-bot 0.1.0"


@dataclass(frozen=True)
class Bench:
    """Where things are, the analysis of the model, and the runner as it is."""

    folder: Path
    analysis: ModelAnalysis
    context: ManifestContext

    @property
    def model(self) -> Path:
        """The model's folder."""
        return self.folder / "models" / "tiny"

    @property
    def output(self) -> str:
        """Where the result goes."""
        return str(self.folder / "out" / "tiny-quantized")

    @property
    def own_script(self) -> Path:
        """Our script, where the project is installed."""
        return Path(self.context.host.entry_points["own"])

    def plan(self, **choices: Any) -> QuantPlan:
        """A plan for the model on this runner."""
        asked = PlanChoices(**{"global_scheme": "fp8", **choices})
        return make_plan(self.analysis, asked, self.context.catalogue, self.context.host)

    def manifest(self, plan: QuantPlan | None = None, **choices: Any) -> RunManifest:
        """The manifest of such a plan."""
        return make_manifest(self.analysis, plan or self.plan(**choices), self.output, self.context)

    def open_plan(self, **choices: Any) -> QuantPlan:
        """Such a plan by somebody who leaves the entry point to the runner, in the field as in the table."""
        plan = self.plan(**choices)
        rows = [
            row.model_copy(update={"value": "auto"}) if row.decision == "entry_point" else row for row in plan.decisions
        ]
        return plan.model_copy(update={"entry_point": "auto", "decisions": rows})

    def but(self, **changes: Any) -> ManifestContext:
        """The runner with changes."""
        return replace(self.context, **changes)

    def with_host(self, **changes: Any) -> ManifestContext:
        """The runner on a host with changes."""
        return self.but(host=replace(self.context.host, **changes))

    def now(self) -> ManifestContext:
        """The runner after looking at the model's files again."""
        return self.but(model_files=fingerprint(self.model))


def make_bench(folder: Path, *, gpu: bool = False, hub: bool = False, remote_code: bool = False) -> Bench:
    """Lay out models, scripts and a mirror, and analyse the model."""
    model = make_tiny_model(folder / "models" / "tiny", "llama")
    files = fingerprint(model)
    mirror = folder / "mirror"
    (mirror / "mit-han-lab" / "pile-val-backup").mkdir(parents=True)
    (mirror / "calibration.txt").write_text("some text\n", encoding="utf-8")
    scripts = {name: folder / "programs" / f"{name}.py" for name in ("quantize", "quantize_quark")}
    for name, path in scripts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"print({name!r})\n", encoding="utf-8")
    entry_points = {"own": str(scripts["quantize"]), "quantize_quark": str(scripts["quantize_quark"])}
    host: HostView = replace(
        MI300X if gpu else CPU, entry_points=entry_points, offline=not hub, remote_code=remote_code
    )
    analysis = analysis_of(
        "llama",
        [*decoder(), head(vocabulary=320)],
        files=files,
        model_path=str(model),
        architectures=["LlamaForCausalLM"],
    )
    context = ManifestContext(
        settings=RunnerSettings(
            state_dir=folder / "state",
            quark=QuarkSettings(python=PYTHON),
            models=ModelSettings(hub=hub),
            datasets=DatasetSettings(mirror=mirror),
            remote_code=remote_code,
        ),
        catalogue=with_gpu_torch() if gpu else recorded(),
        host=host,
        content=ContentStore(folder / "state" / "content"),
        made_by=MADE_BY,
        model_files=files,
    )
    return Bench(folder, analysis, context)
