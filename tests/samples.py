"""One plausible document of every kind, for tests that need any."""

from __future__ import annotations

import shlex
from typing import Any

from schemas.api import EnvironmentAnswer
from schemas.artifacts.analysis import (
    Compatibility,
    FileFact,
    LinearGroup,
    ModelAnalysis,
    ModelFacts,
    ModelSize,
    QuantizationTargets,
    Risk,
)
from schemas.artifacts.environment import EnvContext, Hardware, Software
from schemas.artifacts.installation import (
    PytorchInstallResult,
    PytorchVerification,
    QuarkEnvironment,
    QuarkInstallResult,
    QuarkVerification,
)
from schemas.artifacts.manifest import (
    Checkpoint,
    EntryPoint,
    ManifestInputs,
    ManifestOutputs,
    RunManifest,
    Step,
)
from schemas.artifacts.plan import PlannedModel, QuantPlan
from schemas.artifacts.report import Check, FailureClass, OutputFile, Perplexity, TensorCount, ValidationReport
from schemas.artifacts.session import SessionContext
from schemas.artifacts.workspace import WorkspaceContext
from schemas.catalog import Versions
from schemas.digest import digest

VERSIONS = Versions(python="3.11.7", torch="2.13.0+cpu", transformers="5.16.1", quark="0.13", torch_build="cpu")


def session() -> SessionContext:
    """What somebody wants."""
    return SessionContext(user_goal="quantize Qwen/Qwen3-8B to fp8")


def environment() -> EnvironmentAnswer:
    """A host without a GPU."""
    return EnvironmentAnswer(
        env_context=EnvContext(
            environment=Software(os="Debian GNU/Linux 12", python="3.11.7", containerized=False),
            hardware=Hardware(accelerator="cpu", evidence=["no GPU driver files"]),
        ),
        pytorch_install_result=PytorchInstallResult(
            status="ok",
            pytorch_version="2.13.0",
            accelerator_tag="cpu",
            verification=PytorchVerification(import_ok=True),
        ),
        quark_install_result=QuarkInstallResult(
            status="ok",
            quark_version="0.13",
            environment=QuarkEnvironment(python_executable="/venv/bin/python", python_version="3.11.7"),
            verification=QuarkVerification(import_ok=True),
        ),
    )


def workspace() -> WorkspaceContext:
    """A local model and a fresh output folder."""
    return WorkspaceContext(model_path="/models/qwen3-8b", model_source="local", output_dir="/out/qwen3-8b-fp8")


def analysis(**changes: Any) -> ModelAnalysis:
    """Qwen3-8B as its headers show it."""
    shapes = {"self_attn.q_proj": (4096, 4096), "self_attn.k_proj": (4096, 1024), "mlp.down_proj": (12288, 4096)}
    groups = [
        LinearGroup(pattern=f"model.layers.*.{name}", count=36, in_features=k, out_features=n, dtype="BF16")
        for name, (k, n) in shapes.items()
    ]
    values: dict[str, Any] = {
        "analysis_status": "complete",
        "model": ModelFacts(model_path="/models/qwen3-8b", model_type="qwen3", hidden_layers=36, hidden_size=4096),
        "quantization_targets": QuantizationTargets(
            linear_layer_count=108, exclude_defaults=["lm_head"], groups=groups
        ),
        "size": ModelSize(
            weight_bytes=16_381_470_720,
            parameters=8_190_735_360,
            files=[FileFact(name="config.json", size_bytes=728, mtime_ns=1_790_000_000_123_456_789, sha256="0" * 64)],
        ),
        "compatibility": Compatibility(status="ok", message="Quark 0.13 has a template for qwen3.", template="qwen3"),
        "risks": [Risk(severity="low", code="tied_embeddings", message="The embedding is shared.")],
    }
    return ModelAnalysis(**{**values, **changes})


def exact_analysis(count: int = 36, **changes: Any) -> ModelAnalysis:
    """Qwen3-8B as the engine itself sees it: as its headers show it, or with another number of layers of a kind."""
    model = analysis(**changes)
    targets = model.quantization_targets
    groups = [group.model_copy(update={"count": count}) for group in targets.groups]
    exact = {"method": "modules", "groups": groups, "linear_layer_count": sum(group.count for group in groups)}
    return model.model_copy(update={"quantization_targets": targets.model_copy(update=exact)})


def plan(**changes: Any) -> QuantPlan:
    """fp8 with its defaults."""
    model = analysis()
    values: dict[str, Any] = {
        "model": PlannedModel(model_type="qwen3", analysis_digest=digest(model), model_path=model.model.model_path),
        "global_scheme": "fp8",
        "kv_cache_scheme": "fp8",
        "exclude_layers": ["lm_head"],
    }
    return QuantPlan(**{**values, **changes})


def manifest(**changes: Any) -> RunManifest:
    """The command for `plan()`."""
    argv = ["/venv/bin/python", "/content/quantize.py", "--model_dir", "/models/qwen3-8b", "--quant_scheme", "fp8"]
    values: dict[str, Any] = {
        "made_by": "quark-ptq-bot 0.1.0",
        "inputs": ManifestInputs(
            model_path="/models/qwen3-8b",
            model_source="local",
            analysis_digest=digest(analysis()),
            plan_digest=digest(plan()),
            model_analysis=analysis(),
            quant_plan=plan(),
        ),
        "outputs": ManifestOutputs(output_dir="/out/qwen3-8b-fp8", expected_files=["config.json", "*.safetensors"]),
        "checkpoints": [Checkpoint(id="command", reason="Nothing runs without a yes to this exact command.")],
        "steps": [Step(name="quantize", kind="run", command=shlex.join(argv), argv=argv)],
        "argv": argv,
        "command": shlex.join(argv),
        "environment": {"PYTHONUNBUFFERED": "1"},
        "entry_point": EntryPoint(name="own", path="/content/quantize.py", sha256="0" * 64),
        "versions": VERSIONS,
        "model_files": analysis().size.files,
    }
    return RunManifest(**{**values, **changes})


def report() -> ValidationReport:
    """A verified result, with every field in use."""
    return ValidationReport(
        status="partial",
        summary="Quantized to fp8.",
        failure=FailureClass.EVALUATION,
        checks=[Check(name="files", outcome="ok", detail="3 files")],
        files=[OutputFile(name="config.json", size_bytes=10, mode="-rw-r-----")],
        tensors=[TensorCount(dtype="F8_E4M3", tensors=252, size_bytes=100)],
        perplexity=Perplexity(dataset="wikitext", original=7.2, quantized=7.3),
    )
