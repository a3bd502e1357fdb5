"""Recorded exports of the real engine, written out again as folders whose weights are holes.

A recording has the configuration and the headers that amd-quark 0.13 wrote for a tiny random model, and the plan that
it was given. Tests change one thing of it and look what the report says.
"""

from __future__ import annotations

import copy
import json
import math
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from runner.runs.evidence import Evidence, ReloadOutcome
from runner.runs.tables import ExclusionTable, ReplacementTable
from runner.runs.words import pattern
from schemas.artifacts.analysis import (
    Compatibility,
    LinearGroup,
    ModelAnalysis,
    ModelFacts,
    ModelSize,
    QuantizationTargets,
)
from schemas.artifacts.manifest import ManifestInputs, ManifestOutputs, RunManifest
from schemas.artifacts.plan import Estimates, PlannedModel, QuantPlan
from schemas.artifacts.report import ValidationReport
from schemas.catalog import Catalogue
from schemas.digest import digest
from tests import samples
from tests.tiny_models import TinyShape, tiny_shapes

DATA = Path(__file__).parent.parent.parent / "data"
NAMES = sorted(path.stem for path in (DATA / "exports").glob("*.json"))

EXPECTED_FILES = ["config.json", "generation_config.json", "*.safetensors", "tokenizer.json", "tokenizer_config.json"]
_BITS = {"BF16": 16, "F16": 16, "F32": 32, "F8_E4M3": 8, "I8": 8, "U8": 8, "I32": 32}

Tensors = dict[str, tuple[str, list[int]]]


def catalogue() -> Catalogue:
    """What amd-quark 0.13 offers."""
    return Catalogue.model_validate_json((DATA / "catalogue-0.13.json").read_bytes())


@dataclass
class Export:
    """A recorded export: change what you like, then write it."""

    config: dict[str, Any]
    others: dict[str, int]
    weights: dict[str, Tensors]
    plan: dict[str, Any]

    @classmethod
    def recorded(cls, name: str) -> Export:
        found = json.loads((DATA / "exports" / f"{name}.json").read_bytes())
        weights = {
            file: {tensor: (dtype, shape) for tensor, (dtype, shape) in tensors.items()}
            for file, tensors in found["weights"].items()
        }
        return cls(found["config"], found["others"], weights, found["plan"])

    @property
    def tensors(self) -> Tensors:
        """The tensors of the only weight file."""
        (tensors,) = self.weights.values()
        return tensors

    @property
    def told(self) -> dict[str, Any]:
        """quantization_config."""
        found: dict[str, Any] = self.config["quantization_config"]
        return found

    def copy(self) -> Export:
        return copy.deepcopy(self)

    def write(self, folder: Path) -> Path:
        """Write it as a folder; the data of weights and other files is empty space of the right length."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config, indent=2))
        for name, size in self.others.items():
            (folder / name).write_bytes(b"{}".ljust(size))
        for name, tensors in self.weights.items():
            write_header(folder / name, tensors)
        return folder


def write_header(path: Path, tensors: Mapping[str, tuple[str, list[int]]]) -> None:
    """A safetensors file with these tensors and no data but a hole."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (dtype, shape) in tensors.items():
        size = math.prod(shape) * _BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)


def analysis_of(export: Export, *, provisional: bool = False) -> ModelAnalysis:
    """What intake says of the original, by the engine's module names."""
    config = export.config
    shape = TinyShape(
        model_type=config["model_type"],
        hidden=config["hidden_size"],
        intermediate=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"],
        vocab=config["vocab_size"],
        experts=config.get("num_experts") or config.get("num_local_experts") or 4,
        tied=config["tie_word_embeddings"],
    )
    template = catalogue().templates[shape.model_type]
    shapes = tiny_shapes(shape)
    counts = Counter((pattern(module_name(name)), size) for name, size in shapes.items() if _is_linear(name, size))
    groups = [
        LinearGroup(
            pattern=group,
            count=count,
            in_features=columns,
            out_features=rows,
            dtype="BF16",
            excluded_by_default=group == "lm_head" or group.endswith(".gate"),
            provisional=provisional and "experts" in group,
        )
        for (group, (rows, columns)), count in counts.items()
    ]
    return samples.analysis(
        model=ModelFacts(
            model_path="/models/tiny",
            model_type=shape.model_type,
            hidden_layers=shape.layers,
            vocab_size=shape.vocab,
            tied_embeddings=shape.tied,
        ),
        quantization_targets=QuantizationTargets(
            linear_layer_count=sum(group.count for group in groups if not group.excluded_by_default),
            exclude_defaults=template.exclude_defaults,
            groups=groups,
            provisional=provisional,
        ),
        size=ModelSize(
            weight_bytes=sum(2 * math.prod(size) for size in shapes.values()),
            parameters=sum(math.prod(size) for size in shapes.values()),
        ),
        compatibility=Compatibility(status="ok", message="known", template=shape.model_type),
    )


