"""Exclusions and overrides: patterns that match nothing, contradict each other, or quantize what was left alone."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from runner.planning import layers
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns
from schemas.artifacts.analysis import ModelAnalysis


@rule("exclusions_differ")
def unchanged_exclusions_are_the_engines(case: Case) -> Iterator[Remark]:
    """Unchanged exclusions are left out of the command, so the engine's own apply: those must be the ones shown."""
    defaults = case.default_exclusions
    if not case.plan.exclude_layers_changed and set(case.plan.exclude_layers) != set(defaults):
        shown, own = ", ".join(case.plan.exclude_layers) or "none", ", ".join(defaults) or "none"
        yield blocks(
            f"The plan shows {shown} as the engine's own exclusions, which are {own}.", "Plan again with this runner."
        )


@rule("exclusion_dropped")
def default_exclusions_are_kept(case: Case) -> Iterator[Remark]:
    """Exclusions of a person replace the engine's, so that a forgotten one quantizes the head, a router, or attention.

    Source: seen with amd-quark 0.13 on qwen3_moe and deepseek_v3.
    """
    if not case.plan.exclude_layers_changed:
        return
    kept = {target.group.pattern for target in case.targets if target.scheme is None}
    for default in case.default_exclusions:
        if default in case.plan.exclude_layers:
            continue
        groups = layers.matching(default, case.analysis)
        lost = [group for group in groups if group.pattern not in kept]
        if lost:
            yield warns(
                f"The engine leaves {default} alone by default; now {layers.described(lost)} would be quantized.",
                f"Add {default} to the exclusions to keep it at full precision.",
            )
        elif not groups:
            yield warns(
                f"The engine's default exclusion {default} is no longer among the exclusions.",
                f"Add {default} unless it shall be quantized.",
            )


@rule("exclusion_matches_nothing")
def exclusions_match_layers(case: Case) -> Iterator[Remark]:
    """An exclusion that matches no layer excludes none, without a word. Patterns must match the whole module name.

    Source: seen with amd-quark 0.13 (`down_proj` matches nothing).
    """
    if not case.plan.exclude_layers_changed or not case.analysis.quantization_targets.groups:
        return
    defaults = case.default_exclusions
    for pattern in case.plan.exclude_layers:
        if pattern not in defaults and not layers.matching(pattern, case.analysis):
            yield warns(f"The exclusion {pattern} matches no linear layer.", _better(pattern, case.analysis))


@rule("override_matches_nothing")
def overrides_match_layers(case: Case) -> Iterator[Remark]:
    """An override that matches no layer is dropped without a word.

    It blocks where the names are the engine's own. Names of weight files may differ from them, so there it only warns.
    Source: seen with amd-quark 0.13.
    """
    if not case.analysis.quantization_targets.groups:
        return
    for pattern, scheme in case.plan.layer_quant_config.items():
        if layers.matching(pattern, case.analysis):
            continue
        message = f"The pattern {pattern} matches no linear layer, so {scheme} would be used nowhere."
        if layers.names_are_exact(case.analysis):
            yield blocks(message, _better(pattern, case.analysis))
        else:
            yield warns(message, _better(pattern, case.analysis))


@rule("override_excluded")
def overrides_reach_their_layers(case: Case) -> Iterator[Remark]:
    """An exclusion wins over an override, without a word. Source: seen with amd-quark 0.13."""
    left_alone = {t.group.pattern for t in case.targets if t.scheme is None}
    for pattern, scheme in case.plan.layer_quant_config.items():
        excluded = [group for group in layers.matching(pattern, case.analysis) if group.pattern in left_alone]
        if excluded or pattern in case.plan.exclude_layers:
            what = layers.described(excluded) or pattern
            yield warns(
                f"{what} is excluded, so {scheme} for {pattern} has no effect on it.",
                "Remove the exclusion to quantize it, or the override.",
            )


@rule("override_overlap")
def overrides_do_not_compete(case: Case) -> Iterator[Remark]:
    """Where several overrides match a layer the engine takes the first one. Source: seen with amd-quark 0.13."""
    ordered = layers.in_order(case.plan.layer_quant_config)
    for index, (first, scheme) in enumerate(ordered):
        reached = {group.pattern for group in layers.matching(first, case.analysis)}
        for second, other in ordered[index + 1 :]:
            shared = [group for group in layers.matching(second, case.analysis) if group.pattern in reached]
            if shared and other != scheme:
                yield warns(
                    f"{first} and {second} both match {layers.described(shared)}; the more specific {first} "
                    f"({scheme}) counts.",
                )


@rule("tied_head_quantized")
def tied_head_stays_with_the_embedding(case: Case) -> Iterator[Remark]:
    """A head that shares the embedding's weight is quantized while the embedding is not: a contradictory checkpoint.

    Source: seen with amd-quark 0.13 on a tied model without exclusions.
    """
    was_excluded = any(fnmatchcase("lm_head", pattern) for pattern in case.default_exclusions)
    is_excluded = any(fnmatchcase("lm_head", pattern) for pattern in case.plan.exclude_layers)
    if case.analysis.model.tied_embeddings and was_excluded and not is_excluded:
        yield warns(
            "lm_head shares the embedding's weight; quantizing it makes a checkpoint that contradicts itself.",
            "Exclude lm_head.",
        )


def _better(pattern: str, analysis: ModelAnalysis) -> str:
    """A pattern that would match, or what the names look like."""
    if not pattern.startswith("*"):
        wider = f"*{pattern}" if layers.matching(f"*{pattern}", analysis) else f"*{pattern}*"
        if layers.matching(wider, analysis):
            return f"A pattern must match the whole name: {wider} would match."
    return f"Layers are named like {layers.described(analysis.quantization_targets.groups)}."
