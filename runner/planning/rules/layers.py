"""Exclusions and overrides: patterns that match nothing, contradict each other, or quantize what was left alone."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from runner.planning import layers
from runner.planning.rules.registry import Case, Remark, blocks, counted, few, rule, short, warns
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis

_EMBEDDINGS = ("embed_tokens", "wte", "word_embeddings", "embed_in", "tok_embeddings", "embed_positions")


@rule("exclusions_differ")
def unchanged_exclusions_are_the_engines(case: Case) -> Iterator[Remark]:
    """Unchanged exclusions are left out of the command, so the engine's own apply: those must be the ones shown."""
    defaults = case.default_exclusions
    if not case.plan.exclude_layers_changed and set(case.plan.exclude_layers) != set(defaults):
        shown, own = few(case.plan.exclude_layers) or "none", few(defaults) or "none"
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
    for default in case.default_exclusions:
        if default in case.plan.exclude_layers:
            continue
        lost = list(_no_longer_excluded(default, case))
        if lost:
            count = counted(sum(hit.count for hit in lost))
            which = layers.described(hit.group for hit in lost)
            yield warns(
                f"The engine leaves {default} alone by default; now {count} of it would be quantized: {which}.",
                f"Add {default} to the exclusions to keep it at full precision.",
            )
        elif not layers.hits(default, case.analysis):
            yield warns(
                f"The engine's default exclusion {default} is no longer among the exclusions.",
                f"Add {default} unless it shall be quantized.",
            )


def _no_longer_excluded(default: str, case: Case) -> Iterator[layers.Hit]:
    kept = case.plan.exclude_layers
    for group in layers.linear_groups(case.analysis):
        ways = layers.ways(group, case.analysis, (default, *kept))
        count = sum(count for matched, count in ways.items() if default in matched and not matched.intersection(kept))
        if count:
            yield layers.Hit(group, count)


@rule("exclusion_matches_nothing")
def exclusions_match_layers(case: Case) -> Iterator[Remark]:
    """An exclusion that matches no layer excludes none, without a word. Patterns must match the whole module name.

    It warns and does not block: the run does what the rest of the plan says, and a pattern may be kept for layers that
    only some models of a family have, as the engine's own defaults are. Source: seen with amd-quark 0.13 (`down_proj`
    and `*nothing*` match nothing, and both runs work).
    """
    if not case.plan.exclude_layers_changed or not case.analysis.quantization_targets.groups:
        return
    asked = (pattern for pattern in case.plan.exclude_layers if pattern not in case.default_exclusions)
    idle = [pattern for pattern in asked if not layers.hits(pattern, case.analysis)]
    if len(idle) == 1:
        message = f"The exclusion {short(idle[0])} matches no linear layer, so it leaves nothing alone."
        yield warns(message, _better(idle[0], case.analysis))
    elif idle:
        message = f"{len(idle):,} exclusions match no linear layer, so they leave nothing alone: {few(idle)}."
        yield warns(message, f"The first one: {_better(idle[0], case.analysis)}")


@rule("override_matches_nothing")
def overrides_match_layers(case: Case) -> Iterator[Remark]:
    """An override that matches no layer is dropped without a word: what was asked for happens nowhere.

    It blocks, unlike an exclusion, where the names are those of the modules, since nothing is left of what it asks.
    Names of weight files may differ from the modules', and a pattern may be meant for the embedding: there it warns, or
    another rule speaks. Source: seen with amd-quark 0.13.
    """
    if not case.analysis.quantization_targets.groups:
        return
    asked = case.plan.layer_quant_config
    idle = [
        pattern
        for pattern in asked
        if not layers.hits(pattern, case.analysis) and not _embeddings(pattern, case.analysis)
    ]
    if not idle:
        return
    hint = _better(idle[0], case.analysis)
    if len(idle) == 1:
        first = idle[0]
        message = f"The pattern {short(first)} matches no linear layer, so {asked[first]} would be used nowhere."
    else:
        message = f"{len(idle):,} overrides match no linear layer, so they would be used nowhere: {few(idle)}."
        hint = f"The first one: {hint}"
    if layers.names_are_modules(case.analysis):
        yield blocks(message, hint)
    else:
        yield warns(message, f"{hint} The engine's own list of modules, once it is there, makes it certain.")