def module_name(file_name: str) -> str:
    """The engine's name of a layer: it renames the experts of Mixtral."""
    name = file_name.removesuffix(".weight").replace("block_sparse_moe", "mlp")
    for old, new in (("w1", "gate_proj"), ("w2", "down_proj"), ("w3", "up_proj")):
        name = f"{name.removesuffix(f'.{old}')}.{new}" if name.endswith(f".{old}") else name
    return name


def _is_linear(name: str, shape: tuple[int, ...]) -> bool:
    # The router of Mixtral is no linear layer to the engine; that of Qwen is one, and excluded.
    return len(shape) == 2 and "embed" not in name and "block_sparse_moe.gate" not in name


def plan_of(export: Export, analysis: ModelAnalysis, **changes: Any) -> QuantPlan:
    """The plan that the export was made with."""
    recorded = dict(export.plan)
    model_type = recorded.pop("model_type")
    changed = recorded["exclude_layers"] != analysis.quantization_targets.exclude_defaults
    model = PlannedModel(model_type=model_type, analysis_digest=digest(analysis), model_path="/models/tiny")
    size = sum(export.others.values()) + 400_000
    values = {"exclude_layers_changed": changed, "estimates": Estimates(output_bytes=size), **recorded, **changes}
    return QuantPlan(model=model, **values)


def manifest_for(export: Export, folder: Path, *, provisional: bool = False, **changes: Any) -> RunManifest:
    """The manifest of the run that wrote the folder; `changes` are fields of the plan."""
    analysis = analysis_of(export, provisional=provisional)
    return manifest_with(analysis, plan_of(export, analysis, **changes), folder)


def manifest_with(analysis: ModelAnalysis, plan: QuantPlan, folder: Path) -> RunManifest:
    """A manifest for exactly these documents."""
    inputs = ManifestInputs(
        model_path="/models/tiny",
        model_source="local",
        analysis_digest=digest(analysis),
        plan_digest=digest(plan),
        model_analysis=analysis,
        quant_plan=plan,
    )
    return samples.manifest(
        inputs=inputs, outputs=ManifestOutputs(output_dir=str(folder), expected_files=EXPECTED_FILES)
    )


def evidence_of(export: Export, **changes: Any) -> Evidence:
    """What a run that went well leaves beside the files of the export."""
    layers = [name.removesuffix(".weight") for name in export.tensors if f"{name}_scale" in export.tensors]
    cache_only = [
        name
        for name in export.tensors
        if name.endswith(".output_scale") and name.replace("output_scale", "weight_scale") not in export.tensors
    ]
    good = Evidence(
        exit_code=0,
        original_perplexity=7.2169,
        quantized_perplexity=7.2752,
        evaluation_dataset="wikitext",
        evaluated_tokens=2048,
        exclusions=ExclusionTable(dict.fromkeys(export.plan["exclude_layers"], 1)),
        replacements=ReplacementTable({"Linear": (len(layers) + 3, len(layers) + len(cache_only))}),
        reload=ReloadOutcome(True, seconds=3.2, logits_finite=True),
        last_lines=("[QUARK-INFO]: Successfully exported model to Safetensors format in quark mode: /out",),
    )
    return replace(good, **changes)


def outcomes(report: ValidationReport) -> dict[str, str]:
    """The outcome of each check."""
    return {check.name: check.outcome for check in report.checks}


def detail(report: ValidationReport, name: str) -> str:
    """What one check says."""
    return next(check.detail for check in report.checks if check.name == name)
