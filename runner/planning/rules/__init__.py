"""What is known to go wrong with a plan: one trap, one rule, one sentence.

What fails in the installed engine blocks; what it does silently or doubtfully warns.
"""

from __future__ import annotations

# The order of the imports is the order in which findings are shown.
from runner.planning.rules import (  # isort: skip
    model as model,
    schemes as schemes,
    algorithms as algorithms,
    algorithm_limits as algorithm_limits,
    layers as layers,
    kv_cache as kv_cache,
    calibration as calibration,
    memory as memory,
    host as host,
)
from runner.planning.host_view import HostView
from runner.planning.rules.registry import RULES, Case
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import Finding, QuantPlan, Severity
from schemas.catalog import Catalogue

_ORDER = {Severity.BLOCKS: 0, Severity.WARNS: 1, Severity.INFORMS: 2}


def find(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, view: HostView) -> list[Finding]:
    """All findings about a plan, the gravest first. Pure: it looks only at its arguments."""
    case = Case(plan, analysis, catalogue, view)
    found = [finding for rule in RULES.values() for finding in rule(case)]
    return sorted(found, key=lambda finding: _ORDER[finding.severity])
