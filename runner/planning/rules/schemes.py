"""Schemes: whether the engine has them, can write them, and whether they fit the layers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from runner.planning import layers, schemes
from runner.planning.recommend import has_no_native_fp4
from runner.planning.rules.registry import Case, Remark, blocks, informs, rule, warns
from schemas.catalog import Scheme

_SMOOTHING = frozenset({"smoothquant", "autosmoothquant", "rotation"})


@rule("unknown_scheme")
def schemes_are_known(case: Case) -> Iterator[Remark]:
    """An unknown global scheme ends the run at its start, an unknown one of an override with a bare KeyError.

    Source: seen with amd-quark 0.13.
    """
    for name, where in case.named_schemes.items():
        if name not in case.catalogue.schemes:
            hint = schemes.similar_names(name, case.catalogue.schemes) or f"It has {', '.join(case.catalogue.schemes)}."
            yield blocks(f"The installed engine has no scheme {name} ({where}).", hint)


@rule("not_exportable")
def schemes_can_be_exported(case: Case) -> Iterator[Remark]:
    """MX6, MX9 and BFP16 calibrate for hours and then fail at the export.

    Source: seen with amd-quark 0.13 on eight model families, as AssertionError or ValueError.
    """
    for name, where in case.named_schemes.items():
        scheme = case.catalogue.schemes.get(name)
        if scheme and schemes.cannot_be_exported(scheme):
            yield blocks(
                f"{name} ({where}) can be calibrated but not exported by the installed engine.",
                "Take a scheme that can be saved, such as mxfp6_e2m3 or mxfp4.",
            )


@rule("group_size_divides")
def groups_divide_every_layer(case: Case) -> Iterator[Remark]:
    """Integer groups must divide a layer's in_features, else the engine raises ValueError while it quantizes.

    MX and FP4 formats pad instead, silently, and servers may not load the result: those warn.
    Source: seen with amd-quark 0.13 on in_features of 96, 100 and 576.
    """
    seen: set[tuple[str, int]] = set()
    for target in case.quantized:
        scheme, width = case.catalogue.schemes.get(target.scheme or ""), target.group.in_features
        if scheme is None or (scheme.name, width) in seen:
            continue
        seen.add((scheme.name, width))
        refused, padded = schemes.refused_width(scheme, width), schemes.padded_width(scheme, width)
        has = f"{target.group.pattern} has {width} inputs"
        if refused:
            yield blocks(
                f"{has}; {scheme.name} needs a multiple of {refused}.",
                _instead(scheme, target, case),
            )
        elif padded:
            yield warns(
                f"{has}, no multiple of {padded}: {scheme.name} pads them, and servers may not load the result.",
                f"Exclude {target.group.pattern}, or take a scheme without groups.",
            )


def _instead(scheme: Scheme, target: layers.Target, case: Case) -> str:
    alike = {other.group.in_features for other in case.quantized if other.scheme == scheme.name}
    nearest = schemes.nearest_fitting(scheme, alike, case.catalogue)
    exclude = f"xclude {target.group.pattern}"
    return f"Take {nearest}, or e{exclude}." if nearest else f"E{exclude}."


@rule("int8_collapses")
def int8_is_smoothed(case: Case) -> Iterator[Remark]:
    """Static per-tensor INT8 of weights and activations loses the model unless outliers are smoothed or rotated away.

    Source: AMD's tables; perplexity of Llama-3-8B 6.14 to 253, of Qwen2-7B 7.89 to 172.
    """
    if _SMOOTHING.intersection(case.plan.algorithms):
        return
    for scheme in case.used_schemes:
        if schemes.is_static_int8(scheme):
            template = case.template
            helps = [name for name in (template.algorithms if template else []) if name in _SMOOTHING]
            hint = f"Add {' or '.join(helps)}, or take fp8." if helps else "Take fp8 or a weight-only scheme."
            yield warns(f"{scheme.name} without smoothing or rotation usually ruins a language model.", hint)


@rule("fp4_emulated")
def fp4_has_hardware(case: Case) -> Iterator[Remark]:
    """MI300 and MI325 (gfx942) emulate FP4; native FP4 needs MI350 or MI355 (gfx950). Source: AMD's hardware tables."""
    serving = next((str(row.value) for row in case.plan.decisions if row.decision == "hardware"), None)
    hardware = serving or f"{case.host.gpu_model or ''} {case.host.gpu_arch or ''}".strip()
    if not has_no_native_fp4(hardware):
        return
    for scheme in case.used_schemes:
        if schemes.is_fp4(scheme):
            yield warns(
                f"{hardware} only emulates FP4: {scheme.name} saves memory there but no time.",
                "fp8 is native on it; native FP4 needs MI350 or MI355.",
            )


