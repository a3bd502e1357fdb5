"""Why a plan is what it is, and what is known against it: its own decisions, findings and matches."""

from __future__ import annotations

from fnmatch import fnmatchcase

from pydantic import JsonValue

from bot.conversation.explaining.asked import FIELDS, Asked
from bot.conversation.explaining.known import Known
from bot.conversation.state import ReviewingAnalysis
from bot.conversation.wording import NAMES, some, value_in_words
from bot.conversation.words.phrases import PhraseBook
from schemas.artifacts.plan import Decision, QuantPlan, Severity

_MOST_ROWS = 4
_MOST_NAMES = 8
_WHY = PhraseBook("why", "whys", "how come", "what for", "reason", "reasons", "because of what", "explain")
_WHAT = PhraseBook("what", "which", "how many", "how long", "is", "are", "does", "do", "whats", "will", "how")
_RISKS = PhraseBook(
    *("risk", "risks", "risky", "warning", "warnings", "problem", "problems", "finding", "findings", "concerns"),
    *("dangers", "caveats", "issues", "what could go wrong", "what can go wrong", "downsides", "safe"),
)
_BLOCKED = PhraseBook("blocked", "stopped", "blocks", "not allowed", "cant i approve", "cannot i approve", "block")
_LAYERS = PhraseBook("layers", "layer", "modules", "excluded", "exclusions", "quantized", "overrides", "patterns")
_ONLY_LAYERS = PhraseBook("excluded", "exclusions", "quantized", "overrides", "patterns", "match", "matches")
_CALLED = {"num_calib_data": "samples", "seq_len": "tokens of a sample"}
_NO_VALUES = frozenset(
    {"why", "the", "not", "are", "and", "for", "any", "all", "has", "how", "you", "its", "was", "but"}
)
_SUMMARY = ("global_scheme", "algorithm", "kv_cache_scheme", "exclude_layers")


def risks(asked: Asked, known: Known) -> str | None:
    """ "What are the risks?", "why is it blocked?"."""
    blocked = asked.says(_BLOCKED)
    if not blocked and not asked.says(_RISKS):
        return None
    if known.plan is None:
        return _risks_of_the_model(known)
    found = [one for one in known.plan.findings if one.severity is Severity.BLOCKS or not blocked]
    told = [one for one in found if one.severity is not Severity.INFORMS]
    if not told:
        return f"{known.plan_called} {'is not blocked' if blocked else 'has no warnings'}."
    sentences = [f"{one.message} {one.hint}".strip() for one in told]
    more = f" And {len(sentences) - _MOST_ROWS} more, on the card." if len(sentences) > _MOST_ROWS else ""
    return " ".join(sentences[:_MOST_ROWS]) + more


def _risks_of_the_model(known: Known) -> str | None:
    if known.analysis is None:
        return None
    told = [f"{risk.message} {risk.recovery_hint}".strip() for risk in known.analysis.risks]
    return " ".join(told[:_MOST_ROWS]) if told else "The analysis names no risks."


def why(asked: Asked, known: Known) -> str | None:
    """ "Why fp8?": the reasons of the decisions that are named, by their name or their value."""
    plan = known.plan
    if plan is None or not asked.begins(_WHY):
        return None
    rows = _named_rows(asked, plan)
    if rows:
        return " ".join(_row(row) for row in rows[:_MOST_ROWS])
    names = [("global_scheme", name) for name in asked.schemes] + [("algorithm", name) for name in asked.algorithms]
    if names:
        return " ".join(_instead(field, name, known, plan) for field, name in names[:2])
    if _layer_names(asked, plan):
        return _of_layers(asked, plan)
    if set(asked.keys) <= {"why", "?", "this", "plan", "that", "so", "the", "is", "it", "but", "ok", ","}:
        return " ".join(_row(row) for row in plan.decisions if row.decision in _SUMMARY) or None
    return None


def decided(asked: Asked, known: Known) -> str | None:
    """ "Which algorithm is it?", "how many samples?": what was decided, and why."""
    plan = known.plan
    if plan is None or not asked.says(_WHAT):
        return None
    rows = [row for row in plan.decisions if row.decision in asked.fields]
    return " ".join(_row(row) for row in rows[:_MOST_ROWS]) or None


def about_layers(asked: Asked, known: Known) -> str | None:
    """ "Which layers are excluded?", "is lm_head quantized?"."""
    plan = known.plan
    if plan is not None and (_layer_names(asked, plan) or asked.says(_ONLY_LAYERS) or asked.says(_LAYERS)):
        return _of_layers(asked, plan)
    if plan is None and known.analysis is not None and asked.says(_LAYERS):
        targets = known.analysis.quantization_targets
        excluded = some(targets.exclude_defaults, _MOST_NAMES) or "nothing"
        count = f"{targets.linear_layer_count:,} linear layers"
        return f"With the engine's defaults {count} are quantized, and it leaves {excluded} alone."
    return None


