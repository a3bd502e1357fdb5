"""The decision table: every value of a plan with its reason.

Each function answers one row from what was asked, the analysis, the engine and the host. Nothing is guessed: a row that
nobody asked for carries the published default or says what in the engine or the host decided it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from runner.planning import datasets, layers, placement, recommend, schemes
from runner.planning.host_view import HostView
from runner.planning.recommend import Source
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import Calibration, CalibrationChanges, Decision, PlanChoices, QuantPlan
from schemas.catalog import Catalogue, Template

OPTIONAL = (
    *("hardware", "tensor_parallel", "min_kv_scale", "kv_cache_post_rope", "attention_dtype", "data_type", "multi_gpu"),
    *(
        "multi_device",
        "write_algorithm_config",
        "file2file_quantization",
        "num_eval_data",
        "evaluation_dataset",
        "tasks",
        "template_file",
    ),
)
"""Rows that only stand in the table when somebody asked for them."""

_WHY = {
    "write_algorithm_config": "Requested, for algorithms without a built-in configuration in this family.",
    "file2file_quantization": "Requested: one weight file after another, without loading the model.",
    "hardware": "The GPU that will serve the model.",
    "tensor_parallel": "GPUs among which the server will split each layer.",
}


@dataclass(frozen=True)
class Question:
    """What a plan answers: what was asked, of which model, on which engine and host."""

    analysis: ModelAnalysis
    choices: PlanChoices
    catalogue: Catalogue
    host: HostView

    @property
    def template(self) -> Template | None:
        """The engine's template of this family."""
        return template_of(self.analysis, self.catalogue)

    @property
    def default_exclusions(self) -> list[str]:
        """What the engine leaves alone when no exclusions are given."""
        return default_exclusions(self.analysis, self.catalogue)


def template_of(analysis: ModelAnalysis, catalogue: Catalogue) -> Template | None:
    """The engine's template of a model; None for a family that the engine does not know."""
    return catalogue.templates.get(analysis.compatibility.template or analysis.model.model_type)


def default_exclusions(analysis: ModelAnalysis, catalogue: Catalogue) -> list[str]:
    """The exclusions that the engine applies when the command names none."""
    template = template_of(analysis, catalogue)
    return list(template.exclude_defaults if template else analysis.quantization_targets.exclude_defaults)


def _row(decision: str, value: JsonValue, reason: str, source: Source) -> Decision:
    return Decision(decision=decision, value=value, reason=reason, source=source)


def exclude_layers(question: Question) -> Decision:
    """The exclusions. Those of a person replace the engine's; the same ones in another order are no change."""
    asked, defaults = question.choices.exclude_layers, question.default_exclusions
    if asked is None:
        known = recommend.template_name(question.template)
        reason = f"Standard: the engine's template for {known} leaves these at full precision."
        return _row("exclude_layers", cast(JsonValue, defaults), reason, "engine")
    patterns = list(dict.fromkeys(asked))
    if set(patterns) == set(defaults):
        return _row(
            "exclude_layers", cast(JsonValue, defaults), "Requested; they are the engine's defaults.", "request"
        )
    reason = "Requested; they replace the engine's defaults" + (f" {', '.join(defaults)}." if defaults else ".")
    return _row("exclude_layers", cast(JsonValue, patterns), reason, "request")


def layer_quant_config(question: Question) -> Decision:
    """Schemes for some layers, the most specific pattern first."""
    asked = question.choices.layer_quant_config
    if not asked:
        return _row("layer_quant_config", {}, "No per-pattern overrides.", "published")
    ordered: dict[str, JsonValue] = {
        pattern: _known_name(scheme, question) for pattern, scheme in layers.in_order(asked)
    }
    reason = "Requested." if len(ordered) == 1 else "Requested; where several match a layer, the first one counts."
    return _row("layer_quant_config", ordered, reason, "request")


def global_scheme(question: Question, excluded: list[str]) -> Decision:
    """The scheme of all layers that no pattern names."""
    choices = question.choices
    if choices.global_scheme is not None:
        name = _known_name(choices.global_scheme, question)
        return _row("global_scheme", name, f"Requested: {name}.", "request")
    found = recommend.recommend_scheme(choices, _widths(question, excluded), question.catalogue, question.host)
    return _row("global_scheme", found.value, found.reason, found.source)


def algorithm(question: Question) -> Decision:
    """One algorithm, several joined by commas, or none."""
    choices = question.choices
    if choices.asks("algorithm"):
        names = [name.strip().lower() for name in (choices.algorithm or "").split(",")]
        asked = ",".join(name for name in names if name and name != "none")
        return _row("algorithm", asked or None, "Requested." if asked else "Requested: none.", "request")
    if choices.global_scheme is not None:
        return _row("algorithm", None, "RTN baseline (fastest).", "published")
    found = recommend.recommend_algorithm(choices, question.analysis, question.catalogue, question.host)
    return _row("algorithm", found.value, found.reason, found.source)