@rule("override_excluded")
def overrides_reach_their_layers(case: Case) -> Iterator[Remark]:
    """An exclusion wins over an override, without a word. Source: seen with amd-quark 0.13."""
    plan = case.plan
    for pattern, scheme in plan.layer_quant_config.items():
        lost = total = 0
        groups: list[LinearGroup] = []
        for group in layers.linear_groups(case.analysis):
            hidden = group.excluded_by_default and not plan.exclude_layers_changed
            for matched, count in layers.ways(group, case.analysis, (pattern, *plan.exclude_layers)).items():
                if pattern not in matched:
                    continue
                total += count
                if hidden or matched.intersection(plan.exclude_layers):
                    lost += count
                    groups.append(group)
        if lost or pattern in plan.exclude_layers:
            which = f"{lost} of the {total} layers" if lost < total else "all layers"
            shown = layers.described(groups) or short(pattern)
            yield warns(
                f"The exclusions win over {scheme} for {short(pattern)}: {which} that it matches are excluded "
                f"({shown}).",
                "Remove the exclusion to quantize them, or the override.",
            )


@rule("override_overlap")
def overrides_do_not_compete(case: Case) -> Iterator[Remark]:
    """Where several overrides match a layer the engine takes the first one. Source: seen with amd-quark 0.13."""
    ordered = layers.in_order(case.plan.layer_quant_config)
    for index, (first, scheme) in enumerate(ordered):
        for second, other in ordered[index + 1 :]:
            shared = [] if other == scheme else list(_shared(first, second, case))
            if shared:
                count = counted(sum(hit.count for hit in shared))
                yield warns(
                    f"{short(first)} and {short(second)} both match {count} "
                    f"({layers.described(hit.group for hit in shared)}); the more specific {short(first)} ({scheme}) "
                    "counts.",
                )


def _shared(first: str, second: str, case: Case) -> Iterator[layers.Hit]:
    """Layers that two overrides match and no exclusion does."""
    excluded = case.plan.exclude_layers
    for group in layers.linear_groups(case.analysis):
        ways = layers.ways(group, case.analysis, (first, second, *excluded))
        count = sum(
            count for matched, count in ways.items() if {first, second} <= matched and not matched & {*excluded}
        )
        if count:
            yield layers.Hit(group, count)


@rule("override_reaches_embedding")
def overrides_leave_the_embedding_alone(case: Case) -> Iterator[Remark]:
    """An override, unlike the global scheme, is used for embeddings too where its pattern matches their name.

    Source: layer configuration of amd-quark 0.13; seen with it (`*` quantizes model.embed_tokens).
    """
    for pattern, scheme in case.plan.layer_quant_config.items():
        reached = _embeddings(pattern, case.analysis)
        if reached and not any(fnmatchcase(reached[0], excluded) for excluded in case.plan.exclude_layers):
            yield warns(
                f"{short(pattern)} matches the embedding as well ({reached[0]}, where the model has it), which would "
                f"become {scheme}.",
                f"Exclude {reached[0]}, or take a narrower pattern; few servers load quantized embeddings.",
            )


def _embeddings(pattern: str, analysis: ModelAnalysis) -> list[str]:
    """Names of embeddings that a pattern would match. They are no linear layers, so an analysis does not list them."""
    beginnings = dict.fromkeys(
        group.pattern.partition("*")[0].rstrip(".").rpartition(".")[0]
        for group in analysis.quantization_targets.groups
        if "*" in group.pattern
    )
    names = (f"{beginning}.{leaf}".lstrip(".") for beginning in beginnings for leaf in _EMBEDDINGS)
    return [name for name in names if fnmatchcase(name, pattern)]


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
    """A pattern that would match, and how many layers; else what the names look like."""
    bare = pattern.strip("*.")
    for wider in dict.fromkeys((f"*{bare}", f"*{bare}*", f"*{bare.lower()}*")) if bare else ():
        count = sum(hit.count for hit in layers.hits(wider, analysis))
        if count:
            return f"A pattern must match the whole name: {short(wider)} would match {counted(count)}."
    return f"Layers are named like {layers.described(analysis.quantization_targets.groups)}."
