"""Checkpoint 2: every decision with its reason, and what is known to go wrong."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import because_notes, fields, make_card, note, notes, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Card, Tone
from bot.cards.changes import value_in_words
from bot.cards.estimates import estimate_fields
from bot.cards.matches import algorithm_configs, layer_matches, unmatched
from bot.cards.outcome import risks_in_words
from bot.cards.output import output_in_words
from bot.cards.texts import last_part, line, plain
from bot.conversation.state import ExactList, ReviewingPlan
from schemas.artifacts.plan import Decision, QuantPlan, Severity
from schemas.digest import short

FILE = "quant_plan.json"
"""The name under which the whole document is attached."""

_ROWS = 40
_SHOWN_APART = {"model", "decisions", "layer_matches", "algorithm_configs", "findings", "risks", "estimates"}


def plan_card(conversation: int, state: ReviewingPlan, plan: QuantPlan) -> Card:
    """The decision table, what its patterns match, findings, estimates, and the risks that a yes accepts. A plan that
    cannot run has no Approve button and says why."""
    buttons = Buttons.of(conversation, state)
    blocked = tuple(finding.message for finding in plan.blocked_by) or state.plan.blocked_by
    offered = () if blocked else (buttons.approve(),)
    name = last_part(plan.model.model_path)
    scheme = line(plan.global_scheme, 60)
    exact = state.analysis.confirmed
    found = [note(finding.severity, finding.message, finding.hint) for finding in plan.findings]
    found += unmatched(plan, state.analysis.exclude_defaults)
    found += [note(Severity.WARNS, risk) for risk in (exact.risks if exact else ())]
    return make_card(
        f"Quantization plan: {name} to {scheme}",
        Tone.WAITING,
        [
            *because_notes(state.because),
            *_refusal(blocked),
            _decisions(plan),
            *layer_matches(plan),
            *algorithm_configs(plan),
            *notes("What is known about this plan", found),
            _needs(state, plan, exact),
            *_accepted(plan, blocked),
            paragraph(_question(blocked)),
        ],
        f"Plan for {name}: {_essence(plan)}. {_call(blocked)}",
        buttons=(*offered, buttons.edit(), buttons.cancel()),
    )


def _refusal(blocked: tuple[str, ...]) -> tuple[Block, ...]:
    if not blocked:
        return ()
    more = f" {len(blocked) - 1} more below." if len(blocked) > 1 else ""
    return (paragraph(f"This plan cannot run: {blocked[0]}{more}"),)


def _question(blocked: tuple[str, ...]) -> str:
    if blocked:
        return "Checkpoint 2 of 4: this plan cannot be approved. Change what stops it, as the hints say."
    return "Checkpoint 2 of 4: confirm this plan, or say what to change."


def _call(blocked: tuple[str, ...]) -> str:
    return f"It cannot run: {line(blocked[0], 120)}" if blocked else "Confirm it, or say what to change."


def _decisions(plan: QuantPlan) -> Block:
    rows = plan.decisions or _bare(plan)
    shown = [(row.decision, value_in_words(row.value), row.reason) for row in rows]
    return table(("Decision", "Value", "Reason"), shown, at_most=_ROWS)


def _bare(plan: QuantPlan) -> list[Decision]:
    """The rows of a plan that gives no reasons, so that nothing of what is approved is left unsaid."""
    whole = plan.model_dump(mode="json", exclude=_SHOWN_APART)
    return [Decision(decision=name, value=value, reason="", source="default") for name, value in whole.items()]


def _needs(state: ReviewingPlan, plan: QuantPlan, exact: ExactList | None) -> Block:
    layers = amounts.count(exact.linear_layers, "linear layer") if exact else ""
    return fields(
        *estimate_fields(plan.estimates),
        ("Exact list of layers", f"{layers}, as analysed" if exact else None),
        ("Runner", state.request.runner),
        ("Output folder", output_in_words(state.request, state.analysis)),
        ("Revision of this plan", f"{state.plan.number}, digest {short(state.plan.digest)}"),
    )


def _accepted(plan: QuantPlan, blocked: tuple[str, ...]) -> tuple[Block, ...]:
    """What a yes accepts, beside the plan itself."""
    if blocked or not plan.risks:
        return ()
    return (paragraph(f"Approving accepts {risks_in_words(plan.risks)}."),)


def _essence(plan: QuantPlan) -> str:
    calibration = plan.calibration
    told = [
        line(plan.global_scheme, 60),
        f"KV cache {line(plan.kv_cache_scheme, 40)}" if plan.kv_cache_scheme else "",
        f"algorithm {line(plan.algorithm, 60)}" if plan.algorithm else "no algorithm",
        f"{calibration.num_calib_data:,} x {calibration.seq_len:,} tokens of {last_part(plain(calibration.dataset))}",
    ]
    if plan.estimates.output_bytes is not None:
        told.append(f"about {amounts.size(plan.estimates.output_bytes)}")
    warnings = sum(finding.severity is Severity.WARNS for finding in plan.findings)
    if warnings:
        told.append(amounts.count(warnings, "warning"))
    return ", ".join(filter(None, told))
