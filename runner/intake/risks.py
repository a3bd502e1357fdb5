"""What a person should know about a model before going on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation
from runner.host.paths import listed
from runner.intake.compatibility import knows, similar_families
from runner.intake.config import ModelConfig
from runner.intake.exact import convolutions, disagreement
from runner.intake.headers import Headers
from runner.intake.layers import Linears
from runner.intake.modules import ModuleList
from runner.intake.shapes import Contradiction
from runner.intake.versions import VersionRange, is_newer
from runner.settings import RunnerSettings
from schemas.artifacts.analysis import Risk
from schemas.catalog import Catalogue

LARGE_PARAMETERS = 70e9


@dataclass(frozen=True)
class Examined:
    """All that was found out about a model and that risks are read from.

    `linears` are the layers as the analysis tells them, `named` as the weight files do: one without `modules`.
    """

    location: ModelLocation
    config: ModelConfig
    headers: Headers
    linears: Linears
    named: Linears
    modules: ModuleList | None
    code: tuple[str, ...]
    quantized_by: str | None
    catalogue: Catalogue
    facts: InterpreterFacts
    wanted: VersionRange | None
    settings: RunnerSettings
    contradiction: Contradiction | None = None

    @property
    def model_type(self) -> str:
        """The model's family."""
        return self.config.model_type

    @property
    def parameters(self) -> int:
        """Number of weights that loading takes."""
        return sum(tensor.elements for tensor in self.headers.tensors) - self.linears.unused_elements


_RULES: list[Callable[[Examined], Iterator[Risk]]] = []


def risks(model: Examined) -> list[Risk]:
    """All risks of a model, the worst first."""
    found = [risk for rule in _RULES for risk in rule(model)]
    return sorted(found, key=lambda risk: ("high", "medium", "low").index(risk.severity))


def _rule(rule: Callable[[Examined], Iterator[Risk]]) -> Callable[[Examined], Iterator[Risk]]:
    _RULES.append(rule)
    return rule


@_rule
def _family(model: Examined) -> Iterator[Risk]:
    if model.model_type not in model.catalogue.templates:
        similar = similar_families(model.model_type, model.catalogue)
        near = f" Templates with a similar name: {listed(similar)}." if similar else ""
        yield Risk(
            severity="high",
            code="unsupported_model_type",
            message=f"amd-quark {model.facts.quark} has no template for {model.model_type}, so its layer names and "
            "default exclusions are unknown.",
            recovery_hint=f"Take a model of a family that has one, or a newer amd-quark.{near}",
        )
    elif not knows(model.catalogue, model.model_type) and not model.code:
        yield Risk(
            severity="high",
            code="unknown_to_transformers",
            message=f"transformers {model.facts.transformers} does not know {model.model_type} and cannot load it.",
            recovery_hint="Install a version of transformers that knows it and that the engine accepts.",
        )


@_rule
def _remote_code(model: Examined) -> Iterator[Risk]:
    if not model.code:
        return
    named = f"{listed(model.code[:3])}{', ...' if len(model.code) > 3 else ''}"
    if not knows(model.catalogue, model.model_type):
        effect, hint = (
            "and loading it runs that code",
            (
                "This runner allows it (remote_code in runner.yaml); read that code before you approve it."
                if model.settings.remote_code
                else "This runner does not run a model's own code (remote_code: false in runner.yaml)."
            ),
        )
    elif any(entry.startswith("tokenizer_config.json: ") for entry in model.code):
        # Seen with amd-quark 0.13: its evaluation trusts a tokenizer's code even where the run does not.
        effect = "and loading its tokenizer runs that code"
        hint = "Without trust in that code, leave trust_remote_code off and skip the evaluation, which would run it."
    else:
        effect, hint = "and loads without it", "Leave trust_remote_code off."
    yield Risk(
        severity="medium" if effect == "and loads without it" else "high",
        code="remote_code",
        message=f"The model brings code of its own ({named}), {effect}.",
        recovery_hint=hint,
    )


