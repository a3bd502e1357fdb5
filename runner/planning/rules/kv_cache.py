"""The KV cache and attention: which schemes they take, what they do to their layers, and options that need them."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import projections
from runner.planning.projections import Projection
from runner.planning.rules.registry import Case, Remark, blocks, counted, informs, rule, warns
from runner.planning.schemes import similar_names

_LARGEST = {
    **dict.fromkeys(("f16", "float16"), 65504.0),
    **dict.fromkeys(("bf16", "bfloat16"), 3.3895313892515355e38),
    **dict.fromkeys(("f32", "float32"), 3.4028234663852886e38),
}
"""The largest finite number of a dtype, by the names of safetensors and of torch."""


@rule("unknown_kv_scheme")
def kv_scheme_is_known(case: Case) -> Iterator[Remark]:
    """Any other scheme raises ValueError, although the command line's help lists ten more.

    Source: seen with amd-quark 0.13.
    """
    if case.plan.kv_cache_scheme is not None and case.plan.kv_cache_scheme not in case.catalogue.kv_cache_schemes:
        offered = ", ".join(case.catalogue.kv_cache_schemes) or "none"
        yield blocks(f"The installed engine has no KV cache scheme {case.plan.kv_cache_scheme}.", f"It has {offered}.")


@rule("kv_layers_missing")
def the_family_has_kv_layers(case: Case) -> Iterator[Remark]:
    """Without KV layers in the template the setting does nothing, and the checkpoint claims what it is not.

    Source: template code of amd-quark 0.13.
    """
    template = case.template
    if case.plan.kv_cache_scheme is not None and template is not None and not template.kv_layers:
        yield blocks(
            f"The engine does not know which layers of {template.model_type} fill the KV cache.",
            "Plan without a KV cache scheme.",
        )


@rule("kv_options_without_scheme")
def kv_options_have_a_scheme(case: Case) -> Iterator[Remark]:
    """min_kv_scale and kv_cache_post_rope do nothing without a KV cache scheme. Source: seen with amd-quark 0.13."""
    if case.plan.kv_cache_scheme is not None:
        return
    if case.plan.min_kv_scale is not None:
        yield warns("min_kv_scale has no effect without a KV cache scheme.", "Add kv_cache_scheme fp8, or drop it.")
    if case.plan.kv_cache_post_rope:
        yield warns(
            "kv_cache_post_rope has no effect without a KV cache scheme.", "Add kv_cache_scheme fp8, or drop it."
        )


@rule("min_kv_scale_large")
def the_least_scale_is_a_scale(case: Case) -> Iterator[Remark]:
    """Every scale of the KV cache is raised to min_kv_scale: what the model's dtype cannot hold becomes infinite.

    Above 1 a scale leaves FP8 fewer steps for usual values than none at all. Source: largest numbers of the dtypes, and
    what a scale is.
    """
    least, plan = case.plan.min_kv_scale, case.plan
    if least is None or plan.kv_cache_scheme is None:
        return
    dtype = (case.analysis.model.dtype or "") if plan.data_type == "auto" else plan.data_type
    most = _LARGEST.get(dtype.lower(), _LARGEST["float32"])
    if least > most:
        yield blocks(
            f"A min_kv_scale of {least:g} is more than the model's dtype can hold, which ends at {most:.3g}.",
            "Take a small number such as 0.001, or plan without min_kv_scale.",
        )
    elif least > 1:
        yield warns(
            f"min_kv_scale {least:g} makes every scale of the KV cache at least that large, which costs accuracy.",
            "Take a small number such as 0.001, or plan without min_kv_scale.",
        )


@rule("kv_scales_ignored")
def kv_scales_are_read(case: Case) -> Iterator[Remark]:
    """Several servers read calibrated KV scales as 1.0 for some families. Source: public reports."""
    if case.plan.kv_cache_scheme is not None:
        yield informs(
            "Some servers read calibrated KV cache scales as 1.0 for some families.",
            "Look for such a warning in the server's log when it loads the model.",
        )


@rule("kv_layers_share_scheme")
def kv_layers_get_what_was_asked(case: Case) -> Iterator[Remark]:
    """With a KV cache scheme all layers of one key or value pattern get one scheme: overrides are lost, or spread.

    Source: template code of amd-quark 0.13; seen with it (`*layers.0.*` is lost on keys and values, one key layer
    spreads to all, one excluded key layer leaves all of them alone).
    """
    template = case.template
    if case.plan.kv_cache_scheme is None or template is None:
        return
    for found in projections.of_kv_cache(case.plan, case.analysis, template.kv_layers):
        if found.lost:
            yield warns(
                f"With a KV cache scheme the engine treats all {counted(found.layers)} of {found.pattern} alike, as "
                f"{_said(found.gets)}; {_wanted(found)}.",
                f"Name them as {found.pattern}, so that all are meant, or plan without a KV cache scheme.",
            )


@rule("unknown_attention_scheme")
def attention_scheme_is_known(case: Case) -> Iterator[Remark]:
    """Any attention scheme that the engine does not list raises ValueError, once the model is loaded.

    Source: seen with amd-quark 0.13 (int8).
    """
    asked, known = case.plan.attention_dtype, case.catalogue.attention_schemes
    if asked is not None and asked not in known:
        offered = f"It has {', '.join(known)}." if known else "It has none."
        yield blocks(f"The installed engine has no attention scheme {asked}.", similar_names(asked, known) or offered)


@rule("attention_partly")
def attention_is_quantized_everywhere(case: Case) -> Iterator[Remark]:
    """An override or exclusion that names query layers keeps attention from being quantized there, without a word.

    What it says for one query layer is used for those that nothing names as well. Source: template code of amd-quark
    0.13; seen with it (`*self_attn*` leaves no query layer with output scales).
    """
    template = case.template
    if case.plan.attention_dtype not in case.catalogue.attention_schemes or template is None:
        return
    for found in projections.of_attention(case.plan, case.analysis, template.q_layers, template.kv_layers):
        if found.without:
            yield warns(
                f"Attention is not quantized in {found.without} of the {counted(found.layers)} of {found.pattern}: an "
                "exclusion or an override names them.",
                f"Override {found.pattern} itself, which keeps its attention quantized.",
            )
        if found.lost:
            yield warns(
                f"With an attention scheme the engine treats the rest of {found.pattern} alike, as "
                f"{_said(found.gets)}; {_wanted(found)}.",
                f"Name them as {found.pattern}, so that all are meant, or plan without attention_dtype.",
            )


@rule("attention_layers_missing")
def the_family_has_query_layers(case: Case) -> Iterator[Remark]:
    """Without query layers in the template only the softmax is quantized. Source: template code of amd-quark 0.13."""
    template = case.template
    if case.plan.attention_dtype is not None and template is not None and not template.q_layers:
        yield warns(
            f"The engine does not know the query layers of {template.model_type}, so attention is quantized in part.",
            "Plan without attention_dtype.",
        )


def _wanted(found: Projection) -> str:
    """What the layers were to get that get something else."""
    parts = (f"{counted(count)} were to {_verb(scheme)}" for scheme, count in found.lost.items())
    return " and ".join(parts).replace("1 layer were", "1 layer was")


def _verb(scheme: str | None) -> str:
    return "be left alone" if scheme is None else f"get {scheme}"


def _said(scheme: str | None) -> str:
    return "excluded" if scheme is None else scheme
