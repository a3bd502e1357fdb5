"""Checkpoint 2: every decision with its reason, and what is known to go wrong."""

from __future__ import annotations

from bot.cards import amounts
from bot.cards.blocks import because_notes, fields, make_card, note, notes, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Card, Tone
from bot.cards.changes import value_in_words
from bot.cards.output import output_in_words
from bot.cards.texts import last_part, line, plain
from bot.conversation.state import ReviewingPlan
from schemas.artifacts.plan import Decision, Estimates, QuantPlan, Severity
from schemas.digest import short

FILE = "quant_plan.json"
"""The name under which the whole document is attached."""

_ROWS = 40


def plan_card(conversation: int, state: ReviewingPlan, plan: QuantPlan) -> Card:
    """The decision table, findings and estimates. A plan that cannot run has no Approve button and says why."""
    buttons = Buttons.of(conversation, state)
    blocked = tuple(finding.message for finding in plan.blocked_by) or state.plan.blocked_by
    offered = () if blocked else (buttons.approve(),)
    name = last_part(plan.model.model_path)
    scheme = line(plan.global_scheme, 60)
    found = [note(finding.severity, finding.message, finding.hint) for finding in plan.findings]
    return make_card(
        f"Quantization plan: {name} to {scheme}",
        Tone.WAITING,
        [
            *because_notes(state.because),
            *_refusal(blocked),
            _decisions(plan),
            *notes("What is known about this plan", found),
            _estimates(state, plan.estimates),
            paragraph(_question(blocked)),
        ],
        f"Plan for {name}: {_essence(plan)}. {_call(blocked)}",
        buttons=(*offered, buttons.edit(), buttons.cancel()),
    )


def estimated_size(estimates: Estimates) -> str | None:
    """The output beside the original; None when nothing was predicted."""
    output, source = estimates.output_bytes, estimates.source_bytes
    if output is None:
        return None
    if not source:
        return amounts.size(output)
    return f"{amounts.size(output)}, {amounts.share(output / source)} of the original's {amounts.size(source)}"


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
    whole = plan.model_dump(mode="json", exclude={"model", "decisions", "findings", "estimates"})
    return [Decision(decision=name, value=value, reason="", source="default") for name, value in whole.items()]


def _estimates(state: ReviewingPlan, estimates: Estimates) -> Block:
    needed, free = estimates.disk_bytes_needed, estimates.disk_bytes_free
    disk = None
    if needed is not None:
        disk = f"needs {amounts.size(needed)}, {amounts.size(free)} free" if free is not None else amounts.size(needed)
    return fields(
        ("Expected output", estimated_size(estimates) or "not predicted"),
        ("Disk", disk),
        ("Runner", state.request.runner),
        ("Output folder", output_in_words(state.request, state.analysis)),
        ("Revision of this plan", f"{state.plan.number}, digest {short(state.plan.digest)}"),
    )


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
