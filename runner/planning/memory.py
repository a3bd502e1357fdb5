"""The most memory that a run will hold at once, on its GPUs and in main memory, and what is there.

On the GPU a run in the standard flow holds the whole model, and what its steps need beside it:

    weights      twice, which is the engine's own rule for this flow: quantized weights stand beside the originals
    calibration  logits of one batch, in bf16 and again in float32: 6 bytes for each token and word of the vocabulary
    evaluation   logits of one window, and their logarithms in float32: 8 bytes
    inputs       of one decoder layer for every sample, as long as an algorithm works; AWQ keeps inputs and outputs, the
                 Hessian algorithms a copy more, and two more where they compare with the unquantized layer
    Hessians     4 x K^2 bytes for each layer of K inputs that is worked on at the same time; while one is inverted, its
                 permuted copy, its factor and the weights in float32

On a CPU the model's files are mapped into memory, quantized layers stand beside them at their full width until they are
packed, and the steps need the same. File to file holds one shard and its quantized copy.
Source: flows and algorithms of amd-quark 0.13. On a CPU it was measured; on a GPU nothing was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from runner.planning import algorithm_layers, layers
from runner.planning.bits import ELEMENT_BYTES
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue

DATA_TYPES = {"float16": 2, "bfloat16": 2, "float32": 4}
"""Bytes of one element, by the plan's data_type; "auto" keeps the model's own."""

BASE_BYTES = 840_000_000
"""Resident beside model and data: torch, transformers, the engine, and what loading leaves. Measured with torch 2.13
for the CPU, on models of 0.27 and 1.1 GB: with the rule above, estimates were from 5 % below to 15 % above."""

GPU_WEIGHTS = 2

_CALIBRATION_BYTES = 6
_EVALUATION_BYTES = 8
_WINDOW_TOKENS = {"own": 512}
_LONG_WINDOW_TOKENS = 2048
_CACHED_INPUTS = {"awq": 2, "autosmoothquant": 2, "smoothquant": 2, "gptq": 3, "gptaq": 5, "qronos": 5}
_MATRICES = {"gptq": 1, "gptaq": 2, "qronos": 2}
_WHILE_INVERTED = 3  # matrices: permuted, factored, inverted
_WIDE_COPIES = 4  # of the weights in float32: permuted, quantized, their losses and what a graph keeps


@dataclass(frozen=True)
class Needed:
    """Bytes at the peak; None where no GPU is used, or where it cannot be computed."""

    gpu: int | None
    host: int | None


@dataclass(frozen=True)
class There:
    """Bytes that the run may use, in all and free now; None where that is not known or no GPU is used."""

    gpu: int | None
    gpu_free: int | None
    host: int | None
    host_free: int | None


def flow(plan: QuantPlan) -> Literal["standard", "file2file"]:
    """How the weights pass through memory."""
    return "file2file" if plan.file2file_quantization else "standard"


def uses_several(plan: QuantPlan) -> bool:
    """Whether the loader spreads the model over the GPUs of a run, and over main memory where those have no room."""
    return bool(plan.multi_gpu or plan.multi_device or plan.entry_point == "quark_cli")


def loaded_bytes(plan: QuantPlan, analysis: ModelAnalysis) -> int:
    """Bytes of all weights once they are loaded: at their own dtype, or at that of the plan."""
    element = DATA_TYPES.get(plan.data_type)
    return analysis.size.weight_bytes if element is None else analysis.size.parameters * element


def needed(
    plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView, output_bytes: int | None
) -> Needed:
    """The peaks of a run of this plan. Never less for more samples, longer samples, larger batches or more layers."""
    if flow(plan) == "file2file":
        shard = largest_shard(analysis)
        peak = None if shard is None else 2 * shard
        if plan.device == "cpu":
            return Needed(None, None if peak is None else BASE_BYTES + peak)
        return Needed(peak, None if shard is None else BASE_BYTES + shard)
    weights = loaded_bytes(plan, analysis)
    if not weights:
        return Needed(None, None)
    work = _work_bytes(plan, analysis, catalogue, host)
    kept = _kept_in_main_memory(plan, analysis)
    if plan.device == "cpu":
        mapped = 0 if plan.data_type == "auto" else analysis.size.weight_bytes  # loaded at another width: a copy
        return Needed(None, BASE_BYTES + mapped + weights + _widened_bytes(plan, analysis) + work + kept)
    # What is written passes through main memory, one file at a time and at most as a whole.
    written = weights if output_bytes is None else output_bytes
    return Needed(GPU_WEIGHTS * weights + work, BASE_BYTES + written + kept)


def there(plan: QuantPlan, host: HostView) -> There:
    """The memory that the run may use: of one GPU, or of all that one run gets where it asked for several."""
    count = (host.gpus_per_run if uses_several(plan) else 1) if plan.device == "cuda" else 0
    gpus, free = host.gpu_memory[:count], host.gpu_free[:count]
    return There(sum(gpus) or None, sum(free) if free else None, host.host_memory_bytes, host.host_memory_free_bytes)


def loader_share(gpus: Iterable[int]) -> int:
    """Bytes of weights that the engine's loader puts on several GPUs at most; the rest stays in main memory.

    Half of the first and 7/8 of each other; of those with 30 GB or less 30 and 70 %. Source: amd-quark 0.13.
    """
    shares = []
    for index, free in enumerate(gpus):
        large = free > 30e9
        shares.append(free * ((0.5 if large else 0.3) if index == 0 else (0.875 if large else 0.7)))
    return int(sum(shares))


def largest_shard(analysis: ModelAnalysis) -> int | None:
    """Bytes of the largest weight file; None where the files are not known."""
    return max((file.size_bytes for file in analysis.size.files if file.name.endswith(".safetensors")), default=None)


def needs_no_samples(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether nothing of the plan depends on calibration data: weights alone, or activations scaled as they come."""
    if plan.algorithms or plan.kv_cache_scheme or plan.attention_dtype:
        return False
    names = {target.scheme or "" for target in layers.quantized(plan, analysis)} | {plan.global_scheme}
    known = [catalogue.schemes[name] for name in names if name in catalogue.schemes]
    return not any(spec.is_dynamic is False for scheme in known for spec in (*scheme.input, *scheme.output))


