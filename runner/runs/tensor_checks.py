"""Whether the tensors of the output are what the plan wants, layer by layer. Only headers are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase

from runner.planning import schemes
from runner.planning.layers import quantized as planned_layers
from runner.runs import words
from runner.runs.intended import Intended, packed_dtype, packed_sizes, static_input
from runner.runs.judgement import Judgement, broken, doubtful, held, missing, skipped
from runner.runs.output import Layer, Output
from schemas.artifacts.report import FailureClass
from schemas.catalog import Scheme

LAYERS, DTYPES, EXCLUSIONS = "layers", "tensor dtypes", "exclusions"
KV_SCALES, INPUT_SCALES = "KV cache scales", "input scales"

_READ_LOG = "Compare the engine's two tables in the log with the plan, and make a new plan before another run."


def tensor_judgements(output: Output, intended: Intended) -> Iterator[Judgement]:
    """All checks of tensors, for an output whose headers could be read."""
    if intended.unknown_schemes:
        reason = f"The catalogue of the engine does not know {words.some(intended.unknown_schemes)}."
        yield missing(DTYPES, reason, "Find out which engine made the output, and look at its config.json.")
        return
    yield layers_are_there(output, intended)
    yield dtypes_are_planned(output, intended)
    if (judgement := exclusions_are_kept(output, intended)) is not None:
        yield judgement
    if any(static_input(scheme) for scheme in intended.schemes_used):
        yield input_scales_are_there(output, intended)
    if intended.plan.kv_cache_scheme is not None:
        yield kv_scales_are_there(output, intended)


def quantized_layers(output: Output) -> list[Layer]:
    """The layers whose weight is quantized."""
    return [layer for layer in output.layers.values() if layer.quantized]


def layers_are_there(output: Output, intended: Intended) -> Judgement:
    """As many layers of every group as the model has. Groups whose names the engine may change cannot be counted."""
    found: Counter[str] = Counter()
    for name in output.layers:
        found.update({group.pattern for group in intended.groups_of(name)})
    expected: Counter[str] = Counter()
    for group in intended.groups:
        expected[group.pattern] += group.count
    provisional = {group.pattern for group in intended.groups if intended.is_provisional(group)}
    exact = {
        pattern: number
        for pattern, number in expected.items()
        if pattern not in provisional and not (found[pattern] == 0 and _is_tied_head(pattern, intended))
    }
    quantized = len(quantized_layers(output))
    if not quantized:
        return broken(LAYERS, "No layer is quantized.", FailureClass.QUANTIZATION, _READ_LOG)
    said = f"{words.count(quantized, 'layer')} quantized"
    targets = [pattern for pattern in exact if intended.scheme_name(pattern.replace("*", "0")) is not None]
    if targets and not any(found[pattern] for pattern in targets):
        return _layers_by_number(quantized, said, intended)
    wrong = [
        f"{pattern} ({found[pattern]} of {number})" for pattern, number in exact.items() if found[pattern] != number
    ]
    if wrong:
        detail = f"{said}, but not all layers of the model are there: {words.some(wrong)}."
        return broken(LAYERS, detail, FailureClass.EXPORT, _READ_LOG)
    if provisional:
        reason = (
            f"{said}; {words.some(sorted(provisional))} cannot be counted: the engine may name or split them otherwise."
        )
        return skipped(LAYERS, reason)
    if not exact:
        return skipped(LAYERS, f"{said}; the analysis lists no layers to compare with.")
    return held(LAYERS, f"All {words.count(sum(exact.values()), 'linear layer')} of the model are there; {said}.")


def _layers_by_number(quantized: int, said: str, intended: Intended) -> Judgement:
    """No planned layer stands in the output under its name: saving renamed all, so only the number can be compared."""
    planned = sum(target.count for target in planned_layers(intended.plan, intended.analysis))
    if any(map(intended.is_provisional, intended.groups)):
        return skipped(LAYERS, f"{said} under names that the analysis does not have.")
    if quantized != planned:
        detail = f"{said} where the plan has {planned:,}, under names that the analysis does not have."
        return broken(LAYERS, detail, FailureClass.QUANTIZATION, _READ_LOG)
    return held(LAYERS, f"{said}, as many as planned, under names that the analysis does not have.")


def _is_tied_head(pattern: str, intended: Intended) -> bool:
    """Whether the layer is an output head that is the embedding itself: the engine does not write it a second time."""
    return intended.analysis.model.tied_embeddings and "*" not in pattern and intended.scheme_name(pattern) is None


def dtypes_are_planned(output: Output, intended: Intended) -> Judgement:
    """Every layer that the plan quantizes is stored as its scheme stores weights, with scales beside it."""
    wrong: Counter[str] = Counter()
    untouched: Counter[str] = Counter()
    good: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for name, layer in output.layers.items():
        groups = intended.groups_of(name)
        scheme = intended.scheme(name)
        if scheme is None or not (groups or layer.quantized):
            continue
        pattern, dtype = words.pattern(name), layer.weight.dtype
        spec = schemes.stored(scheme)
        packed = packed_dtype(spec) if spec is not None else None
        if packed is None:
            unknown[scheme.name] += 1
        elif not layer.quantized and any(map(intended.is_provisional, groups)):
            untouched[f"{pattern} ({dtype})"] += 1
        elif problem := _problem(layer, intended, scheme, packed):
            wrong[f"{pattern} {problem}"] += 1
        else:
            good[f"{scheme.name} in {packed}"] += 1
    told = ", ".join(f"{number:,} {what}" for what, number in good.most_common())
    if wrong:
        detail = f"Not as planned, {words.count(wrong.total(), 'layer')}: {words.some(wrong)}."
        return broken(DTYPES, detail, FailureClass.QUANTIZATION, _READ_LOG)
    if unknown:
        reason = f"How {words.some(unknown)} stores weights is not known here: {unknown.total():,} layers not compared."
        return missing(DTYPES, reason, "Load the result with the server that is to run it.")
    if untouched:
        detail = f"{words.some(untouched)} may belong to the planned layers but are not quantized; {told}."
        return doubtful(DTYPES, detail, "Look whether the plan meant these layers.")
    return held(DTYPES, f"{told[:1].upper()}{told[1:]}." if told else "No layer was to be quantized.")


def _problem(layer: Layer, intended: Intended, scheme: Scheme, packed: str) -> str:
    """What is wrong with a layer that the scheme should have quantized; empty when nothing is."""
    if layer.weight.dtype != packed:
        return f"is {layer.weight.dtype} and should be {packed} ({scheme.name})"
    if not any(leaf.startswith("weight_scale") for leaf in layer.tensors):
        return "has no weight_scale"
    groups = [group for group in intended.groups_of(layer.name) if not intended.is_provisional(group)]
    spec = schemes.stored(scheme)
    if not groups or spec is None:
        return ""
    fitting = set().union(*(packed_sizes(spec, group.out_features, group.in_features) for group in groups))
    if layer.weight.size_bytes not in fitting:
        return f"has {layer.weight.size_bytes:,} bytes where {scheme.name} takes {min(fitting):,}"
    return ""


def exclusions_are_kept(output: Output, intended: Intended) -> Judgement | None:
    """Layers that the plan leaves alone have their own dtype and no scales. None when the model has no such layer."""
    quantized: Counter[str] = Counter()
    cast: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    for name, layer in output.layers.items():
        groups = intended.groups_of(name)
        if not (groups or layer.quantized) or intended.scheme_name(name) is not None:
            continue
        pattern, dtype = words.pattern(name), layer.weight.dtype
        originals = {group.dtype for group in groups}
        if layer.quantized:
            quantized[f"{pattern} ({dtype})"] += 1
        elif originals and dtype not in originals:
            cast[f"{pattern} is {dtype} and was {'/'.join(sorted(originals))}"] += 1
        else:
            kept[f"{pattern} ({dtype})"] += 1
    if quantized:
        detail = f"Quantized although the plan excludes it: {words.some(quantized)}."
        return broken(EXCLUSIONS, detail, FailureClass.QUANTIZATION, _READ_LOG)
    if cast:
        detail = f"Left alone, but stored with another precision: {words.some(cast)}."
        return doubtful(EXCLUSIONS, detail, "Decide whether that precision is enough for these layers.")
    if not kept:
        return None
    return held(EXCLUSIONS, f"{words.count(kept.total(), 'layer')} left alone: {words.some(kept)}.")


def input_scales_are_there(output: Output, intended: Intended) -> Judgement:
    """Layers whose inputs are quantized with a fixed scale have that scale, and calibration reached all of them.

    Where no calibration token came through a layer (a rarely chosen expert), the engine stores a scale of exactly 1 as
    F32, whatever the dtype of the calibrated ones. Source: seen with amd-quark 0.13.
    """
    without: Counter[str] = Counter()
    dtypes: dict[str, Counter[str]] = {}
    patterns: dict[str, Counter[str]] = {}
    for layer in quantized_layers(output):
        scheme = intended.scheme(layer.name)
        if scheme is None or not static_input(scheme):
            continue
        scale = next((tensor for leaf, tensor in layer.tensors.items() if leaf.startswith("input_scale")), None)
        if scale is None:
            without[words.pattern(layer.name)] += 1
            continue
        dtypes.setdefault(scheme.name, Counter())[scale.dtype] += 1
        if scale.dtype == "F32":
            patterns.setdefault(scheme.name, Counter())[words.pattern(layer.name)] += 1
    if without:
        detail = f"Input scales are missing in {words.count(without.total(), 'layer')}: {words.some(without)}."
        return broken(INPUT_SCALES, detail, FailureClass.QUANTIZATION, "Look in the log whether calibration ended.")
    unseen: Counter[str] = Counter()
    for scheme_name, seen in dtypes.items():
        if len(seen) > 1:
            unseen.update(patterns.get(scheme_name, {}))
    total = sum(counter.total() for counter in dtypes.values())
    if unseen:
        detail = (
            f"No calibration token reached {unseen.total():,} of {words.count(total, 'layer')}; "
            f"their input scale is the default of 1: {words.some(unseen)}."
        )
        return doubtful(INPUT_SCALES, detail, "Calibrate with more samples, so that every expert is chosen.")
    return held(INPUT_SCALES, f"Calibration fixed the input scales of {words.count(total, 'layer')}.")


def kv_scales_are_there(output: Output, intended: Intended) -> Judgement:
    """The layers that fill the KV cache carry the scale of their outputs, also where they are not quantized."""
    template = intended.template
    if template is None or not template.kv_layers:
        reason = f"The engine names no KV cache layers for {words.plain(intended.plan.model.model_type)}."
        return missing(KV_SCALES, reason, "Look in config.json whether kv_cache_quant_config is there.")
    filling = [
        layer
        for name, layer in output.layers.items()
        if any(fnmatchcase(name, pattern) for pattern in template.kv_layers)
    ]
    patterns = words.some(template.kv_layers)
    if not filling:
        detail = f"No layer of the output is named like {patterns}, so the KV cache has no scales."
        return broken(KV_SCALES, detail, FailureClass.QUANTIZATION, "Plan without a KV cache scheme for this model.")
    without = [layer.name for layer in filling if "output_scale" not in layer.tensors]
    if without:
        which = words.some(without)
        detail = f"output_scale is missing in {len(without):,} of {words.count(len(filling), 'layer')}: {which}."
        return broken(KV_SCALES, detail, FailureClass.QUANTIZATION, "Look in the log whether calibration ended.")
    return held(KV_SCALES, f"The scales of the KV cache are in {words.count(len(filling), 'layer')} ({patterns}).")