@rule("moe_per_channel_fp8")
def experts_are_per_tensor(case: Case) -> Iterator[Remark]:
    """Some servers accept only per-tensor FP8 for the experts of a mixture. Source: public reports."""
    if not case.analysis.model.is_moe:
        return
    for scheme in case.used_schemes:
        if schemes.is_fp8(scheme) and any(spec.qscheme == "per_channel" for spec in scheme.weight):
            yield warns(f"Some servers load experts only with per-tensor FP8, not {scheme.name}.", "fp8 is per tensor.")


@rule("tensor_parallel_limit")
def groups_can_be_sharded(case: Case) -> Iterator[Remark]:
    """Under tensor parallelism the number of groups of a row-parallel layer must divide by the degree.

    Source: public reports of servers that refuse such weights.
    """
    if case.plan.tensor_parallel is not None:
        return
    common = 0
    for target, groups in _grouped(case):
        scheme = case.catalogue.schemes[target.scheme or ""]
        common = math.gcd(common, groups) if schemes.is_low_integer(scheme) else common
    largest = common & -common  # degrees in use are powers of two
    if 0 < largest < 8:
        shown = "no tensor parallelism" if largest == 1 else f"tensor parallelism of at most {largest}"
        yield informs(f"With these group sizes servers can use {shown} for this model.")


@rule("tensor_parallel_uneven")
def layers_divide_by_the_stated_degree(case: Case) -> Iterator[Remark]:
    """A server splits each layer along its inputs or its outputs, whatever its scheme; one of the two must divide.

    Source: how servers shard linear layers by rows or columns. Which of the two each takes is not looked at.
    """
    degree = case.plan.tensor_parallel
    if degree is None:
        return
    odd = [t for t in case.targets if t.group.in_features % degree and t.group.out_features % degree]
    if odd:
        worst = odd[0].group
        yield warns(
            f"A server cannot split these layers evenly among {degree} GPUs: {layers.described(t.group for t in odd)}; "
            f"{worst.pattern} has {worst.in_features} inputs and {worst.out_features} outputs.",
            "Serve it on a number of GPUs that divides them, usually a power of two.",
        )


@rule("tensor_parallel_refused")
def groups_divide_by_the_stated_degree(case: Case) -> Iterator[Remark]:
    """A server that splits each layer among N GPUs refuses weights whose groups do not divide by N.

    The checkpoint itself is fine, so that it warns. Source: public reports; in_features / group must divide by N.
    """
    degree = case.plan.tensor_parallel
    if degree is None or degree == 1:
        return
    counts = list(_grouped(case))
    wrong = [target for target, groups in counts if groups % degree]
    if not wrong:
        return
    common = math.gcd(*(groups for _, groups in counts))
    largest = max(number for number in range(1, degree + 1) if common % number == 0)
    odd = next(target for target in wrong)
    size = _group_size(odd, case)
    yield warns(
        f"A server cannot split these groups among {degree} GPUs: {layers.described(t.group for t in wrong)}; "
        f"{odd.group.pattern} has {odd.group.in_features // size if size else 0} groups of {size}.",
        (
            f"The largest number of GPUs that works is {largest}; or take a scheme with smaller groups, or without any."
            if largest > 1
            else "Only a single GPU works; take a scheme with smaller groups, or without any."
        ),
    )


def _grouped(case: Case) -> Iterator[tuple[layers.Target, int]]:
    """Quantized layers whose weights have groups, and how many groups a row of theirs has."""
    for target in case.quantized:
        size = _group_size(target, case)
        if size and target.group.in_features % size == 0:
            yield target, target.group.in_features // size


def _group_size(target: layers.Target, case: Case) -> int | None:
    scheme = case.catalogue.schemes.get(target.scheme or "")
    return scheme.group_size if scheme else None


@rule("gguf_scheme")
def gguf_can_hold_the_scheme(case: Case) -> Iterator[Remark]:
    """The engine's GGUF writer knows only unsigned 4-bit groups of 32, of Llama-like models; else it raises ValueError.

    Source: GGUF writer of amd-quark 0.13.
    """
    if case.plan.model_export != "gguf":
        return
    for scheme in case.used_schemes:
        spec = schemes.stored(scheme)
        if spec is None or (spec.dtype, spec.qscheme, spec.group_size) != ("uint4", "per_group", 32):
            yield blocks(f"GGUF export cannot hold {scheme.name}.", "Take uint4_wo_32, or export as hf_format.")
    known = ("LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM")
    if case.analysis.model.architectures and not set(known).intersection(case.analysis.model.architectures):
        yield blocks(
            f"The engine's GGUF writer does not know {case.analysis.model.architectures[0]}, only {', '.join(known)}.",
            "Export as hf_format.",
        )
