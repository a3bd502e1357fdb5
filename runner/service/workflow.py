"""The four steps over this host: facts to analysis, analysis to plan, plan to command, and the gate before a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from runner import __version__
from runner.clock import Clock
from runner.errors import Refused, RunnerError
from runner.host.accelerators import hardware
from runner.host.checkout import unfit_entry_points
from runner.host.datasets import dataset_path, mirrored_datasets, text_bytes
from runner.host.entry_points import entry_points
from runner.host.facts import environment_answer
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.memory import HostMemory, gpu_memory, host_memory, max_map_count
from runner.host.model_location import ModelLocation
from runner.host.output_location import OutputLocation, check_disk, check_output, examine_output
from runner.host.paths import resolved
from runner.host.workspace import workspace_context
from runner.intake.files import file_facts
from runner.intake.models import Models
from runner.intake.modules import ModuleLists
from runner.manifest import ContentStore, ManifestContext, check_approvals, make_manifest
from runner.manifest import check as check_manifest
from runner.planning import HostView, PastRun, make_plan
from runner.planning.datasets import read_by
from runner.service.analyses import Analyses
from runner.settings import RunnerSettings
from schemas.api import (
    Approval,
    Capabilities,
    EnvironmentAnswer,
    IntakeAnswer,
    IntakeRequest,
    ManifestAnswer,
    ManifestRequest,
    PlanAnswer,
    PlanRequest,
)
from schemas.artifacts.analysis import FileFact, ModelAnalysis
from schemas.artifacts.environment import Hardware
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue
from schemas.digest import digest

log = logging.getLogger(__name__)

MADE_BY = f"quark-ptq-bot {__version__}"


class Workflow:
    """Steps 1 to 3 only read, apart from the content store; asking again is always safe."""

    def __init__(
        self,
        settings: RunnerSettings,
        clock: Clock,
        history: Callable[[], tuple[PastRun, ...]] = tuple,
        host_root: Path = Path("/"),
    ) -> None:
        """`history` gives the finished runs of this host that tell how long others take; `host_root` is the file
        system whose kernel files tell of its GPUs."""
        self.clock = clock
        self._history = history
        self._settings = settings
        self._host_root = host_root
        self._interpreter = Interpreter(
            settings.quark.python, settings.state_dir / "cache", settings.limits.probe_seconds
        )
        self._content = ContentStore(settings.state_dir / "content")
        self._models = Models(settings)
        lists = ModuleLists(self._interpreter, settings.state_dir / "cache")
        self._analyses = Analyses(settings, self._interpreter, lists)

    @property
    def ready(self) -> bool:
        """Whether the engine's offer is known already."""
        return self._interpreter.known_catalogue is not None

    async def warm(self) -> None:
        """Look at the interpreter before anybody asks. What is wrong is told again to whoever asks."""
        problem = await self._interpreter.warm()
        if problem is not None:
            log.error("the quantization interpreter cannot be used: %s", problem)

    async def catalogue(self) -> Catalogue:
        """What the installed engine offers."""
        return await self._interpreter.catalogue()

    async def mask_variable(self) -> str:
        """The variable by which the installed torch is shown its GPUs, where a scheduler sets several alike."""
        witness = (await self._interpreter.facts()).witness
        return "HIP_VISIBLE_DEVICES" if witness and witness.backend == "rocm" else "CUDA_VISIBLE_DEVICES"

    async def hardware(self) -> Hardware:
        """The GPUs of this host, as they are now."""
        return await self._hardware(await self._interpreter.facts())

    async def environment(self) -> EnvironmentAnswer:
        """Facts of the host. What is broken is said in the documents."""
        return await environment_answer(self._settings, self._interpreter)

    async def capabilities(self) -> Capabilities:
        """What may be asked of this runner."""
        catalogue = await self._interpreter.catalogue()
        facts = await self._interpreter.facts()
        settings = self._settings
        here = await self._hardware(facts)
        memory = [gpu.memory_bytes for gpu in here.gpus if gpu.memory_bytes]
        return Capabilities(
            catalogue=catalogue,
            entry_points=entry_points(settings, facts),
            model_roots=[str(root) for root in settings.models.roots],
            output_roots=[str(root) for root in settings.outputs.roots],
            datasets=await asyncio.to_thread(mirrored_datasets, settings.datasets.mirror),
            hub=settings.models.hub,
            remote_code=settings.remote_code,
            engine=settings.engine,
            labels=list(settings.labels),
            accelerator=here.accelerator,
            gpu_archs=list(dict.fromkeys(gpu.arch for gpu in here.gpus if gpu.arch)),
            gpu_count=here.gpu_count,
            gpu_memory_bytes=min(memory, default=None),
        )

    async def intake(self, request: IntakeRequest) -> IntakeAnswer:
        """Step 1. Raises RunnerError with what is wrong with the model, the paths or the request."""
        if request.trust_remote_code and not self._settings.remote_code:
            raise Refused(
                "remote_code_not_allowed",
                "This runner runs no code that a model brings along.",
                "Set remote_code in runner.yaml once the code was read, or take a model without code of its own.",
            )
        # What is wrong with the paths is told before the engine is looked at, which may take a minute.
        location = await self._models.find(request.model, request.revision, code=request.trust_remote_code)
        output = await asyncio.to_thread(
            examine_output, request.output_dir, location.path, self._settings, location.name
        )
        if request.output_dir is not None:
            check_output(output)
        analysis = await self._analyses.of(location, request.depth, trust_remote_code=request.trust_remote_code)
        facts = await self._interpreter.facts()
        workspace = workspace_context(
            location,
            output,
            trust_remote_code_required=analysis.model.trust_remote_code,
            quark_script=entry_points(self._settings, facts).get("quantize_quark"),
        )
        return IntakeAnswer(workspace_context=workspace, model_analysis=analysis, digest=digest(analysis))

    async def plan(self, request: PlanRequest) -> PlanAnswer:
        """Step 2. A plan that cannot run is answered too: its findings say by what it is blocked.

        Raises RunnerError where the analysis is not what is found here now.
        """
        analysis = request.model_analysis
        location = await self._models.again(analysis.model)
        await self._analyses.check(analysis, location)
        catalogue, facts = await self._interpreter.catalogue(), await self._interpreter.facts()
        view = await self._view(facts, await self._free_bytes(location))
        plan = await asyncio.to_thread(make_plan, analysis, request.request, catalogue, view)
        return PlanAnswer(
            quant_plan=plan,
            decisions=plan.decisions,
            findings=plan.findings,
            estimates=plan.estimates,
            digest=digest(plan),
        )

    async def manifest(self, request: ManifestRequest) -> ManifestAnswer:
        """Step 3. Raises RunnerError where the plan is blocked, the model has changed, or the output cannot be used."""
        context, location, output = await self._context(request.model_analysis, request.quant_plan, request.output_dir)
        await self._analyses.check(request.model_analysis, location)
        manifest = await asyncio.to_thread(
            make_manifest, request.model_analysis, request.quant_plan, str(output.path), context
        )
        return ManifestAnswer(run_manifest=manifest, digest=digest(manifest))

    async def admit(self, manifest: RunManifest, approvals: list[Approval]) -> None:
        """The gate before a run: approvals for exactly this, and everything still as it was approved."""
        inputs = manifest.inputs
        context, location, output = await self._context(
            inputs.model_analysis, inputs.quant_plan, manifest.outputs.output_dir, force=True
        )
        # First what changed, in a sentence that names it; a changed manifest has no approvals either.
        await asyncio.to_thread(check_manifest, manifest, context)
        await self._analyses.check(inputs.model_analysis, location, fresh=True)
        check_approvals(manifest, approvals)
        needed = inputs.quant_plan.estimates.disk_bytes_needed
        if needed is not None:
            check_disk(output, needed, self._settings.limits.disk_reserve_bytes)

    async def _context(
        self, analysis: ModelAnalysis, plan: QuantPlan, output_dir: str, *, force: bool = False
    ) -> tuple[ManifestContext, ModelLocation, OutputLocation]:
        """Everything that a manifest is bound to, as it is now. `force` looks again at what was looked at lately."""
        location = await self._models.again(analysis.model)
        output = await asyncio.to_thread(examine_output, output_dir, location.path, self._settings, location.name)
        check_output(output)
        catalogue = await self._interpreter.catalogue(force=force)
        facts = await self._interpreter.facts()
        context = ManifestContext(
            settings=self._settings,
            catalogue=catalogue,
            host=await self._view(facts, output.free_bytes),
            content=self._content,
            made_by=MADE_BY,
            model_files=await self._analyses.files(location, fresh=force),
            dataset_files=await asyncio.to_thread(self._dataset_files, plan),
        )
        return context, location, output

    def _dataset_files(self, plan: QuantPlan) -> list[FileFact]:
        """The mirror's files that the run calibrates and is measured on."""
        mirror = self._settings.datasets.mirror
        found = (dataset_path(mirror, name) for name in read_by(plan))
        paths = [resolved(path) for path in found if path is not None]
        if mirror is None or not paths:
            return []
        files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()}
        return file_facts(resolved(mirror), sorted(files))

    async def _free_bytes(self, location: ModelLocation) -> int | None:
        """Free bytes where the result goes when nobody says where."""
        try:
            output = await asyncio.to_thread(examine_output, None, location.path, self._settings, location.name)
        except RunnerError:
            return None  # said when the output folder is chosen
        return output.free_bytes

    async def host_view(self) -> HostView:
        """What plans are made for here now. How much disk is free depends on where a result goes, and is not said."""
        return await self._view(await self._interpreter.facts(), None)

    async def _view(self, facts: InterpreterFacts, free_bytes: int | None) -> HostView:
        found = await self._hardware(facts)
        settings = self._settings
        gpus = gpu_memory(found, settings.gpus)
        memory = await asyncio.to_thread(host_memory) if self._computes_here else HostMemory(None, None)
        mirror = settings.datasets.mirror
        held = await asyncio.to_thread(mirrored_datasets, mirror)
        return HostView(
            accelerator=found.accelerator,
            gpu_arch=found.gpu_arch,
            gpu_model=found.gpu_model,
            entry_points=entry_points(settings, facts),
            unfit=await asyncio.to_thread(unfit_entry_points, settings, facts),
            datasets=held,
            dataset_bytes=await asyncio.to_thread(text_bytes, mirror, held),
            offline=not settings.models.hub,
            disk_free_bytes=free_bytes,
            disk_reserve_bytes=settings.limits.disk_reserve_bytes,
            remote_code=settings.remote_code,
            default_entry_point=settings.quark.entry_point,
            num_calib_data=settings.datasets.num_calib_data,
            seq_len=settings.datasets.seq_len,
            gpu_memory=gpus.total,
            gpu_free=gpus.free,
            gpus_per_run=gpus.per_run,
            host_memory_bytes=memory.total_bytes,
            host_memory_free_bytes=memory.available_bytes,
            max_map_count=max_map_count() if self._computes_here else None,
            history=self._history(),
            algorithm_configs=await self._interpreter.algorithm_configs(),
        )

    async def _hardware(self, facts: InterpreterFacts) -> Hardware:
        if not self._computes_here:
            return Hardware(accelerator="unknown")
        return await asyncio.to_thread(hardware, facts.witness, self._host_root)

    @property
    def _computes_here(self) -> bool:
        """Whether runs compute on this host. What it has says nothing of those that another scheduler places."""
        return self._settings.engine == "local"
