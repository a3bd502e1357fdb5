"""A model folder to a model_analysis: what the model is, what of it would be quantized, and what speaks against it."""

from __future__ import annotations

from collections import Counter

from runner.errors import NotHere
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation, check_links, model_roots
from runner.intake.compatibility import judge, knows
from runner.intake.config import has_tokenizer, read_config, remote_code
from runner.intake.files import fingerprint
from runner.intake.headers import Headers, read_headers
from runner.intake.layers import find_linears
from runner.intake.listing import list_model
from runner.intake.risks import Examined, risks
from runner.intake.versions import required_range
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import ModelAnalysis, ModelFacts, ModelSize, QuantizationTargets
from schemas.catalog import Catalogue


def analyse(
    location: ModelLocation, catalogue: Catalogue, facts: InterpreterFacts, settings: RunnerSettings
) -> ModelAnalysis:
    """Analyse a model from its files alone, without reading weights and without importing anything of the model's.

    The same files, engine and settings give the same analysis. Errors are those of config.json (config_*,
    model_type_missing), of the weights (weights_*), of single files (file_*, folder_too_large, outside_roots), and
    tokenizer_missing.
    """
    folder = location.path
    listing = list_model(folder)
    check_links(folder, listing.files, model_roots(settings))
    config = read_config(folder)
    code = remote_code(folder, listing)
    if not has_tokenizer(listing, code):
        raise NotHere(
            "tokenizer_missing",
            f"{folder} has no tokenizer, and without one a model cannot be calibrated.",
            "Copy tokenizer.json and tokenizer_config.json of the original model into the folder.",
        )
    headers = read_headers(folder, listing)
    template = catalogue.templates.get(config.model_type)
    linears = find_linears(headers.tensors, config, template.exclude_defaults if template else ())
    quantized_by = config.quantized_by or ("unknown" if linears.quantized_tensors else None)
    model = Examined(
        location=location,
        config=config,
        headers=headers,
        linears=linears,
        code=tuple(code),
        quantized_by=quantized_by,
        catalogue=catalogue,
        facts=facts,
        wanted=required_range("transformers", "amd-quark", facts.quark_path),
        settings=settings,
    )
    return ModelAnalysis(
        analysis_status="complete" if _complete(model) else "partial",
        model=_facts(model),
        quantization_targets=QuantizationTargets(
            linear_layer_count=linears.quantized_by_default,
            has_non_linear_experts=linears.fused_experts,
            exclude_defaults=template.exclude_defaults if template else [],
            groups=list(linears.groups),
            provisional=linears.provisional or bool(config.modalities or quantized_by or linears.transposed),
            method="headers",
        ),
        size=ModelSize(
            weight_bytes=headers.size_bytes - linears.unused_bytes,
            parameters=model.parameters,
            files=fingerprint(folder, listing),
        ),
        compatibility=judge(config, catalogue, facts, quantized_by=quantized_by, code=model.code, wanted=model.wanted),
        risks=risks(model),
    )


def needs_remote_code(analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether the model can be loaded only by running its own code."""
    return analysis.model.trust_remote_code and not knows(catalogue, analysis.model.model_type)


def _facts(model: Examined) -> ModelFacts:
    config, location = model.config, model.location
    return ModelFacts(
        model_path=str(location.path),
        model_type=config.model_type,
        source=location.source,
        revision=location.revision,
        architectures=list(config.architectures),
        transformers_version=config.transformers_version,
        trust_remote_code=bool(model.code),
        remote_code=list(model.code),
        hidden_layers=config.hidden_layers,
        hidden_size=config.hidden_size,
        vocab_size=config.vocab_size,
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
