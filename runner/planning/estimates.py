"""What a run will need on disk, computed from the tensor headers. Nothing here reads weights."""

from __future__ import annotations

import math
from pathlib import Path

from runner.planning import layers
from runner.planning.bits import ELEMENT_BYTES, stored_layer
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import Estimates, QuantPlan
from schemas.catalog import Catalogue

WIDE_SCALE_ALGORITHMS = frozenset({"gptq", "gptaq", "qronos"})
"""Algorithms after which scales are stored as F32. Where their built-in configuration names only some layers (attention
in Mixtral), the others keep narrow scales and the estimate is too high by them. Source: exports of amd-quark 0.13."""

READINGS = (
    *("disk_bytes_free", "gpu_memory_bytes_there", "host_memory_bytes_there"),
    *("seconds_least", "seconds_most", "runs_of_this_kind"),
)
"""Estimates that are readings of a moment: the same plan has others later."""

_HEADER_BYTES = 110  # of one more tensor in a safetensors header: its name, dtype, shape and offsets
_SPARE = 1.05  # headers, index files and what the file system rounds up


def estimate(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> Estimates:
    """Bytes of the output and of free disk that the run needs; None for what cannot be computed.

    The output is the quantized layers plus all else at its own size plus tokenizer and configuration files. A model
    that is known by its Hub id alone has to be downloaded first. The runner's reserve is not part of it.
    """
    source = _source_bytes(analysis)
    output = _output_bytes(plan, analysis, catalogue)
    needed = None
    if output is not None:
        download = 0 if Path(analysis.model.model_path).is_absolute() else source
        needed = math.ceil(output * _SPARE) + download
    return Estimates(
        output_bytes=output, source_bytes=source, disk_bytes_needed=needed, disk_bytes_free=host.disk_free_bytes
    )


def _source_bytes(analysis: ModelAnalysis) -> int:
    files = [file for file in analysis.size.files if file.name.endswith(".safetensors")]
    return max(sum(file.size_bytes for file in files), analysis.size.weight_bytes)


def _output_bytes(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> int | None:
    if not analysis.size.weight_bytes or not analysis.quantization_targets.groups:
        return None
    beside = sum(f.size_bytes for f in analysis.size.files if not f.name.endswith((".safetensors", ".bin", ".gguf")))
    # Not the size of the files: those may hold tensors that loading leaves out and no export writes.
    total = analysis.size.weight_bytes + beside
    wide = bool(WIDE_SCALE_ALGORITHMS.intersection(plan.algorithms))
    for target in layers.quantized(plan, analysis):
        group, element = target.group, ELEMENT_BYTES.get(target.group.dtype)
        scheme = catalogue.schemes.get(target.scheme or "")
        if scheme is None or element is None:
            return None
        found = stored_layer(scheme, group.out_features, group.in_features, element, wide_scales=wide)
        if found is None:
            return None
        before = 0 if _shares_embedding(group, analysis) else group.out_features * group.in_features * element
        total += target.count * (found.size_bytes - before + found.extra_tensors * _HEADER_BYTES)
    return total + _kv_scales(plan, analysis, catalogue)


def _shares_embedding(group: LinearGroup, analysis: ModelAnalysis) -> bool:
    """Whether the layer's weight is the embedding itself: quantized, it comes on top, for the embedding stays."""
    return analysis.model.tied_embeddings and group.pattern.endswith("lm_head")


def _kv_scales(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> int:
    template = catalogue.templates.get(analysis.compatibility.template or analysis.model.model_type)
    if plan.kv_cache_scheme is None or template is None:
        return 0
    count = sum(group.count for group in layers.matching_any(template.kv_layers, analysis))
    return count * (_HEADER_BYTES + 2)
