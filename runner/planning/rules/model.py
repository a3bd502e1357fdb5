"""Whether the engine can quantize this model at all, and what loading it would run."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import layers, remote_code
from runner.planning.rules.registry import Case, Remark, blocks, informs, rule, warns
from runner.planning.schemes import similar_names


@rule("model_unsupported")
def the_engine_knows_the_model(case: Case) -> Iterator[Remark]:
    """Without a template of the model's type the engine raises ValueError, after the model is loaded.

    Source: seen with amd-quark 0.13.
    """
    found = case.analysis.compatibility
    if found.status == "unsupported":
        yield blocks(found.message, "Take another model, or an engine that has a template for this one.")
    elif case.template is None:
        kind = case.analysis.model.model_type
        yield blocks(
            f"The installed engine has no template for the model type {kind}.",
            similar_names(kind, case.catalogue.templates) or "Take another model, or a newer engine.",
        )
    elif found.status == "doubtful":
        yield warns(found.message)


@rule("already_quantized")
def the_model_is_not_quantized_yet(case: Case) -> Iterator[Remark]:
    """A quantized input passes every phase with no module replaced, and then the export fails.

    Source: seen with amd-quark 0.13.
    """
    if case.analysis.model.quantized_by:
        yield blocks(
            f"This model is quantized already ({case.analysis.model.quantized_by}).",
            "Take the original, unquantized model.",
        )


@rule("nothing_quantized")
def something_is_quantized(case: Case) -> Iterator[Remark]:
    """A plan that excludes every layer replaces no module, and then the export has nothing to write as quantized.

    Source: seen with amd-quark 0.13 on inputs of which no module was replaced.
    """
    if case.analysis.quantization_targets.groups and not case.quantized:
        yield blocks("Every linear layer is excluded: nothing would be quantized.", "Exclude fewer layers.")


@rule("layers_provisional")
def the_layers_are_known(case: Case) -> Iterator[Remark]:
    """Weight files may fuse experts that the engine splits, so names and counts are those of the files for now.

    Source: fused experts under transformers 5, seen with amd-quark 0.13.
    """
    groups = [group for group in case.analysis.quantization_targets.groups if group.provisional]
    if groups or case.analysis.quantization_targets.provisional:
        which = layers.described(groups) or "the layers"
        yield informs(f"The engine may see {which} under other names and split fused experts; counts are provisional.")


@rule("remote_code_needed")
def needed_code_is_allowed(case: Case) -> Iterator[Remark]:
    """A model type that transformers does not know is loaded by code of the repository, or not at all."""
    if case.plan.trust_remote_code or not remote_code.needs_code(case.analysis, case.catalogue):
        return
    hint = (
        "If you trust this repository, ask for trust_remote_code."
        if case.host.remote_code
        else "This runner allows none (remote_code in runner.yaml)."
    )
    yield blocks(f"Loading this model runs code of its repository ({remote_code.named(case.analysis)}).", hint)


@rule("remote_code_forbidden")
def trusted_code_is_allowed(case: Case) -> Iterator[Remark]:
    """What may run at all is the runner's own law, whoever asks."""
    if case.plan.trust_remote_code and not case.host.remote_code:
        yield blocks(
            "This runner does not run code of model repositories.",
            "Plan without trust_remote_code, or allow remote_code in runner.yaml.",
        )


@rule("remote_code_runs")
def trusted_code_is_named(case: Case) -> Iterator[Remark]:
    """Code that nobody here wrote will run with the rights of the runner: an approver must read that."""
    if case.plan.trust_remote_code and remote_code.brings_code(case.analysis):
        yield warns(f"Code of the model's repository will run on this host ({remote_code.named(case.analysis)}).")
    elif not case.plan.trust_remote_code and remote_code.brings_code(case.analysis):
        yield informs(
            f"The repository brings code of its own, which will not run ({remote_code.named(case.analysis)})."
        )