def kv_cache_scheme(question: Question, scheme: str, device: str) -> Decision:
    """The KV cache's scheme: what was asked, else fp8 beside FP8 on a GPU, as published, else none."""
    choices, catalogue = question.choices, question.catalogue
    if choices.asks("kv_cache_scheme"):
        asked = choices.kv_cache_scheme.lower() if choices.kv_cache_scheme else None
        asked = None if asked == "none" else asked
        return _row("kv_cache_scheme", asked, "Requested." if asked else "Requested: none.", "request")
    chosen = catalogue.schemes.get(scheme)
    if chosen is None or not schemes.is_fp8(chosen):
        return _row("kv_cache_scheme", None, "Not asked for; it goes with FP8 schemes.", "default")
    if device != "cuda":
        return _row("kv_cache_scheme", None, "Not asked for; recommended only for inference on a GPU.", "host")
    if choices.file2file_quantization:
        return _row("kv_cache_scheme", None, "File-to-file quantization calibrates nothing.", "engine")
    if not (question.template and question.template.kv_layers) or "fp8" not in catalogue.kv_cache_schemes:
        return _row("kv_cache_scheme", None, "The engine cannot quantize this family's KV cache.", "engine")
    return _row("kv_cache_scheme", "fp8", "Recommended for FP8 inference.", "published")


def calibration(question: Question) -> list[Decision]:
    """Dataset, samples, tokens of a sample, and batch size."""
    asked = question.choices.calibration or CalibrationChanges()
    standard = Calibration()
    rows = [_dataset(question, asked.dataset, standard.dataset)]
    for name in ("num_calib_data", "seq_len", "batch_size"):
        wanted, here = getattr(asked, name), getattr(question.host, name, None)
        if wanted is not None:
            rows.append(_row(name, wanted, "Requested.", "request"))
        elif here is not None:
            rows.append(_row(name, here, "This runner's own default.", "host"))
        else:
            rows.append(_row(name, getattr(standard, name), "Standard default.", "published"))
    return rows


def _dataset(question: Question, asked: str | None, standard: str) -> Decision:
    if asked is not None:
        return _row("calibration_dataset", asked, "Requested.", "request")
    if not datasets.is_available(standard, question.host):
        instead = datasets.substitute(question.host)
        if instead:
            reason = f"The hub is off and this runner's mirror has no {standard}, but this."
            return _row("calibration_dataset", instead, reason, "host")
    return _row("calibration_dataset", standard, "Fast default.", "published")


def model_export(question: Question) -> Decision:
    """The output format."""
    asked = question.choices.model_export
    if asked is not None:
        return _row("model_export", asked, "Requested.", "request")
    if question.choices.priority == "gguf":
        return _row("model_export", "gguf", "GGUF was asked for.", "request")
    return _row("model_export", "hf_format", "Hugging Face safetensors, the published default.", "published")


def device(question: Question) -> Decision:
    """The torch device."""
    found = placement.choose_device(question.catalogue, question.host)
    return _row("device", found.value, found.reason, found.source)


def entry_point(question: Question, plan: QuantPlan | None = None) -> Decision:
    """The program that quantizes, chosen for all that the plan asks; without a plan, the row that holds its place."""
    if plan is None:
        return _row("entry_point", "auto", "Chosen once everything else is decided.", "default")
    found = placement.choose_entry_point(question.choices.entry_point, plan, question.analysis, question.host)
    return _row("entry_point", found.value, found.reason, found.source)


def trust_remote_code(question: Question) -> Decision:
    """Whether code of the model's repository may run."""
    if question.choices.trust_remote_code:
        return _row("trust_remote_code", True, "Requested: code of the model's repository may run here.", "request")
    return _row("trust_remote_code", False, "Safer: such code runs only when a person asks for it.", "default")


def evaluation_intent(question: Question, entry_point: str, why_not: str | None) -> Decision:
    """How much is measured afterwards; `why_not` says why a measurement cannot be made here."""
    asked = question.choices.evaluation_intent
    if asked is not None:
        return _row("evaluation_intent", asked, "Requested.", "request")
    if why_not:
        return _row("evaluation_intent", "none", why_not, "engine")
    reason = "Quick PPL check after quantization"
    if entry_point == "quantize_quark":
        reason += "; quantize_quark.py has no quick one and measures on all of wikitext"
    return _row("evaluation_intent", "smoke", f"{reason}.", "published")


def extras(question: Question) -> list[Decision]:
    """Rows that only stand there when somebody asked for them."""
    choices = question.choices
    asked = ((name, getattr(choices, name)) for name in OPTIONAL)
    return [_row(name, value, _why(name, value), "request") for name, value in asked if value is not None]


def _why(name: str, value: JsonValue) -> str:
    return "Requested: no." if value is False else _WHY.get(name, "Requested.")


def _known_name(name: str, question: Question) -> str:
    """The engine's spelling of a scheme: names are lower case there, while people write FP8."""
    lower = name.strip().lower()
    return lower if name not in question.catalogue.schemes and lower in question.catalogue.schemes else name


def _widths(question: Question, excluded: list[str]) -> list[int]:
    """in_features of the layers that will be quantized with the global scheme."""
    left_alone = {id(group) for pattern in excluded for group in layers.matching(pattern, question.analysis)}
    asked = question.choices.exclude_layers is not None
    groups = question.analysis.quantization_targets.groups
    kept = [g for g in groups if id(g) not in left_alone and (asked or not g.excluded_by_default)]
    return sorted({group.in_features for group in kept})
