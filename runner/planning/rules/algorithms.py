"""Algorithms: whether the engine has them, and whether it has or gets a configuration of them for the family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from runner.planning import algorithm_configs, schemes
from runner.planning.algorithm_configs import NEVER_WORKS
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns

_HEAD_NORMS = ("q_norm", "k_norm")


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

    A configuration that the plan carries stands in for it. Source: seen with amd-quark 0.13; qwen3 has none for any
    usual algorithm.
    """
    template = case.template
    if template is None:
        return
    carried = {config.algorithm for config in case.plan.algorithm_configs}
    usable = [name for name in template.algorithms if name not in NEVER_WORKS]
    instead = f"take {' or '.join(usable)}, or no algorithm" if usable else "take no algorithm"
    for name in dict.fromkeys(case.plan.algorithms):
        if name not in case.catalogue.algorithms or name in template.algorithms or name in carried:
            continue
        family = algorithm_configs.donor(name, case.analysis, case.catalogue, case.host)
        if family is not None:
            hint = f"Say 'write the configuration' to derive one from that of {family}, or {instead}."
        else:
            hint = f"{instead[0].upper()}{instead[1:]}."
        yield blocks(f"The engine has no built-in {name} configuration for {template.model_type}.", hint)


@rule("algorithm_config_written")
def a_written_configuration_is_not_the_engines(case: Case) -> Iterator[Remark]:
    """It has the donor's layers under the same names; that it does as much good here, nobody has measured.

    For families that normalise queries and keys, the engine's own configurations smooth only the MLP: what is scaled
    before such a norm says little about what follows it. Source: algorithm configurations of amd-quark 0.13.
    """
    for config in case.plan.algorithm_configs:
        found = algorithm_configs.offer(config.algorithm, case.analysis, case.catalogue, case.host)
        left = f" It leaves {', '.join(found.left)} to rounding alone." if found is not None and found.left else ""
        doubt = ""
        if "scaling_layers" in config.content and _normalises_heads(case):
            doubt = " This family normalises queries and keys, where scaling attention may gain little."
        yield warns(
            f"The {config.algorithm} configuration is written after that of {config.derived_from}; the engine has "
            f"none of its own for {case.plan.model.model_type}.{left}{doubt}",
            "Compare the perplexity with a run without the algorithm.",
        )


def _normalises_heads(case: Case) -> bool:
    return any(pattern.rpartition(".")[2] in _HEAD_NORMS for pattern in case.analysis.quantization_targets.norms)


@rule("algorithm_config_unused")
def a_written_configuration_has_a_use(case: Case) -> Iterator[Remark]:
    """Asking for a file where the engine has its own, or where no family can be followed, changes nothing."""
    template = case.template
    if not case.plan.write_algorithm_config or case.plan.algorithm_configs or template is None:
        return
    if not case.plan.algorithms:
        yield warns("There is no configuration to write: the plan has no algorithm.", "Name the algorithm as well.")
    elif all(name in template.algorithms for name in case.plan.algorithms):
        yield warns(
            f"No configuration is written: the engine has its own of {case.plan.algorithm} for {template.model_type}."
        )


@rule("autoround_fails")
def autoround_is_not_used(case: Case) -> Iterator[Remark]:
    """The standard flow ends with KeyError 'autoround' even where it is configured.

    Source: seen with amd-quark 0.13.
    """
    for name in dict.fromkeys(case.plan.algorithms):
        if name in NEVER_WORKS:
            yield blocks(
                f"{name} always fails in the engine's standard flow (KeyError while quantizing).",
                "Take another algorithm, or none.",
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
