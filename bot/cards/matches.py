"""What the patterns of a plan mean for the model, and the configuration files that a run brings along for them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from bot.cards import amounts
from bot.cards.blocks import log_part, note, table
from bot.cards.card import Block, Note
from bot.cards.texts import line, some
from schemas.artifacts.plan import AlgorithmConfig, Finding, LayerMatch, QuantPlan, Severity
from schemas.digest import short

_ROWS = 20
_EXAMPLES = 2
_HEAD, _TAIL = 10, 4  # lines of a configuration file; the whole of it lies in the plan's file


def layer_matches(plan: QuantPlan) -> tuple[Block, ...]:
    """One row for each pattern: what becomes of its layers, how many there are, and some of them."""
    if not plan.layer_matches:
        return ()
    rows = [
        (one.pattern, _means(one, plan), f"{one.count:,}", some(one.examples, _EXAMPLES) or "matches nothing")
        for one in plan.layer_matches
    ]
    exact = all(one.exact for one in plan.layer_matches)
    counted = "the engine's own list of layers" if exact else "the names in the headers of the weights"
    caption = f"What the patterns match, counted in {counted}"
    return (table(("Pattern", "Becomes", "Layers", "Such as"), rows, caption=caption, numeric=(2,), at_most=_ROWS),)


def unmatched(plan: QuantPlan, defaults: Collection[str]) -> list[Note]:
    """A warning for each pattern of a person that matches no layer, unless a finding is about it already.

    `defaults` are the engine's own exclusions: they fit many models, not each of them all, and nobody wrote them.
    """
    missed = [
        one
        for one in plan.layer_matches
        if not one.count
        and (one.role == "override" or (plan.exclude_layers_changed and one.pattern not in defaults))
        and not any(_is_about(finding, one) for finding in plan.findings)
    ]
    return [
        note(
            Severity.WARNS,
            f"{line(one.pattern, 200)} matches no layer of this model.",
            "Correct it, or leave it out.",
        )
        for one in missed
    ]


def algorithm_configs(plan: QuantPlan) -> tuple[Block, ...]:
    """The configuration files that were written for this plan: whose they follow, their digest, and what they hold."""
    blocks: list[Block] = []
    if plan.algorithm_configs:
        rows = [
            (one.algorithm, f"that of {line(one.derived_from, 60)}", short(one.sha256))
            for one in plan.algorithm_configs
        ]
        caption = (
            f"Written for this plan: {amounts.count(len(rows), 'algorithm configuration')}, whole in quant_plan.json"
        )
        blocks.append(table(("Algorithm", "Follows", "SHA-256"), rows, caption=caption, at_most=_ROWS))
    for one in plan.algorithm_configs[:_EXAMPLES]:
        blocks += log_part(_lines(one), _HEAD, _TAIL)
    return tuple(blocks)


_ABOUT = {
    "exclude": {"exclusion_matches_nothing"},
    "override": {"override_matches_nothing", "override_reaches_embedding"},
}
"""The codes of the findings that say of one pattern what becomes of it."""


def _is_about(finding: Finding, match: LayerMatch) -> bool:
    """Whether the finding is about this very pattern: its sentence begins with it. Others may hold it as a part."""
    begins = rf"(?:The (?:exclusion|pattern) )?{re.escape(match.pattern)} matches "
    return finding.code in _ABOUT[match.role] and re.match(begins, finding.message) is not None


def _lines(config: AlgorithmConfig) -> list[str]:
    return json.dumps(config.content, indent=1, ensure_ascii=False).splitlines()


def _means(match: LayerMatch, plan: QuantPlan) -> str:
    if match.role == "exclude":
        return "left as it is"
    return plan.layer_quant_config.get(match.pattern, "not known")
