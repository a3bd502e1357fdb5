"""A model's files to a model_analysis: what the model is, what of it would be quantized, and what speaks against it."""

from __future__ import annotations

from collections import Counter

from runner.errors import NotHere
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation, check_links, model_roots
from runner.intake.compatibility import judge, knows
from runner.intake.config import has_tokenizer, read_config, remote_code
from runner.intake.exact import exact
from runner.intake.files import fingerprint
from runner.intake.headers import Headers, read_headers
from runner.intake.layers import find_linears
from runner.intake.modules import ModuleList
from runner.intake.risks import Examined, risks
from runner.intake.shapes import contradiction
from runner.intake.snapshot import source_of
from runner.intake.source import Source
from runner.intake.versions import required_range
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis, ModelFacts, ModelSize, QuantizationTargets
from schemas.catalog import Catalogue


def analyse(
    location: ModelLocation,
    catalogue: Catalogue,
    facts: InterpreterFacts,
    settings: RunnerSettings,
    modules: ModuleList | None = None,
) -> ModelAnalysis:
    """Analyse a model from its files alone, without reading weights and without importing anything of the model's.

    With `modules`, the engine's own list, the layers are those and nothing of them is provisional, unless the weights
    are quantized already. The same files, engine, settings and list give the same analysis. Errors are those of
    config.json (config_*, model_type_missing), of the weights (weights_*), of single files (file_*, folder_too_large,
    outside_roots), and tokenizer_missing.
    """
    source = source_of(location)
    model = _examined(source, location, catalogue, facts, settings, modules)
    linears, template = model.linears, catalogue.templates.get(model.config.model_type)
    return ModelAnalysis(
        analysis_status="complete" if _complete(model) else "partial",
        model=_facts(model),
        quantization_targets=QuantizationTargets(
            linear_layer_count=linears.quantized_by_default,
            has_non_linear_experts=linears.fused_experts,
            exclude_defaults=template.exclude_defaults if template else [],
            groups=list(linears.groups),
            provisional=_provisional(model),
            norms=list(linears.norms),
            method="headers" if modules is None else "modules",
        ),
        size=ModelSize(
            weight_bytes=model.headers.size_bytes - linears.unused_bytes,
            parameters=model.parameters,
            files=fingerprint(source),
        ),
        compatibility=judge(
            model.config,
            catalogue,
            facts,
            quantized_by=model.quantized_by,
            code=model.code,
            wanted=model.wanted,
            contradiction=str(model.contradiction or ""),
        ),
        risks=risks(model),
    )


def needs_remote_code(analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether the model can be loaded only by running its own code."""
    return analysis.model.trust_remote_code and not knows(catalogue, analysis.model.model_type)


def _examined(
    source: Source,
    location: ModelLocation,
    catalogue: Catalogue,
    facts: InterpreterFacts,
    settings: RunnerSettings,
    modules: ModuleList | None,
) -> Examined:
    """All that the model's files say, read once."""
    if location.downloaded:
        check_links(location.path, source.listing.files, model_roots(settings))
    config = read_config(source)
    code = remote_code(source)
    if not has_tokenizer(source.listing, code):
        raise NotHere(
            "tokenizer_missing",
            f"{source.label()} has no tokenizer, and without one a model cannot be calibrated.",
            source.advice or "Copy tokenizer.json and tokenizer_config.json of the original model into the folder.",
        )
    headers = read_headers(source)
    template = catalogue.templates.get(config.model_type)
    exclusions = template.exclude_defaults if template else []
    named = find_linears(headers.tensors, config, exclusions)
    quantized_by = config.quantized_by or ("unknown" if named.quantized_tensors else None)
    linears, main_dtype = named, _dtype(headers) or "BF16"
    if modules is not None:
        linears = exact(named, modules, exclusions, main_dtype=main_dtype, quantized=quantized_by is not None)
    # Code of the model's own may make anything of config.json, and quantized weights have shapes of their own.
    certain = quantized_by is None and knows(catalogue, config.model_type)
    return Examined(
        location=location,
        config=config,
        headers=headers,
        linears=linears,
        named=named,
        modules=modules,
        code=tuple(code),
        quantized_by=quantized_by,
        catalogue=catalogue,
        facts=facts,
        wanted=required_range("transformers", "amd-quark", facts.quark_path),
        settings=settings,
        contradiction=contradiction(headers.tensors, named.groups, config, modules) if certain else None,
    )


def _provisional(model: Examined) -> bool:
    """Whether the engine may see other layers than these."""
    if model.modules is not None or model.quantized_by is not None:
        return model.quantized_by is not None
    return model.named.provisional or bool(model.config.modalities or model.named.transposed)


def _facts(model: Examined) -> ModelFacts:
    config, location = model.config, model.location
    return ModelFacts(
        model_path=location.model_path,
        model_type=config.model_type,
        source=location.source,
        revision=location.revision,
        downloaded=location.downloaded,
        hub_token=location.hub_token,
        architectures=list(config.architectures),
        transformers_version=config.transformers_version,
        trust_remote_code=bool(model.code),
        remote_code=list(model.code),
        hidden_layers=config.hidden_layers,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
        max_positions=config.max_positions,
        dtype=_dtype(model.headers),
        tied_embeddings=model.linears.tied,
        is_moe=model.linears.has_experts,
        experts=config.experts,
        modalities=list(config.modalities),
        quantized_by=model.quantized_by,
    )


def _dtype(headers: Headers) -> str | None:
    """The dtype of most weight bytes."""
    shares: Counter[str] = Counter()
    for tensor in headers.tensors:
        shares[tensor.dtype] += tensor.size_bytes
    return max(sorted(shares), key=lambda dtype: shares[dtype], default=None)


def _complete(model: Examined) -> bool:
    """Whether no material fact is missing: the family's template, the model's measures, and all of its layers."""
    config, linears = model.config, model.linears
    known = config.hidden_layers is not None and config.hidden_size is not None
    whole = bool(linears.groups) and not linears.missing_layers and not model.headers.loose
    return known and whole and model.model_type in model.catalogue.templates