def _of_layers(asked: Asked, plan: QuantPlan) -> str:
    names = _layer_names(asked, plan)
    rows = [row for row in plan.decisions if row.decision == "exclude_layers"]
    why_these = f" {rows[0].reason}" if rows else ""
    if names:
        return " ".join(_of_layer(name, plan) for name in names[:3]) + why_these
    counts = {match.pattern: match for match in plan.layer_matches if match.role == "exclude"}
    told = [f"{one} ({counts[one].count:,})" if one in counts else one for one in plan.exclude_layers]
    excluded = f"Excluded: {some(told, _MOST_NAMES)}." if told else "No layers are excluded."
    overrides = [f"{pattern} = {scheme}" for pattern, scheme in plan.layer_quant_config.items()]
    others = f" With another scheme: {some(overrides, _MOST_NAMES)}." if overrides else ""
    return f"{excluded}{why_these}{others} All others get {plan.global_scheme}."


def _of_layer(name: str, plan: QuantPlan) -> str:
    for pattern in plan.exclude_layers:
        if fnmatchcase(name, pattern) or name == pattern:
            return f"{name} is left as it is, by the exclusion {pattern}."
    for pattern, scheme in plan.layer_quant_config.items():
        if fnmatchcase(name, pattern) or name == pattern:
            return f"{name} gets {scheme}, by the override of {pattern}."
    return f"No exclusion and no override names {name}."


def _layer_names(asked: Asked, plan: QuantPlan) -> list[str]:
    """The layers or patterns that are named: those of the plan, and what has the looks of a name of layers."""
    own = {*plan.exclude_layers, *plan.layer_quant_config}
    typed = [token.text.strip().rstrip("?") for token in asked.sentence.tokens]
    known = {key for phrases in FIELDS.values() for key in phrases}
    found = [
        text
        for text in typed
        if text in own or (("lm_head" in text or "_proj" in text or "self_attn" in text) and text not in known)
    ]
    return list(dict.fromkeys(found))


def _named_rows(asked: Asked, plan: QuantPlan) -> list[Decision]:
    """The decisions that are named; else those whose value is."""
    named = {*asked.schemes, *asked.algorithms}
    by_name = [row for row in plan.decisions if row.decision in asked.fields]
    if by_name:
        return by_name
    spoken = named | {key for key in asked.keys if key.isascii() and (key.isdigit() or len(key) > 2)} - _NO_VALUES
    return [row for row in plan.decisions if _values(row.value) & spoken]


def _values(value: JsonValue) -> set[str]:
    match value:
        case bool() | None:
            return set()
        case list():
            return {str(one).lower() for one in value}
        case dict():
            return {str(one).lower() for pair in value.items() for one in pair}
        case _:
            return {part.strip().lower() for part in str(value).split(",")}


def _instead(field: str, name: str, known: Known, plan: QuantPlan) -> str:
    """What the plan has in the place of a name that it does not have."""
    against = [f"{one.message} {one.hint}".strip() for one in plan.findings if name in one.message]
    rows = [row for row in plan.decisions if row.decision == field]
    has = _row(rows[0]) if rows else ""
    return " ".join([f"{known.plan_called} does not use {name}.", has, *against[:1]]).strip()


def _row(row: Decision) -> str:
    name = _CALLED.get(row.decision) or NAMES.get(row.decision) or row.decision.replace("_", " ")
    reason = row.reason.strip()
    return f"{name[:1].upper()}{name[1:]} {value_in_words(row.value, _MOST_NAMES)}: {reason}"


def model(asked: Asked, known: Known) -> str | None:
    """ "What model is it?", "how many parameters has it?"."""
    if known.analysis is None or not asked.says(_MODEL):
        return None
    facts, size = known.analysis.model, known.analysis.size
    kind = ", ".join([facts.model_type, *facts.architectures[:1]])
    revision = f" at {facts.revision[:12]}" if facts.revision else ""
    told = f"It is {facts.model_path}{revision} ({kind}), with {size.parameters:,} parameters."
    doubt = known.analysis.compatibility.message if isinstance(known.state, ReviewingAnalysis) else ""
    return f"{told} {doubt}".strip()


_MODEL = PhraseBook(
    "what model", "which model", "parameters", "architecture", "what kind of model", "model type", "family"
)
