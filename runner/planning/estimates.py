"""What a run will need: bytes of its output, disk, memory and time. Nothing here reads weights."""

from __future__ import annotations

import math

from runner.planning import algorithm_layers, datasets, history, layers, memory
from runner.planning.bits import ELEMENT_BYTES, stored_layer
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.plan import Estimates, QuantPlan
from schemas.catalog import Catalogue

READINGS = (
    *("disk_bytes_free", "gpu_memory_bytes_there", "gpu_memory_bytes_free"),
    *("host_memory_bytes_there", "host_memory_bytes_free"),
    *("seconds_least", "seconds_most", "runs_of_this_kind"),
)
"""Estimates that are readings of a moment: the same plan has others later."""

DATASET_BYTES = {
    "pileval": 1_800_000_000,
    "wikitext": 21_000_000,
    "cnn_dailymail": 2_210_000_000,
    "HuggingFaceH4/ultrachat_200k": 4_670_000_000,
}
"""Disk that a dataset takes when it is fetched from the Hub: its files, and the copy that the loader makes of them.

Source: download_size and dataset_size of the datasets' cards; for the validation set of the Pile, 0.47 GB compressed
and 1.3 GB of text. Rounded; nobody asks the Hub while a plan is made.
"""

_OTHER_WEIGHTS = (".bin", ".gguf", ".h5", ".msgpack", ".onnx", ".pt", ".pth")
_HEADER_BYTES = 110  # of one more tensor in a safetensors header: its name, dtype, shape and offsets
_SPARE = 1.05  # headers, index files and what the file system rounds up


def estimate(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> Estimates:
    """Bytes and seconds that the run needs, beside what is there; None for what cannot be computed.

    The disk that is needed is what the run fetches (the model's weights where they are still on the Hub, datasets that
    the mirror lacks) and its output with 5 % to spare. Downloads go to the Hub's cache, the output to its own folder:
    where those are two file systems, each takes only its part. The runner's reserve is not part of it.
    """
    output = output_bytes(plan, analysis, catalogue, host)
    download = 0 if analysis.model.downloaded else download_bytes(analysis)
    fetched = dataset_bytes(plan, host)
    need = memory.needed(plan, analysis, catalogue, host, output)
    there = memory.there(plan, host)
    past = history.of_this_kind(plan, analysis, host)
    return Estimates(
        output_bytes=output,
        source_bytes=_source_bytes(analysis),
        download_bytes=download,
        dataset_bytes=fetched,
        disk_bytes_needed=None if output is None else math.ceil(output * _SPARE) + download + fetched,
        disk_bytes_free=host.disk_free_bytes,
        gpu_memory_bytes=need.gpu,
        gpu_memory_bytes_there=there.gpu,
        gpu_memory_bytes_free=there.gpu_free,
        host_memory_bytes=need.host,
        host_memory_bytes_there=there.host,
        host_memory_bytes_free=there.host_free,
        flow=memory.flow(plan),
        seconds_least=min((run.seconds for run in past), default=None),
        seconds_most=max((run.seconds for run in past), default=None),
        runs_of_this_kind=len(past),
    )


def download_bytes(analysis: ModelAnalysis) -> int:
    """What a run fetches of a model on the Hub: safetensors and the small files, no other format of weights."""
    files = [file for file in analysis.size.files if not file.name.endswith(_OTHER_WEIGHTS)]
    return max(sum(file.size_bytes for file in files), analysis.size.weight_bytes)


def dataset_bytes(plan: QuantPlan, host: HostView) -> int:
    """Disk for the datasets that the run fetches from the Hub; 0 where the mirror has them or nothing is fetched."""
    if host.offline:
        return 0
    wanted = [name for name in datasets.read_by(plan) if name not in host.datasets]
    return sum(DATASET_BYTES.get(name, 0) for name in wanted)


def output_bytes(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> int | None:
    """Bytes of all files of the result: the quantized layers, all else at its own size, tokenizer and configuration.

    None where a dtype or a scheme says no size, and for ONNX and GGUF, whose layout is not known here.
    """
    if not analysis.size.weight_bytes or not analysis.quantization_targets.groups or plan.model_export != "hf_format":
        return None
    factor = memory.loaded_bytes(plan, analysis) / analysis.size.weight_bytes
    weights = (".safetensors", *_OTHER_WEIGHTS)
    beside = sum(file.size_bytes for file in analysis.size.files if not file.name.endswith(weights))
    # Not the size of the files: those may hold tensors that loading leaves out and no export writes.
    left, total = analysis.size.weight_bytes, 0
    wide = algorithm_layers.with_wide_scales(plan, analysis, host)
    for target in layers.quantized(plan, analysis):
        group, original = target.group, ELEMENT_BYTES.get(target.group.dtype)
        scheme = catalogue.schemes.get(target.scheme or "")
        if scheme is None or original is None:
            return None
        element = memory.DATA_TYPES.get(plan.data_type, original)
        shape = group.out_features, group.in_features
        found = stored_layer(scheme, *shape, element, wide_scales=group.pattern in wide)
        if found is None:
            return None
        left -= target.count * (0 if _shares_embedding(group, analysis) else math.prod(shape) * original)
        total += target.count * (found.size_bytes + found.extra_tensors * _HEADER_BYTES)
    return total + math.ceil(left * factor) + beside + _output_scales(plan, analysis, catalogue)


def _source_bytes(analysis: ModelAnalysis) -> int:
    files = [file for file in analysis.size.files if file.name.endswith(".safetensors")]
    return max(sum(file.size_bytes for file in files), analysis.size.weight_bytes)


def _shares_embedding(group: LinearGroup, analysis: ModelAnalysis) -> bool:
    """Whether the layer's weight is the embedding itself: quantized, it comes on top, for the embedding stays."""
    return analysis.model.tied_embeddings and group.pattern.endswith("lm_head")


def _output_scales(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue) -> int:
    """Scales of what leaves a layer: one of each key and value layer for the cache, two for quantized attention.

    Source: exports of amd-quark 0.13 (queries, and the probabilities of attention).
    """
    template = catalogue.templates.get(analysis.compatibility.template or analysis.model.model_type)
    if template is None:
        return 0
    wanted = [(template.kv_layers, 1)] if plan.kv_cache_scheme else []
    wanted += [(template.q_layers, 2)] if plan.attention_dtype else []
    found = ((layers.matching_any(patterns, analysis), each) for patterns, each in wanted)
    return sum(group.count * each for groups, each in found for group in groups) * (_HEADER_BYTES + 2)
