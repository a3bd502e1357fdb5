"""Checkpoint 1: what the model is."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import because_notes, fields, make_card, note, notes, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Card, Note, Notes, Tone
from bot.cards.changes import request_in_words
from bot.cards.output import output_in_words
from bot.cards.runner import runner_in_words
from bot.cards.texts import last_part, line, plain, some
from bot.conversation.state import AnalysisRevision, ReviewingAnalysis
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis, ModelFacts, QuantizationTargets
from schemas.artifacts.plan import Severity
from schemas.digest import short

FILE = "model_analysis.json"
"""The name under which the whole document is attached."""

_GROUPS = 14
_SEVERITIES = {"high": Severity.WARNS, "medium": Severity.WARNS, "low": Severity.INFORMS}
_RANKS = ("high", "medium", "low")
_SOURCES = {"local": "a folder on the runner", "huggingface_id": "the Hugging Face Hub", "ambiguous": "not clear"}


def analysis_card(conversation: int, state: ReviewingAnalysis, analysis: ModelAnalysis) -> Card:
    """The published summary, the groups of linear layers and the risks, with the question whether they are right."""
    buttons = Buttons.of(conversation, state)
    name = last_part(analysis.model.model_path)
    return make_card(
        f"Model analysis: {name}",
        Tone.WAITING,
        [
            *because_notes(state.because),
            _summary(state, analysis),
            *_groups(analysis),
            *_risks(analysis),
            paragraph("Checkpoint 1 of 4: is this analysis right?"),
        ],
        f"Model analysis of {name}: {_essence(analysis)}. Is it right?",
        buttons=(buttons.approve(), buttons.edit(), buttons.cancel()),
    )


def _summary(state: ReviewingAnalysis, analysis: ModelAnalysis) -> Block:
    model, targets, found = analysis.model, analysis.quantization_targets, analysis.compatibility
    about = "about " if targets.provisional else ""
    size = f"{amounts.size(analysis.size.weight_bytes)}, {amounts.magnitude(analysis.size.parameters)} parameters"
    partial = "partial: not everything could be read" if analysis.analysis_status == "partial" else None
    return fields(
        ("Model path", model.model_path),
        ("Model type", model.model_type),
        ("Hidden layers", "unknown" if model.hidden_layers is None else model.hidden_layers),
        ("Linear layers", f"{about}{targets.linear_layer_count:,} (quantization targets)"),
        ("MoE", _experts(model)),
        ("Exclude defaults", some(targets.exclude_defaults) or "none"),
        ("Size", f"{size}, mostly {plain(model.dtype)}" if model.dtype else size),
        ("Compatibility", f"{'OK' if found.status == 'ok' else found.status}: {plain(found.message)}"),
        ("List of layers", _list_of_layers(state.analysis, targets)),
        ("Source", _source(model)),
        ("Asked the Hub with", model.hub_token or None),
        ("Weights", None if model.downloaded else _to_download(analysis)),
        ("Code of its own", some(model.remote_code)),
        ("Analysis", partial),
        ("Asked for", request_in_words(state.request)),
        ("Runner", runner_in_words(state.request)),
        ("Output folder", output_in_words(state.request, state.analysis)),
        ("Revision of this analysis", f"{state.analysis.number}, digest {short(state.analysis.digest)}"),
    )


def _experts(model: ModelFacts) -> str:
    if not model.is_moe:
        return "no"
    return f"yes, {amounts.count(model.experts, 'expert')} per layer" if model.experts else "yes"


def _source(model: ModelFacts) -> str:
    return f"{_SOURCES[model.source]}{f', commit {plain(model.revision)}' if model.revision else ''}"


def _to_download(analysis: ModelAnalysis) -> str:
    files = sum(file.size_bytes for file in analysis.size.files)
    return f"on the Hub: {amounts.size(max(files, analysis.size.weight_bytes))} to download"


def _list_of_layers(revision: AnalysisRevision, targets: QuantizationTargets) -> str:
    """Whose it is. One from headers may be followed by the engine's own, which draws this card again."""
    if revision.exact or targets.method == "modules":
        return "exact: the engine's own"
    told = "provisional, from the headers of the weights" if targets.provisional else "from the headers of the weights"
    if revision.better == "wanted":
        return f"{told}; the engine's own is being made, and is shown here once it is there"
    return f"{told}; the engine's own could not be made: {revision.no_better}" if revision.no_better else told


def _groups(analysis: ModelAnalysis) -> tuple[Block, ...]:
    groups = analysis.quantization_targets.groups
    if not groups:
        return ()
    rows = [
        (one.pattern, f"{one.count:,}", f"{one.in_features:,} → {one.out_features:,}", _remark(one)) for one in groups
    ]
    head = ("Layers", "Count", "In → out", "")
    caption = "Linear layers by name and shape"
    if len(groups) > _GROUPS:
        caption += f"; all of them are in {FILE}"
    return (table(head, rows, caption=caption, numeric=(1,), at_most=_GROUPS),)


def _remark(group: LinearGroup) -> str:
    told = [plain(group.dtype)]
    if group.never_quantized:
        told.append("never quantized")
    elif group.excluded_by_default:
        told.append("excluded by default")
    if group.provisional:
        told.append("the engine may see it differently")
    return ", ".join(told)


def _risks(analysis: ModelAnalysis) -> tuple[Notes, ...]:
    """Risks, the worst first; a model that does not fit comes before all."""
    found: list[Note] = []
    compatibility = analysis.compatibility
    if compatibility.status != "ok":
        severity = Severity.BLOCKS if compatibility.status == "unsupported" else Severity.WARNS
        found.append(note(severity, compatibility.message))
    found += [
        note(_SEVERITIES[risk.severity], f"{risk.severity} risk: {risk.message}", risk.recovery_hint)
        for risk in sorted(analysis.risks, key=lambda one: _RANKS.index(one.severity))
    ]
    return notes("Risks", found or [note(Severity.INFORMS, "No risks were found.")])


def _essence(analysis: ModelAnalysis) -> str:
    risks = amounts.count(len(analysis.risks), "risk") if analysis.risks else "no risks"
    layers = amounts.count(analysis.quantization_targets.linear_layer_count, "linear layer")
    fit = "" if analysis.compatibility.status == "ok" else f", {analysis.compatibility.status}"
    kind = line(analysis.model.model_type, 60)
    return f"{kind}, {layers}, {amounts.size(analysis.size.weight_bytes)}, {risks}{fit}"
