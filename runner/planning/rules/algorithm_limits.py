"""Algorithms and the schemes, layers and other algorithms that they stand beside in a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from runner.planning import algorithm_fit, algorithm_layers, layers, schemes
from runner.planning.algorithm_layers import HESSIAN_ALGORITHMS
from runner.planning.globs import parse_numbers
from runner.planning.layers import Target
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns
from schemas.catalog import Scheme

_FOR_LOW_INTEGERS = frozenset({"awq", "gptq", "gptaq"})
_FOR_EIGHT_BITS = frozenset({"smoothquant", "autosmoothquant"})
_SEARCHING = ("awq", "autosmoothquant")
"""They try scales on the quantizers of a layer."""
_MOVING = ("rotation", "smoothquant", "autosmoothquant", "awq")
"""They change weights that are not rounded yet."""
_HADAMARD = (172, 156, 140, 108, 60, 52, 40, 36, 28, 20, 12)
"""Sizes that the engine knows a Hadamard matrix of, beside powers of two. Source: amd-quark 0.13."""


@rule("algorithm_needs_gpu")
def algorithm_runs_on_this_device(case: Case) -> Iterator[Remark]:
    """autosmoothquant computes with MXFP4 while it searches, weights as well as activations, which no CPU can.

    Source: seen with amd-quark 0.13 for all four schemes with MXFP4 (RuntimeError "only implemented in CUDA devices").
    """
    if case.plan.device != "cpu" or "autosmoothquant" not in case.plan.algorithms:
        return
    for scheme in _schemes_of(case, _touched(case, "autosmoothquant")):
        if schemes.forward_needs_gpu(Scheme(name=scheme.name, input=[*scheme.weight, *scheme.input])):
            yield blocks(
                f"autosmoothquant with {scheme.name} computes only on a GPU, and this plan runs on the CPU.",
                "Take smoothquant, or a host with a GPU.",
            )


@rule("algorithm_scheme_unsupported")
def algorithms_can_handle_the_scheme(case: Case) -> Iterator[Remark]:
    """Schemes whose weights pass through two stages (nvfp4, int4_fp8): AttributeError in all algorithms that look into
    a layer's quantizer. gptq, gptaq and qronos with FP6 weights: AssertionError with an empty message.

    Source: seen with amd-quark 0.13 for all of its schemes with each algorithm.
    """
    for name in dict.fromkeys(case.plan.algorithms):
        if name not in HESSIAN_ALGORITHMS and name not in _SEARCHING:
            continue
        for scheme in _schemes_of(case, _touched(case, name)):
            if len(scheme.weight) > 1:
                why = "whose weights are quantized in two stages"
            elif name in HESSIAN_ALGORITHMS and any(spec.dtype.lower().startswith("fp6") for spec in scheme.weight):
                why = "whose weights have 6 bits"
            else:
                continue
            yield blocks(
                f"{name} fails with {scheme.name}, {why}.", "Take smoothquant, another scheme, or no algorithm."
            )


@rule("algorithm_splits_layers")
def layers_that_share_a_scale_are_treated_alike(case: Case) -> Iterator[Remark]:
    """awq and autosmoothquant give layers with the same input one scale. With one of them left alone they end with an
    AttributeError, unless it is the one whose input they look at: then they skip them all. awq also ends with an
    AssertionError where groups of these layers differ in size. Source: seen with amd-quark 0.13.
    """
    for name in dict.fromkeys(case.plan.algorithms):
        content = _content(case, name) if name in _SEARCHING else None
        if content is None or not isinstance(content.get("scaling_layers"), list):
            continue
        for together in _sharing(case, content):
            treated = {layer: _treatment(layer, case) for layer in together}
            inp, others = together[0], together[1:]
            if treated[inp] is None:
                continue
            alone = [layer for layer in others if treated[layer] is None]
            sizes = {_group_size(case, scheme) for scheme in treated.values() if scheme is not None}
            if alone:
                yield blocks(
                    f"{name} gives {inp} and {alone[0]} one scale, and the plan leaves only one of them alone.",
                    "Leave both alone, or none.",
                )
            elif name == "awq" and len(sizes) > 1:
                yield blocks(
                    f"awq gives {', '.join(together)} one scale, and their groups differ in size.",
                    "Give them schemes with the same group size.",
                )
            else:
                continue
            break  # the other layers are the same again


@rule("rotation_size")
def the_hidden_size_can_be_rotated(case: Case) -> Iterator[Remark]:
    """Without a Hadamard matrix of the hidden size: ValueError while quantizing. Source: seen with amd-quark 0.13."""
    size = case.analysis.model.hidden_size
    if "rotation" not in case.plan.algorithms or size is None or _has_hadamard(size):
        return
    yield blocks(
        f"rotation needs a Hadamard matrix of the hidden size {size}, and the engine has none.",
        "Take smoothquant, or no algorithm.",
    )


@rule("rotation_unties")
def rotation_keeps_the_head_tied(case: Case) -> Iterator[Remark]:
    """The engine turns the head and the embedding differently and writes both, while config.json still says that they
    are one. Source: seen with amd-quark 0.13; its own loader takes both.
    """
    if "rotation" in case.plan.algorithms and case.analysis.model.tied_embeddings:
        yield warns(
            "rotation writes an lm_head of its own, while config.json goes on to say that it is the embedding; a "
            "server that believes it computes nonsense.",
            "Take smoothquant, or try the result in your server.",
        )


@rule("experts_without_tokens")
def every_expert_is_calibrated(case: Case) -> Iterator[Remark]:
    """gptq, gptaq and qronos write zeros for an expert that no token of the calibration data reached, without a word.

    Source: seen with amd-quark 0.13.
    """
    calibration, experts = case.plan.calibration, case.analysis.model.experts
    for name in dict.fromkeys(case.plan.algorithms):
        touched = _touched(case, name) if name in HESSIAN_ALGORITHMS else []
        if not any("experts.*." in target.group.pattern for target in touched):
            continue
        tokens = calibration.num_calib_data * calibration.seq_len
        shared = f" among {experts} experts of a layer" if experts else ""
        yield warns(
            f"{name} writes zeros for an expert that no calibration token reaches; {tokens:,} tokens are shared"
            f"{shared}.",
            "Take many and varied samples, and compare the perplexity.",
        )


@rule("algorithm_order")
def moving_comes_before_rounding(case: Case) -> Iterator[Remark]:
    """gptq, gptaq and qronos leave rounded weights; what changes them afterwards undoes that, without a word.

    Source: algorithms are applied in the order of the list, amd-quark 0.13.
    """
    names = case.plan.algorithms
    for place, rounding in enumerate(names):
        if rounding not in HESSIAN_ALGORITHMS:
            continue
        for later in dict.fromkeys(names[place + 1 :]):
            if later in _MOVING:
                yield warns(f"{later} after {rounding} undoes its rounding.", f"Take {later},{rounding} instead.")
            elif later in HESSIAN_ALGORITHMS and later != rounding:
                yield warns(f"{later} rounds again what {rounding} has rounded.", f"Take {rounding} or {later}.")


@rule("algorithm_odd")
def algorithms_suit_the_scheme(case: Case) -> Iterator[Remark]:
    """awq, gptq and gptaq are made for INT4 and UINT4 weights, smoothing for 8-bit activations; else they run in vain.

    Source: AMD Quark's published table of compatible schemes.
    """
    scheme = case.catalogue.schemes.get(case.plan.global_scheme)
    if scheme is None:
        return
    low = schemes.is_low_integer(scheme)
    for name in dict.fromkeys(case.plan.algorithms):
        if name in _FOR_LOW_INTEGERS and not low:
            yield warns(f"{name} is made for INT4 and UINT4 weights; with {scheme.name} it may gain nothing.")
        if name in _FOR_EIGHT_BITS and not any(schemes.bits(spec) == 8 for spec in scheme.input[:1]):
            yield warns(f"{name} is made for INT8 and FP8 activations; with {scheme.name} it may gain nothing.")


def _content(case: Case, name: str) -> Mapping[str, Any] | None:
    return algorithm_layers.configuration(name, case.plan, case.analysis, case.host)


def _touched(case: Case, name: str) -> list[Target]:
    """The quantized layers that an algorithm works on; all of them where its configuration is not known."""
    if name in HESSIAN_ALGORITHMS:
        steps = algorithm_layers.hessian_steps(
            case.plan.model_copy(update={"algorithm": name}), case.analysis, case.host
        )
        patterns = {group.pattern for step in steps for group in step}
        return [target for target in case.quantized if target.group.pattern in patterns]
    content = _content(case, name)
    prefix = content.get("model_decoder_layers") if content else None
    if not isinstance(prefix, str):
        return case.quantized
    return [target for target in case.quantized if target.group.pattern.startswith(f"{prefix}.")]


def _schemes_of(case: Case, targets: list[Target]) -> list[Scheme]:
    """The known schemes of these layers; those that the plan names where the layers of the model are not known."""
    if not case.analysis.quantization_targets.groups:
        return case.used_schemes
    names = dict.fromkeys(target.scheme or "" for target in targets)
    return [case.catalogue.schemes[name] for name in names if name in case.catalogue.schemes]


def _sharing(case: Case, content: Mapping[str, Any]) -> Iterator[list[str]]:
    """Full names of layers that get one scale, layer by layer; the one whose input is looked at stands first."""
    prefix = str(content.get("model_decoder_layers"))
    block = algorithm_fit.block_of(prefix, case.analysis)
    for entry in content["scaling_layers"]:
        inp, others = entry.get("inp"), entry.get("layers", [])
        names = sorted(map(str, others), key=lambda name: name != inp)
        if len(names) < 2 or not all(name in block.linears for name in names):
            continue
        for number in _numbers(block, names, case):
            yield [f"{prefix}.{number}.{name}" for name in names]


def _numbers(block: algorithm_fit.Block, names: list[str], case: Case) -> list[int]:
    """Numbers of the repeated layers that have all of these layers."""
    common: set[int] | None = None
    for name in names:
        found: set[int] = set()
        for group in block.linears[name]:
            told = parse_numbers(group.numbers[0]) if group.numbers else None
            found |= set(told if told is not None else range(case.analysis.model.hidden_layers or group.count))
        common = found if common is None else common & found
    return sorted(common or ())


def _treatment(name: str, case: Case) -> str | None:
    """The scheme of one layer; None where it is left alone."""
    plan = case.plan
    if any(fnmatchcase(name, pattern) for pattern in plan.exclude_layers):
        return None
    overrides = layers.in_order(plan.layer_quant_config)
    return next((scheme for pattern, scheme in overrides if fnmatchcase(name, pattern)), plan.global_scheme)


def _group_size(case: Case, scheme: str) -> int | None:
    known = case.catalogue.schemes.get(scheme)
    return known.group_size if known else None


def _has_hadamard(size: int) -> bool:
    """Whether a size is a power of two, or one of the known sizes times such a power."""
    return _is_power_of_two(size) or any(size % known == 0 and _is_power_of_two(size // known) for known in _HADAMARD)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0