def _work_bytes(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> int:
    """What the largest of the steps needs beside the weights. The steps come one after the other."""
    algorithms = max((_algorithm_bytes(name, plan, analysis, host) for name in plan.algorithms), default=0)
    return max(_calibration_bytes(plan, analysis, catalogue), _evaluation_bytes(plan, analysis), algorithms)


def _widened_bytes(plan: QuantPlan, analysis: ModelAnalysis) -> int:
    """The quantized layers once more at the width at which they were loaded."""
    return sum(
        target.count
        * target.group.in_features
        * target.group.out_features
        * DATA_TYPES.get(plan.data_type, ELEMENT_BYTES.get(target.group.dtype, 2))
        for target in layers.quantized(plan, analysis)
    )


def _calibration_bytes(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> int:
    """Logits of one batch, where the engine runs the model on samples at all."""
    if needs_no_samples(plan, analysis, catalogue):
        return 0
    batch = min(plan.calibration.batch_size, plan.calibration.num_calib_data)
    return batch * plan.calibration.seq_len * (analysis.model.vocab_size or 0) * _CALIBRATION_BYTES


def _evaluation_bytes(plan: QuantPlan, analysis: ModelAnalysis) -> int:
    if plan.evaluation_intent == "none":
        return 0
    window = _WINDOW_TOKENS.get(plan.entry_point, _LONG_WINDOW_TOKENS)
    return window * (analysis.model.vocab_size or 0) * _EVALUATION_BYTES


def _algorithm_bytes(name: str, plan: QuantPlan, analysis: ModelAnalysis, host: HostView) -> int:
    tokens = plan.calibration.num_calib_data * plan.calibration.seq_len
    inputs = tokens * (analysis.model.hidden_size or 0) * 2 * _CACHED_INPUTS.get(name, 1)
    if name not in _MATRICES:
        return inputs
    alone = plan.model_copy(update={"algorithm": name})
    steps = algorithm_layers.hessian_steps(alone, analysis, host)
    return inputs + max((_hessian_bytes(step, _MATRICES[name], analysis) for step in steps), default=0)


def _hessian_bytes(step: list[LinearGroup], matrices: int, analysis: ModelAnalysis) -> int:
    """All layers of one step within one decoder layer, and the inversion of the largest of them."""
    decoders = max(analysis.model.hidden_layers or 1, 1)
    held = sum(matrices * 4 * group.in_features**2 * math.ceil(group.count / decoders) for group in step)
    inverted = max(
        4 * group.in_features * (_WHILE_INVERTED * group.in_features + _WIDE_COPIES * group.out_features)
        for group in step
    )
    return held + inverted


def _kept_in_main_memory(plan: QuantPlan, analysis: ModelAnalysis) -> int:
    """AWQ keeps the inputs of every linear layer of one decoder layer in main memory, also on a GPU."""
    if "awq" not in plan.algorithms:
        return 0
    decoders = max(analysis.model.hidden_layers or 1, 1)
    widths = sum(
        group.in_features
        for group in analysis.quantization_targets.groups
        if group.count >= decoders and not group.excluded_by_default
    )
    return plan.calibration.num_calib_data * plan.calibration.seq_len * widths * 2
