"""Algorithms: whether the engine has them, is configured for the family, and whether they suit the scheme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from runner.planning import evaluation, schemes
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns

_FOR_LOW_INTEGERS = frozenset({"awq", "gptq", "gptaq"})
_FOR_EIGHT_BITS = frozenset({"smoothquant", "autosmoothquant"})
_BROKEN = "autoround"


@rule("unknown_algorithm")
def algorithms_are_known(case: Case) -> Iterator[Remark]:
    """The engine raises ValueError for a name that it does not know. Source: seen with amd-quark 0.13."""
    for name in dict.fromkeys(case.plan.algorithms):
        if name not in case.catalogue.algorithms:
            hint = (
                schemes.similar_names(name, case.catalogue.algorithms)
                or f"It has {', '.join(case.catalogue.algorithms)}."
            )
            yield blocks(f"The installed engine has no algorithm {name or 'without a name'}.", hint)


@rule("algorithm_not_configured")
def algorithms_are_configured(case: Case) -> Iterator[Remark]:
    """Without a built-in configuration for the family: NotImplementedError, once model and dataset are loaded.

    Source: seen with amd-quark 0.13; qwen3 has none for any usual algorithm.
    """
    template = case.template
    if template is None:
        return
    usable = [name for name in template.algorithms if name != _BROKEN]
    for name in dict.fromkeys(case.plan.algorithms):
        if name in case.catalogue.algorithms and name not in template.algorithms:
            yield blocks(
                f"The engine has no built-in {name} configuration for {template.model_type}.",
                f"Take {' or '.join(usable)}, or no algorithm." if usable else "Take no algorithm.",
            )


@rule("autoround_fails")
def autoround_is_not_used(case: Case) -> Iterator[Remark]:
    """The standard flow ends with KeyError 'autoround' even where it is configured.

    Source: seen with amd-quark 0.13.
    """
    if _BROKEN in case.plan.algorithms:
        yield blocks(
            "autoround always fails in the engine's standard flow (KeyError while quantizing).",
            "Take another algorithm, or none.",
        )


@rule("algorithm_needs_gpu")
def algorithm_runs_on_this_device(case: Case) -> Iterator[Remark]:
    """autosmoothquant runs the quantized model while it searches, which MXFP4 cannot do on a CPU.

    Source: seen with amd-quark 0.13 (RuntimeError "only implemented in CUDA devices").
    """
    if (
        case.plan.device == "cpu"
        and "autosmoothquant" in case.plan.algorithms
        and evaluation.needs_gpu(case.plan, case.analysis, case.catalogue)
    ):
        yield blocks(
            f"autosmoothquant with {case.plan.global_scheme} computes only on a GPU, and this plan runs on the CPU.",
            "Take smoothquant, or a host with a GPU.",
        )


@rule("algorithm_repeated")
def algorithms_stand_once(case: Case) -> Iterator[Remark]:
    """The engine applies a repeated algorithm again, without a warning; our own script refuses it at its start.

    Source: seen with amd-quark 0.13.
    """
    for name, times in Counter(case.plan.algorithms).items():
        if times < 2:
            continue
        if case.plan.entry_point == "own":
            yield blocks(f"{name} stands {times} times, which our own script refuses.", "Name it once.")
        else:
            yield warns(f"{name} stands {times} times and would be applied each time.", "Name it once.")


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