@_rule
def _quantized_input(model: Examined) -> Iterator[Risk]:
    if model.quantized_by:
        yield Risk(
            severity="high",
            code="quantized_input",
            message=f"The model is quantized already ({model.quantized_by}); the engine may replace no layer at all "
            "and fail at the export.",
            recovery_hint="Take the original model in BF16 or F16.",
        )


@_rule
def _shapes(model: Examined) -> Iterator[Risk]:
    if model.contradiction:
        yield Risk(
            severity="high",
            code="shapes_differ",
            message=f"config.json is not of these weights: {model.contradiction}.",
            recovery_hint="Take the config.json that belongs to these weights, or download the model again.",
        )


@_rule
def _incomplete_weights(model: Examined) -> Iterator[Risk]:
    if missing := model.linears.missing_layers:
        yield Risk(
            severity="high",
            code="layers_missing",
            message=f"config.json promises {model.config.hidden_layers} layers, and no weight file holds those of "
            f"{listed(map(str, missing))}.",
            recovery_hint="Finish the download, or take the config.json that belongs to these weights.",
        )
    causal = any(name.endswith("ForCausalLM") for name in model.config.architectures)
    if causal and not model.linears.tied and not model.linears.has_head:
        yield Risk(
            severity="high",
            code="head_missing",
            message="config.json says that lm_head is a tensor of its own, and no weight file holds it.",
            recovery_hint="Finish the download, or take the config.json that belongs to these weights.",
        )
    if model.headers.loose:
        yield Risk(
            severity="high",
            code="weights_index_missing",
            message=f"transformers looks for model.safetensors or its index, and finds neither beside "
            f"{listed(model.headers.files[:2])}.",
            recovery_hint="Download model.safetensors.index.json, or rename a single file to model.safetensors.",
        )


@_rule
def _transformers(model: Examined) -> Iterator[Risk]:
    installed, written_by = model.facts.transformers, model.config.transformers_version
    if is_newer(written_by, installed):
        yield Risk(
            severity="medium",
            code="transformers_version",
            message=f"config.json was written by transformers {written_by}, and {installed} is installed.",
            recovery_hint="Look at the perplexity of the original model in the result; install a newer transformers "
            "if it is off.",
        )
    if model.wanted and not model.wanted.holds(installed):
        yield Risk(
            severity="medium",
            code="transformers_range",
            message=f"amd-quark {model.facts.quark} asks for transformers {model.wanted.text}, and {installed} is "
            "installed.",
            recovery_hint="Install a version in that range into the quantization interpreter.",
        )


@_rule
def _experts(model: Examined) -> Iterator[Risk]:
    if not model.linears.has_experts:
        return
    number = f"{model.config.experts} experts per layer" if model.config.experts else "experts"
    yield Risk(
        severity="medium",
        code="moe",
        message=f"This is a mixture of {number}; the engine takes the experts apart before it quantizes them.",
        recovery_hint="Calibrate with more samples than usual, so that every expert sees some; check your server's "
        "support for quantized experts.",
    )


@_rule
def _provisional(model: Examined) -> Iterator[Risk]:
    if model.modules is None and (model.linears.provisional or model.config.modalities):
        yield Risk(
            severity="low",
            code="provisional_layers",
            message="The layers are counted from the names in the weight files; the engine may name or split some of "
            "them differently.",
            recovery_hint="Ask for an analysis by modules before you exclude layers by name.",
        )
    if model.linears.transposed:
        yield Risk(
            severity="high",
            code="no_linear_layers",
            message=f"{model.linears.transposed} layers of this model are no linear layers to the engine (Conv1D), "
            "which leaves them as they are.",
            recovery_hint="Take a model whose layers are linear layers.",
        )


