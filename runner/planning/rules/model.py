"""Whether the engine can quantize this model at all, and what loading it would run."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import layers, remote_code
from runner.planning.rules.registry import Case, Remark, blocks, informs, rule, warns
from runner.planning.schemes import similar_names

_RANGE = "transformers_range"
_MANY_LINEARS, _SAFE_MAPS, _RECOMMENDED_MAPS = 30_000, 1_048_576, 4_194_304


@rule("model_unsupported")
def the_engine_knows_the_model(case: Case) -> Iterator[Remark]:
    """Without a template of the model's type the engine raises ValueError, after the model is loaded.

    Source: seen with amd-quark 0.13.
    """
    found = case.analysis.compatibility
    if found.status == "unsupported":
        broken = any(risk.code == "shapes_differ" for risk in case.analysis.risks)
        other = "Take another model, or an engine that has a template for this one."
        yield blocks(found.message, "Put config.json and weights of the same model there." if broken else other)
    elif case.template is None:
        kind = case.analysis.model.model_type
        yield blocks(
            f"The installed engine has no template for the model type {kind}.",
            similar_names(kind, case.catalogue.templates) or "Take another model, or a newer engine.",
        )
    elif found.status == "doubtful" and not any(risk.code == _RANGE for risk in case.analysis.risks):
        yield warns(found.message)


@rule("transformers_range")
def the_versions_go_together(case: Case) -> Iterator[Remark]:
    """The engine asks for a range of transformers; outside it loading or quantizing may fail, or change the model.

    A model that a later transformers wrote may have settings that the installed one does not read. Source: metadata of
    the installed packages and the model's config.json, which the analysis compared.
    """
    for risk in case.analysis.risks:
        if risk.code in (_RANGE, "transformers_version"):
            yield warns(risk.message, risk.recovery_hint)


@rule("template_of_the_site")
def the_sites_template_is_not_read(case: Case) -> Iterator[Remark]:
    """A template file takes the place of the engine's own: exclusions and KV layers shown here may not be its.

    Source: quark-cli of amd-quark 0.13, which registers it before it quantizes.
    """
    if case.plan.template_file is not None:
        kept = ", ".join(case.default_exclusions) or "none"
        yield warns(
            f"What {case.plan.template_file} says of exclusions, KV layers and algorithms is not known here; the plan "
            f"shows the engine's own ({kept}).",
            "Name the exclusions yourself, and compare what the run reports with the plan.",
        )


@rule("memory_maps_few")
def huge_mixtures_have_memory_maps(case: Case) -> Iterator[Remark]:
    """Tens of thousands of layers over several GPUs use up the kernel's memory mappings of a process.

    The run then ends with an error that blames GPU memory (HSA_STATUS_ERROR_OUT_OF_RESOURCES). The bounds are the
    engine's own, which only logs a warning. Source: model loader of amd-quark 0.13.
    """
    plan, here = case.plan, case.host.max_map_count
    several = plan.multi_gpu is not None or plan.multi_device or plan.entry_point == "quark_cli"
    linears = sum(group.count for group in case.analysis.quantization_targets.groups)
    if plan.device == "cpu" or not (several or case.host.gpus_per_run > 1) or linears <= _MANY_LINEARS:
        return
    if here is not None and here < _SAFE_MAPS:
        yield warns(
            f"{linears:,} linear layers over several GPUs need many memory mappings, and vm.max_map_count is {here:,} "
            "here: the run may end with an error that blames GPU memory.",
            f"Let an administrator run: sudo sysctl -w vm.max_map_count={_RECOMMENDED_MAPS}.",
        )


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
