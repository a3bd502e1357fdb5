"""The KV cache: which schemes it takes, where it cannot be quantized, and options that need it."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning.rules.registry import Case, Remark, blocks, informs, rule, warns


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


@rule("kv_scales_ignored")
def kv_scales_are_read(case: Case) -> Iterator[Remark]:
    """Several servers read calibrated KV scales as 1.0 for some families. Source: public reports."""
    if case.plan.kv_cache_scheme is not None:
        yield informs(
            "Some servers read calibrated KV cache scales as 1.0 for some families.",
            "Look for such a warning in the server's log when it loads the model.",
        )