@_rule
def _differing_names(model: Examined) -> Iterator[Risk]:
    found = disagreement(model.named.groups, model.linears.groups) if model.modules else None
    if not found or model.quantized_by:
        return
    parts = []
    if found.only_engine and found.only_files:
        parts.append(f"{_first(found.only_engine)} of the engine are {_first(found.only_files)} in the weight files")
    elif found.only_engine:
        parts.append(f"no weight file names {_first(found.only_engine)}")
    elif found.only_files:
        parts.append(f"{_first(found.only_files)} of the weight files are no linear layers to the engine")
    parts += [f"the engine has {seen} of {pattern} and the files {held}" for pattern, seen, held in found.counted[:2]]
    yield Risk(
        severity="low",
        code="modules_differ",
        message=f"The engine sees other layers than the weight files name: {'; '.join(parts)}.",
        recovery_hint="Name layers as this analysis does: these are the engine's own names.",
    )


@_rule
def _left_alone(model: Examined) -> Iterator[Risk]:
    if model.modules is None:
        return
    # Matrices of many experts in one tensor, for which the engine has no preparation.
    experts = [group for group in model.modules.kept if len(group.shape) == 3 and "expert" in group.pattern.lower()]
    if experts:
        yield Risk(
            severity="high",
            code="experts_not_quantized",
            message=f"The engine leaves {_first([group.pattern for group in experts])} as they are: it cannot take "
            f"experts of the class {experts[0].kind} apart.",
            recovery_hint="Most weights stay unquantized; take a newer amd-quark, or another model.",
        )
    exclusions = model.catalogue.templates.get(model.model_type)
    found = convolutions(model.modules, exclusions.exclude_defaults if exclusions else ())
    if found:
        yield Risk(
            severity="low",
            code="convolutions_quantized",
            message="The engine quantizes convolutions too, and does not exclude "
            f"{_first([name for name, _ in found])}.",
            recovery_hint="Exclude them by name, unless you want them quantized.",
        )


def _first(patterns: Sequence[str]) -> str:
    """The first two patterns of several, for a sentence."""
    rest = len(patterns) - 2
    return listed(patterns[:2]) + (f" and {rest} more" if rest > 0 else "")


@_rule
def _size(model: Examined) -> Iterator[Risk]:
    if model.parameters > LARGE_PARAMETERS:
        yield Risk(
            severity="medium",
            code="large_model",
            message=f"The model has {model.parameters / 1e9:.0f} billion parameters and may not fit on one GPU.",
            recovery_hint="Give the run several GPUs, or take a scheme without calibration, file by file.",
        )


@_rule
def _modalities(model: Examined) -> Iterator[Risk]:
    if model.config.modalities:
        yield Risk(
            severity="medium",
            code="multimodal",
            message=f"The model also reads {listed(model.config.modalities)}; calibration uses text alone.",
            recovery_hint="See that the exclusions leave the towers beside the language model unquantized.",
        )


@_rule
def _tied(model: Examined) -> Iterator[Risk]:
    if model.linears.tied:
        yield Risk(
            severity="low",
            code="tied_embeddings",
            message="lm_head shares its weights with the embedding.",
            recovery_hint="Keep lm_head excluded: quantizing one of the two makes a contradictory model.",
        )


@_rule
def _source(model: Examined) -> Iterator[Risk]:
    if model.location.source == "ambiguous":
        yield Risk(
            severity="low",
            code="ambiguous_source",
            message=f"{model.location.asked} is a folder of this runner and could be a Hub id as well; the folder "
            f"{model.location.path} is taken.",
            recovery_hint="Write the whole path to make it certain.",
        )


@_rule
def _older(model: Examined) -> Iterator[Risk]:
    location = model.location
    if location.newer:
        yield Risk(
            severity="low",
            code="snapshot_older",
            message=f"This host has {location.asked} as of commit {(location.revision or '')[:7]}, and the Hub has "
            f"commit {location.newer[:7]} by now; the one on this host is taken.",
            recovery_hint=f"Ask with the revision {location.newer} to take the newer one.",
        )
